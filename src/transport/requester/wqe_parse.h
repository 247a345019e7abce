/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parses WQEs and turns their data segments into streams. Unless stated otherwise, an int result is 0, or -EINVAL with
 * @why filled; a fast path leaves @why empty, since the general path then parses the WQE again. The lock of the QP is held.
 */
#ifndef SOFTHCA_TRANSPORT_REQUESTER_WQE_PARSE_H
#define SOFTHCA_TRANSPORT_REQUESTER_WQE_PARSE_H

#include <string.h>

#include "core/compiler.h"
#include "format/wqe.h"
#include "transport/qp/dci.h"
#include "transport/qp/path.h"
#include "transport/qp/qp.h"
#include "transport/qp/transport.h"

/* The requester is compiled for any WQE, and for common kinds (core/compiler.h). */
struct send_kind {
	struct transport transport;
	uint8_t class; /* enum wqe_class */
	enum path path;
};

static inline const uint8_t *requester_block(const struct requester *requester, uint16_t index)
{
	return requester->ring + (size_t)(index & (requester->block_count - 1)) * MLX5_SEND_WQE_BB;
}

/** For a first check: the program may change it before it is parsed. */
static inline uint8_t wqe_opcode_at(const struct requester *requester, uint16_t index)
{
	return requester_block(requester, index)[offsetof(struct mlx5_wqe_ctrl_seg, opmod_idx_opcode) + 3];
}

/** Returns the blocks of @ds units of 16 bytes, at least 1. */
static inline uint32_t wqe_blocks_of(uint32_t ds)
{
	return ds ? (ds + 3) / 4 : 1;
}

/** Returns the blocks announced beyond @index. */
static inline uint32_t wqe_posted(const struct requester *requester, uint16_t index)
{
	if (unlikely(!requester->block_count))
		return 0;
	return (uint16_t)((uint16_t)be32toh(__atomic_load_n(requester->dbrec, __ATOMIC_ACQUIRE)) - index);
}

/** For flushing: returns the blocks of the WQE at @index, at least 1, with opcode and completion mode. */
uint32_t wqe_skim(const struct requester *requester, uint16_t index, uint8_t *opcode, uint8_t *fm_ce_se);

/** Refuses an invalid control segment. */
RARE int wqe_refuse_control(const struct hca_qp *qp, const struct wqe *wqe, uint32_t posted, uint32_t qpn_ds,
			    struct refusal *why);
/** Refuses @wqe because it ends before its next segment. */
RARE int wqe_refuse_short(const struct wqe *wqe, uint32_t bytes, struct refusal *why);
/** Returns a contiguous copy of the WQE at @index, which wraps around; valid until the next call on this thread. */
const uint8_t *wqe_unwrap(const struct requester *requester, uint16_t index, uint32_t size);

/** Parses the control segment at @index, of which @posted blocks may be read. */
static inline SPECIALISED int wqe_take_control(const struct hca_qp *qp, uint16_t index, uint32_t posted,
					       struct wqe *wqe, const struct send_kind kind, struct refusal *why)
{
	const struct requester *requester = &qp->requester;
	const struct wqe_opcode *opcode;
	struct mlx5_wqe_ctrl_seg ctrl;
	uint32_t qpn_ds, blocks;
	struct wqe spilled;

	memcpy(&ctrl, requester_block(requester, index), sizeof(ctrl));
	qpn_ds = be32toh(ctrl.qpn_ds);
	wqe->index = index;
	wqe->opcode = (uint8_t)be32toh(ctrl.opmod_idx_opcode);
	wqe->opmod = (uint8_t)(be32toh(ctrl.opmod_idx_opcode) >> 24);
	wqe->fm_ce_se = ctrl.fm_ce_se;
	/* Ignored without streams. */
	wqe->stream = kind.path == PATH_GENERAL && qp->dci && qp->dci->limit ? be16toh(ctrl.dci_stream_channel_id) : 0;
	wqe->imm = ctrl.imm;
	blocks = wqe_blocks_of(qpn_ds & 0x3f);
	/* Only announced blocks of an invalid WQE: the rest will be announced later. */
	wqe->blocks = blocks < posted ? blocks : posted;
	wqe->size = (qpn_ds & 0x3f) * 16;
	wqe->data = sizeof(ctrl);
	opcode = &wqe_opcodes[wqe->opcode];
	/* Opcodes that are not executed are not allowed on any transport. */
	if (unlikely(posted > requester->block_count || !wqe->size || blocks > posted || qpn_ds >> 8 != qp->number ||
		     !(opcode->transports & kind.transport.opcodes)))
		return path_is_fast(kind.path) ? -EINVAL
					       : wqe_refuse_control(qp, SPILL(&spilled, wqe), posted, qpn_ds, why);
	wqe->bytes = requester_block(requester, index);
	if (unlikely((index & (requester->block_count - 1)) + blocks > requester->block_count))
		wqe->bytes = wqe_unwrap(requester, index, wqe->size);
	return 0;
}

/** Reads the next segment. */
static inline SPECIALISED int wqe_take(struct wqe *wqe, void *to, uint32_t bytes, struct refusal *why)
{
	struct wqe spilled;

	if (unlikely(bytes > wqe->size - wqe->data))
		return wqe_refuse_short(SPILL(&spilled, wqe), bytes, why);
	/* Initialized, but the analyzer loses track of that. */
	/* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult) */
	memcpy(to, wqe->bytes + wqe->data, bytes);
	wqe->data += bytes;
	return 0;
}

