/* SPDX-License-Identifier: BSD-2-Clause */
/* Parses WQEs. Every field of a ring is checked before use. */
#include "transport/requester/wqe_parse.h"

#include <errno.h>
#include <string.h>

#include "core/epoch.h"
#include "format/qp_types.h"
#include "transport/qp/dci.h"
#include "transport/qp/transport.h"

#define SEGMENT sizeof(struct mlx5_wqe_data_seg)

uint32_t wqe_skim(const struct requester *requester, uint16_t index, uint8_t *opcode, uint8_t *fm_ce_se)
{
	struct mlx5_wqe_ctrl_seg ctrl;
	uint32_t ds;

	memcpy(&ctrl, requester_block(requester, index), sizeof(ctrl));
	*opcode = (uint8_t)be32toh(ctrl.opmod_idx_opcode);
	*fm_ce_se = ctrl.fm_ce_se;
	ds = be32toh(ctrl.qpn_ds) & 0x3f;
	return ds ? (ds + 3) / 4 : 1;
}

int wqe_refuse_control(const struct hca_qp *qp, const struct wqe *wqe, uint32_t posted, uint32_t qpn_ds,
		       struct refusal *why)
{
	const struct wqe_opcode *opcode = &wqe_opcodes[wqe->opcode];
	uint32_t ds = qpn_ds & 0x3f, blocks = wqe_blocks_of(ds);

	if (posted > qp->requester.block_count)
		return REFUSAL(why, EINVAL, RULE_WQE_DOORBELL, posted, qp->requester.block_count);
	if (!ds || blocks > posted)
		return REFUSAL(why, EINVAL, RULE_WQE_DS, ds, blocks, posted);
	if (qpn_ds >> 8 != qp->number)
		return REFUSAL(why, EINVAL, RULE_WQE_QPN, qpn_ds >> 8, qp->number);
	if (!opcode->name)
		return REFUSAL(why, EINVAL, RULE_WQE_OPCODE_UNKNOWN, wqe->opcode, wqe->index);
	if (opcode->class == WQE_CLASS_LATER || opcode->class == WQE_CLASS_REFUSED)
		return REFUSAL(why, EINVAL, RULE_WQE_OPCODE_UNSUPPORTED, wqe->opcode, wqe->index);
	return REFUSAL(why, EINVAL, RULE_WQE_OPCODE_TRANSPORT, wqe->opcode, qp->type);
}

/* mlx5-formats 1.1. */
const uint8_t *wqe_unwrap(const struct requester *requester, uint16_t index, uint32_t size)
{
	uint8_t *bounce = epoch_scratch();
	size_t ring_bytes = (size_t)requester->block_count * MLX5_SEND_WQE_BB;
	size_t at = (size_t)(index & (requester->block_count - 1)) * MLX5_SEND_WQE_BB;

	memcpy(bounce, requester->ring + at, ring_bytes - at);
	memcpy(bounce + (ring_bytes - at), requester->ring, size - (ring_bytes - at));
	return bounce;
}

int wqe_refuse_short(const struct wqe *wqe, uint32_t bytes, struct refusal *why)
{
	return REFUSAL(why, EINVAL, RULE_WQE_SHORT, wqe->opcode, wqe->size, wqe->data + bytes);
}

/* mlx5-formats 1.6: 16 bytes, or 48 if the top bit of the destination is set. */
static int wqe_take_address(struct wqe *wqe, struct refusal *why)
{
	const uint32_t base = 16;
	int error;

	memset(&wqe->av, 0, sizeof(wqe->av));
	error = wqe_take(wqe, &wqe->av, base, why);
	if (error || !(be32toh(wqe->av.dqp_dct) & MLX5_EXTENDED_UD_AV))
		return error;
	return wqe_take(wqe, (uint8_t *)&wqe->av + base, sizeof(wqe->av) - base, why);
}

/* mlx5-formats 1.7. The number has 24 bits, as on the wire. */
static int wqe_take_xrc(struct wqe *wqe, struct refusal *why)
{
	__be32 segment[4];
	int error = wqe_take(wqe, segment, sizeof(segment), why);

	if (error)
		return error;
	wqe->xrc_srqn = be32toh(segment[0]) & 0xffffff;
	return 0;
}

