/* SPDX-License-Identifier: BSD-2-Clause */
/* CQs, SRQs and QPs of the world of the fuzzers, see world.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "process/commands.h"
#include "hca/hca.h"
#include "transport/qp/dci.h"
#include "transport/responder/dct.h"
#include "transport/qp/transport.h"
#include "world.h"

static const enum ibv_qp_type types[WORLD_PAIRS][2] = {
	[WORLD_RC] = {IBV_QPT_RC, IBV_QPT_RC},   [WORLD_UC] = {IBV_QPT_UC, IBV_QPT_UC},
	[WORLD_UD] = {IBV_QPT_UD, IBV_QPT_UD},   [WORLD_RC_SMALL] = {IBV_QPT_RC, IBV_QPT_RC},
	[WORLD_DC] = {QP_TYPE_DCI, QP_TYPE_DCT}, [WORLD_XRC] = {IBV_QPT_XRC_SEND, IBV_QPT_XRC_RECV},
};

/* ---- making --------------------------------------------------------------------------------------------------- */

static void make_cq(struct world_cq *cq, uint32_t count, uint32_t size)
{
	struct hca_cq_attr attr = {.cqe_count = count, .cqe_size = size, .dbrec = cq->dbrec, .cookie = cq};

	cq->count = count;
	cq->size = size;
	cq->buffer = attr.buffer = world_exact((size_t)count * size);
	WORLD_CHECK(!hca_cq_create(world.context, &attr, &cq->cq));
}

/* All SRQs share one ring and one doorbell record, and each takes its entries from there. */
static void make_srqs(void)
{
	struct hca_srq_attr attr = {.entry_count = WORLD_SRQ_ENTRIES,
				    .entry_shift = WORLD_SRQ_SHIFT,
				    .dbrec = &world.srq_dbrec,
				    .cookie = &world.srq};

	world.srq_ring = attr.buffer = world_exact((size_t)WORLD_SRQ_ENTRIES << WORLD_SRQ_SHIFT);
	WORLD_CHECK(!hca_srq_create(world.pd, &attr, &world.srq));
	attr.cq = world.cq[1].cq;
	attr.user_index = WORLD_QPN(WORLD_XRC, 1) & 0xff;
	for (uint32_t i = 0; i < WORLD_XRC_SRQS; i++) {
		bool foreign = i == WORLD_XRC_SRQS - 1;

		attr.xrcd = foreign ? world.foreign_xrcd : world.xrcd;
		WORLD_CHECK(!hca_srq_create(foreign ? world.foreign_pd : world.pd, &attr, &world.xrc_srq[i]));
		WORLD_CHECK(hca_srq_number(world.xrc_srq[i]) == WORLD_XRC_SRQ + i);
	}
}

static void make_rings(struct world_qp *end, struct hca_qp_attr *attr)
{
	if (transport_of(attr->type)->requests) {
		attr->sq_wqebb_count = WORLD_SQ_BLOCKS;
		attr->sq_buffer = end->sq = world_exact((size_t)WORLD_SQ_BLOCKS * 64);
	}
	if (transport_of(attr->type)->responds && !end->srq) {
		attr->rq_count = WORLD_RQ_ENTRIES;
		attr->rq_shift = WORLD_RQ_SHIFT;
		attr->rq_buffer = end->rq = world_exact((size_t)WORLD_RQ_ENTRIES << WORLD_RQ_SHIFT);
	}
	attr->dbrec = end->dbrec;
}

static void make_qp(struct world_qp *end, enum ibv_qp_type type, struct world_cq *send_cq, struct world_cq *recv_cq,
		    struct hca_srq *srq)
{
	struct hca_qp_attr attr = {
		.type = type,
		.pd = world.pd,
		.send_cq = send_cq->cq,
		.recv_cq = recv_cq->cq,
		.srq = srq,
		.cookie = end,
		.stop_at_signature_error = send_cq->count == 4,
		.dc_access_key = WORLD_DC_KEY,
		.dci_errored_streams = WORLD_STREAMS,
	};

