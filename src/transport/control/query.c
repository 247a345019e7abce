/* SPDX-License-Identifier: BSD-2-Clause */
/* Queries of a QP. */
#include <errno.h>

#include "core/epoch.h"
#include "transport/control/qp.h"
#include "transport/qp/dci.h"
#include "transport/responder/dct.h"

uint32_t hca_qp_number(const struct hca_qp *qp)
{
	return qp->number;
}

struct hca_qp *hca_qp_find(const struct hca_context *context, uint32_t number)
{
	struct hca_qp *qp;

	epoch_enter();
	qp = number <= PSN_MASK ? qp_find(number) : NULL;
	epoch_leave();
	return qp && qp->own.context == context ? qp : NULL;
}

void hca_qp_creation(const struct hca_qp *qp, struct hca_qp_attr *attr)
{
	*attr = (struct hca_qp_attr){
		.type = qp->type,
		.pd = qp->pd,
		.send_cq = qp->send_cq,
		.recv_cq = qp->recv_cq,
		.srq = qp->srq,
		.sq_wqebb_count = qp->requester.block_count,
		.in_umem = qp->send_shadow || qp->rq.shadow,
		.rq_count = qp->rq.count,
		.rq_shift = qp->rq.shift,
		.user_index = qp->user_index,
		.cap = qp->cap,
		.stop_at_signature_error = qp->stop_at_signature_error,
		.block_self_multicast = qp->block_self_multicast,
		.scatter_to_cqe = qp->scatter_to_cqe,
		.dc_access_key = qp->dct ? qp->dct->access_key : 0,
		.dci_errored_streams = qp->dci ? qp->dci->limit : 0,
	};
}

enum ibv_qp_type hca_qp_type(const struct hca_qp *qp)
{
	return qp->type;
}

bool hca_qp_exists(uint32_t number)
{
	bool exists;

	epoch_enter();
	exists = number <= PSN_MASK && qp_find(number);
	epoch_leave();
	return exists;
}

enum ibv_qp_state hca_qp_state(const struct hca_qp *qp)
{
	return __atomic_load_n(&qp->state, __ATOMIC_ACQUIRE);
}

/*
 * Fills in fields never set with those of an adapter's new QP (mlx5-formats 4.1, "A fresh QP"). Programs query a port
 * by the number in them, and pass others back to ibv_modify_qp().
 */
static void fill_defaults(const struct hca_qp *qp, struct ibv_qp_attr *attr)
{
	bool has_path = qp->type == IBV_QPT_RC || qp->type == IBV_QPT_UC || qp->type == IBV_QPT_XRC_SEND ||
			qp->type == IBV_QPT_XRC_RECV;

	if (!attr->port_num)
		attr->port_num = 1;
	if (!attr->max_rd_atomic)
		attr->max_rd_atomic = 1;
	if (!attr->max_dest_rd_atomic)
		attr->max_dest_rd_atomic = 1;
	if (has_path && !attr->path_mtu)
		attr->path_mtu = IBV_MTU_256;
	if (has_path && !attr->ah_attr.port_num) {
		attr->ah_attr.port_num = 1;
		attr->ah_attr.is_global = 1;
	}
}

int hca_qp_query(struct hca_qp *qp, struct ibv_qp_attr *attr)
{
	queue_lock(&qp->lock);
	*attr = (struct ibv_qp_attr){
		.qp_state = qp->state,
		.cur_qp_state = qp->state,
		.path_mtu = qp->attr.path_mtu,
		.path_mig_state = qp->attr.path_mig_state,
		.qkey = qp->attr.qkey,
		.rq_psn = qp->responder.expected_psn,
		.sq_psn = qp->requester.psn,
		.dest_qp_num = qp->attr.dest_qp_num,
		.qp_access_flags = qp->attr.qp_access_flags,
		.cap = qp->cap,
		.ah_attr = qp->attr.ah_attr,
		.pkey_index = qp->attr.pkey_index,
		.en_sqd_async_notify = qp->attr.en_sqd_async_notify,
		.sq_draining = qp->attr.sq_draining,
		.max_rd_atomic = qp->attr.max_rd_atomic,
		.max_dest_rd_atomic = qp->attr.max_dest_rd_atomic,
		.min_rnr_timer = qp->attr.min_rnr_timer,
		.port_num = qp->attr.port_num,
		.timeout = qp->attr.timeout,
		.retry_cnt = qp->attr.retry_cnt,
		.rnr_retry = qp->attr.rnr_retry,
	};
	queue_unlock(&qp->lock);
	fill_defaults(qp, attr);
	return 0;
}

int hca_qp_drained(struct hca_qp *qp, uint16_t *next)
{
	const struct requester *requester = &qp->requester;
	bool drained;

	queue_lock(&qp->lock);
	drained = requester->state == REQUESTER_DRAINED && requester->first == requester->last;
	*next = requester->next;
	queue_unlock(&qp->lock);
	return drained ? 0 : -EINVAL;
}