static uint64_t wqe_operand(const uint8_t *bytes, uint32_t size)
{
	uint64_t value = 0;

	while (size--)
		value = value << 8 | *bytes++;
	return value;
}

/*
 * mlx5-formats 1.5: four operands of 8 bytes: value, compared value, and their masks; for a fetch-and-add only value
 * and boundary. Opmod 8 and 9 select operands of 4 and 8 bytes; a fetch-and-add then has two, padded to 16 bytes.
 */
static int wqe_take_masked_atomic(struct wqe *wqe, struct refusal *why)
{
	bool adds = wqe->opcode == MLX5_OPCODE_ATOMIC_MASKED_FA, extended = wqe->opmod;
	uint32_t size = wqe->opmod == 8 ? sizeof(uint32_t) : sizeof(uint64_t);
	uint32_t count = extended && adds ? 2 : 4, bytes = (size * count + 15) & ~15u;
	uint8_t segment[4 * sizeof(uint64_t)];
	int error;

	if (extended && wqe->opmod != 8 && wqe->opmod != 9)
		return REFUSAL(why, EINVAL, RULE_ATOMIC_OPERANDS, wqe->opcode, wqe->opmod);
	error = wqe_take(wqe, segment, bytes, why);
	if (error)
		return error;
	wqe->operand_bytes = (uint8_t)size;
	wqe->swap_add = wqe_operand(segment, size);
	wqe->compare = wqe_operand(segment + size, size);
	wqe->swap_mask = count == 2 ? wqe->compare : wqe_operand(segment + 2 * size, size);
	wqe->compare_mask = count == 2 ? 0 : wqe_operand(segment + 3 * size, size);
	return 0;
}

int wqe_take_all_segments(const struct hca_qp *qp, struct wqe *wqe, struct refusal *why)
{
	uint8_t class = wqe_opcodes[wqe->opcode].class;
	int error = 0;

	if (class == WQE_CLASS_NOP || class == WQE_CLASS_UMR || class == WQE_CLASS_SET_PSV || class == WQE_CLASS_MMO ||
	    class == WQE_CLASS_DUMP)
		return 0;
	if (qp->type == IBV_QPT_UD || qp->type == QP_TYPE_DCI)
		error = wqe_take_address(wqe, why);
	else if (qp->type == IBV_QPT_XRC_SEND)
		error = wqe_take_xrc(wqe, why);
	if (!error && (class == WQE_CLASS_WRITE || wqe_class_is_answered(class)))
		error = wqe_take_remote(wqe, why);
	if (!error && class == WQE_CLASS_ATOMIC)
		error = wqe_is_masked_atomic(wqe) ? wqe_take_masked_atomic(wqe, why) : wqe_take_atomic(wqe, why);
	return error;
}

int wqe_parse(const struct hca_qp *qp, uint16_t index, uint32_t posted, struct wqe *wqe, struct refusal *why)
{
	int error =
		wqe_take_control(qp, index, posted, wqe, (const struct send_kind){.transport = *qp->transport}, why);

	return error ? error : wqe_take_all_segments(qp, wqe, why);
}

/* Returns byte count and inline flag of the segment at @at. */
static uint32_t inline_header(const struct wqe *wqe, uint32_t at)
{
	uint32_t header;

	memcpy(&header, wqe->bytes + at, sizeof(header));
	return be32toh(header);
}

/* Returns the size of a segment with @bytes inline. */
static uint32_t inline_units(uint32_t bytes)
{
	return (uint32_t)((sizeof(uint32_t) + bytes + SEGMENT - 1) & ~(SEGMENT - 1));
}

/* Returns the bytes directly before the segment at @end with the same key. */
static RARE uint64_t wqe_bytes_before(const struct wqe *wqe, uint32_t end)
{
	struct mlx5_wqe_data_seg previous = {0}, segment;
	uint64_t bytes = 0;

	for (uint32_t at = wqe->data; at <= end;) {
		uint32_t header = inline_header(wqe, at);

		if (header & MLX5_INLINE_SEG) {
			previous = (struct mlx5_wqe_data_seg){0};
			at += inline_units(header & ~MLX5_INLINE_SEG);
			continue;
		}
		memcpy(&segment, wqe->bytes + at, sizeof(segment));
		bytes = segment_continues(&previous, &segment) ? bytes + be32toh(previous.byte_count) : 0;
		previous = segment;
		at += SEGMENT;
	}
	return bytes;
}

