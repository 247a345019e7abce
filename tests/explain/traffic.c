/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules 80 to 101: requests that the responder refuses or drops, requests that the requester abandons, and full CQs. */
#include "rule_cases.h"

enum { NO_QP = 0xabcdef, GRH = 40 };

static void to_ud(void)
{
	struct pair_options options = pair_defaults(IBV_QPT_UD);

	pair_replace(&pair, &options);
}

/* Sends a datagram of BYTES from the client to QP @qp_num. */
static void send_datagram(uint32_t qp_num, uint32_t qkey)
{
	struct ibv_send_wr wr = request(IBV_WR_SEND, BYTES), *bad;

	wr.wr.ud.ah = pair.client.ah;
	wr.wr.ud.remote_qpn = qp_num;
	wr.wr.ud.remote_qkey = qkey;
	expect_error(ibv_post_send(pair.client.qp, &wr, &bad), 0);
	/* The sender does not learn the outcome. */
	expect_completion(&pair.client, WR_ID, IBV_WC_SEND);
}

static void modify(struct endpoint *endpoint, struct ibv_qp_attr attr, int mask)
{
	expect_error(ibv_modify_qp(endpoint->qp, &attr, mask), 0);
}

/* Makes a client in RTS with @attr and short timeouts, and a server that the case connects. */
static void impatient(struct ibv_qp_attr attr)
{
	struct pair_options options = pair_defaults(IBV_QPT_RC);

	pair_close(&pair);
	pair_create(&pair, &client, &server, &options);
	endpoint_to_init(&pair.client);
	endpoint_to_rtr(&pair.client);
	endpoint_to_init(&pair.server);
	attr.qp_state = IBV_QPS_RTS;
	attr.sq_psn = 0xfffff0; /* as in pair.c */
	modify(&pair.client, attr,
	       IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		       IBV_QP_MAX_QP_RD_ATOMIC);
}

RULE_CASE(PACKET_NO_QP)
{
	to_ud();
	send_datagram(NO_QP, PAIR_QKEY);
	expect_about_qp(
		PACKET_NO_QP, NO_QP,
		": SEND of queue pair 0x%x from this process for queue pair 0xabcdef, which does not exist: dropped",
		pair.client.qp->qp_num);
}

RULE_CASE(PACKET_STATE)
{
	to_ud();
	modify(&pair.server, (struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, IBV_QP_STATE);
	endpoint_to_init(&pair.server);
	send_datagram(pair.server.qp->qp_num, PAIR_QKEY);
	expect_about_qp(
		PACKET_STATE, pair.server.qp->qp_num,
		": SEND of queue pair 0x%x from this process for queue pair 0x%x, which is in state INIT: dropped",
		pair.client.qp->qp_num, pair.server.qp->qp_num);
}

RULE_CASE(PACKET_TRANSPORT)
{
	struct pair_options options = pair_defaults(IBV_QPT_UC);
	struct pair other;

	to_ud();
	pair_open(&other, &client, &server, &options);
	send_datagram(other.server.qp->qp_num, PAIR_QKEY);
	expect_about_qp(PACKET_TRANSPORT, other.server.qp->qp_num,
			": SEND of queue pair 0x%x from this process for queue pair 0x%x, which is of type UC: dropped",
			pair.client.qp->qp_num, other.server.qp->qp_num);
	pair_close(&other);
}

RULE_CASE(QP_ACCESS)
{
	modify(&pair.server, (struct ibv_qp_attr){.qp_access_flags = IBV_ACCESS_REMOTE_READ}, IBV_QP_ACCESS_FLAGS);
	write_to(server.mr->rkey, side_address(&server, 0));
	expect_failure(&pair.client, WR_ID, REM_INV_REQ_ERR, QP_ACCESS, "RDMA_WRITE",
		       "RDMA WRITE on queue pair 0x%x needs REMOTE_WRITE; its qp_access_flags are REMOTE_READ",
		       pair.server.qp->qp_num);
}

RULE_CASE(QP_NO_RESOURCES)
{
	struct ibv_send_wr wr = request(IBV_WR_RDMA_READ, BYTES);
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD};

	modify(&pair.server, attr, IBV_QP_STATE);
	modify(&pair.server, attr, IBV_QP_STATE | IBV_QP_MAX_DEST_RD_ATOMIC);
	wr.wr.rdma.rkey = server.mr->rkey;
	wr.wr.rdma.remote_addr = side_address(&server, 0);
	post_send(&pair.client, &wr);
	expect_failure(&pair.client, WR_ID, REM_INV_REQ_ERR, QP_NO_RESOURCES, "RDMA_READ",
		       "RDMA READ request on queue pair 0x%x, which has max_dest_rd_atomic 0", pair.server.qp->qp_num);
}

