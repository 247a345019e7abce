/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Building send WQEs (mlx5-formats 1.1 to 1.5). sq.lock is held. Nothing here allocates, calls the device, or fails
 * except as documented.
 *
 * A WQE may wrap around the ring end at any 16-byte position, so it is addressed by offset: wqe_unit() returns the 16
 * bytes at an offset; wqe_copy() and wqe_zero() accept any length.
 *
 * Between ibv_wr_start(3) and ibv_wr_complete(3), wr_begin() opens a WQE, the caller writes its segments, wr_finish()
 * advances the producer. wr_latch() stores the first error; after that wr_begin() returns false and setters find no
 * open WQE, so the rest of the chain has no effect.
 */
#ifndef SOFTHCA_VERBS_POST_WQE_BUILDER_H
#define SOFTHCA_VERBS_POST_WQE_BUILDER_H

#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "core/copy_small.h"
#include "explain/explain.h"
#include "verbs/object/objects.h"

#define wqe_unlikely(condition) __builtin_expect(!!(condition), 0)

/* ---- a place in the ring ------------------------------------------------------------------------------- */

enum {
	WQE_UNIT = 16, /* segments are multiples of it, so no unit wraps around the ring end */
	WQE_BLOCK = MLX5_SEND_WQE_BB,
	WQE_MAX_BYTES = 63 * WQE_UNIT, /* `ds` has 6 bits */
};

/* Passed by value: the compiler keeps it in registers across stores to the ring. */
struct wqe {
	uint8_t *ring;
	uint32_t mask;  /* ring bytes - 1 */
	uint32_t start; /* byte offset in the ring, not reduced modulo its size */
};

/** Returns the WQE at block @index (free running) of @sq, which has a ring. */
static inline struct wqe wqe_at(const struct send_queue *sq, uint32_t index)
{
	return (struct wqe){
		.ring = sq->buffer,
		.mask = sq->wqebb_count * WQE_BLOCK - 1,
		.start = index * WQE_BLOCK,
	};
}

static inline struct wqe wqe_current(const struct send_queue *sq)
{
	return wqe_at(sq, sq->cur_post);
}

/** Returns the 16 bytes at @offset (a multiple of 16). The next 16 may not follow in memory. */
static inline void *wqe_unit(struct wqe wqe, uint32_t offset)
{
	return wqe.ring + ((wqe.start + offset) & wqe.mask);
}

/** Returns block @index (free running). */
static inline void *sq_block(const struct send_queue *sq, uint32_t index)
{
	return (uint8_t *)sq->buffer + (size_t)(index & sq->slots) * WQE_BLOCK;
}

/** Copies @length bytes to @offset (any), in two pieces at the ring end. */
static inline void wqe_copy(struct wqe wqe, uint32_t offset, const void *data, uint32_t length)
{
	uint32_t at = (wqe.start + offset) & wqe.mask;
	uint32_t to_end = wqe.mask + 1 - at;

	if (wqe_unlikely(length > to_end)) {
		memcpy(wqe.ring + at, data, to_end);
		memcpy(wqe.ring, (const uint8_t *)data + to_end, length - to_end);
		return;
	}
	copy_small(wqe.ring + at, data, length);
}

static inline void wqe_zero(struct wqe wqe, uint32_t offset, uint32_t length)
{
	uint32_t at = (wqe.start + offset) & wqe.mask;
	uint32_t to_end = wqe.mask + 1 - at;

	if (wqe_unlikely(length > to_end)) {
		memset(wqe.ring + at, 0, to_end);
		memset(wqe.ring, 0, length - to_end);
		return;
	}
	memset(wqe.ring + at, 0, length);
}

static inline uint32_t wqe_round(uint32_t bytes)
{
	return (bytes + WQE_UNIT - 1) & ~(uint32_t)(WQE_UNIT - 1);
}

static inline uint32_t wqe_blocks(uint32_t bytes)
{
	return (bytes + WQE_BLOCK - 1) / WQE_BLOCK;
}

/** Returns the first word of the control segment at block @index, without opcode (mlx5-formats 1.2). */
static inline __be32 wqe_index(uint32_t index)
{
	return htobe32((index & 0xffff) << 8);
}

/**
 * Writes word 0 to 3 of a control segment (mlx5-formats 1.2): index and opcode; sq->qpn and `ds`; sq_flags();
 * immediate. One store each: otherwise compilers collect all in a vector first, with twice as many instructions.
 */
static inline void wqe_set_word(struct mlx5_wqe_ctrl_seg *control, unsigned int word, __be32 value)
{
	__atomic_store_n((__be32 *)control + word, value, __ATOMIC_RELAXED);
}

