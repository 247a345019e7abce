/* SPDX-License-Identifier: BSD-2-Clause */
/* Executes UMR WQEs. The order of the checks is that of mlx5-formats 1.8. */
#include "core/thread_memory.h"
#include "mkey/umr.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mkey/bsf.h"
#include "mkey/ended.h"
#include "hca/hca.h"
#include "mkey/layout.h"
#include "mkey/psv.h"
#include "mkey/stream.h"
#include "mkey/window.h"

#define MASK_LOCAL_READ (1u << 17)
#define MASK_SMALL_FENCE (1u << 23)
#define MASK_RELAXED_ORDERING (3u << 25)
/*
 * Attributes that a program may change. Domain and page size are the kernel's: with them a program could leave its
 * domain.
 */
#define MASK_ALLOWED                                                                                                   \
	(MLX5_WQE_UMR_CTRL_MKEY_MASK_LEN | MLX5_WQE_UMR_CTRL_MKEY_MASK_START_ADDR |                                    \
	 MLX5_WQE_UMR_CTRL_MKEY_MASK_SIG_ERR | MLX5_WQE_UMR_CTRL_MKEY_MASK_BSF_ENABLE |                                \
	 MLX5_WQE_UMR_CTRL_MKEY_MASK_MKEY | MLX5_WQE_UMR_CTRL_MKEY_MASK_QPN | MASK_LOCAL_READ |                        \
	 MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_LOCAL_WRITE | MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_REMOTE_READ |             \
	 MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_REMOTE_WRITE | MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_ATOMIC |                 \
	 MASK_SMALL_FENCE | MASK_RELAXED_ORDERING | MLX5_WQE_UMR_CTRL_MKEY_MASK_FREE)

#define CONTEXT_BSF_ENABLED (1u << 30)

/* A parsed WQE, in host order. */
struct umr {
	uint32_t number; /* imm: with tag */
	uint8_t flags;
	uint32_t translation_bytes;
	uint32_t bsf_octowords;
	uint64_t offset; /* first entry to replace; 0: all */
	uint64_t mask;
	struct mlx5_wqe_mkey_context_seg context;
	const uint8_t *translations; /* in the WQE or in `fetched` */
	const uint8_t *bsf;
	uint8_t *fetched; /* payload not inline in the WQE; owned */
};

/*
 * Returns the translation offset (mlx5-formats 1.8): 48 bits with its flag. Without it the lower 16 bits have another
 * meaning.
 */
static uint64_t offset_of(const struct mlx5_wqe_umr_ctrl_seg *control)
{
	uint32_t high;

	if (!(control->flags & UMR_TRANSLATION_OFFSET))
		return 0;
	memcpy(&high, control->rsvd1, sizeof(high));
	return (uint64_t)be32toh(high) << 16 | be16toh(control->translation_offset);
}

/* Reads a payload that is not inline from the memory that one data segment names, in the same order. */
static int fetch_payload(const struct walk_access *access, struct umr *umr, const uint8_t *at, size_t left,
			 uint32_t payload, struct refusal *why)
{
	THREAD_VARIABLE(struct stream, stream);
	struct mlx5_wqe_data_seg segment;
	uint32_t named;
	int error;

	if (left < sizeof(segment))
		return REFUSAL(why, EACCES, RULE_UMR_SHORT, left, sizeof(segment));
	memcpy(&segment, at, sizeof(segment));
	named = be32toh(segment.byte_count);
	if (named & MLX5_INLINE_SEG)
		named = 0;
	if (named < payload)
		return REFUSAL(why, EACCES, RULE_UMR_NOT_INLINE, umr->number, payload, named);
	stream_begin(stream, access, RIGHT_LOCAL_READ);
	error = stream_add_key(stream, be32toh(segment.lkey), be64toh(segment.addr), payload, why);
	if (error)
		return error;
	umr->fetched = malloc(payload);
	if (!umr->fetched)
		return REFUSAL(why, EACCES, RULE_UMR_NO_MEMORY, umr->number);
	stream_read(stream, umr->fetched, payload);
	return 0;
}

static int umr_parse(const struct walk_access *access, struct umr *umr, const uint8_t *wqe, size_t bytes,
		     struct refusal *why)
{
	struct mlx5_wqe_ctrl_seg ctrl;
	struct mlx5_wqe_umr_ctrl_seg control;
	const size_t fixed = sizeof(ctrl) + sizeof(control) + sizeof(umr->context);
	uint32_t payload;
	int error;