	end->send_cq = send_cq;
	end->recv_cq = recv_cq;
	end->srq = srq;
	make_rings(end, &attr);
	if (type == IBV_QPT_XRC_RECV) {
		attr.xrcd = world.xrcd;
		attr.pd = NULL;
		attr.send_cq = attr.recv_cq = NULL;
		attr.srq = NULL;
	}
	WORLD_CHECK(!hca_qp_create(world.context, &attr, &end->qp));
	/* The low bits of the number, so that each CQE shows whether both are from one QP. */
	end->qp->user_index = end->qp->number & 0xff;
}

static struct hca_srq *srq_of(enum ibv_qp_type type, bool small)
{
	if (type == IBV_QPT_XRC_RECV)
		return world.xrc_srq[0];
	return type == QP_TYPE_DCT || small ? world.srq : NULL;
}

void world_make_queues(void)
{
	make_cq(&world.cq[0], 256, 64);
	make_cq(&world.cq[1], 256, 64);
	make_cq(&world.cq[2], 4, 128);
	make_cq(&world.cq[3], 4, 128);
	make_cq(&world.cq[4], 256, 64);
	WORLD_CHECK(!hca_xrcd_open(world.context, -1, O_CREAT, &world.xrcd));
	WORLD_CHECK(!hca_xrcd_open(world.context, -1, O_CREAT, &world.foreign_xrcd));
	make_srqs();
	for (int i = 0; i < WORLD_PAIRS; i++) {
		bool small = i == WORLD_RC_SMALL;

		for (int j = 0; j < 2; j++) {
			make_qp(&world.pair[i].end[j], types[i][j], &world.cq[small ? 2 : 0], &world.cq[small ? 3 : 1],
				srq_of(types[i][j], small && j));
			WORLD_CHECK(world.pair[i].end[j].qp->number == WORLD_QPN(i, j));
		}
	}
	make_qp(&world.other_target, QP_TYPE_DCT, &world.cq[4], &world.cq[4], world.srq);
	WORLD_CHECK(world.other_target.qp->number == WORLD_OTHER_TARGET);
}

/* ---- as they were made ---------------------------------------------------------------------------------------- */

static void reset_cq(struct world_cq *world_cq)
{
	struct hca_cq *cq = world_cq->cq;

	memset(world_cq->buffer, 0, (size_t)world_cq->count * world_cq->size);
	for (uint32_t i = 1; i <= world_cq->count; i++)
		world_cq->buffer[(size_t)i * world_cq->size - 1] = MLX5_CQE_INVALID << 4;
	world_cq->consumer = 0;
	world_cq->dbrec[0] = world_cq->dbrec[1] = 0;
	cq->producer_index = 0;
	cq->overrun = false;
	cq->armed = false;
	cq->fired = false;
}

static void reset_srq(struct hca_srq *srq)
{
	srq->consumed = 0;
	srq->next = 0;
	srq->limit = 0;
}

void world_reset_queues(void)
{
	for (int i = 0; i < WORLD_CQS; i++)
		reset_cq(&world.cq[i]);
	world.srq_dbrec = 0;
	reset_srq(world.srq);
	for (int i = 0; i < WORLD_XRC_SRQS; i++)
		reset_srq(world.xrc_srq[i]);
}

/* ---- connections ---------------------------------------------------------------------------------------------- */

static void modify(struct hca_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	WORLD_CHECK(!hca_qp_modify(qp, attr, mask | IBV_QP_STATE));
}

static void to_init(struct hca_qp *qp, const struct world_connection *connection)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = connection->access, .qkey = 0x11111111};
	int mask = IBV_QP_PKEY_INDEX | IBV_QP_PORT;

	if (qp->type == IBV_QPT_UD)
		mask |= IBV_QP_QKEY;
	else if (qp->type != QP_TYPE_DCI)
		mask |= IBV_QP_ACCESS_FLAGS;
	modify(qp, &attr, mask);
}

