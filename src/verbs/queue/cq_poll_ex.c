/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv_create_cq_ex(3), "Polling an extended CQ": start_poll takes the CQ lock, which end_poll releases. The readers
 * read the CQE itself; end_poll returns it to the device.
 */
#include <time.h>

#include "explain/explain.h"
#include "progress/progress.h"
#include "verbs/queue/cq.h"
#include "verbs/queue/cqe.h"
#include "verbs/object/observed.h"

static struct user_cq *to_user_cq_ex(struct ibv_cq_ex *ex)
{
	return user_container_of(ex, struct user_cq, ex);
}

/* Returns 0, ENOENT, or CQ_POLL_ERROR (which the real library returns unchanged). */
static int poll_advance(struct user_cq *cq)
{
	const struct mlx5_cqe64 *cqe;
	struct work_completion completion = {0};
	int result;

	do {
		cqe = cq_take(cq);
		if (!cqe)
			return ENOENT;
		result = cqe_complete(cq, cqe, &completion);
	} while (result == CQE_ABSORBED);
	if (result)
		return result;
	cq->polling = true;
	cq->current = cqe;
	cq->current_wc_opcode = completion.wc_opcode;
	cq->ex.wr_id = completion.wr_id;
	cq->ex.status = completion.status;
	return 0;
}

/* On success the lock stays held until end_poll. */
static int poll_start(struct user_cq *cq)
{
	uint32_t first;
	int result;

	queue_lock(&cq->lock);
	first = cq->consumer_index;
	result = poll_advance(cq);
	if (result) {
		/* end_poll will not follow, and absorbed CQEs may have been taken. */
		if (cq->consumer_index != first)
			cq_publish_consumer(cq);
		queue_unlock(&cq->lock);
	} else {
		lock_order_left(&cq->lock);
	}
	return result;
}

static int ex_start_poll(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
	struct user_cq *cq = to_user_cq_ex(ex);
	int result;

	if (attr->comp_mask)
		return REFUSE(hca_of_context(ex->context), "ibv_start_poll", EINVAL, RULE_POLL_COMP_MASK,
			      attr->comp_mask);
	result = poll_start(cq);
	if (__builtin_expect(!__atomic_load_n(&progress_pollers, __ATOMIC_RELAXED), 1))
		return result;
	if (!result)
		progress_worked(1);
	if (result == ENOENT && progress_poll())
		result = poll_start(cq);
	return result;
}

/* Reads the two clocks once for the whole batch. */
static int ex_start_poll_wallclock(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
	int result = ex_start_poll(ex, attr);
	struct timespec now;

	if (result)
		return result;
	clock_gettime(CLOCK_REALTIME, &now);
	to_user_cq_ex(ex)->wallclock_offset =
		(int64_t)now.tv_sec * 1000000000 + now.tv_nsec - (int64_t)hca_clock_ns(hca_of_context(ex->context));
	return 0;
}

static int ex_next_poll(struct ibv_cq_ex *ex)
{
	return poll_advance(to_user_cq_ex(ex));
}

/* Records the completion just taken (verbs/object/observed.h). Returns @result. */
static int ex_record(struct ibv_cq_ex *ex, int result)
{
	struct user_cq *cq = to_user_cq_ex(ex);

	if (result)
		return result;
	LINT(polled, cq, cqe_qpn(cq->current), true);
	if (timeline_is_on())
		hca_cq_polled(cq->device, timeline_now(), cq->consumer_index - 1,
			      &(struct ibv_wc){.wr_id = ex->wr_id, .status = ex->status}, 1);
	return 0;
}

static int ex_start_poll_observed(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
	return ex_record(ex, ex_start_poll(ex, attr));
}

static int ex_start_poll_wallclock_observed(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
	return ex_record(ex, ex_start_poll_wallclock(ex, attr));
}

static int ex_next_poll_observed(struct ibv_cq_ex *ex)
{
	return ex_record(ex, ex_next_poll(ex));
}

static void ex_end_poll(struct ibv_cq_ex *ex)
{
	struct user_cq *cq = to_user_cq_ex(ex);

	cq->polling = false;
	cq_publish_consumer(cq);
	queue_unlock(&cq->lock);
}

/* For a failed completion the opcode is not valid, and 0 as in the real library. */
static enum ibv_wc_opcode read_opcode(struct ibv_cq_ex *ex)
{
	const struct user_cq *cq = to_user_cq_ex(ex);

