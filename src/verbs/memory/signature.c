/* SPDX-License-Identifier: BSD-2-Clause */
/* Block signatures of keys, see verbs/memory/signature.h. */
#include "verbs/memory/signature.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/settings.h"
#include "explain/explain.h"

enum { MKEY_TAG_BITS = 8 };

/* ---- the table of a context ----------------------------------------------------------------------------------- */

void signature_table_init(struct signature_table *table)
{
	memset(table, 0, sizeof(*table));
	queue_lock_init(&table->lock, LOCK_LEVEL_SIGNATURES, false);
}

void signature_table_destroy(struct signature_table *table)
{
	queue_lock_destroy(&table->lock);
}

static struct signature_table *signature_table_of(const struct user_mkey *mkey)
{
	return &to_user_context(mkey->pd->base.context)->signatures;
}

static struct user_mkey **signature_list(struct signature_table *table, uint32_t index)
{
	return &table->list[index % (sizeof(table->list) / sizeof(table->list[0]))];
}

struct user_mkey *signature_find(struct user_context *context, uint32_t index)
{
	struct user_mkey *mkey = *signature_list(&context->signatures, index);

	while (mkey && mkey->signature->index != index)
		mkey = mkey->signature->next;
	return mkey;
}

static void signature_enter(struct user_mkey *mkey)
{
	struct signature_table *table = signature_table_of(mkey);
	struct user_mkey **list = signature_list(table, mkey->signature->index);

	queue_lock(&table->lock);
	mkey->signature->next = *list;
	*list = mkey;
	__atomic_add_fetch(&table->count, 1, __ATOMIC_RELAXED);
	queue_unlock(&table->lock);
}

static void signature_leave(struct user_mkey *mkey)
{
	struct signature_table *table = signature_table_of(mkey);
	struct user_mkey **link = signature_list(table, mkey->signature->index);

	queue_lock(&table->lock);
	while (*link != mkey)
		link = &(*link)->signature->next;
	*link = mkey->signature->next;
	__atomic_sub_fetch(&table->count, 1, __ATOMIC_RELAXED);
	queue_unlock(&table->lock);
}

/* ---- creating and destroying ---------------------------------------------------------------------------------- */

int key_signature_create(struct user_mkey *mkey)
{
	struct key_signature *signature = calloc(1, sizeof(*signature));
	int error = -ENOMEM;

	if (!signature)
		return error;
	error = hca_psv_create(mkey->pd->device, &signature->memory_psv);
	if (error)
		goto free_signature;
	error = hca_psv_create(mkey->pd->device, &signature->wire_psv);
	if (error)
		goto destroy_memory_psv;
	/* mlx5-formats 4.3: the first configuration sends a count of 1. */
	signature->error_count = 1;
	signature->rearm = true;
	/* Not from lkey, whose tag the program may change. */
	signature->index = mkey_number(mkey->key) >> MKEY_TAG_BITS;
	mkey->signature = signature;
	signature_enter(mkey);
	return 0;

destroy_memory_psv:
	hca_psv_destroy(hca_pd_device(mkey->pd->device), signature->memory_psv);
free_signature:
	free(signature);
	return error;
}

/*
 * Leaves the table first, so that a poll that finds an error gets a complete key or none. The PSVs are destroyed before
 * the key (mlx5-formats 4.3).
 */
int key_signature_destroy(struct user_mkey *mkey)
{
	struct hca *hca = hca_pd_device(mkey->pd->device);
	struct key_signature *signature = mkey->signature;
	int error;

	signature_leave(mkey);
	error = hca_psv_destroy(hca, signature->memory_psv);
	if (!error)
		error = hca_psv_destroy(hca, signature->wire_psv);
	if (error) {
		signature_enter(mkey);
		return error;
	}
	mkey->signature = NULL;
	free(signature);
	return 0;
}

bool signature_record_error(struct user_context *context, uint32_t index, const struct key_error *error)
{
	struct user_mkey *mkey;

	queue_lock(&context->signatures.lock);
	mkey = signature_find(context, index);
	if (mkey) {
		struct key_signature *signature = mkey->signature;

		/* mlx5-formats 4.6: each error overwrites the previous one. */
		signature->error = *error;
		signature->error_exists = true;
		__atomic_add_fetch(&signature->error_count, 1, __ATOMIC_RELAXED);
		__atomic_store_n(&signature->rearm, true, __ATOMIC_RELEASE);
	}
	queue_unlock(&context->signatures.lock);
	return mkey;
}

/*
 * Forgets attributes that keys with both signature and encryption would otherwise write later, although no setter of
 * the open configuration set them. If the chain is dropped, they stay forgotten: the state of the key is then unknown
 * (mlx5dv_wr_set_mkey_sig_block(3), Notes).
 */
void block_state_forget(struct user_qp *qp, uint32_t rkey)
{
	struct user_context *user = to_user_context(qp->base.context);
	struct user_mkey *mkey;

	if (!__atomic_load_n(&user->signatures.count, __ATOMIC_RELAXED) ||
	    hca_settings(hca_of_context(qp->base.context))->profile == PROFILE_CONNECTX)
		return;
	queue_lock(&user->signatures.lock);
	mkey = signature_find(user, rkey >> 8);
	if (mkey && mkey->crypto) {
		mkey->signature->memory.kind = mkey->signature->wire.kind = SIGNATURE_NONE;
		mkey->signature_state = mkey->crypto_state = BLOCK_INIT;
	}
	queue_unlock(&user->signatures.lock);
}