RULE_CASE(NO_RECEIVE)
{
	to_ud();
	send_datagram(pair.server.qp->qp_num, PAIR_QKEY);
	expect_about_qp(NO_RECEIVE, pair.server.qp->qp_num,
			": SEND for queue pair 0x%x, which has no receive posted: dropped", pair.server.qp->qp_num);
}

RULE_CASE(RECEIVE_TOO_SHORT)
{
	struct ibv_sge sge = side_sge(&server, 0, BYTES - 1);
	struct ibv_send_wr wr = request(IBV_WR_SEND, BYTES);

	post_receive(&pair.server, 9, &sge, 1);
	post_send(&pair.client, &wr);
	expect_failure(&pair.client, WR_ID, REM_INV_REQ_ERR, RECEIVE_TOO_SHORT, "SEND",
		       "the message takes 16 bytes (0 of them header); the receive holds 15");
	expect_receive_failure(&pair.server, 9, LOC_LEN_ERR, RECEIVE_TOO_SHORT,
			       "the message takes 16 bytes (0 of them header); the receive holds 15");
	/* A datagram is preceded by 40 bytes. */
	to_ud();
	sge = side_sge(&server, 0, GRH + BYTES - 1);
	post_receive(&pair.server, 9, &sge, 1);
	send_datagram(pair.server.qp->qp_num, PAIR_QKEY);
	expect_about_qp(RECEIVE_TOO_SHORT, pair.server.qp->qp_num,
			": the message takes 56 bytes (40 of them header); the receive holds 55");
}

RULE_CASE(ATOMIC_ALIGNMENT)
{
	struct ibv_send_wr wr = request(IBV_WR_ATOMIC_FETCH_AND_ADD, 8);

	wr.wr.atomic.rkey = server.mr->rkey;
	wr.wr.atomic.remote_addr = side_address(&server, 4);
	post_send(&pair.client, &wr);
	expect_failure(&pair.client, WR_ID, REM_INV_REQ_ERR, ATOMIC_ALIGNMENT, "ATOMIC_FA",
		       "the target of an atomic or ATOMIC WRITE, 0x%" PRIx64 ", is not aligned to 8 bytes",
		       side_address(&server, 4));
}

RULE_CASE(DATAGRAM_QKEY)
{
	to_ud();
	send_datagram(pair.server.qp->qp_num, 0x777);
	expect_about_qp(
		DATAGRAM_QKEY, pair.server.qp->qp_num,
		": a datagram with Q_Key 0x777 from queue pair 0x%x of this process; the Q_Key here is 0x%x: dropped",
		pair.client.qp->qp_num, PAIR_QKEY);
}

static struct ibv_ah *ah_to_group(void)
{
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1, .grh = {.dgid.raw = {0xff, 0x0e, [15] = 7}}};
	struct ibv_ah *ah;

	to_ud();
	ah = ibv_create_ah(client.pd, &attr);
	assert_non_null(ah);
	return ah;
}

static void send_to_group(struct ibv_ah *ah, uint32_t qpn)
{
	struct ibv_send_wr wr = request(IBV_WR_SEND, BYTES), *bad;

	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = qpn;
	wr.wr.ud.remote_qkey = PAIR_QKEY;
	expect_error(ibv_post_send(pair.client.qp, &wr, &bad), 0);
	expect_completion(&pair.client, WR_ID, IBV_WC_SEND);
	expect_error(ibv_destroy_ah(ah), 0);
}

