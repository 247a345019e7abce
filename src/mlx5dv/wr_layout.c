/* SPDX-License-Identifier: BSD-2-Clause */
/* List (mlx5-formats 1.9), interleaved (1.10). */
#include "core/settings.h"
#include "mlx5dv/wr_mkey.h"
#include "verbs/post/umr_segments.h"
#include "verbs/post/wqe_builder.h"

enum {
	ENTRY_BYTES = 16,     /* a translation entry, or the header of a repeat block */
	REPEAT_BLOCK = 0x400, /* `op` of the header, which distinguishes it from a list entry */
};

/*
 * @headers: repeat headers, which count for the WQE here; the device checks that they also take an entry of the key
 * (mlx5-formats 4.3). Latches the error and returns false.
 */
static bool layout_allowed(struct user_qp *qp, const char *call, uint16_t count, uint32_t headers)
{
	uint32_t room = umr_payload_room(qp) / ENTRY_BYTES;
	uint32_t fits = room > headers ? room - headers : 0;

	if (!mkey_setter_open(qp, call))
		return false;
	if (count > fits) {
		wr_refuse(qp, call, ENOMEM, RULE_MKEY_LAYOUT_WQE, FIGURES(count, fits, qp->sq.max_inline));
		return false;
	}
	if (count > qp->builder.mkey->max_entries) {
		wr_refuse(qp, call, ENOMEM, RULE_MKEY_LAYOUT_KEY, FIGURES(count, qp->builder.mkey->max_entries));
		return false;
	}
	if (qp->builder.layout_set) {
		wr_refuse(qp, call, EINVAL, RULE_MKEY_LAYOUT_TWICE, FIGURES(0));
		return false;
	}
	return true;
}

/* Pads @entries to 64 bytes and finishes the setter. */
static void layout_done(struct user_qp *qp, struct wqe wqe, uint32_t entries, uint64_t length)
{
	struct mlx5_wqe_mkey_context_seg *context = wqe_unit(wqe, UMR_MKEY_OFFSET);
	uint32_t bytes = entries * ENTRY_BYTES;
	uint32_t padded = wqe_blocks(bytes) * WQE_BLOCK;

	wqe_zero(wqe, UMR_PAYLOAD_OFFSET + bytes, padded - bytes);
	context->len = htobe64(length);
	qp->builder.mkey->length = length;
	qp->builder.umr_mask |= MLX5_WQE_UMR_CTRL_MKEY_MASK_LEN;
	qp->builder.payload_bytes = padded;
	qp->builder.layout_set = true;
	mkey_setter_done(qp);
}

void mkey_set_list(struct user_qp *qp, const char *call, uint16_t count, const struct ibv_sge *sge)
{
	struct wqe wqe = wqe_current(&qp->sq);
	uint64_t length = 0; /* four pieces may add up to 16 GiB */
	uint32_t entries = 0;

	if (!layout_allowed(qp, call, count, 0))
		return;
	for (uint16_t i = 0; i < count; i++) {
		if (!sge[i].length)
			continue;
		wqe_set_data(wqe, UMR_PAYLOAD_OFFSET + entries * ENTRY_BYTES, sge[i].addr, sge[i].length, sge[i].lkey);
		entries++;
		length += sge[i].length;
	}
	layout_done(qp, wqe, entries, length);
}

/*
 * The format has 16 bits for bytes_count and for its sum with bytes_skip (mlx5-formats 1.10), the page 32 for each.
 * Profile man latches EINVAL; connectx truncates, as drivers do silently (mlx5-formats 6, no. 42), and explains it.
 * Returns false if an error is latched.
 */
static bool entries_fit(struct user_qp *qp, const char *call, uint16_t count, const struct mlx5dv_mr_interleaved *data)
{
	const struct explain_subject subject = {.call = call, .qpn = qp->base.qp_num};
	struct hca *hca = hca_of_context(qp->base.context);

	for (uint16_t i = 0; i < count; i++) {
		uint32_t bytes = data[i].bytes_count, skip = data[i].bytes_skip;
		uint64_t stride = (uint64_t)bytes + skip;

		if (stride <= UINT16_MAX)
			continue;
		if (hca_settings(hca)->profile == PROFILE_CONNECTX) {
			EXPLAIN(hca, &subject, RULE_MKEY_INTERLEAVED_WIDE, i, bytes, skip, (uint16_t)bytes,
				(uint16_t)stride);
			return true;
		}
		wr_refuse(qp, call, EINVAL, RULE_MKEY_INTERLEAVED_WIDE,
			  FIGURES(i, bytes, skip, (uint16_t)bytes, (uint16_t)stride));
		return false;
	}
	return true;
}

