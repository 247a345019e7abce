/* SPDX-License-Identifier: BSD-2-Clause */
/* Device side of ibv_modify_qp(3). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/epoch.h"
#include "hca/grants.h"
#include "hca/port_mtu.h"
#include "transport/control/qp.h"
#include "transport/control/state.h"
#include "transport/qp/dci.h"
#include "transport/qp/early.h"
#include "transport/qp/qp.h"
#include "transport/qp/record.h"
#include "transport/qp/transport.h"
#include "transport/requester/requester.h"
#include "transport/responder/answer.h"
#include "transport/responder/responder.h"
#include "wire/link.h"
#include "wire/routes.h"

#define MAX_TIMER 31
#define MAX_RETRY 7

/* Checks that the attribute @bit is at most @most. */
static int check_value(int mask, int bit, uint64_t value, uint64_t most, struct refusal *why)
{
	if (!(mask & bit) || value <= most)
		return 0;
	return REFUSAL(why, EINVAL, RULE_MODIFY_VALUE, (uint64_t)bit, value, most);
}

/* RoCE has no LIDs: addresses are GIDs (IBTA annex A16.4.1). */
static int modify_check_address(const struct hca_qp *qp, const struct ibv_ah_attr *address, struct refusal *why)
{
	if (!address->is_global)
		return REFUSAL(why, EINVAL, RULE_MODIFY_NO_GRH, address->dlid);
	if (address->grh.sgid_index >= qp->hca->gid_count)
		return REFUSAL(why, EINVAL, RULE_MODIFY_SGID, address->grh.sgid_index, qp->hca->gid_count);
	if (address->port_num < 1 || address->port_num > LIMIT_PORTS)
		return REFUSAL(why, EINVAL, RULE_MODIFY_VALUE, IBV_QP_PORT, address->port_num, LIMIT_PORTS);
	return 0;
}

static int check_values(const struct hca_qp *qp, const struct ibv_qp_attr *attr, int mask, struct refusal *why)
{
	int error = 0;

	if (mask & IBV_QP_CUR_STATE && attr->cur_qp_state != qp->state)
		return REFUSAL(why, EINVAL, RULE_MODIFY_CUR_STATE, attr->cur_qp_state, qp->state);
	if (mask & IBV_QP_PORT && attr->port_num < 1)
		return REFUSAL(why, EINVAL, RULE_MODIFY_VALUE, IBV_QP_PORT, attr->port_num, LIMIT_PORTS);
	if (mask & IBV_QP_PATH_MTU && (attr->path_mtu < IBV_MTU_256 || attr->path_mtu > IBV_MTU_4096 ||
				       128u << attr->path_mtu > port_most_mtu(qp->hca)))
		return REFUSAL(why, EINVAL, RULE_MODIFY_MTU, attr->path_mtu, port_most_mtu(qp->hca));
	/* ibv_modify_qp(3): without IBV_DEVICE_AUTO_PATH_MIG, as on RoCE, alternate paths do not exist. */
	if (mask & IBV_QP_ALT_PATH)
		return REFUSAL(why, EINVAL, RULE_MODIFY_ALT_PATH, attr->alt_port_num);
	if (mask & IBV_QP_AV)
		error = modify_check_address(qp, &attr->ah_attr, why);
	error = error ? error : check_value(mask, IBV_QP_PORT, attr->port_num, LIMIT_PORTS, why);
	error = error ? error : check_value(mask, IBV_QP_PKEY_INDEX, attr->pkey_index, LIMIT_PKEY_TABLE - 1, why);
	error = error ? error : check_value(mask, IBV_QP_DEST_QPN, attr->dest_qp_num, 0xffffff, why);
	error = error ? error : check_value(mask, IBV_QP_TIMEOUT, attr->timeout, MAX_TIMER, why);
	error = error ? error : check_value(mask, IBV_QP_RETRY_CNT, attr->retry_cnt, MAX_RETRY, why);
	error = error ? error : check_value(mask, IBV_QP_RNR_RETRY, attr->rnr_retry, MAX_RETRY, why);
	error = error ? error : check_value(mask, IBV_QP_MIN_RNR_TIMER, attr->min_rnr_timer, MAX_TIMER, why);
	error = error ? error
		      : check_value(mask, IBV_QP_MAX_QP_RD_ATOMIC, attr->max_rd_atomic, LIMIT_MAX_RD_ATOMIC, why);
	error = error ? error
		      : check_value(mask, IBV_QP_MAX_DEST_RD_ATOMIC, attr->max_dest_rd_atomic, LIMIT_MAX_RD_ATOMIC,
				    why);
	return error;
}

