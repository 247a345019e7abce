/* SPDX-License-Identifier: BSD-2-Clause */
/* ibv_poll_cq(3). */
#include "core/compiler.h"
#include "explain/explain.h"
#include "progress/progress.h"
#include "verbs/queue/cqe.h"
#include "verbs/object/ops.h"
#include "verbs/object/observed.h"

int cqe_refuse(struct user_cq *cq, const struct mlx5_cqe64 *cqe)
{
	const struct explain_subject subject = {.call = "ibv_poll_cq", .qpn = cqe_qpn(cqe)};

	EXPLAIN(hca_of_context(cq->base.context), &subject, RULE_CQE_OF_NO_QP, cqe_opcode(cqe), cqe_qpn(cqe),
		cqe_user_index(cqe), be16toh(cqe->wqe_counter));
	return CQ_POLL_ERROR;
}

const struct request_completion request_completions[256] = {
	[MLX5_OPCODE_RDMA_WRITE] = {IBV_WC_RDMA_WRITE, FILLS_NOTHING},
	[MLX5_OPCODE_RDMA_WRITE_IMM] = {IBV_WC_RDMA_WRITE, FILLS_FLAG},
	[MLX5_OPCODE_SEND] = {IBV_WC_SEND, FILLS_NOTHING},
	[MLX5_OPCODE_SEND_IMM] = {IBV_WC_SEND, FILLS_FLAG},
	[MLX5_OPCODE_SEND_INVAL] = {IBV_WC_SEND, FILLS_NOTHING},
	[MLX5_OPCODE_RDMA_READ] = {IBV_WC_RDMA_READ, FILLS_LENGTH},
	[MLX5_OPCODE_ATOMIC_CS] = {IBV_WC_COMP_SWAP, FILLS_ATOMIC},
	[MLX5_OPCODE_ATOMIC_FA] = {IBV_WC_FETCH_ADD, FILLS_ATOMIC},
	[WQE_OPCODE_ATOMIC_WRITE] = {IBV_WC_ATOMIC_WRITE, FILLS_NOTHING},
	[MLX5_OPCODE_TSO] = {IBV_WC_TSO, FILLS_NOTHING},
	[MLX5_OPCODE_UMR] = {IBV_WC_DRIVER1, FILLS_NOTHING},
	[MLX5_OPCODE_SET_PSV] = {IBV_WC_DRIVER1, FILLS_NOTHING},
};

/* Fills @wc, except wr_id, for a successful request. */
static inline SPECIALISED void wc_fill_request(struct ibv_wc *wc, const struct mlx5_cqe64 *cqe)
{
	uint32_t word = be32toh(cqe->sop_drop_qpn);
	const struct request_completion *completion = &request_completions[word >> 24];

	wc->status = IBV_WC_SUCCESS;
	wc->opcode = completion->wc_opcode;
	wc->qp_num = word & 0xffffff;
	wc->wc_flags = 0;
	if (likely(completion->fills == FILLS_NOTHING))
		return;
	switch (completion->fills) {
	case FILLS_LENGTH:
		wc->byte_len = be32toh(cqe->byte_cnt);
		return;
	case FILLS_ATOMIC:
		wc->byte_len = 8;
		return;
	case FILLS_FLAG:
		wc->wc_flags = IBV_WC_WITH_IMM;
		return;
	default:
		wc->opcode = IBV_WC_DRIVER2;
		return;
	}
}

/* Fills @wc, except wr_id, for a successful receive. @opcode: of the CQE, a constant where possible. */
static inline SPECIALISED void wc_fill_receive(struct ibv_wc *wc, const struct mlx5_cqe64 *cqe, uint8_t opcode)
{
	uint32_t word = be32toh(cqe->flags_rqpn), pkey_word = be32toh(cqe->imm_inval_pkey);
	unsigned int flags = word >> 28 & 3 ? IBV_WC_GRH : 0;

	wc->status = IBV_WC_SUCCESS;
	wc->opcode = opcode == MLX5_CQE_RESP_WR_IMM ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV;
	wc->byte_len = be32toh(cqe->byte_cnt);
	if (opcode != MLX5_CQE_RESP_SEND) {
		flags |= opcode == MLX5_CQE_RESP_SEND_INV ? IBV_WC_WITH_INV : IBV_WC_WITH_IMM;
		wc->imm_data = cqe_imm_or_rkey(cqe);
	}
	wc->wc_flags = flags;
	wc->qp_num = cqe_qpn(cqe);
	wc->src_qp = word & 0xffffff;
	wc->slid = be16toh(cqe->slid);
	wc->sl = word >> 24 & 0xf;
	wc->dlid_path_bits = cqe_dlid_path_bits(cqe);
	wc->pkey_index = pkey_word & 0xffff;
}

