/* SPDX-License-Identifier: BSD-2-Clause */
/* Commands of the driver for keys. */
#include <errno.h>
#include <string.h>

#include "core/compiler.h"
#include "core/epoch.h"
#include "hca/hca.h"
#include "hca/grants.h"
#include "mkey/key.h"
#include "mkey/layout.h"
#include "mkey/pages.h"

#define RIGHTS_THAT_WRITE (RIGHT_LOCAL_WRITE | RIGHT_REMOTE_WRITE | RIGHT_ATOMIC)

static enum key_kind kind_of_mr(enum mr_kind kind)
{
	switch (kind) {
	case MR_ON_DEMAND:
		return KEY_ON_DEMAND;
	case MR_IMPLICIT:
		return KEY_IMPLICIT;
	case MR_DEVICE_MEMORY:
		return KEY_DEVICE_MEMORY;
	case MR_NULL:
		return KEY_NULL;
	default:
		return KEY_MEMORY;
	}
}

static uint8_t rights_from_access(unsigned int access)
{
	return RIGHT_LOCAL_READ | (access & IBV_ACCESS_LOCAL_WRITE ? RIGHT_LOCAL_WRITE : 0) |
	       (access & IBV_ACCESS_REMOTE_READ ? RIGHT_REMOTE_READ : 0) |
	       (access & IBV_ACCESS_REMOTE_WRITE ? RIGHT_REMOTE_WRITE : 0) |
	       (access & IBV_ACCESS_REMOTE_ATOMIC ? RIGHT_ATOMIC : 0);
}

static void mapping_set_access(struct mapping *map, unsigned int access)
{
	map->rights = rights_from_access(access);
	map->bind_allowed = access & IBV_ACCESS_MW_BIND;
}

static void mapping_set_translation(struct mapping *map, const struct hca_mr_attr *attr)
{
	map->kind = kind_of_mr(attr->kind);
	map->base = attr->addr;
	map->start = attr->start;
	map->length = attr->length;
}

/* Faults memory in as registration does, to refuse what the kernel refuses (ibv_reg_mr(3), EFAULT). */
static int pin_memory(const struct hca_mr_attr *attr)
{
	if (attr->kind != MR_MEMORY)
		return 0;
	return pages_present(attr->addr, attr->length, attr->access & (IBV_ACCESS_LOCAL_WRITE));
}

int hca_mr_register(struct hca_pd *pd, const struct hca_mr_attr *attr, struct mkey **key)
{
	struct mapping initial = {.qpn = KEY_QPN_ANY};
	int error = pin_memory(attr);

	if (error)
		return error;
	mapping_set_translation(&initial, attr);
	mapping_set_access(&initial, attr->access);
	return mkey_new(pd, &initial, 0, false, KEY_TAG_OTHER, key);
}

static void move_to_domain(struct mkey *key, struct mapping *next, struct hca_pd *pd)
{
	reference_get(&pd->references);
	reference_put(&key->pd->references);
	key->pd = pd;
	next->pd = pd->number;
}

int hca_mr_reregister(struct mkey *key, int flags, struct hca_pd *pd, const struct hca_mr_attr *attr)
{
	struct hca_mr_attr wanted = *attr;
	struct mapping *next;
	int error;

	next = mkey_edit(key);
	if (!next)
		return -ENOMEM;
	if (!(flags & IBV_REREG_MR_CHANGE_TRANSLATION)) {
		wanted.kind = next->kind == KEY_MEMORY ? MR_MEMORY : MR_ON_DEMAND;
		wanted.addr = next->base;
		wanted.length = next->length;
	}
	if (!(flags & IBV_REREG_MR_CHANGE_ACCESS))
		wanted.access = next->rights & RIGHT_LOCAL_WRITE ? IBV_ACCESS_LOCAL_WRITE : 0;
	error = pin_memory(&wanted);
	if (error) {
		mkey_discard(key, next);
		return error;
	}
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION)
		mapping_set_translation(next, attr);
	if (flags & IBV_REREG_MR_CHANGE_ACCESS)
		mapping_set_access(next, attr->access);
	if (flags & IBV_REREG_MR_CHANGE_PD)
		move_to_domain(key, next, pd);
	mkey_publish(key, next);
	/* The program may unmap the old memory as soon as this returns. */
	epoch_synchronize();
	if (unlikely(__atomic_load_n(&key->granted, __ATOMIC_RELAXED)))
		grants_revoke_and_drain();
	return 0;
}

/*
 * ibv_dereg_mr(3): "fails if any memory window is still bound to this MR". A ConnectX does not track windows: it
 * succeeds, and later accesses through the window are refused (mlx5-formats 6, point 57).
 */
int hca_mr_deregister(struct mkey *key)
{
	uint32_t windows = __atomic_load_n(&key->windows, __ATOMIC_RELAXED);

	if (windows && key->hca->settings.profile == PROFILE_MAN)
		return -REFUSE(key->hca, "ibv_dereg_mr", EBUSY, RULE_REGION_HAS_WINDOWS, mkey_number(key), windows);
	mkey_delete(key);
	return 0;
}