static void modify_set_address(struct hca_qp *qp, const struct ibv_ah_attr *address)
{
	const struct hca_gid *source = &qp->hca->gids[address->grh.sgid_index];

	qp->attr.ah_attr = *address;
	qp->path = (struct packet_path){
		.source = source->gid,
		.destination = address->grh.dgid,
		.type = source->type,
		.service_level = address->sl & 7,
		.traffic_class = address->grh.traffic_class,
		.hop_limit = address->grh.hop_limit,
		.flow_label = address->grh.flow_label & 0xfffff,
	};
}

void hca_qp_set_udp_source_port(struct hca_qp *qp, uint16_t port)
{
	queue_lock(&qp->lock);
	qp->path.udp_source_port = port;
	queue_unlock(&qp->lock);
}

/*
 * Makes room for the answers of @most READs and atomics. Keeps the old ones: the newest in their places, then the new
 * room, and the oldest at the end, to be overwritten first.
 */
static int make_resources(struct responder *responder, uint32_t most, struct refusal *why)
{
	uint32_t count = 1, before = responder->resources, oldest;
	struct responder_resource *resource;

	while (count < most)
		count *= 2;
	if (!most || count <= before)
		return 0;
	resource = calloc(count, sizeof(*resource));
	if (!resource)
		return REFUSAL(why, ENOMEM, RULE_MODIFY_NO_MEMORY, most);
	oldest = before ? responder->next_resource & (before - 1) : 0;
	if (before) {
		memcpy(resource, responder->resource, oldest * sizeof(*resource));
		memcpy(resource + count - before + oldest, responder->resource + oldest,
		       (before - oldest) * sizeof(*resource));
		answer_requests_moved(responder, oldest, count - before);
	}
	free(responder->resource);
	responder->resource = resource;
	responder->next_resource = oldest;
	responder->resources = count;
	return 0;
}

static void set_values(struct hca_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	struct qp_attributes *own = &qp->attr;

	if (mask & IBV_QP_EN_SQD_ASYNC_NOTIFY)
		own->en_sqd_async_notify = attr->en_sqd_async_notify;
	if (mask & IBV_QP_ACCESS_FLAGS)
		own->qp_access_flags = attr->qp_access_flags;
	if (mask & IBV_QP_PKEY_INDEX)
		own->pkey_index = attr->pkey_index;
	if (mask & IBV_QP_PORT)
		own->port_num = attr->port_num;
	if (mask & IBV_QP_QKEY)
		own->qkey = attr->qkey;
	if (mask & IBV_QP_AV)
		modify_set_address(qp, &attr->ah_attr);
	if (mask & IBV_QP_PATH_MTU) {
		own->path_mtu = attr->path_mtu;
		qp->mtu_shift = (uint8_t)(7 + attr->path_mtu);
	}
	if (mask & IBV_QP_TIMEOUT)
		own->timeout = attr->timeout;
	if (mask & IBV_QP_RETRY_CNT)
		own->retry_cnt = qp->requester.retries_left = attr->retry_cnt;
	if (mask & IBV_QP_RNR_RETRY)
		own->rnr_retry = qp->requester.rnr_retries_left = attr->rnr_retry;
	if (mask & IBV_QP_RQ_PSN)
		qp->responder.expected_psn = attr->rq_psn & PSN_MASK;
	if (mask & IBV_QP_SQ_PSN) {
		qp->requester.psn = attr->sq_psn & PSN_MASK;
		qp->requester.acknowledged = psn_add(qp->requester.psn, PSN_MASK);
		qp->requester.newest = qp->requester.psn;
	}
	if (mask & IBV_QP_MAX_QP_RD_ATOMIC)
		own->max_rd_atomic = attr->max_rd_atomic;
	if (mask & IBV_QP_MAX_DEST_RD_ATOMIC)
		own->max_dest_rd_atomic = attr->max_dest_rd_atomic;
	if (mask & IBV_QP_MIN_RNR_TIMER)
		own->min_rnr_timer = attr->min_rnr_timer;
	if (mask & IBV_QP_DEST_QPN)
		own->dest_qp_num = attr->dest_qp_num;
	if (mask & IBV_QP_PATH_MIG_STATE)
		own->path_mig_state = attr->path_mig_state;
	/* A DCT has no destination before a request arrives. */
	if (mask & (IBV_QP_AV | IBV_QP_DEST_QPN))
		qp_route(qp);
}