static int rtr_mask(const struct hca_qp *qp)
{
	const int connected = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;

	switch ((int)qp->type) {
	case IBV_QPT_UD:
		return 0;
	case QP_TYPE_DCI:
		return IBV_QP_PATH_MTU;
	case QP_TYPE_DCT:
		return IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_MIN_RNR_TIMER;
	case IBV_QPT_RC:
	case IBV_QPT_XRC_RECV:
		return connected | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	default:
		return connected;
	}
}

static void to_rtr(struct hca_qp *qp, const struct world_connection *connection, uint32_t peer)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = connection->mtu,
		.dest_qp_num = peer,
		.rq_psn = 0xfffffe, /* wraps soon */
		.max_dest_rd_atomic = connection->max_dest_rd_atomic,
		.ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = world.gid, .hop_limit = 1}},
	};

	if (connection->unreachable)
		memset(&attr.ah_attr.grh.dgid, 0x5a, sizeof(attr.ah_attr.grh.dgid));
	modify(qp, &attr, rtr_mask(qp));
}

/* The longest timeouts: harnesses expire a timer by calling its function. */
static void to_rts(struct hca_qp *qp, const struct world_connection *connection)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = 0xfffffe,
		.timeout = 31,
		.retry_cnt = connection->retry_cnt,
		.rnr_retry = connection->rnr_retry,
		.max_rd_atomic = connection->max_rd_atomic,
	};
	int mask = IBV_QP_SQ_PSN;

	if (qp->type == IBV_QPT_XRC_RECV)
		mask |= IBV_QP_TIMEOUT;
	else if (qp->transport->reliable)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
	modify(qp, &attr, mask);
}

/* Brings a DCT to RTR, its last state. */
static void connect_target(struct hca_qp *qp, const struct world_connection *connection)
{
	to_init(qp, connection);
	to_rtr(qp, connection, 0);
}

void world_connect(struct world_pair_of_qps *pair, const struct world_connection *connection)
{
	for (int i = 0; i < 2; i++) {
		struct hca_qp *qp = pair->end[i].qp;
		uint32_t peer = pair->end[connection->to_itself ? i : 1 - i].qp->number;

		if (qp->dct) {
			connect_target(qp, connection);
			connect_target(world.other_target.qp, connection);
			continue;
		}
		qp->requester.next = connection->sq_start;
		qp->rq.consumed = connection->rq_start;
		if (qp->dci)
			qp->dci->limit = connection->streams ? WORLD_STREAMS : 0;
		to_init(qp, connection);
		to_rtr(qp, connection, peer);
		if (i == 0 || !connection->peer_in_rtr)
			to_rts(qp, connection);
	}
}

/* A DCT cannot be reset, and a new one would have another number. */
static void renew_target(struct hca_qp *qp)
{
	qp->unsent_answers = NULL;
	dct_free(qp->dct);
	qp->dct = dct_new(WORLD_DC_KEY);
	WORLD_CHECK(qp->dct);
	qp->state = IBV_QPS_RESET;
	qp->flushes = 0;
	memset(&qp->attr, 0, sizeof(qp->attr));
}

void world_disconnect(struct world_pair_of_qps *pair)
{
	const struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};

	for (int i = 0; i < 2; i++)
		if (!pair->end[i].qp->dct)
			modify(pair->end[i].qp, &reset, 0);
	if (pair != &world.pair[WORLD_DC])
		return;
	renew_target(pair->end[1].qp);
	renew_target(world.other_target.qp);
}

/* ---- events --------------------------------------------------------------------------------------------------- */

static bool is_of_the_world(const void *object)
{
	if (object == &world.srq || object == &world.other_target)
		return true;
	for (int i = 0; i < WORLD_CQS; i++)
		if (object == &world.cq[i])
			return true;
	for (int i = 0; i < WORLD_PAIRS; i++)
		if (object == &world.pair[i].end[0] || object == &world.pair[i].end[1])
			return true;
	return false;
}

void world_take_events(void)
{
	void *object;
	int type, error;

	while (!(error = event_queue_take(&world.async, &type, &object)))
		WORLD_CHECK(is_of_the_world(object));
	WORLD_CHECK(error == -EAGAIN);
}