/* Attributes as the kernel sets them (mlx5-formats 1.15). */
int hca_mw_alloc(struct hca_pd *pd, enum ibv_mw_type type, struct mkey **key)
{
	struct mapping initial = {
		.kind = type == IBV_MW_TYPE_1 ? KEY_WINDOW_1 : KEY_WINDOW_2,
		.free = true,
		.rights = RIGHT_LOCAL_READ,
		.qpn = KEY_QPN_ANY,
	};
	int error = mkey_new(pd, &initial, 4, false, 0, key);

	if (error)
		return error;
	(*key)->umr_enabled = true;
	(*key)->remote_invalidate = type == IBV_MW_TYPE_2;
	return 0;
}

int hca_mw_dealloc(struct mkey *key)
{
	mkey_delete(key);
	return 0;
}

int hca_mkey_create(struct hca_pd *pd, const struct hca_mkey_attr *attr, struct mkey **key)
{
	const struct hca_mkey_layout layout = {
		.attr = *attr,
		.state =
			{
				.free = true,
				.rights = RIGHT_LOCAL_READ,
				.qpn = KEY_QPN_ANY,
				.remote_invalidate = attr->remote_invalidate,
			},
	};
	struct refusal why;
	int error = hca_mkey_create_layout(pd, &layout, key, &why);

	if (!error)
		(*key)->clears = true;
	return error;
}

static struct mapping initial_mapping(enum key_kind kind, const struct hca_mkey_state *state)
{
	return (struct mapping){
		.kind = kind,
		.free = state->free,
		.rights = state->rights,
		.qpn = state->qpn,
		.start = state->start,
		.length = state->length,
	};
}

/* Sets the initial translation. The program does not have the key's number yet, so no epoch needs to pass. */
static int set_entries(struct mkey *key, const struct hca_mkey_layout *layout, struct refusal *why)
{
	struct mapping *next = mkey_edit(key);
	int error;

	if (!next)
		return -ENOMEM;
	error = layout_parse(next, next->number, layout->entries, layout->entry_count * 16, why);
	if (error)
		mkey_discard(key, next);
	else
		mkey_publish(key, next);
	return error;
}

int hca_mkey_create_layout(struct hca_pd *pd, const struct hca_mkey_layout *layout, struct mkey **key,
			   struct refusal *why)
{
	const struct hca_mkey_attr *attr = &layout->attr;
	struct mapping initial = initial_mapping(KEY_INDIRECT, &layout->state);
	int error;

	why->rule = RULE_NONE;
	initial.log_entity = layout->log_entity;
	initial.needs_cipher = initial.staged = attr->cipher;
	error = mkey_new(pd, &initial, attr->max_entries, attr->bsf_octowords, layout->state.tag, key);
	if (error)
		return error;
	/* Chooses the guard kernels now, not during the first transfer. */
	if (attr->bsf_octowords)
		guard_kernel_name(GUARD_T10_CRC);
	(*key)->umr_enabled = !layout->fixed;
	(*key)->bsf_octowords = attr->bsf_octowords;
	(*key)->remote_invalidate = layout->state.remote_invalidate;
	(*key)->update_tag = attr->update_tag;
	error = layout->entry_count ? set_entries(*key, layout, why) : 0;
	if (error)
		mkey_delete(*key);
	return error;
}

int hca_mkey_create_memory(struct hca_pd *pd, const struct hca_mkey_state *state, void *base, struct mkey **key)
{
	struct mapping initial = initial_mapping(KEY_MEMORY, state);
	int error = pages_present(base, state->length, state->rights & RIGHTS_THAT_WRITE);

	if (error)
		return error;
	initial.base = base;
	error = mkey_new(pd, &initial, 0, false, state->tag, key);
	if (!error)
		(*key)->remote_invalidate = state->remote_invalidate;
	return error;
}

int hca_mkey_destroy(struct mkey *key)
{
	mkey_delete(key);
	return 0;
}

bool hca_mkey_cut_block(struct mkey *key, struct hca_cut_block *cut)
{
	bool is_cut;

	epoch_enter();
	queue_lock(mkey_lock(key));
	*cut = key->cut;
	is_cut = cut->block && key->cut_version == mkey_mapping(key)->version;
	queue_unlock(mkey_lock(key));
	epoch_leave();
	return is_cut;
}

void hca_mkey_query(struct mkey *key, struct hca_mkey_state *state)
{
	const struct mapping *map;

	epoch_enter();
	map = mkey_mapping(key);
	*state = (struct hca_mkey_state){
		.free = map->free,
		.rights = map->rights,
		.tag = (uint8_t)map->number,
		.qpn = map->qpn,
		.start = map->start,
		.length = map->length,
		.remote_invalidate = key->remote_invalidate,
	};
	epoch_leave();
}