/* ibv_poll_cq(3): on error only wr_id, status, qp_num and vendor_err are valid. */
static void wc_fill_error(struct ibv_wc *wc, const struct mlx5_cqe64 *cqe, enum ibv_wc_status status)
{
	wc->status = status;
	wc->qp_num = cqe_qpn(cqe);
	wc->wc_flags = 0;
	wc->vendor_err = cqe_vendor_err(cqe);
}

enum take {
	TAKE_EMPTY, /* the CQE is not written yet */
	TAKE_OTHER, /* not a simple CQE: cqe_take_other() handles it */
	TAKE_DONE,
};

static inline SPECIALISED enum take cqe_take_request(struct send_queue *sq, const struct mlx5_cqe64 *cqe,
						     struct ibv_wc *wc)
{
	uint32_t slot = cqe_slot(sq, cqe);
	uint8_t remembered = sq->wc_opcode[slot];

	wc->wr_id = sq->wr_id[slot];
	sends_completed(sq, slot);
	wc_fill_request(wc, cqe);
	if (unlikely(remembered != WC_OPCODE_FROM_CQE))
		wc->opcode = remembered;
	return TAKE_DONE;
}

/* For a SEND without immediate into a QP's own receive queue. */
static inline SPECIALISED enum take cqe_take_receive(struct user_qp *qp, const struct mlx5_cqe64 *cqe,
						     struct ibv_wc *wc)
{
	if (unlikely(qp->base.srq != NULL))
		return TAKE_OTHER;
	wc->wr_id = receive_completed(&qp->rq);
	wc_fill_receive(wc, cqe, MLX5_CQE_RESP_SEND);
	return TAKE_DONE;
}

/* Takes the CQE at @index if it is one of the two above, succeeded and contains no data. Leaves others unchanged. */
static inline SPECIALISED enum take cqe_take_simple(struct user_cq *cq, uint32_t index, struct ibv_wc *wc)
{
	const struct mlx5_cqe64 *cqe = user_cq_entry(cq, index);
	uint8_t op_own = __atomic_load_n(&cqe->op_own, __ATOMIC_ACQUIRE);
	uint8_t owner = cqe_owner(cq->cqe_count, index);
	struct user_qp *qp;

	op_own &= 0xf0 | CQE_SCATTERED | MLX5_CQE_OWNER_MASK;
	if (likely(op_own == (MLX5_CQE_REQ << 4 | owner))) {
		qp = user_index_find(&to_user_context(cq->base.context)->qps, cqe_user_index(cqe));
		return likely(qp != NULL) ? cqe_take_request(&qp->sq, cqe, wc) : TAKE_OTHER;
	}
	if (likely(op_own == (MLX5_CQE_RESP_SEND << 4 | owner))) {
		qp = user_index_find(&to_user_context(cq->base.context)->qps, cqe_user_index(cqe));
		return likely(qp != NULL) ? cqe_take_receive(qp, cqe, wc) : TAKE_OTHER;
	}
	return cqe_is_written(cqe, cq->cqe_count, index) ? TAKE_OTHER : TAKE_EMPTY;
}

/* Returns as cqe_complete(). */
static __attribute__((noinline)) int cqe_take_other(struct user_cq *cq, const struct mlx5_cqe64 *cqe, struct ibv_wc *wc)
{
	struct work_completion completion;
	int result = cqe_complete(cq, cqe, &completion);

	if (result != 0)
		return result;
	wc->wr_id = completion.wr_id;
	if (cqe_is_error(cqe)) {
		wc_fill_error(wc, cqe, completion.status);
		return 0;
	}
	if (cqe_opcode(cqe) != MLX5_CQE_REQ) {
		wc_fill_receive(wc, cqe, cqe_opcode(cqe));
		return 0;
	}
	wc_fill_request(wc, cqe);
	if (completion.wc_opcode != WC_OPCODE_FROM_CQE)
		wc->opcode = completion.wc_opcode;
	return 0;
}

/* Records the @count completions at @wc in the timeline. Their CQEs precede the newest @behind CQEs taken. */
static inline void polled_record(const struct user_cq *cq, uint32_t behind, const struct ibv_wc *wc, int count)
{
	hca_cq_polled(cq->device, timeline_now(), cq->consumer_index - behind - (uint32_t)count, wc, (uint32_t)count);
}

