/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv_post_send(3): a list of WRs becomes WQEs (mlx5-formats 1.4, 1.5), one doorbell for all. Which errno,
 * and in which order the checks come: mlx5-formats 4.2. The operation is not checked against the transport:
 * as from a real driver, a WQE leaves without the segments that its transport has no form for, and the device
 * answers with an error completion.
 */
#include "core/compiler.h"
#include "verbs/signature.h"
#include "verbs/ops.h"
#include "verbs/umr_segments.h"
#include "verbs/watched.h"
#include "verbs/wqe_builder.h"

/* What stands between the control segment and the data. */
enum send_form {
	FORM_INVALID, /* no WQE can say it */
	FORM_PLAIN,
	FORM_RDMA,
	FORM_ATOMIC,
	FORM_ATOMIC_WRITE,
	FORM_DATAGRAM,
	/* from here on without data */
	FORM_BIND,
	FORM_INVALIDATE,
};

struct send_operation {
	uint8_t opcode; /* MLX5_OPCODE_* */
	uint8_t form;   /* enum send_form */
	uint8_t header; /* bytes up to the data */
	uint8_t wc_opcode;
};

enum {
	PLAIN_BYTES = WQE_UNIT,
	RDMA_BYTES = 2 * WQE_UNIT,
	ATOMIC_BYTES = 3 * WQE_UNIT,
	XRC_BYTES = WQE_UNIT,
	DATAGRAM_BYTES = WQE_UNIT + sizeof(struct mlx5_wqe_datagram_seg),
	OPERATIONS = IBV_WR_ATOMIC_WRITE + 1,
};

#define PLAIN(code) MLX5_OPCODE_##code, FORM_PLAIN, PLAIN_BYTES, WC_OPCODE_FROM_CQE
#define RDMA(code) MLX5_OPCODE_##code, FORM_RDMA, RDMA_BYTES, WC_OPCODE_FROM_CQE
#define ATOMIC(code) MLX5_OPCODE_##code, FORM_ATOMIC, ATOMIC_BYTES, WC_OPCODE_FROM_CQE
#define XRC_PLAIN(code) MLX5_OPCODE_##code, FORM_PLAIN, PLAIN_BYTES + XRC_BYTES, WC_OPCODE_FROM_CQE
#define XRC_RDMA(code) MLX5_OPCODE_##code, FORM_RDMA, RDMA_BYTES + XRC_BYTES, WC_OPCODE_FROM_CQE
#define XRC_ATOMIC(code) MLX5_OPCODE_##code, FORM_ATOMIC, ATOMIC_BYTES + XRC_BYTES, WC_OPCODE_FROM_CQE
#define DATAGRAM(code) MLX5_OPCODE_##code, FORM_DATAGRAM, DATAGRAM_BYTES, WC_OPCODE_FROM_CQE

static const struct send_operation rc_operations[OPERATIONS] = {
	[IBV_WR_SEND] = {PLAIN(SEND)},
	[IBV_WR_SEND_WITH_IMM] = {PLAIN(SEND_IMM)},
	[IBV_WR_SEND_WITH_INV] = {PLAIN(SEND_INVAL)},
	[IBV_WR_RDMA_WRITE] = {RDMA(RDMA_WRITE)},
	[IBV_WR_RDMA_WRITE_WITH_IMM] = {RDMA(RDMA_WRITE_IMM)},
	[IBV_WR_RDMA_READ] = {RDMA(RDMA_READ)},
	[IBV_WR_ATOMIC_CMP_AND_SWP] = {ATOMIC(ATOMIC_CS)},
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = {ATOMIC(ATOMIC_FA)},
	[IBV_WR_ATOMIC_WRITE] = {MLX5_OPCODE_RDMA_WRITE, FORM_ATOMIC_WRITE, RDMA_BYTES, IBV_WC_ATOMIC_WRITE},
	[IBV_WR_BIND_MW] = {MLX5_OPCODE_UMR, FORM_BIND, UMR_BIND_BYTES, IBV_WC_BIND_MW},
	[IBV_WR_LOCAL_INV] = {MLX5_OPCODE_UMR, FORM_INVALIDATE, UMR_PAYLOAD_OFFSET, IBV_WC_LOCAL_INV},
};