static void set_repeat_header(struct wqe wqe, uint32_t bytes, uint32_t repeat_count, uint16_t count)
{
	struct mlx5_wqe_umr_repeat_block_seg *header = wqe_unit(wqe, UMR_PAYLOAD_OFFSET);

	header->byte_count = htobe32(bytes);
	header->op = htobe32(REPEAT_BLOCK);
	header->repeat_count = htobe32(repeat_count);
	header->reserved = 0;
	header->num_ent = htobe16(count);
}

static void set_repeat_entry(struct wqe wqe, uint32_t number, const struct mlx5dv_mr_interleaved *data)
{
	struct mlx5_wqe_umr_repeat_ent_seg *entry = wqe_unit(wqe, UMR_PAYLOAD_OFFSET + number * ENTRY_BYTES);

	entry->stride = htobe16((uint16_t)(data->bytes_count + data->bytes_skip));
	entry->byte_count = htobe16((uint16_t)data->bytes_count);
	entry->memkey = htobe32(data->lkey);
	entry->va = htobe64(data->addr);
}

void mkey_set_interleaved(struct user_qp *qp, const char *call, uint32_t repeat_count, uint16_t count,
			  const struct mlx5dv_mr_interleaved *data)
{
	struct wqe wqe = wqe_current(&qp->sq);
	uint64_t bytes = 0; /* per repetition */
	uint64_t length;

	if (!layout_allowed(qp, call, count, 1))
		return;
	for (uint16_t i = 0; i < count; i++)
		bytes += data[i].bytes_count;
	if (__builtin_mul_overflow(bytes, repeat_count, &length)) {
		wr_refuse(qp, call, EINVAL, RULE_MKEY_INTERLEAVED_LENGTH, FIGURES(bytes, repeat_count));
		return;
	}
	if (!entries_fit(qp, call, count, data))
		return;
	set_repeat_header(wqe, (uint32_t)bytes, repeat_count, count);
	for (uint16_t i = 0; i < count; i++)
		set_repeat_entry(wqe, 1u + i, &data[i]);
	layout_done(qp, wqe, 1u + count, length);
}

void dv_wr_set_mkey_layout_list(struct mlx5dv_qp_ex *dv, uint16_t num_sges, const struct ibv_sge *sge)
{
	mkey_set_list(to_user_qp_dv(dv), "mlx5dv_wr_set_mkey_layout_list", num_sges, sge);
}

void dv_wr_set_mkey_layout_interleaved(struct mlx5dv_qp_ex *dv, uint32_t repeat_count, uint16_t num_interleaved,
				       const struct mlx5dv_mr_interleaved *data)
{
	mkey_set_interleaved(to_user_qp_dv(dv), "mlx5dv_wr_set_mkey_layout_interleaved", repeat_count, num_interleaved,
			     data);
}

/* ---- rights and layout in one call: mlx5dv_wr_mr_list and mlx5dv_wr_mr_interleaved of mlx5dv_wr_post(3) ------------ */

/* The signature attributes of the key stay as they are (mlx5-formats 4.4). */
static struct user_qp *mr_builder_open(struct mlx5dv_qp_ex *dv, const char *call, struct mlx5dv_mkey *mkey,
				       uint32_t access_flags)
{
	static const struct mlx5dv_mkey_conf_attr no_attributes;
	struct user_qp *qp = to_user_qp_dv(dv);

	mkey_configure(qp, call, user_container_of(mkey, struct user_mkey, base), 2, &no_attributes);
	mkey_set_access(qp, call, access_flags);
	return qp;
}

void dv_wr_mr_list(struct mlx5dv_qp_ex *dv, struct mlx5dv_mkey *mkey, uint32_t access_flags, uint16_t num_sges,
		   struct ibv_sge *sge)
{
	const char *call = "mlx5dv_wr_mr_list";

	mkey_set_list(mr_builder_open(dv, call, mkey, access_flags), call, num_sges, sge);
}

void dv_wr_mr_interleaved(struct mlx5dv_qp_ex *dv, struct mlx5dv_mkey *mkey, uint32_t access_flags,
			  uint32_t repeat_count, uint16_t num_interleaved, struct mlx5dv_mr_interleaved *data)
{
	const char *call = "mlx5dv_wr_mr_interleaved";

	mkey_set_interleaved(mr_builder_open(dv, call, mkey, access_flags), call, repeat_count, num_interleaved, data);
}