/* ---- segments (mlx5-formats 1.5, 1.9) ------------------------------------------------------------------ */

static inline void segment_set_raddr(void *place, uint64_t remote_addr, uint32_t rkey)
{
	__be64 *half = place;

	half[0] = htobe64(remote_addr);
	half[1] = htobe64((uint64_t)rkey << 32);
}

static inline void wqe_set_raddr(struct wqe wqe, uint32_t offset, uint64_t remote_addr, uint32_t rkey)
{
	segment_set_raddr(wqe_unit(wqe, offset), remote_addr, rkey);
}

/** @swap_add: swap value (CS) or addend (FA); @compare: 0 for FA. Host order. */
static inline void segment_set_atomic(void *place, uint64_t swap_add, uint64_t compare)
{
	struct mlx5_wqe_atomic_seg *seg = place;

	seg->swap_add = htobe64(swap_add);
	seg->compare = htobe64(compare);
}

static inline void wqe_set_atomic(struct wqe wqe, uint32_t offset, uint64_t swap_add, uint64_t compare)
{
	segment_set_atomic(wqe_unit(wqe, offset), swap_add, compare);
}

/** Returns length (upper half) and lkey (lower half) in one load, as in a data pointer. */
static inline uint64_t sge_length_lkey(const struct ibv_sge *sge)
{
	uint64_t both;

	memcpy(&both, (const char *)sge + offsetof(struct ibv_sge, length), sizeof(both));
	return __BYTE_ORDER == __LITTLE_ENDIAN ? both << 32 | both >> 32 : both;
}

/**
 * Writes the data pointer of @sge, with @length_lkey (sge_length_lkey()) in place of its own. The length is below 2
 * GiB.
 */
static inline void segment_set_part(void *place, const struct ibv_sge *sge, uint64_t length_lkey)
{
	__be64 *half = place;

	half[0] = htobe64(length_lkey);
	half[1] = htobe64(sge->addr);
}

/** The length is below 2 GiB. */
static inline void segment_set_data(void *place, const struct ibv_sge *sge)
{
	segment_set_part(place, sge, sge_length_lkey(sge));
}

/** Writes the terminator of a list of data pointers (mlx5-formats 2.1). */
static inline void segment_set_end(void *place)
{
	__be64 *half = place;

	half[0] = htobe64(MLX5_INVALID_LKEY);
	half[1] = 0;
}

/** Writes a data pointer, or KLM entry of a UMR. @length < 2 GiB: bit 31 means inline data. */
static inline void wqe_set_data(struct wqe wqe, uint32_t offset, uint64_t addr, uint32_t length, uint32_t lkey)
{
	mlx5dv_set_data_seg(wqe_unit(wqe, offset), length, lkey, addr);
}

/** The data starts at @offset + 4; the segment ends at wqe_round(4 + @length). */
static inline void wqe_set_inline_header(struct wqe wqe, uint32_t offset, uint32_t length)
{
	*(__be32 *)wqe_unit(wqe, offset) = htobe32(UINT32_C(0x80000000) | length);
}

/** Writes the 48-byte address vector of a datagram: @av with the destination filled in (mlx5-formats 1.6). */
static inline void wqe_set_av(struct wqe wqe, uint32_t offset, const struct mlx5_wqe_av *av, uint32_t remote_qpn,
			      uint32_t remote_qkey)
{
	struct mlx5_wqe_av copy = *av;

	copy.key.qkey.qkey = htobe32(remote_qkey);
	copy.dqp_dct |= htobe32(UINT32_C(0x80000000) | (remote_qpn & 0xffffff));
	wqe_copy(wqe, offset, &copy, sizeof(copy));
}

/** Reserved bytes are zero (mlx5-formats 1.7). */
static inline void wqe_set_xrc(struct wqe wqe, uint32_t offset, uint32_t remote_srqn)
{
	const __be32 segment[4] = {htobe32(remote_srqn)};

	memcpy(wqe_unit(wqe, offset), segment, sizeof(segment));
}

/** As wqe_set_av(), for a DCI: the destination is a DCT, with its access key in place of the Q_Key. */
static inline void wqe_set_dc_av(struct wqe wqe, uint32_t offset, const struct mlx5_wqe_av *av, uint32_t remote_dctn,
				 uint64_t remote_dc_key)
{
	struct mlx5_wqe_av copy = *av;

	copy.key.dc_key = htobe64(remote_dc_key);
	copy.dqp_dct |= htobe32(UINT32_C(0x80000000) | (remote_dctn & 0xffffff));
	wqe_copy(wqe, offset, &copy, sizeof(copy));
}