	umr->fetched = NULL;
	if (bytes < fixed)
		return REFUSAL(why, EACCES, RULE_UMR_SHORT, bytes, fixed);
	memcpy(&ctrl, wqe, sizeof(ctrl));
	memcpy(&control, wqe + sizeof(ctrl), sizeof(control));
	memcpy(&umr->context, wqe + sizeof(ctrl) + sizeof(control), sizeof(umr->context));
	umr->number = be32toh(ctrl.imm);
	umr->flags = control.flags;
	umr->mask = be64toh(control.mkey_mask);
	umr->translation_bytes = be16toh(control.klm_octowords) * 16u;
	/* The two fields share two bytes. */
	umr->bsf_octowords = umr->flags & UMR_TRANSLATION_OFFSET ? 0 : be16toh(control.bsf_octowords);
	umr->offset = offset_of(&control);
	if (umr->mask & ~(uint64_t)MASK_ALLOWED)
		return REFUSAL(why, EACCES, RULE_UMR_MASK, umr->number, umr->mask, MASK_ALLOWED);
	payload = umr->translation_bytes + umr->bsf_octowords * 16u;
	if (!(umr->flags & UMR_INLINE) && payload) {
		error = fetch_payload(access, umr, wqe + fixed, bytes - fixed, payload, why);
		if (error)
			return error;
	} else if (payload > bytes - fixed) {
		return REFUSAL(why, EACCES, RULE_UMR_SHORT, bytes, fixed + payload);
	}
	umr->translations = umr->fetched ? umr->fetched : wqe + fixed;
	umr->bsf = umr->translations + umr->translation_bytes;
	return 0;
}

/* Checks mlx5-formats 6, points 33 to 37. */
static int check_key(const struct walk_access *access, const struct umr *umr, const struct mkey *key,
		     const struct mapping *map, struct refusal *why)
{
	if (!key->umr_enabled)
		return REFUSAL(why, EACCES, RULE_UMR_NOT_ENABLED, umr->number, map->kind);
	if (map->pd != access->pd)
		return REFUSAL(why, EACCES, RULE_KEY_DOMAIN, umr->number, map->kind, map->pd, access->pd);
	if (!map->free && !key->update_tag && map->number != umr->number)
		return REFUSAL(why, EACCES, RULE_UMR_STALE, umr->number, map->kind, map->number);
	if (umr->flags & UMR_MUST_BE_FREE && !map->free)
		return REFUSAL(why, EACCES, RULE_UMR_NOT_FREE, umr->number, map->kind, map->start, map->length);
	if (umr->flags & UMR_MUST_BE_LIVE && map->free)
		return REFUSAL(why, EACCES, RULE_UMR_FREE, umr->number, map->kind);
	if (umr->flags & UMR_CHECK_QPN && map->qpn != KEY_QPN_ANY && map->qpn != access->qpn)
		return REFUSAL(why, EACCES, RULE_KEY_OTHER_QP, umr->number, map->kind, map->qpn, access->qpn);
	if (umr->offset > key->capacity || umr->translation_bytes / 16 > key->capacity - umr->offset)
		return REFUSAL(why, EACCES, RULE_UMR_CAPACITY, umr->number, umr->offset + umr->translation_bytes / 16,
			       key->capacity);
	if (umr->bsf_octowords > key->bsf_octowords)
		return REFUSAL(why, EACCES, RULE_UMR_BSF_CAPACITY, umr->number, umr->bsf_octowords, key->bsf_octowords);
	return 0;
}

static void set_right(struct mapping *next, const struct umr *umr, uint64_t mask_bit, uint8_t right)
{
	if (!(umr->mask & mask_bit))
		return;
	next->rights = (next->rights & ~right) | (umr->context.access_flags & right);
}