/* Takes all CQEs after the first @polled ones. @recorded: in the timeline. Called with the lock, which it releases. */
static inline SPECIALISED int cq_take_all(struct user_cq *cq, int polled, int num_entries, struct ibv_wc *wc,
					  const bool recorded)
{
	uint32_t index = cq->consumer_index, first = index - (uint32_t)polled;
	int recorded_count = 0, result = 0;

	while (polled < num_entries) {
		enum take take = cqe_take_simple(cq, index, &wc[polled]);

		if (take == TAKE_EMPTY)
			break;
		cq_set_consumer(cq, ++index);
		if (take == TAKE_OTHER)
			result = cqe_take_other(cq, user_cq_entry(cq, index - 1), &wc[polled]);
		if (unlikely(result < 0))
			break;
		/* Completions recorded together must have consecutive indices. */
		if (recorded && result > 0) {
			polled_record(cq, 1, wc + recorded_count, polled - recorded_count);
			recorded_count = polled;
		}
		polled += result == 0;
		result = 0;
	}
	if (recorded && index != first)
		polled_record(cq, result < 0, wc + recorded_count, polled - recorded_count);
	if (index != first)
		cq_publish_consumer(cq);
	queue_unlock(&cq->lock);
	return result < 0 ? result : polled;
}

static __attribute__((noinline)) int poll_once(struct user_cq *cq, int num_entries, struct ibv_wc *wc)
{
	queue_lock(&cq->lock);
	return cq_take_all(cq, 0, num_entries, wc, false);
}

/*
 * Ends a poll while the process has pollers. If no completion was taken, handles arrived packets and polls once more.
 */
static __attribute__((noinline)) int poll_again(struct user_cq *cq, int result, int num_entries, struct ibv_wc *wc)
{
	if (result) {
		progress_worked(1);
		return result;
	}
	return progress_poll() ? poll_once(cq, num_entries, wc) : 0;
}

/* The lock is released. */
static inline SPECIALISED int poll_end(struct user_cq *cq, int result, int num_entries, struct ibv_wc *wc)
{
	return likely(!progress_has_pollers()) ? result : poll_again(cq, result, num_entries, wc);
}

/* Another thread holds the lock. */
static RARE int poll_locked(struct user_cq *cq, int num_entries, struct ibv_wc *wc)
{
	return poll_end(cq, poll_once(cq, num_entries, wc), num_entries, wc);
}

/* Continues at a CQE of another kind, with @next, after @polled simple ones. */
static __attribute__((noinline)) int poll_rest(struct user_cq *cq, int num_entries, struct ibv_wc *next, int polled)
{
	struct ibv_wc *wc = next - polled;

	return poll_end(cq, cq_take_all(cq, polled, num_entries, wc, false), num_entries, wc);
}

static RARE int poll_and_wake(struct user_cq *cq, int num_entries, struct ibv_wc *next, int polled)
{
	queue_lock_wake(&cq->lock);
	return poll_end(cq, polled, num_entries, next - polled);
}

/* Takes only simple CQEs. Other cases are in separate functions, so that this one saves no registers. */
int softhca_ibv_poll_cq(struct ibv_cq *base, int num_entries, struct ibv_wc *next)
{
	struct user_cq *cq = to_user_cq(base);
	enum take take = TAKE_DONE;
	uint32_t index;
	int polled = 0;

	if (unlikely(!queue_lock_at_once(&cq->lock)))
		return poll_locked(cq, num_entries, next);
	index = cq->consumer_index;
	while (polled < num_entries) {
		take = cqe_take_simple(cq, index, next);
		if (take != TAKE_DONE)
			break;
		next++;
		polled++;
		index++;
	}
	if (unlikely(take == TAKE_OTHER)) {
		cq_set_consumer(cq, index);
		return poll_rest(cq, num_entries, next, polled);
	}
	if (polled) {
		cq_set_consumer(cq, index);
		cq_publish_consumer(cq);
	}
	if (queue_unlock_wakes(&cq->lock))
		return poll_and_wake(cq, num_entries, next, polled);
	if (likely(!progress_has_pollers()))
		return polled;
	return poll_again(cq, polled, num_entries, next - polled);
}

static int poll_once_recorded(struct user_cq *cq, int num_entries, struct ibv_wc *wc)
{
	queue_lock(&cq->lock);
	return cq_take_all(cq, 0, num_entries, wc, true);
}

static int poll_recorded(struct user_cq *cq, int num_entries, struct ibv_wc *wc)
{
	int result = poll_once_recorded(cq, num_entries, wc);

	if (!progress_has_pollers())
		return result;
	if (result)
		progress_worked(1);
	return result || !progress_poll() ? result : poll_once_recorded(cq, num_entries, wc);
}

int poll_cq_observed(struct ibv_cq *base, int num_entries, struct ibv_wc *wc)
{
	struct user_cq *cq = to_user_cq(base);
	int polled = timeline_is_on() ? poll_recorded(cq, num_entries, wc) : softhca_ibv_poll_cq(base, num_entries, wc);

	for (int i = 0; lint_is_on() && i < polled; i++)
		LINT(polled, cq, wc[i].qp_num, i + 1 == polled);
	return polled;
}
