/* SPDX-License-Identifier: BSD-2-Clause */
/* Creates and destroys keys and replaces their mappings. */
#include "mkey/key.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mkey/bsf.h"
#include "mkey/ended.h"
#include "core/compiler.h"
#include "core/epoch.h"
#include "hca/hca.h"
#include "hca/grants.h"
#include "observe/page_guard.h"
#include "observe/key_observer.h"
#include "mkey/window.h"

static struct mapping *mapping_new(uint32_t capacity, bool blocks)
{
	size_t bytes = sizeof(struct mapping) + capacity * sizeof(struct layout_entry);
	struct mapping *map = calloc(1, bytes + (blocks ? sizeof(struct block_setup) : 0));

	if (map && blocks)
		map->blocks = (struct block_setup *)((char *)map + bytes);
	return map;
}

/* Releases the DEK of @map. */
static void mapping_clear(struct mapping *map)
{
	if (map->blocks)
		block_setup_clear(map->blocks);
}

static void mapping_free(struct mapping *map)
{
	mapping_clear(map);
	free(map);
}

/*
 * Returns the next tag for @index. Threads and indices share the counter, so it is atomic: a lost increment could give
 * the new key the tag of the previous one.
 */
static uint8_t next_tag(struct hca *hca, uint32_t index)
{
	return __atomic_fetch_add(&hca->key_tags[index & (ID_LEAF_SIZE - 1)], 1, __ATOMIC_RELAXED);
}

static uint32_t first_number(struct hca *hca, uint32_t index, int tag)
{
	return index << 8 | (tag == KEY_TAG_OTHER ? next_tag(hca, index) : (uint8_t)tag);
}

/* Copies entries and block setup, too; @to keeps its memory for the setup. */
static void mapping_copy(struct mapping *to, const struct mapping *from)
{
	struct block_setup *blocks = to->blocks;

	memcpy(to, from, sizeof(*to) + from->count * sizeof(struct layout_entry));
	to->blocks = blocks;
	if (!blocks || !from->blocks)
		return;
	*blocks = *from->blocks;
	if (blocks->cipher.dek)
		dek_hold(blocks->cipher.dek);
}

/* Sets plain_rights. */
static void mapping_summarize(struct mapping *map)
{
	/* With page guards on (observe/page_guard.h), each access must be reported. */
	bool plain = map->kind == KEY_MEMORY && !map->free && map->qpn == KEY_QPN_ANY && !page_guard_is_on();

	map->plain_rights = plain ? map->rights : 0;
}

int mkey_new(struct hca_pd *pd, const struct mapping *initial, uint32_t capacity, bool blocks, int tag,
	     struct mkey **out)
{
	struct hca *hca = pd->context->hca;
	struct mapping *map = mapping_new(capacity, blocks);
	struct mkey *key = calloc(1, sizeof(*key));
	uint32_t index;

	if (!map || !key || id_table_alloc(&hca->keys, &index))
		goto no_memory;
	key->hca = hca;
	key->pd = initial->kind == KEY_NULL ? NULL : pd;
	key->index = index;
	key->capacity = capacity;
	if (capacity) {
		key->retired = mapping_new(capacity, blocks);
		if (!key->retired)
			goto release;
	}
	mapping_copy(map, initial);
	map->number = first_number(hca, index, tag);
	map->serial = __atomic_add_fetch(&hca->next_serial, 1, __ATOMIC_RELAXED);
	map->pd = pd->number;
	map->explained = explain_latest(hca);
	mapping_summarize(map);
	key->mapping = map;
	if (key->pd)
		reference_get(&pd->references);
	id_table_publish(&hca->keys, index, key);
	*out = key;
	return 0;
release:
	id_table_release(&hca->keys, index);
no_memory:
	free(map);
	free(key);
	return -ENOMEM;
}