/* mlx5-formats 1.4: as RC, with the SRQ in front; what is local names none. */
static const struct send_operation xrc_operations[OPERATIONS] = {
	[IBV_WR_SEND] = {XRC_PLAIN(SEND)},
	[IBV_WR_SEND_WITH_IMM] = {XRC_PLAIN(SEND_IMM)},
	[IBV_WR_SEND_WITH_INV] = {XRC_PLAIN(SEND_INVAL)},
	[IBV_WR_RDMA_WRITE] = {XRC_RDMA(RDMA_WRITE)},
	[IBV_WR_RDMA_WRITE_WITH_IMM] = {XRC_RDMA(RDMA_WRITE_IMM)},
	[IBV_WR_RDMA_READ] = {XRC_RDMA(RDMA_READ)},
	[IBV_WR_ATOMIC_CMP_AND_SWP] = {XRC_ATOMIC(ATOMIC_CS)},
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = {XRC_ATOMIC(ATOMIC_FA)},
	[IBV_WR_ATOMIC_WRITE] = {MLX5_OPCODE_RDMA_WRITE, FORM_ATOMIC_WRITE, RDMA_BYTES + XRC_BYTES,
				 IBV_WC_ATOMIC_WRITE},
	[IBV_WR_BIND_MW] = {MLX5_OPCODE_UMR, FORM_BIND, UMR_BIND_BYTES, IBV_WC_BIND_MW},
	[IBV_WR_LOCAL_INV] = {MLX5_OPCODE_UMR, FORM_INVALIDATE, UMR_PAYLOAD_OFFSET, IBV_WC_LOCAL_INV},
};

static const struct send_operation uc_operations[OPERATIONS] = {
	[IBV_WR_SEND] = {PLAIN(SEND)},
	[IBV_WR_SEND_WITH_IMM] = {PLAIN(SEND_IMM)},
	[IBV_WR_SEND_WITH_INV] = {PLAIN(SEND_INVAL)},
	[IBV_WR_RDMA_WRITE] = {RDMA(RDMA_WRITE)},
	[IBV_WR_RDMA_WRITE_WITH_IMM] = {RDMA(RDMA_WRITE_IMM)},
	[IBV_WR_RDMA_READ] = {PLAIN(RDMA_READ)},
	[IBV_WR_ATOMIC_CMP_AND_SWP] = {PLAIN(ATOMIC_CS)},
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = {PLAIN(ATOMIC_FA)},
	[IBV_WR_BIND_MW] = {MLX5_OPCODE_UMR, FORM_BIND, UMR_BIND_BYTES, IBV_WC_BIND_MW},
	[IBV_WR_LOCAL_INV] = {MLX5_OPCODE_UMR, FORM_INVALIDATE, UMR_PAYLOAD_OFFSET, IBV_WC_LOCAL_INV},
};

/*
 * Without an address what a datagram cannot be: of these, the union wr of struct ibv_send_wr holds another member than
 * ud, or none, so ud.ah is no address handle.
 */