	if (cqe_is_error(cq->current))
		return 0;
	return cqe_wc_opcode(cq->current, cq->current_wc_opcode);
}

static uint32_t read_vendor_err(struct ibv_cq_ex *ex)
{
	return cqe_vendor_err(to_user_cq_ex(ex)->current);
}

static unsigned int read_wc_flags(struct ibv_cq_ex *ex)
{
	const struct mlx5_cqe64 *cqe = to_user_cq_ex(ex)->current;

	return cqe_is_responder(cqe) && !cqe_is_error(cqe) ? cqe_responder_flags(cqe) : 0;
}

static uint32_t read_byte_len(struct ibv_cq_ex *ex)
{
	return cqe_byte_len(to_user_cq_ex(ex)->current);
}

static __be32 read_imm_data(struct ibv_cq_ex *ex)
{
	return cqe_imm_or_rkey(to_user_cq_ex(ex)->current);
}

static uint32_t read_qp_num(struct ibv_cq_ex *ex)
{
	return cqe_qpn(to_user_cq_ex(ex)->current);
}

static uint32_t read_src_qp(struct ibv_cq_ex *ex)
{
	return cqe_src_qp(to_user_cq_ex(ex)->current);
}

static uint32_t read_slid(struct ibv_cq_ex *ex)
{
	return be16toh(to_user_cq_ex(ex)->current->slid);
}

static uint8_t read_sl(struct ibv_cq_ex *ex)
{
	return cqe_sl(to_user_cq_ex(ex)->current);
}

static uint8_t read_dlid_path_bits(struct ibv_cq_ex *ex)
{
	return cqe_dlid_path_bits(to_user_cq_ex(ex)->current);
}

static uint64_t read_completion_ts(struct ibv_cq_ex *ex)
{
	return be64toh(to_user_cq_ex(ex)->current->timestamp);
}

static uint64_t read_completion_wallclock_ns(struct ibv_cq_ex *ex)
{
	return read_completion_ts(ex) + (uint64_t)to_user_cq_ex(ex)->wallclock_offset;
}

static uint16_t read_cvlan(struct ibv_cq_ex *ex)
{
	return be16toh(to_user_cq_ex(ex)->current->vlan_info);
}

static uint32_t read_flow_tag(struct ibv_cq_ex *ex)
{
	return be32toh(to_user_cq_ex(ex)->current->sop_drop_qpn) & 0xffffff;
}

static void read_tm_info(struct ibv_cq_ex *ex, struct ibv_wc_tm_info *tm_info)
{
	tm_info->tag = be64toh(to_user_cq_ex(ex)->current->tmh.tag);
	tm_info->priv = be32toh(to_user_cq_ex(ex)->current->tmh.app_ctx);
}

/* ibv_create_cq_ex(3): only fields requested at creation can be queried. */
void cq_poll_ex_fill(struct user_cq *cq, uint64_t wc_flags)
{
	struct ibv_cq_ex *ex = &cq->ex;

	bool wallclock = wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;

	ex->start_poll = wallclock ? ex_start_poll_wallclock : ex_start_poll;
	ex->next_poll = ex_next_poll;
	if (data_path_is_observed()) {
		ex->start_poll = wallclock ? ex_start_poll_wallclock_observed : ex_start_poll_observed;
		ex->next_poll = ex_next_poll_observed;
	}
	ex->end_poll = ex_end_poll;
	ex->read_opcode = read_opcode;
	ex->read_vendor_err = read_vendor_err;
	ex->read_wc_flags = read_wc_flags;
#define READER(flag, field) ex->field = wc_flags & IBV_WC_EX_WITH_##flag ? field : NULL
	READER(BYTE_LEN, read_byte_len);
	READER(IMM, read_imm_data);
	READER(QP_NUM, read_qp_num);
	READER(SRC_QP, read_src_qp);
	READER(SLID, read_slid);
	READER(SL, read_sl);
	READER(DLID_PATH_BITS, read_dlid_path_bits);
	READER(COMPLETION_TIMESTAMP, read_completion_ts);
	READER(CVLAN, read_cvlan);
	READER(FLOW_TAG, read_flow_tag);
	READER(TM_INFO, read_tm_info);
	READER(COMPLETION_TIMESTAMP_WALLCLOCK, read_completion_wallclock_ns);
#undef READER
}