static void apply_context(const struct walk_access *access, struct mapping *next, const struct umr *umr)
{
	uint32_t qpn_tag = be32toh(umr->context.qpn_mkey);

	if (umr->mask & MLX5_WQE_UMR_CTRL_MKEY_MASK_MKEY)
		next->number = (next->number & ~0xffu) | (qpn_tag & 0xff);
	if (umr->mask & MLX5_WQE_UMR_CTRL_MKEY_MASK_QPN) {
		next->qpn = qpn_tag >> 8;
		next->qp_serial = next->qpn == access->qpn ? access->qp_serial : 0;
	}
	if (umr->mask & MLX5_WQE_UMR_CTRL_MKEY_MASK_FREE)
		next->free = umr->context.free & MLX5_WQE_MKEY_CONTEXT_FREE;
	if (umr->mask & MLX5_WQE_UMR_CTRL_MKEY_MASK_LEN)
		next->length = be64toh(umr->context.len);
	if (umr->mask & MLX5_WQE_UMR_CTRL_MKEY_MASK_START_ADDR)
		next->start = be64toh(umr->context.start_addr);
	set_right(next, umr, MASK_LOCAL_READ, RIGHT_LOCAL_READ);
	set_right(next, umr, MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_LOCAL_WRITE, RIGHT_LOCAL_WRITE);
	set_right(next, umr, MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_REMOTE_READ, RIGHT_REMOTE_READ);
	set_right(next, umr, MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_REMOTE_WRITE, RIGHT_REMOTE_WRITE);
	set_right(next, umr, MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_ATOMIC, RIGHT_ATOMIC);
}

/*
 * Clears the configuration on a local invalidation, so that the next one is complete (mlx5dv_wr_mkey_configure(3)).
 * Adapters (profile connectx) and keys of DEVX commands keep it, for a later partial configuration.
 */
static void clear_configuration(const struct mkey *key, struct mapping *next, const struct umr *umr)
{
	if (!key->clears || !next->free || !(umr->mask & MLX5_WQE_UMR_CTRL_MKEY_MASK_FREE) ||
	    key->hca->settings.profile == PROFILE_CONNECTX)
		return;
	next->rights = RIGHT_LOCAL_READ;
	next->start = next->length = 0;
	next->form = LAYOUT_NONE;
	next->count = 0;
	if (!next->blocks)
		return;
	block_setup_clear(next->blocks);
	next->staged = next->needs_cipher;
}

/*
 * Applies the BSFs (mlx5-formats 1.8). With BSF_EN in the mask, a set bit replaces the block setup, a clear bit switches
 * it off. Without it, a key with room for BSFs keeps its setup, or takes the one that is sent.
 */
static int apply_blocks(const struct walk_access *access, const struct mkey *key, struct mapping *next,
			const struct umr *umr, struct refusal *why)
{
	bool changes = umr->mask & MLX5_WQE_UMR_CTRL_MKEY_MASK_BSF_ENABLE;
	bool enabled = be32toh(umr->context.flags_pd) & CONTEXT_BSF_ENABLED;
	int error;

	if (changes && enabled && !key->bsf_octowords)
		return REFUSAL(why, EACCES, RULE_UMR_BSF_CAPACITY, umr->number, OCTOWORDS_OF_BSF, 0);
	if (!next->blocks)
		return 0;
	if (changes && !enabled)
		block_setup_clear(next->blocks);
	if ((enabled || !changes) && umr->bsf_octowords) {
		error = bsf_parse(access, umr->number, umr->bsf, umr->bsf_octowords, next->blocks, why);
		if (error)
			return error;
	}
	next->staged = next->blocks->signature.enabled || next->blocks->cipher.enabled || next->needs_cipher;
	return 0;
}

static int umr_apply(const struct walk_access *access, const struct mkey *key, struct mapping *next,
		     const struct umr *umr, struct refusal *why)
{
	int error;

	error = apply_blocks(access, key, next, umr, why);
	if (error)
		return error;
	apply_context(access, next, umr);
	if (umr->translation_bytes) {
		error = umr->offset ? layout_replace(next, umr->number, (uint32_t)umr->offset, umr->translations,
						     umr->translation_bytes, why)
				    : layout_parse(next, umr->number, umr->translations, umr->translation_bytes, why);
		if (error)
			return error;
	} else if (umr->mask & MLX5_WQE_UMR_CTRL_MKEY_MASK_LEN && !next->length) {
		next->form = LAYOUT_NONE;
		next->count = 0;
	}
	clear_configuration(key, next, umr);
	if (next->kind == KEY_WINDOW_1 || next->kind == KEY_WINDOW_2)
		return window_check(access, next, why);
	return 0;
}

/*
 * Returns true if the change revokes rights. Reconfiguring a live mkey does not: the program has waited for requests
 * that use it, and must not wait for others.
 */
static bool change_revokes(const struct mapping *old, const struct mapping *next)
{
	return !old->free && (next->free || next->kind == KEY_WINDOW_1 || next->kind == KEY_WINDOW_2);
}

static int umr_change_key(const struct walk_access *access, const struct umr *umr, uint64_t *revoked,
			  struct refusal *why)
{
	struct mapping *next;
	struct mkey *key;
	uint64_t stamp;
	bool revoking;
	int error;