static const struct send_operation ud_operations[OPERATIONS] = {
	[IBV_WR_SEND] = {DATAGRAM(SEND)},
	[IBV_WR_SEND_WITH_IMM] = {DATAGRAM(SEND_IMM)},
	[IBV_WR_SEND_WITH_INV] = {DATAGRAM(SEND_INVAL)},
	[IBV_WR_RDMA_WRITE] = {PLAIN(RDMA_WRITE)},
	[IBV_WR_RDMA_WRITE_WITH_IMM] = {PLAIN(RDMA_WRITE_IMM)},
	[IBV_WR_RDMA_READ] = {PLAIN(RDMA_READ)},
	[IBV_WR_ATOMIC_CMP_AND_SWP] = {PLAIN(ATOMIC_CS)},
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = {PLAIN(ATOMIC_FA)},
	[IBV_WR_BIND_MW] = {MLX5_OPCODE_UMR, FORM_PLAIN, PLAIN_BYTES, IBV_WC_BIND_MW},
	[IBV_WR_LOCAL_INV] = {MLX5_OPCODE_UMR, FORM_PLAIN, PLAIN_BYTES, IBV_WC_LOCAL_INV},
};

/* None: no member of struct ibv_send_wr names the target of a DCI. */
static const struct send_operation dci_operations[OPERATIONS];

static const struct send_operation *operations_of(const struct user_qp *qp)
{
	if (wqe_unlikely(qp->dc_type == MLX5DV_DCTYPE_DCI))
		return dci_operations;
	switch (qp->type) {
	case IBV_QPT_UC:
		return uc_operations;
	case IBV_QPT_UD:
		return ud_operations;
	case IBV_QPT_XRC_SEND:
		return xrc_operations;
	default:
		return rc_operations;
	}
}

/* Makes the record of a refused WR and yields the errno value. */
#define REFUSE_SEND(qp, wr, errno_value, rule, ...)                                                                    \
	(EXPLAIN(hca_of_context((qp)->base.context),                                                                   \
		 (&(const struct explain_subject){.call = "ibv_post_send",                                             \
						  .qpn = (qp)->base.qp_num,                                            \
						  .wr_id = (wr)->wr_id,                                                \
						  .error = (errno_value)}),                                            \
		 rule, __VA_ARGS__),                                                                                   \
	 (errno_value))

static __attribute__((cold, noinline)) int refuse_operation(struct user_qp *qp, const struct ibv_send_wr *wr)
{
	/* The one opcode that is defined for drivers, and none of this class defines one. */
	int err = wr->opcode == IBV_WR_DRIVER1 ? EOPNOTSUPP : EINVAL;

	if (qp->dc_type == MLX5DV_DCTYPE_DCI)
		return REFUSE_SEND(qp, wr, err, RULE_SEND_ON_DCI, wr->opcode);
	return REFUSE_SEND(qp, wr, err, RULE_SEND_OPCODE, wr->opcode, qp->type);
}

static __attribute__((cold, noinline)) int refuse_full(struct user_qp *qp, const struct ibv_send_wr *wr, uint32_t bytes)
{
	if (qp->type == IBV_QPT_XRC_RECV || qp->dc_type == MLX5DV_DCTYPE_DCT)
		return REFUSE_SEND(qp, wr, ENOMEM, RULE_QP_NO_QUEUE, qp->type);
	return REFUSE_SEND(qp, wr, ENOMEM, RULE_SQ_FULL, qp->sq.max_post, qp->sq.wqebb_count, wqe_blocks(bytes));
}

static __attribute__((cold, noinline)) int refuse_sge_count(struct user_qp *qp, const struct ibv_send_wr *wr)
{
	if (qp->sq.max_gs < 0)
		return REFUSE_SEND(qp, wr, ENOMEM, RULE_SEND_BEFORE_RTS, hca_qp_state(qp->device));
	return REFUSE_SEND(qp, wr, ENOMEM, RULE_SEND_SGE_COUNT, (int64_t)wr->num_sge, qp->sq.max_gs);
}

static __attribute__((cold, noinline)) int refuse_sge_length(struct user_qp *qp, const struct ibv_send_wr *wr,
							     uint32_t length)
{
	return REFUSE_SEND(qp, wr, EINVAL, RULE_SGE_LENGTH, length, INT32_MAX);
}

static __attribute__((cold, noinline)) int refuse_inline(struct user_qp *qp, const struct ibv_send_wr *wr,
							 uint64_t length)
{
	return REFUSE_SEND(qp, wr, ENOMEM, RULE_INLINE_LENGTH, length, qp->sq.max_inline);
}