/*
 * Returns true if other processes may send to @qp; otherwise a receiving thread would be wasted. False on links of
 * tests.
 */
static bool hears_others(const struct hca_qp *qp)
{
	return !qp->hca->link && (qp->link != routes->local() || !routes->owns(qp->attr.dest_qp_num));
}

static void enter_state(struct hca_qp *qp, enum ibv_qp_state to)
{
	enum ibv_qp_state from = qp->state;

	const struct explain_subject ended = {.qpn = qp->number, .expected = true};

	if (to == IBV_QPS_ERR) {
		if (from != IBV_QPS_ERR) {
			qp->ended = true;
			qp_enter_error(qp, EXPLAIN(qp->hca, &ended, RULE_MODIFIED_TO_ERROR, from));
		}
		return;
	}
	if (to == IBV_QPS_RESET) {
		qp->ended = false;
		qp_return_receive(qp);
	}
	__atomic_store_n(&qp->state, to, __ATOMIC_RELEASE);
	switch (to) {
	case IBV_QPS_RTR:
		early_end(qp);
		if (hears_others(qp))
			routes->accept();
		if (qp->dct || qp->type == IBV_QPT_UD)
			routes->listen(qp->hca);
		/* A DCT has no such attribute: the device's limit applies. */
		if (qp->dct)
			qp->attr.max_dest_rd_atomic = LIMIT_MAX_RD_ATOMIC;
		break;
	case IBV_QPS_RESET:
		__atomic_store_n(&qp->flushes, 0, __ATOMIC_RELEASE);
		requester_reset(qp);
		responder_reset(qp);
		qp_reset_shadows(qp);
		qp_ignore_record(qp); /* see restart_watch() */
		memset(&qp->attr, 0, sizeof(qp->attr));
		break;
	case IBV_QPS_RTS:
		if (from != IBV_QPS_RTS) {
			requester_enter(qp, REQUESTER_READY);
			qp->requester.signature_error = false;
		}
		if (qp->watch && from == IBV_QPS_RTR) {
			qp->watch->starting = true;
			qp_ignore_record(qp); /* see restart_watch() */
		}
		/* Applies to one drain only (ibv_modify_qp(3): en_sqd_async_notify is valid with SQD). */
		qp->attr.sq_draining = 0;
		qp->attr.en_sqd_async_notify = 0;
		break;
	case IBV_QPS_SQD:
		if (from == IBV_QPS_RTS) {
			requester_enter(qp, REQUESTER_DRAINED);
			qp->attr.sq_draining = 1;
			requester_check_drained(qp);
		}
		break;
	default:
		break;
	}
}

/* Datagram QPs have no path MTU: a message is as long as a packet of the port. */
static uint8_t port_mtu_shift(const struct hca_qp *qp)
{
	return (uint8_t)__builtin_ctz(port_active_mtu(qp->hca));
}

