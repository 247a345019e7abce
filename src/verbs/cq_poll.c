/* SPDX-License-Identifier: BSD-2-Clause */
/* ibv_poll_cq(3). */
#include "core/compiler.h"
#include "explain/explain.h"
#include "device/progress.h"
#include "verbs/cqe.h"
#include "verbs/ops.h"
#include "verbs/watched.h"

int cqe_refuse(struct user_cq *cq, const struct mlx5_cqe64 *cqe)
{
	const struct explain_subject subject = {.call = "ibv_poll_cq", .qpn = cqe_qpn(cqe)};

	EXPLAIN(hca_of_context(cq->base.context), &subject, RULE_CQE_OF_NO_QP, cqe_opcode(cqe), cqe_qpn(cqe),
		cqe_user_index(cqe), be16toh(cqe->wqe_counter));
	return CQ_POLL_ERROR;
}

/*
 * mlx5-formats 3.8: a send completion fills opcode, and byte_len where data came back; the flag of its own immediate is
 * a quirk that programs may see.
 */
static inline void fill_send(struct ibv_wc *wc, const struct mlx5_cqe64 *cqe)
{
	uint8_t opcode = cqe_send_opcode(cqe);

	if (likely(opcode == MLX5_OPCODE_RDMA_WRITE || opcode == MLX5_OPCODE_SEND))
		return;
	switch (opcode) {
	case MLX5_OPCODE_RDMA_WRITE_IMM:
	case MLX5_OPCODE_SEND_IMM:
		wc->wc_flags = IBV_WC_WITH_IMM;
		return;
	case MLX5_OPCODE_RDMA_READ:
	case MLX5_OPCODE_ATOMIC_CS:
	case MLX5_OPCODE_ATOMIC_FA:
		wc->byte_len = cqe_byte_len(cqe);
		return;
	}
}

static inline void fill_receive(struct ibv_wc *wc, const struct mlx5_cqe64 *cqe)
{
	wc->wc_flags = cqe_responder_flags(cqe);
	wc->byte_len = cqe_byte_len(cqe);
	if (wc->wc_flags & (IBV_WC_WITH_IMM | IBV_WC_WITH_INV))
		wc->imm_data = cqe_imm_or_rkey(cqe);
	wc->src_qp = cqe_src_qp(cqe);
	wc->slid = be16toh(cqe->slid);
	wc->sl = cqe_sl(cqe);
	wc->dlid_path_bits = cqe_dlid_path_bits(cqe);
	wc->pkey_index = be32toh(cqe->imm_inval_pkey) & 0xffff;
}

/* ibv_poll_cq(3): unless the status is success, wr_id, status, qp_num and vendor_err alone are valid. */
static void fill(struct ibv_wc *wc, const struct mlx5_cqe64 *cqe, const struct work_completion *completion)
{
	wc->wr_id = completion->wr_id;
	wc->status = completion->status;
	wc->qp_num = cqe_qpn(cqe);
	wc->wc_flags = 0;
	if (cqe_is_error(cqe)) {
		wc->vendor_err = cqe_vendor_err(cqe);
		return;
	}
	if (cqe_opcode(cqe) == MLX5_CQE_REQ)
		fill_send(wc, cqe);
	else
		fill_receive(wc, cqe);
	wc->opcode = cqe_wc_opcode(cqe, completion->wc_opcode);
}

/* A send request that succeeded, which most CQEs are of: as the others, with fewer questions. Returns as cqe_complete(). */
static inline int take_send(struct user_cq *cq, const struct mlx5_cqe64 *cqe, struct ibv_wc *wc)
{
	struct user_qp *qp = user_index_find(&to_user_context(cq->base.context)->qps, cqe_user_index(cqe));
	struct work_completion completion;

	if (unlikely(!qp))
		return cqe_refuse(cq, cqe);
	completion_of_send(&qp->sq, cqe, &completion);
	wc->wr_id = completion.wr_id;
	wc->status = IBV_WC_SUCCESS;
	wc->qp_num = cqe_qpn(cqe);
	wc->wc_flags = 0;
	fill_send(wc, cqe);
	wc->opcode = cqe_wc_opcode(cqe, completion.wc_opcode);
	return 0;
}

/* The same of a receive of a SEND without immediate, of a queue pair's own receive queue. */
static inline int take_receive(struct user_cq *cq, struct user_qp *qp, const struct mlx5_cqe64 *cqe, struct ibv_wc *wc)
{
	struct work_completion completion;

	if (unlikely(completion_of_receive(qp, cqe, &completion)))
		return cqe_refuse(cq, cqe);
	wc->wr_id = completion.wr_id;
	wc->status = IBV_WC_SUCCESS;
	wc->opcode = IBV_WC_RECV;
	wc->qp_num = cqe_qpn(cqe);
	fill_receive(wc, cqe);
	return 0;
}