void mkey_delete(struct mkey *key)
{
	struct mapping *map, *older;

	if (unlikely(key->hca->key_observer))
		key->hca->key_observer->ends(key);
	/* Recorded first, so that a request that does not find the key finds the record. */
	ended_keep(key->hca, key->mapping->number, key->mapping->kind);
	id_table_unpublish(&key->hca->keys, key->index);
	epoch_synchronize();
	if (unlikely(__atomic_load_n(&key->granted, __ATOMIC_RELAXED)))
		grants_revoke_and_drain();
	epoch_enter();
	window_count(key->hca, key->mapping, -1);
	epoch_leave();
	id_table_release(&key->hca->keys, key->index);
	if (key->pd)
		reference_put(&key->pd->references);
	for (map = key->retired; map; map = older) {
		older = map->older;
		mapping_free(map);
	}
	mapping_free(key->mapping);
	free(key);
}

/* Removes the reusable mappings from the retired ones. Returns one of them, or NULL, and frees the others. */
static struct mapping *mapping_reclaim(struct mkey *key)
{
	struct mapping **link = &key->retired, *map, *found = NULL;

	while ((map = *link)) {
		if (!epoch_passed(map->retired)) {
			link = &map->older;
			continue;
		}
		*link = map->older;
		if (found)
			mapping_free(map);
		else
			found = map;
	}
	return found;
}

struct queue_lock *mkey_lock(const struct mkey *key)
{
	return &key->hca->key_locks[key->index % HCA_KEY_LOCKS];
}

struct mapping *mkey_edit(struct mkey *key)
{
	struct mapping *next;

	queue_lock(mkey_lock(key));
	next = mapping_reclaim(key);
	if (!next)
		next = mapping_new(key->capacity, key->bsf_octowords);
	if (!next) {
		queue_unlock(mkey_lock(key));
		return NULL;
	}
	mapping_clear(next);
	mapping_copy(next, key->mapping);
	next->version++;
	return next;
}

static void mapping_retire(struct mkey *key, struct mapping *map, uint64_t stamp)
{
	map->retired = stamp;
	map->older = key->retired;
	key->retired = map;
}

uint64_t mkey_publish(struct mkey *key, struct mapping *next)
{
	const struct key_observer *observer = key->hca->key_observer;
	struct mapping *old = key->mapping;
	uint64_t stamp;

	mapping_summarize(next);
	next->explained = explain_latest(key->hca);
	if (unlikely(observer))
		observer->ends(key);
	__atomic_store_n(&key->mapping, next, __ATOMIC_RELEASE);
	window_count(key->hca, next, 1);
	window_count(key->hca, old, -1);
	stamp = epoch_retire();
	mapping_retire(key, old, stamp);
	if (unlikely(observer))
		observer->begins(key);
	queue_unlock(mkey_lock(key));
	return stamp;
}

void mkey_discard(struct mkey *key, struct mapping *next)
{
	mapping_retire(key, next, 0);
	queue_unlock(mkey_lock(key));
}

/* ---- signature errors ----------------------------------------------------------------------------------------- */

/* Claims the error if its state is @from. The caller then owns key->error until it sets the next state. */
static bool claim_error(struct mkey *key, uint8_t from)
{
	return __atomic_load_n(&key->error_state, __ATOMIC_RELAXED) == from &&
	       __atomic_compare_exchange_n(&key->error_state, &from, KEY_ERROR_CHANGES, false, __ATOMIC_ACQUIRE,
					   __ATOMIC_RELAXED);
}

bool mkey_keep_error(struct mkey *key, const struct mlx5dv_mkey_err *error)
{
	if (!claim_error(key, KEY_ERROR_NONE))
		return false;
	key->error = *error;
	__atomic_store_n(&key->error_state, KEY_ERROR_KEPT, __ATOMIC_RELEASE);
	return true;
}

void hca_mkey_take_error(struct mkey *key, struct mlx5dv_mkey_err *error)
{
	error->err_type = MLX5DV_MKEY_NO_ERR;
	if (!claim_error(key, KEY_ERROR_KEPT))
		return;
	*error = key->error;
	/* Programs that also read raw CQEs get one for the next error. */
	mkey_arm_errors(key);
	__atomic_store_n(&key->error_state, KEY_ERROR_NONE, __ATOMIC_RELEASE);
}

uint32_t mkey_number(const struct mkey *key)
{
	return mkey_mapping(key)->number;
}