/* Returns the attributes of a missing half (send or receive), which are ignored, as by the kernel. */
static int ignored_attributes(const struct hca_qp *qp)
{
	switch (qp->type) {
	case IBV_QPT_XRC_SEND:
		return IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	case IBV_QPT_XRC_RECV:
		return IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY;
	default:
		return 0;
	}
}

static int modify_locked(struct hca_qp *qp, const struct ibv_qp_attr *attr, int mask, struct refusal *why)
{
	enum ibv_qp_state to = mask & IBV_QP_STATE ? attr->qp_state : qp->state;
	int error;

	if (qp->inherited)
		return REFUSAL(why, EBADF, RULE_QP_OF_PARENT, qp->number);
	error = qp_transition_check(qp->type, qp->state, to, mask, why);
	if (!error)
		error = check_values(qp, attr, mask, why);
	if (!error && mask & IBV_QP_MAX_DEST_RD_ATOMIC)
		error = make_resources(&qp->responder, attr->max_dest_rd_atomic, why);
	if (error)
		return error;
	if (qp->type == IBV_QPT_UD)
		qp->mtu_shift = port_mtu_shift(qp);
	set_values(qp, attr, mask);
	enter_state(qp, to);
	if (timeline_is_on() && (to == IBV_QPS_RTR || to == IBV_QPS_RTS))
		record_qp(qp);
	return 0;
}

int hca_qp_modify(struct hca_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	struct refusal why;
	int error = hca_qp_try_modify(qp, attr, mask, &why);

	if (error) {
		struct explain_subject subject = {.call = "ibv_modify_qp", .qpn = qp->number, .error = -error};

		explain_make(qp->hca, &subject, why.rule, why.args, EXPLAIN_ARGS);
	}
	return error;
}

void hca_qp_disconnect(struct hca_qp *qp)
{
	const struct explain_subject subject = {.qpn = qp->number, .expected = true};
	bool granted;

	queue_lock(&qp->lock);
	if (qp->state != IBV_QPS_ERR) {
		qp->ended = true;
		qp_enter_error(qp, EXPLAIN(qp->hca, &subject, RULE_RDMACM_DISCONNECTED, 0));
	}
	granted = qp->granted;
	queue_unlock(&qp->lock);
	/* As in hca_qp_try_modify(). */
	epoch_synchronize();
	if (unlikely(granted))
		grants_revoke_and_drain();
}

/*
 * A program cannot post before RTS, so the record of a watched QP announces no requests at RESET and at the move to
 * RTS. The watcher must not obey it between that move, under the lock, and this call.
 */
static void restart_watch(struct hca_qp *qp, bool ready)
{
	bool stale = watch_restart(qp->hca->watcher, &qp->watch->watch, qp->number);

	queue_lock(&qp->lock);
	qp->watch->starting = false;
	if (ready && !stale)
		qp_obey_record(qp);
	else
		qp_ignore_record(qp);
	queue_unlock(&qp->lock);
}

int hca_qp_try_modify(struct hca_qp *qp, const struct ibv_qp_attr *attr, int mask, struct refusal *why)
{
	enum ibv_qp_state before;
	bool granted;
	int error;

	queue_lock(&qp->lock);
	before = qp->state;
	error = modify_locked(qp, attr, mask & ~ignored_attributes(qp), why);
	granted = qp->granted;
	queue_unlock(&qp->lock);
	if (error)
		return error;
	/* Another thread may still execute requests, and the program may reuse rings and memory after the return. */
	if (mask & IBV_QP_STATE && (attr->qp_state == IBV_QPS_RESET || attr->qp_state == IBV_QPS_ERR))
		epoch_synchronize();
	/* The access granted to the peer may have changed. */
	if (unlikely(granted))
		grants_revoke_and_drain();
	if (qp->dci && mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_RESET)
		qp_leave_target(qp);
	if (qp->watch && mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_RESET)
		restart_watch(qp, false);
	if (mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_RTS && before != IBV_QPS_RTS) {
		if (qp->watch && before == IBV_QPS_RTR)
			restart_watch(qp, true);
		qp_fetch_requests(qp);
		hca_qp_send_doorbell(qp);
	}
	return 0;
}