	key = mkey_find(access->hca, umr->number);
	if (!key) {
		error = REFUSAL(why, EACCES, RULE_UMR_UNKNOWN, umr->number);
		ended_explain(access->hca, umr->number, why);
		return error;
	}
	if (!key->umr_enabled)
		return REFUSAL(why, EACCES, RULE_UMR_NOT_ENABLED, umr->number, mkey_mapping(key)->kind);
	next = mkey_edit(key);
	if (!next)
		return REFUSAL(why, EACCES, RULE_UMR_NO_MEMORY, umr->number);
	error = check_key(access, umr, key, next, why);
	if (!error)
		error = umr_apply(access, key, next, umr, why);
	if (error) {
		mkey_discard(key, next);
		return error;
	}
	/* Any SIG_ERR arms the key; the count is not compared (mlx5-formats 6, point 8). */
	if (umr->mask & MLX5_WQE_UMR_CTRL_MKEY_MASK_SIG_ERR)
		mkey_arm_errors(key);
	revoking = change_revokes(key->mapping, next);
	stamp = mkey_publish(key, next);
	if (revoking)
		*revoked = stamp;
	return 0;
}

int umr_execute(const struct walk_access *access, const uint8_t *wqe, size_t bytes, uint64_t *revoked,
		struct refusal *why)
{
	struct umr umr;
	int error = umr_parse(access, &umr, wqe, bytes, why);

	if (!error)
		error = umr_change_key(access, &umr, revoked, why);
	free(umr.fetched);
	return error;
}

int set_psv_execute(const struct walk_access *access, const uint8_t *wqe, size_t bytes, struct refusal *why)
{
	struct set_psv_segment {
		__be32 index;
		__be16 syndrome;
		uint8_t reserved[2];
		__be64 transient;
	} segment;
	struct psv *psv;

	if (bytes < sizeof(struct mlx5_wqe_ctrl_seg) + sizeof(segment))
		return REFUSAL(why, EACCES, RULE_UMR_SHORT, bytes, sizeof(struct mlx5_wqe_ctrl_seg) + sizeof(segment));
	memcpy(&segment, wqe + sizeof(struct mlx5_wqe_ctrl_seg), sizeof(segment));
	psv = psv_find(access->hca, be32toh(segment.index) & 0xffffff, access->pd);
	if (!psv)
		return REFUSAL(why, EACCES, RULE_PSV_UNKNOWN, be32toh(segment.index) & 0xffffff, access->pd);
	psv_set(psv, be64toh(segment.transient));
	return 0;
}

/* IBTA C10-58: only keys created for it can be invalidated remotely. */
static int may_invalidate(const struct walk_access *access, const struct mkey *key, const struct mapping *map,
			  uint32_t rkey, struct refusal *why)
{
	if (map->free)
		return REFUSAL(why, EACCES, RULE_INVALIDATE_FREE, rkey, map->kind);
	if (map->number != rkey)
		return REFUSAL(why, EACCES, RULE_INVALIDATE_STALE, rkey, map->kind, map->number);
	if (map->pd != access->pd)
		return REFUSAL(why, EACCES, RULE_KEY_DOMAIN, rkey, map->kind, map->pd, access->pd);
	if (!key->remote_invalidate)
		return REFUSAL(why, EACCES, RULE_INVALIDATE_NOT_ALLOWED, rkey, map->kind);
	if (map->qpn != KEY_QPN_ANY && map->qpn != access->qpn)
		return REFUSAL(why, EACCES, RULE_KEY_OTHER_QP, rkey, map->kind, map->qpn, access->qpn);
	return 0;
}

int invalidate_execute(const struct walk_access *access, uint32_t rkey, struct refusal *why)
{
	struct mkey *key = mkey_find(access->hca, rkey);
	struct mapping *next;
	int error;

	if (!key) {
		error = REFUSAL(why, EACCES, RULE_INVALIDATE_UNKNOWN, rkey);
		ended_explain(access->hca, rkey, why);
		return error;
	}
	next = mkey_edit(key);
	if (!next)
		return REFUSAL(why, EACCES, RULE_UMR_NO_MEMORY, rkey);
	error = may_invalidate(access, key, next, rkey, why);
	if (error) {
		mkey_discard(key, next);
		return error;
	}
	/* As after a local invalidation (mlx5-formats 1.15 and 6, point 36). */
	next->free = true;
	next->qpn = KEY_QPN_ANY;
	next->qp_serial = 0;
	mkey_publish(key, next);
	return 0;
}