RULE_CASE(MULTICAST_NOBODY)
{
	send_to_group(ah_to_group(), 0xffffff);
	expect_about_qp(
		MULTICAST_NOBODY, 0xffffff,
		": SEND of queue pair 0x%x went to multicast group 0xff0e000000000000:0x7, to which no queue pair is attached",
		pair.client.qp->qp_num);
}

RULE_CASE(MULTICAST_QP)
{
	send_to_group(ah_to_group(), NO_QP);
	expect_about_qp(
		MULTICAST_QP, NO_QP,
		": SEND of queue pair 0x%x from this process for a multicast group names queue pair 0xabcdef: dropped",
		pair.client.qp->qp_num);
}

/* min_rnr_timer 1 is 0.01 ms (IBTA table 45). */
RULE_CASE(RNR_EXHAUSTED)
{
	struct ibv_send_wr wr = request(IBV_WR_SEND, BYTES);

	impatient((struct ibv_qp_attr){.timeout = 14, .retry_cnt = 7, .rnr_retry = 2});
	endpoint_to_rtr(&pair.server);
	post_send(&pair.client, &wr);
	expect_failure(
		&pair.client, WR_ID, RNR_RETRY_EXC_ERR, RNR_EXHAUSTED, "SEND",
		"queue pair 0x%x of this process had no receive posted for the request and 2 repetitions, 10 us apart",
		pair.server.qp->qp_num);
}

RULE_CASE(RETRY_EXHAUSTED)
{
	struct ibv_send_wr wr = request(IBV_WR_SEND, BYTES);

	impatient((struct ibv_qp_attr){.timeout = 3, .retry_cnt = 2, .rnr_retry = 7});
	post_send(&pair.client, &wr);
	expect_failure(
		&pair.client, WR_ID, RETRY_EXC_ERR, RETRY_EXHAUSTED, "SEND",
		"queue pair 0x%x of this process did not answer the request and 2 repetitions (timeout 3; link: local)",
		pair.server.qp->qp_num);
	/* The explanation about the other QP names the possible causes. */
	expect_about_qp(
		PACKET_STATE, pair.server.qp->qp_num,
		": SEND of queue pair 0x%x from this process for queue pair 0x%x, which is in state INIT: dropped",
		pair.client.qp->qp_num, pair.server.qp->qp_num);
}

/* A CQ for one completion has a ring of two (mlx5-formats 3.1); three WRITEs complete into it. */
static void cq_too_small(void)
{
	struct pair_options options = pair_defaults(IBV_QPT_RC);
	struct ibv_qp_init_attr attr = {
		.cap = {.max_send_wr = 4, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
	};
	struct softhca_explanation all[2];
	uint32_t cq_number;

	pair_close(&pair);
	pair_create(&pair, &client, &server, &options);
	expect_error(ibv_destroy_qp(pair.client.qp), 0);
	expect_error(ibv_destroy_cq(pair.client.cq), 0);
	pair.client.cq = ibv_create_cq(client.context, 1, NULL, NULL, 0);
	attr.send_cq = attr.recv_cq = pair.client.cq;
	pair.client.qp = ibv_create_qp(client.pd, &attr);
	assert_non_null(pair.client.qp);
	pair_connect(&pair);
	for (int i = 0; i < 3; i++)
		write_to(server.mr->rkey, side_address(&server, 0));
	memcpy(server.expected, client.memory, BYTES);
	cq_number = pair.client.cq->handle;

	/* First the CQ overflows, then its QP stops. */
	assert_int_equal(softhca_explanations(client.context, 0, all, 2), 2);
	expect_explanation(&all[1], CQ_OVERRUN, ": CQ 0x%x of 2 entries is full: completions are lost", cq_number);
	expect_explanation(
		&all[0], CQ_FULL,
		" qp 0x%x: CQ 0x%x with 2 entries accepted no completion: the queue pair goes to the error state",
		pair.client.qp->qp_num, cq_number);
	expect_state(&pair.client, IBV_QPS_ERR);
}

RULE_CASE(CQ_FULL)
{
	cq_too_small();
}

RULE_CASE(CQ_OVERRUN)
{
	cq_too_small();
}