static __attribute__((noinline)) int take_other(struct user_cq *cq, const struct mlx5_cqe64 *cqe, struct ibv_wc *wc)
{
	struct work_completion completion;
	struct user_qp *qp;
	int result;

	if (likely(cqe_opcode(cqe) == MLX5_CQE_RESP_SEND)) {
		qp = user_index_find(&to_user_context(cq->base.context)->qps, cqe_user_index(cqe));
		if (likely(qp != NULL))
			return take_receive(cq, qp, cqe, wc);
	}
	result = cqe_complete(cq, cqe, &completion);

	if (result == 0)
		fill(wc, cqe, &completion);
	return result;
}

/* Into the timeline: @wc are of the CQEs in front of the @behind newest that were taken. */
static inline void record_polled(const struct user_cq *cq, uint64_t time, uint32_t behind, const struct ibv_wc *wc,
				 int count)
{
	hca_cq_polled(cq->device, time, cq->consumer_index - behind - (uint32_t)count, wc, (uint32_t)count);
}

/* @cqe, which is there, and those behind it. @recorded: into the timeline. The lock is held, and let go. */
SPECIALISED int take_those(struct user_cq *cq, const struct mlx5_cqe64 *cqe, int num_entries, struct ibv_wc *wc,
			   const bool recorded)
{
	uint64_t now = recorded ? timeline_now() : 0;
	int polled = 0, told = 0;
	int result;

	do {
		cq_advance(cq);
		result = likely(cqe_is_plain_request(cqe)) ? take_send(cq, cqe, &wc[polled])
							   : take_other(cq, cqe, &wc[polled]);
		if (unlikely(result < 0))
			break;
		/* The indices of those that are told of together follow each other. */
		if (recorded && result > 0) {
			record_polled(cq, now, 1, wc + told, polled - told);
			told = polled;
		}
		polled += result == 0;
	} while (polled < num_entries && (cqe = cq_next(cq)));
	if (recorded)
		record_polled(cq, now, result < 0, wc + told, polled - told);
	cq_publish_consumer(cq);
	queue_unlock(&cq->lock);
	return result < 0 ? result : polled;
}

static __attribute__((noinline)) int take_some(struct user_cq *cq, const struct mlx5_cqe64 *cqe, int num_entries,
					       struct ibv_wc *wc)
{
	return take_those(cq, cqe, num_entries, wc, false);
}

static __attribute__((noinline)) int take_some_recorded(struct user_cq *cq, const struct mlx5_cqe64 *cqe,
							int num_entries, struct ibv_wc *wc)
{
	return take_those(cq, cqe, num_entries, wc, true);
}

/* Most polls find nothing. */
SPECIALISED int poll_once(struct user_cq *cq, int num_entries, struct ibv_wc *wc, const bool recorded)
{
	const struct mlx5_cqe64 *cqe;

	queue_lock(&cq->lock);
	cqe = cq_next(cq);
	if (cqe && likely(num_entries > 0))
		return recorded ? take_some_recorded(cq, cqe, num_entries, wc) : take_some(cq, cqe, num_entries, wc);
	queue_unlock(&cq->lock);
	return 0;
}

/* @result completions were taken; if none was there, what can arrive is handled first. */
static __attribute__((noinline)) int poll_again(struct user_cq *cq, int result, int num_entries, struct ibv_wc *wc)
{
	if (result) {
		progress_worked(1);
		return result;
	}
	return progress_poll() ? poll_once(cq, num_entries, wc, false) : 0;
}

int softhca_ibv_poll_cq(struct ibv_cq *base, int num_entries, struct ibv_wc *wc)
{
	struct user_cq *cq = to_user_cq(base);
	int result = poll_once(cq, num_entries, wc, false);

	if (likely(!progress_has_pollers()))
		return result;
	return poll_again(cq, result, num_entries, wc);
}

static int poll_recorded(struct user_cq *cq, int num_entries, struct ibv_wc *wc)
{
	int result = poll_once(cq, num_entries, wc, true);

	if (!progress_has_pollers())
		return result;
	if (result)
		progress_worked(1);
	return result || !progress_poll() ? result : poll_once(cq, num_entries, wc, true);
}

int poll_cq_watched(struct ibv_cq *base, int num_entries, struct ibv_wc *wc)
{
	struct user_cq *cq = to_user_cq(base);
	int polled = timeline_is_on() ? poll_recorded(cq, num_entries, wc) : softhca_ibv_poll_cq(base, num_entries, wc);

	for (int i = 0; lint_is_on() && i < polled; i++)
		lint_polled(cq, wc[i].qp_num, i + 1 == polled);
	return polled;
}