/* ---- the send queue ------------------------------------------------------------------------------------ */

/** Implements the rare case of sq_has_room(): counts blocks. (verbs/post/wr_session.c) */
bool sq_has_room_for_blocks(struct send_queue *sq, uint32_t outstanding, uint32_t tail, uint32_t bytes);

/**
 * Returns true if a WQE of up to @bytes can be built at the producer, for the WR number @number.
 *
 * mlx5-formats 4.2: the queue is full when max_post WRs are outstanding. This bounds the blocks while each WQE fits in
 * wqe_size. A larger WQE (a raw one, or an operation not announced at creation) could overwrite WQEs not yet executed:
 * from then on, blocks are counted as well.
 */
static inline bool sq_has_room(struct send_queue *sq, uint32_t number, uint32_t bytes)
{
	uint32_t tail = __atomic_load_n(&sq->tail, __ATOMIC_ACQUIRE);
	uint32_t outstanding = number - tail;

	if (wqe_unlikely(outstanding >= sq->max_post))
		return false;
	if (wqe_unlikely(bytes > sq->wqe_size || sq->oversized))
		return sq_has_room_for_blocks(sq, outstanding, tail, bytes);
	return true;
}

/** Records WQE number @number, at block @index. @wc_opcode: or WC_OPCODE_FROM_CQE. */
static inline void sq_enter(struct send_queue *sq, uint32_t index, uint32_t number, uint64_t wr_id, uint8_t wc_opcode)
{
	uint32_t slots = sq->slots, slot = index & slots;

	sq->wr_id[slot] = wr_id;
	sq->wqe_head[slot] = number;
	sq->wc_opcode[slot] = wc_opcode;
	/* Distinct, because at most wqebb_count WRs are outstanding. */
	sq->wqe_post[number & slots] = index;
}

/** Updates sq->short_allowed. (verbs/post/send_operations.c) */
void sq_update_short(struct send_queue *sq);

/** Sets the fence bits that the next WQE inherits. */
static inline void sq_set_fence(struct send_queue *sq, uint8_t fence)
{
	if (wqe_unlikely(sq->fence_cache != fence)) {
		sq->fence_cache = fence;
		sq_update_short(sq);
	}
}

/**
 * Returns the third word of a control segment, whose last byte is fm_ce_se (mlx5-formats 1.3). @send_flags: enum
 * ibv_send_flags; @fence: bits that apply without FENCE.
 */
static inline __be32 sq_flags(const struct send_queue *sq, unsigned int send_flags, uint8_t fence)
{
	uint32_t flags = sq->flags[send_flags & (WQE_FLAGS - 1)];

	return htobe32(send_flags & IBV_SEND_FENCE ? flags : flags | fence);
}

/** Publishes the WQEs before the producer to the device. */
static inline void sq_publish(struct send_queue *sq, uint32_t *dbrec)
{
	__atomic_store_n(&dbrec[MLX5_SND_DBR], htobe32(sq->cur_post & 0xffff), __ATOMIC_RELEASE);
}

/* ---- the builder --------------------------------------------------------------------------------------- */

/* Setters that the open WQE still needs (wr_builder.setters_left). 0: no WQE is open. */
enum {
	WR_SETTER_DATA = 1 << 0,
	WR_SETTER_ADDRESS = 1 << 1, /* UD address, XRC SRQ number, DC address */
	WR_SETTER_MKEY = 1 << 2,    /* those announced to mlx5dv_wr_mkey_configure(3) */
};

static inline struct user_qp *to_user_qp_ex(struct ibv_qp_ex *ex)
{
	return user_container_of(ex, struct user_qp, ex);
}

static inline struct user_qp *to_user_qp_dv(struct mlx5dv_qp_ex *dv)
{
	return user_container_of(dv, struct user_qp, dv);
}

/** Stores the first error (errno value), and closes the open WQE: nothing of the chain will be posted. */
static inline void wr_latch(struct user_qp *qp, int error)
{
	if (!qp->builder.error)
		qp->builder.error = error;
	qp->builder.setters_left = 0;
	qp->builder.mkey = NULL;
}

/** Explains a refusal and latches @error: wr_refuse(qp, call, ENOMEM, RULE_X, FIGURES(…)). */
static inline void wr_refuse(struct user_qp *qp, const char *call, int error, enum explain_rule rule,
			     const uint64_t *figures, size_t count)
{
	struct hca *hca = hca_of_context(qp->base.context);

	wr_latch(qp, refuse_on_qp(hca, call, qp->base.qp_num, error, rule, figures, count));
}