/*
 * imm of the control segment: what the union of the WR holds, in the byte order that the WQE wants
 * (mlx5-formats 1.2).
 */
static inline __be32 control_immediate(const struct ibv_send_wr *wr)
{
	switch (wr->opcode) {
	case IBV_WR_SEND_WITH_IMM:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return wr->imm_data;
	case IBV_WR_SEND_WITH_INV:
	case IBV_WR_LOCAL_INV:
		return htobe32(wr->invalidate_rkey);
	case IBV_WR_BIND_MW:
		return htobe32(wr->bind_mw.mw->rkey);
	default:
		return 0;
	}
}

/* Inline data at @offset; lkeys are not looked at. Advances @offset. Returns 0 or an errno value. */
static int put_inline(struct user_qp *qp, const struct ibv_send_wr *wr, struct wqe wqe, uint32_t *offset)
{
	uint32_t data = *offset + sizeof(struct mlx5_wqe_inl_data_seg);
	uint32_t total = 0;

	for (int i = 0; i < wr->num_sge; i++) {
		const struct ibv_sge *sge = &wr->sg_list[i];

		if (wqe_unlikely(sge->length > qp->sq.max_inline - total))
			return refuse_inline(qp, wr, total + (uint64_t)sge->length);
		if (!sge->length)
			continue;
		wqe_copy(wqe, data + total, (const void *)(uintptr_t)sge->addr, sge->length);
		total += sge->length;
	}
	if (total) {
		wqe_set_inline_header(wqe, *offset, total);
		*offset += wqe_round(sizeof(struct mlx5_wqe_inl_data_seg) + total);
	}
	return 0;
}

/* Data pointers at @offset, without the empty ones. @length: forced on each, or 0 for the SGE's own. */
static inline int put_pointers(struct user_qp *qp, const struct ibv_send_wr *wr, struct wqe wqe, uint32_t *offset,
			       uint32_t length)
{
	uint32_t at = *offset;

	for (int i = 0; i < wr->num_sge; i++) {
		const struct ibv_sge *sge = &wr->sg_list[i];

		if (!sge->length)
			continue;
		if (wqe_unlikely(sge->length > INT32_MAX))
			return refuse_sge_length(qp, wr, sge->length);
		wqe_set_data(wqe, at, sge->addr, length ? length : sge->length, sge->lkey);
		at += WQE_UNIT;
	}
	*offset = at;
	return 0;
}

/*
 * IBTA A19: ATOMIC WRITE moves 8 bytes to an aligned address. Its WQE is an RDMA WRITE, see
 * wr_atomic_write().
 */
static int check_atomic_write(struct user_qp *qp, const struct ibv_send_wr *wr)
{
	uint64_t length = 0;

	if (wr->wr.rdma.remote_addr % sizeof(uint64_t))
		return REFUSE_SEND(qp, wr, EINVAL, RULE_ATOMIC_WRITE_ALIGNMENT, wr->wr.rdma.remote_addr);
	for (int i = 0; i < wr->num_sge; i++)
		length += wr->sg_list[i].length;
	if (length != sizeof(uint64_t))
		return REFUSE_SEND(qp, wr, EINVAL, RULE_ATOMIC_WRITE_LENGTH, length);
	return 0;
}