int wqe_gather_segments(const struct wqe *wqe, const struct walk_access *access, struct stream *stream,
			struct refusal *why)
{
	uint32_t at = wqe->data;

	stream_begin(stream, access, RIGHT_LOCAL_READ);
	while (at < wqe->size) {
		struct mlx5_wqe_data_seg segment;
		uint32_t bytes;

		memcpy(&segment, wqe->bytes + at, sizeof(segment));
		bytes = be32toh(segment.byte_count);
		if (bytes & MLX5_INLINE_SEG) {
			bytes &= ~MLX5_INLINE_SEG;
			if (bytes > wqe->size - at - sizeof(uint32_t)) {
				*why = (struct refusal){RULE_WQE_INLINE, {bytes, wqe->size - at - sizeof(uint32_t)}};
				return MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR;
			}
			stream_add_memory(stream, wqe->bytes + at + sizeof(uint32_t), bytes);
			at += inline_units(bytes);
			continue;
		}
		if (!stream_add_plain(stream, be32toh(segment.lkey), be64toh(segment.addr), bytes, access->more) &&
		    stream_add_other(stream, be32toh(segment.lkey), be64toh(segment.addr), bytes,
				     at == wqe->data ? 0 : wqe_bytes_before(wqe, at), access->more, why))
			return MLX5_CQE_SYNDROME_LOCAL_PROT_ERR;
		at += SEGMENT;
	}
	return 0;
}

/* Adds a segment in the middle of a part. The message does not continue in its key. */
static int add_key_part(const struct wqe *wqe, uint32_t at, uint64_t offset, uint64_t length, struct stream *stream,
			struct refusal *why)
{
	struct mlx5_wqe_data_seg segment;

	memcpy(&segment, wqe->bytes + at, sizeof(segment));
	if (stream_add_plain_segment(stream, &segment, 1, offset, length))
		return 0;
	return stream_add_any_segments(stream, &segment, 1, offset, length, wqe_bytes_before(wqe, at), why)
		       ? MLX5_CQE_SYNDROME_LOCAL_PROT_ERR
		       : 0;
}

int wqe_gather_part(const struct wqe *wqe, const struct walk_access *access, uint64_t offset, uint64_t length,
		    struct stream *stream, struct refusal *why)
{
	uint32_t at = wqe->data;

	stream_begin(stream, access, RIGHT_LOCAL_READ);
	stream->offset = offset;
	while (at < wqe->size && length) {
		uint32_t header = inline_header(wqe, at), bytes = header & ~MLX5_INLINE_SEG;
		bool is_inline = header & MLX5_INLINE_SEG;
		uint64_t take = bytes > offset ? bytes - offset : 0;
		int syndrome = 0;

		if (is_inline && bytes > wqe->size - at - sizeof(uint32_t)) {
			*why = (struct refusal){RULE_WQE_INLINE, {bytes, wqe->size - at - sizeof(uint32_t)}};
			return MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR;
		}
		if (take > length)
			take = length;
		if (take && is_inline)
			stream_add_memory(stream, wqe->bytes + at + sizeof(uint32_t) + offset, take);
		else if (take)
			syndrome = add_key_part(wqe, at, offset, length, stream, why);
		if (syndrome)
			return syndrome;
		length -= take;
		offset = take ? 0 : offset - bytes;
		at += is_inline ? inline_units(bytes) : SEGMENT;
	}
	return 0;
}

int wqe_refuse_inline_sink(const struct wqe *wqe, struct refusal *why)
{
	return REFUSAL(why, EINVAL, RULE_WQE_INLINE_SINK, wqe->opcode);
}

int wqe_scatter(const struct wqe *wqe, const struct walk_access *access, uint64_t offset, uint64_t length,
		struct stream *stream, struct refusal *why)
{
	stream_begin(stream, access, RIGHT_LOCAL_WRITE);
	stream->offset = offset;
	if (stream_add_segments(stream, (const struct mlx5_wqe_data_seg *)(wqe->bytes + wqe->data),
				(wqe->size - wqe->data) / SEGMENT, offset, length, why))
		return MLX5_CQE_SYNDROME_LOCAL_PROT_ERR;
	return 0;
}