/** mlx5-formats 1.5. */
static inline SPECIALISED int wqe_take_remote(struct wqe *wqe, struct refusal *why)
{
	struct mlx5_wqe_raddr_seg remote;
	int error = wqe_take(wqe, &remote, sizeof(remote), why);

	if (error)
		return error;
	/* NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): as above. */
	wqe->remote_address = be64toh(remote.raddr);
	wqe->rkey = be32toh(remote.rkey);
	return 0;
}

/** Parses an atomic that is not masked. */
static inline SPECIALISED int wqe_take_atomic(struct wqe *wqe, struct refusal *why)
{
	struct mlx5_wqe_atomic_seg atomic;
	int error = wqe_take(wqe, &atomic, sizeof(atomic), why);

	if (error)
		return error;
	/* NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): as above. */
	wqe->swap_add = be64toh(atomic.swap_add);
	wqe->compare = be64toh(atomic.compare);
	wqe->operand_bytes = sizeof(uint64_t);
	return 0;
}

/** Parses the segments between control and data. */
int wqe_take_all_segments(const struct hca_qp *qp, struct wqe *wqe, struct refusal *why);

/** As wqe_take_all_segments(), for a WQE of @kind. */
static inline SPECIALISED int wqe_take_segments(const struct hca_qp *qp, struct wqe *wqe, const struct send_kind kind,
						struct refusal *why)
{
	if (kind.path != PATH_GENERAL && kind.class == WQE_CLASS_SEND)
		return 0;
	if (kind.path != PATH_GENERAL && (kind.class == WQE_CLASS_WRITE || kind.class == WQE_CLASS_READ))
		return wqe_take_remote(wqe, why);
	return wqe_take_all_segments(qp, wqe, why);
}

/** Parses the WQE at @index, of which @posted blocks may be read. */
int wqe_parse(const struct hca_qp *qp, uint16_t index, uint32_t posted, struct wqe *wqe, struct refusal *why);

/** Returns the size of a segment with @bytes, less than 2^31, inline. */
static inline uint32_t wqe_inline_bytes(uint32_t bytes)
{
	return (uint32_t)((sizeof(uint32_t) + bytes + 15) & ~UINT32_C(15));
}

/** As wqe_gather(), for other segments than wqe_gather_plain(), and all refusals. */
int wqe_gather_segments(const struct wqe *wqe, const struct walk_access *access, struct stream *stream,
			struct refusal *why);

/**
 * As wqe_gather(), for one segment: a plain region, or inline data that fills all units of 16 bytes. Returns false for
 * others, with @stream empty or not initialized.
 */
static inline SPECIALISED bool wqe_gather_plain(const struct wqe *wqe, const struct walk_access *access,
						struct stream *stream)
{
	uint32_t left = wqe->size - wqe->data, bytes;
	struct mlx5_wqe_data_seg segment;

	if (unlikely(left < sizeof(segment))) {
		stream_begin(stream, access, RIGHT_LOCAL_READ);
		return !left;
	}
	memcpy(&segment, wqe->bytes + wqe->data, sizeof(segment));
	bytes = be32toh(segment.byte_count);
	if (unlikely(left != (bytes & MLX5_INLINE_SEG ? wqe_inline_bytes(bytes & ~MLX5_INLINE_SEG) : sizeof(segment))))
		return false;
	stream_begin(stream, access, RIGHT_LOCAL_READ);
	if (bytes & MLX5_INLINE_SEG) {
		stream_add_memory(stream, wqe->bytes + wqe->data + sizeof(uint32_t), bytes & ~MLX5_INLINE_SEG);
		return true;
	}
	return stream_add_plain(stream, be32toh(segment.lkey), be64toh(segment.addr), bytes, access->more);
}

/**
 * Builds the stream of the bytes to send: inline data and keys (local read). Returns 0, or a CQE syndrome with @why:
 * LOCAL_PROT_ERR for a key, LOCAL_QP_OP_ERR for a malformed segment.
 */
static inline SPECIALISED int wqe_gather(const struct wqe *wqe, const struct walk_access *access, struct stream *stream,
					 struct refusal *why)
{
	struct wqe spilled;

	if (likely(wqe_gather_plain(wqe, access, stream)))
		return 0;
	return wqe_gather_segments(SPILL(&spilled, wqe), access, stream, why);
}

/**
 * As wqe_gather(), for bytes [@offset, +@length) of the message. Adds none beyond the WQE's data, so check
 * stream->length. access->more: the message continues after them.
 */
int wqe_gather_part(const struct wqe *wqe, const struct walk_access *access, uint64_t offset, uint64_t length,
		    struct stream *stream, struct refusal *why);

/** Returns -EINVAL with @why. */
RARE int wqe_refuse_inline_sink(const struct wqe *wqe, struct refusal *why);

/** Adds up the lengths of the segments of a READ. */
static inline SPECIALISED int wqe_sink_length(const struct wqe *wqe, uint64_t *bytes, struct refusal *why)
{
	struct wqe spilled;

	*bytes = 0;
	for (uint32_t at = wqe->data; at < wqe->size; at += sizeof(struct mlx5_wqe_data_seg)) {
		struct mlx5_wqe_data_seg segment;

		memcpy(&segment, wqe->bytes + at, sizeof(segment));
		if (unlikely(be32toh(segment.byte_count) & MLX5_INLINE_SEG))
			return wqe_refuse_inline_sink(SPILL(&spilled, wqe), why);
		*bytes += be32toh(segment.byte_count);
	}
	return 0;
}

/**
 * Builds the stream of the memory for bytes [@offset, +@length) of a response. Returns 0, or a CQE syndrome with @why.
 */
int wqe_scatter(const struct wqe *wqe, const struct walk_access *access, uint64_t offset, uint64_t length,
		struct stream *stream, struct refusal *why);

#endif