/* All after the control segment. @bytes: gets the length of the WQE. Returns 0 or an errno value. */
static inline int put_segments(struct user_qp *qp, const struct ibv_send_wr *wr, enum send_form form, struct wqe wqe,
			       uint32_t *bytes)
{
	uint32_t forced_length = 0, at = WQE_UNIT;
	int err;

	if (wqe_unlikely(qp->type == IBV_QPT_XRC_SEND) && form < FORM_BIND) {
		wqe_set_xrc(wqe, at, wr->qp_type.xrc.remote_srqn);
		at += XRC_BYTES;
	}
	switch (form) {
	case FORM_RDMA:
		wqe_set_raddr(wqe, at, wr->wr.rdma.remote_addr, wr->wr.rdma.rkey);
		break;
	case FORM_ATOMIC:
		wqe_set_raddr(wqe, at, wr->wr.atomic.remote_addr, wr->wr.atomic.rkey);
		at += WQE_UNIT;
		if (wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP)
			wqe_set_atomic(wqe, at, wr->wr.atomic.swap, wr->wr.atomic.compare_add);
		else
			wqe_set_atomic(wqe, at, wr->wr.atomic.compare_add, 0);
		/* What comes back has 8 bytes whatever the SGE says (mlx5-formats 1.5). */
		forced_length = sizeof(uint64_t);
		break;
	case FORM_ATOMIC_WRITE:
		err = check_atomic_write(qp, wr);
		if (err)
			return err;
		wqe_set_raddr(wqe, at, wr->wr.rdma.remote_addr, wr->wr.rdma.rkey);
		break;
	case FORM_BIND:
		err = umr_bind_check(qp, "ibv_post_send", &wr->bind_mw.bind_info);
		if (err)
			return err;
		*bytes = umr_bind(wqe, wr->bind_mw.mw->type, qp->base.qp_num, wr->bind_mw.rkey, &wr->bind_mw.bind_info);
		return 0;
	case FORM_INVALIDATE:
		block_forget(qp, wr->invalidate_rkey);
		*bytes = umr_invalidate(wqe);
		return 0;
	case FORM_DATAGRAM:
		wqe_set_av(wqe, at, &to_user_ah(wr->wr.ud.ah)->av, wr->wr.ud.remote_qpn, wr->wr.ud.remote_qkey);
		break;
	case FORM_INVALID:
	case FORM_PLAIN:
		break;
	}
	if (wr->send_flags & IBV_SEND_INLINE)
		return put_inline(qp, wr, wqe, bytes);
	return put_pointers(qp, wr, wqe, bytes, forced_length);
}

/* The control segment, when @bytes are built; the WQE is the last one. */
static inline void put_control(struct user_qp *qp, const struct ibv_send_wr *wr, const struct send_operation *operation,
			       struct mlx5_wqe_ctrl_seg *ctrl, uint32_t bytes, uint32_t posted)
{
	struct send_queue *sq = &qp->sq;

	ctrl->opmod_idx_opcode = htobe32((sq->cur_post & 0xffff) << 8 | operation->opcode);
	ctrl->qpn_ds = htobe32(qp->base.qp_num << 8 | bytes / WQE_UNIT);
	ctrl->signature = 0;
	ctrl->dci_stream_channel_id = 0;
	ctrl->fm_ce_se = wqe_fm_ce_se(wr->send_flags, qp->sq_sig_all, sq->fence_cache);
	ctrl->imm = control_immediate(wr);
	sq->fence_cache = operation->opcode == MLX5_OPCODE_UMR ? MLX5_WQE_CTRL_INITIATOR_SMALL_FENCE : 0;
	sq_record(sq, posted, wr->wr_id, operation->wc_opcode);
	sq->cur_post += wqe_blocks(bytes);
}

/* Builds any WQE. Returns 0 or an errno value. */
static __attribute__((noinline)) int post_any(struct user_qp *qp, const struct ibv_send_wr *wr,
					      const struct send_operation *operation, uint32_t posted)
{
	struct send_queue *sq = &qp->sq;
	uint32_t bytes = operation->header, most = operation->form >= FORM_BIND ? bytes : bytes + sq->max_payload;
	struct wqe wqe = wqe_current(sq);
	int err;

	if (wqe_unlikely(!sq_has_room(sq, posted, most)))
		return refuse_full(qp, wr, most);
	/* Before RTS the limit is -1, and ENOMEM the answer to any WR. */
	if (wqe_unlikely(wr->num_sge > sq->max_gs || sq->max_gs < 0))
		return refuse_sge_count(qp, wr);
	err = put_segments(qp, wr, operation->form, wqe, &bytes);
	if (wqe_unlikely(err))
		return err;
	if (wqe_unlikely(bytes > WQE_MAX_BYTES))
		return REFUSE_SEND(qp, wr, ENOMEM, RULE_WQE_LENGTH, bytes, WQE_MAX_BYTES);
	put_control(qp, wr, operation, wqe_unit(wqe, 0), bytes, posted);
	return 0;
}