/** Latches and explains ENOMEM for a full queue. (verbs/post/wr_session.c) */
void wr_refuse_full(struct user_qp *qp, const char *call, uint32_t bytes);

/**
 * Drops the open WQE because a setter is missing, and explains it. Profile man latches EINVAL; in profile connectx the
 * next builder overwrites the WQE (mlx5-formats 4.2). (verbs/post/wr_session.c)
 */
void wr_drop_unfinished(struct user_qp *qp);

/**
 * Opens a WQE at the producer: checks room, and writes the side tables and the control segment (16 bytes) except `ds`.
 * Reads wr_id and wr_flags of the ibv_qp_ex.
 *
 * @opcode: MLX5_OPCODE_*, with the opmod in bits 31:24
 * @imm: big-endian, 0 if none
 * @bytes: largest size of the WQE: its segments before the data and sq.max_payload
 * @wc_opcode: or WC_OPCODE_FROM_CQE
 * @setters: WR_SETTER_* that the WQE needs
 *
 * Returns false if an error is latched: the caller returns at once. The caller sets builder.offset.
 */
static inline bool wr_begin(struct user_qp *qp, const char *call, uint32_t opcode, __be32 imm, uint32_t bytes,
			    uint8_t wc_opcode, uint8_t setters, struct wqe *wqe)
{
	struct send_queue *sq = &qp->sq;
	struct wr_builder *builder = &qp->builder;
	uint32_t number = sq->head + builder->count;
	struct mlx5_wqe_ctrl_seg *control;

	if (wqe_unlikely(builder->setters_left))
		wr_drop_unfinished(qp);
	if (wqe_unlikely(builder->error))
		return false;
	if (wqe_unlikely(!sq_has_room(sq, number, bytes))) {
		wr_refuse_full(qp, call, bytes);
		return false;
	}
	sq_enter(sq, sq->cur_post, number, qp->ex.wr_id, wc_opcode);
	builder->setters_left = setters;
	builder->fence = 0;

	*wqe = wqe_current(sq);
	control = sq_block(sq, sq->cur_post);
	wqe_set_word(control, 0, wqe_index(sq->cur_post) | htobe32(opcode));
	wqe_set_word(control, 2, sq_flags(sq, qp->ex.wr_flags, sq->fence_cache));
	wqe_set_word(control, 3, imm);
	return true;
}

/** Latches and explains ENOMEM for a WQE longer than `ds` can encode. (verbs/post/wr_session.c) */
void wr_refuse_length(struct user_qp *qp, uint32_t bytes);

static inline void wr_advance(struct user_qp *qp, uint32_t bytes)
{
	struct send_queue *sq = &qp->sq;

	sq->cur_post += wqe_blocks(bytes);
	sq_set_fence(sq, qp->builder.fence);
	qp->builder.count++;
	qp->builder.setters_left = 0;
}

/**
 * Finishes the open WQE of @bytes (a multiple of 16): writes `ds` and advances the producer. For UMR, bind, invalidate
 * and SET_PSV, builder.fence must be MLX5_WQE_CTRL_INITIATOR_SMALL_FENCE before: the next WQE inherits it (mlx5-formats
 * 1.3).
 */
static inline void wr_finish(struct user_qp *qp, uint32_t bytes)
{
	struct send_queue *sq = &qp->sq;

	if (wqe_unlikely(bytes > WQE_MAX_BYTES)) {
		wr_refuse_length(qp, bytes);
		return;
	}
	wqe_set_word(sq_block(sq, sq->cur_post), 1, sq->qpn | htobe32(bytes / WQE_UNIT));
	wr_advance(qp, bytes);
}

/**
 * Returns true if the open WQE still needs @setter (WR_SETTER_*). Otherwise latches and explains EINVAL, unless an
 * error is latched.
 */
static inline bool wr_waits_for(struct user_qp *qp, const char *call, uint8_t setter)
{
	if (__builtin_expect(qp->builder.setters_left & setter, setter))
		return true;
	if (!qp->builder.error)
		wr_refuse(qp, call, EINVAL, RULE_WR_SETTER_UNEXPECTED, FIGURES(qp->builder.setters_left));
	return false;
}

/** The last setter that the WQE needs finishes it, with builder.offset bytes. */
static inline void wr_was_set(struct user_qp *qp, uint8_t setter)
{
	uint8_t left = qp->builder.setters_left & ~setter;

	if (left)
		qp->builder.setters_left = left;
	else
		wr_finish(qp, qp->builder.offset);
}

#endif