/*
 * Builds the WQE of @wr; @posted WRs of the list are built already. Returns 0, or an errno value and has
 * moved nothing. What nearly all WQEs are, one block with at most a remote address and one data pointer, is written at once,
 * if nothing speaks against it; all else is post_any()'s.
 */
static inline __attribute__((always_inline)) int post_one(struct user_qp *qp, const struct ibv_send_wr *wr,
							  const struct send_operation *operations, uint32_t posted)
{
	struct send_queue *sq = &qp->sq;
	const struct send_operation *operation;
	const struct ibv_sge *sge = wr->sg_list;
	uint32_t bytes, most;
	struct wqe wqe;

	if (wqe_unlikely((unsigned int)wr->opcode >= OPERATIONS))
		return refuse_operation(qp, wr);
	operation = &operations[wr->opcode];
	if (wqe_unlikely(operation->form == FORM_INVALID))
		return refuse_operation(qp, wr);
	bytes = operation->header;
	most = bytes + sq->max_payload;
	if (wqe_unlikely(wr->num_sge != 1 || bytes > RDMA_BYTES || operation->form > FORM_RDMA || sq->max_gs < 1 ||
			 wr->send_flags & IBV_SEND_INLINE || !sge->length || sge->length > INT32_MAX ||
			 qp->type == IBV_QPT_XRC_SEND || !sq_has_room(sq, posted, most)))
		return post_any(qp, wr, operation, posted);
	wqe = wqe_current(sq);
	/* One block does not straddle the ring end. */
	wqe.ring = wqe_unit(wqe, 0);
	wqe.start = 0;
	wqe.mask = UINT32_MAX;
	if (operation->form == FORM_RDMA)
		wqe_set_raddr(wqe, WQE_UNIT, wr->wr.rdma.remote_addr, wr->wr.rdma.rkey);
	wqe_set_data(wqe, bytes, sge->addr, sge->length, sge->lkey);
	put_control(qp, wr, operation, wqe_unit(wqe, 0), bytes + WQE_UNIT, posted);
	return 0;
}

/* @watched: somebody wants to know what is posted (verbs/watched.h). */
SPECIALISED int post_list(struct ibv_qp *base, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr, const bool watched)
{
	struct user_qp *qp = to_user_qp(base);
	const struct send_operation *operations = operations_of(qp);
	uint32_t posted = 0;
	int err = 0;

	queue_lock(&qp->sq.lock);
	for (; wr; wr = wr->next, posted++) {
		err = post_one(qp, wr, operations, posted);
		if (wqe_unlikely(err)) {
			*bad_wr = wr;
			break;
		}
	}
	/* ibv_post_send(3): what comes before the failing WR is posted. */
	if (posted) {
		qp->sq.head += posted;
		if (watched)
			sends_posted(qp, posted, "ibv_post_send");
		sq_publish(&qp->sq, qp->dbrec);
	}
	queue_unlock(&qp->sq.lock);
	/* Outside of the lock: the doorbell executes, and other threads may post meanwhile. */
	if (posted)
		hca_qp_send_doorbell(qp->device);
	if (watched)
		timeline_end_call();
	return err;
}

int softhca_ibv_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	return post_list(qp, wr, bad_wr, false);
}

int post_send_watched(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	return post_list(qp, wr, bad_wr, true);
}
