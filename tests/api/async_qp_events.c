/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests asynchronous events of QPs and CQs (ibv_get_async_event(3); IBTA 11.6.3): communication established, the last WQE of a QP
 * on an SRQ, a CQ that overruns. Other tests cover the remaining events: responder_errors.c errors of requests, drain.c draining,
 * srq.c the limit of an SRQ.
 */
#include "support/event.h"
#include "support/program.h"

enum { SENDS = 100, RECEIVES = 200 };

static void to_state(struct endpoint *endpoint, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state};

	expect_error(ibv_modify_qp(endpoint->qp, &attr, IBV_QP_STATE), 0);
}

static void post(struct endpoint *endpoint, enum ibv_wr_opcode opcode, uint64_t wr_id)
{
	struct ibv_send_wr wr =
		rdma_wr(wr_id, opcode, NULL, side_address(endpoint->peer->side, 0), endpoint->peer->side->mr->rkey);

	post_send(endpoint, &wr);
}

static void expect_sent(uint64_t wr_id)
{
	expect_completion(&pair.client, wr_id, IBV_WC_SEND);
	expect_completion(&pair.server, wr_id - SENDS + RECEIVES, IBV_WC_RECV);
}

/* ---- COMM_EST ----------------------------------------------------------------------------------------------- */

/* Moves the server to RTR and the client to RTS. */
static void connect_half_way(void)
{
	endpoint_to_init(&pair.client);
	endpoint_to_rtr(&pair.client);
	endpoint_to_rts(&pair.client);
	endpoint_to_init(&pair.server);
	endpoint_to_rtr(&pair.server);
}

static void create(enum ibv_qp_type type)
{
	struct pair_options options = pair_defaults(type);

	pair_close(&pair);
	pair_create(&pair, &client, &server, &options);
}

/* The first message in RTR, of any kind, raises the event, once until the QP is reset. */
TEST(communication_established)
{
	static const enum ibv_wr_opcode opcodes[] = {IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ};
	static const enum ibv_wc_opcode done[] = {IBV_WC_SEND, IBV_WC_RDMA_WRITE, IBV_WC_RDMA_READ};

	for (int uc = 0; uc < 2; uc++)
		for (int i = 0; i < (uc ? 2 : 3); i++) {
			create(uc ? IBV_QPT_UC : IBV_QPT_RC);
			note("%s, opcode %d", uc ? "UC" : "RC", opcodes[i]);
			for (int life = 0; life < 3; life++) {
				connect_half_way();
				expect_no_event(&server);
				post_receive(&pair.server, RECEIVES, NULL, 0);
				post(&pair.client, opcodes[i], SENDS);
				expect_completion(&pair.client, SENDS, done[i]);
				expect_event(&server, IBV_EVENT_COMM_EST, pair.server.qp);
				post(&pair.client, opcodes[i], SENDS);
				if (uc)
					expect_completion(&pair.client, SENDS, done[i]);
				expect_no_event(&server);
				expect_no_event(&client);
				to_state(&pair.server, IBV_QPS_RESET);
				to_state(&pair.client, IBV_QPS_RESET);
			}
		}
}

/* A QP that is in RTS before the first message raises no event; neither do datagrams. */
TEST(nothing_to_establish)
{
	struct ibv_sge header = side_sge(&server, 0, 40);
	struct ibv_ah_attr path = {
		.is_global = 1,
		.port_num = 1,
		.grh = {.dgid = server.gid, .sgid_index = client.gid_index, .hop_limit = 1},
	};

	post_receive(&pair.server, RECEIVES, NULL, 0);
	post(&pair.client, IBV_WR_SEND, SENDS);
	expect_sent(SENDS);
	expect_no_event(&server);
	create(IBV_QPT_UD);
	connect_half_way();
	pair.client.ah = ibv_create_ah(client.pd, &path);
	assert_non_null(pair.client.ah);
	post_receive(&pair.server, RECEIVES, &header, 1);
	post(&pair.client, IBV_WR_SEND, SENDS);
	expect_sent(SENDS);
	expect_no_event(&server);
	expect_no_event(&client);
	memcpy(server.expected, server.memory, 40);
}

/* ---- LAST_WQE_REACHED --------------------------------------------------------------------------------------- */

static struct ibv_srq *srq;

static void open_with_srq(enum ibv_qp_type type)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 15, .max_sge = 1}};
	struct pair_options options = pair_defaults(type);
	struct ibv_sge sge = side_sge(&server, 0, 40);
	struct ibv_recv_wr wr = {.wr_id = RECEIVES, .sg_list = &sge, .num_sge = 1}, *bad;

	srq = ibv_create_srq(server.pd, &attr);
	assert_non_null(srq);
	options.srq = srq;
	pair_replace(&pair, &options);
	for (int i = 0; i < 4; i++)
		expect_error(ibv_post_srq_recv(srq, &wr, &bad), 0);
}

static void close_srq(void)
{
	struct pair_options options = pair_defaults(IBV_QPT_RC);

	pair_replace(&pair, &options);
	expect_error(ibv_destroy_srq(srq), 0);
}

/* A QP that enters ERR reports once that it consumes no more receives, whatever moved it there. */
TEST(last_wqe_after_modify)
{
	static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UD};

	for (int i = 0; i < 2; i++) {
		note("type %d", types[i]);
		open_with_srq(types[i]);
		to_state(&pair.server, IBV_QPS_ERR);
		expect_event(&server, IBV_EVENT_QP_LAST_WQE_REACHED, pair.server.qp);
		to_state(&pair.server, IBV_QPS_ERR);
		to_state(&pair.server, IBV_QPS_RESET);
		expect_no_event(&server);
		expect_no_event(&client); /* which has no SRQ */
		close_srq();
		expect_no_event(&server);
	}
}

/* A QP that was never connected raises the event, too: a program that destroys it may wait for it. */
TEST(last_wqe_of_the_unconnected)
{
	static const enum ibv_qp_state states[] = {IBV_QPS_RESET, IBV_QPS_INIT};
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC, .cap = {.max_send_wr = 1, .max_send_sge = 1}};
	struct ibv_qp_attr to = {.qp_state = IBV_QPS_INIT, .port_num = 1};

	open_with_srq(IBV_QPT_RC);
	attr.srq = srq;
	attr.send_cq = attr.recv_cq = pair.server.qp->recv_cq;
	for (int i = 0; i < 2; i++) {
		struct ibv_qp *qp = ibv_create_qp(server.pd, &attr);

		assert_non_null(qp);
		to.qp_state = IBV_QPS_INIT;
		if (states[i] == IBV_QPS_INIT)
			expect_error(ibv_modify_qp(qp, &to,
						   IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX |
							   IBV_QP_ACCESS_FLAGS),
				     0);
		to.qp_state = IBV_QPS_ERR;
		expect_error(ibv_modify_qp(qp, &to, IBV_QP_STATE), 0);
		expect_event(&server, IBV_EVENT_QP_LAST_WQE_REACHED, qp);
		expect_no_event(&server);
		expect_error(ibv_destroy_qp(qp), 0);
	}
	close_srq();
}

TEST(last_wqe_after_errors)
{
	struct ibv_sge bad_sge = {side_address(&server, 0), 8, 0xdeadbeef}, long_sge = side_sge(&client, 0, 41);
	struct ibv_send_wr bad = {.wr_id = SENDS, .sg_list = &bad_sge, .num_sge = 1, .opcode = IBV_WR_SEND};
	struct ibv_send_wr too_long = {.wr_id = SENDS, .sg_list = &long_sge, .num_sge = 1, .opcode = IBV_WR_SEND};

	note("its own send fails");
	open_with_srq(IBV_QPT_RC);
	post_send(&pair.server, &bad);
	expect_status(&pair.server, SENDS, IBV_WC_LOC_PROT_ERR);
	expect_event(&server, IBV_EVENT_QP_LAST_WQE_REACHED, pair.server.qp);
	expect_no_event(&server);
	close_srq();

	note("a receive fails");
	open_with_srq(IBV_QPT_RC);
	post_send(&pair.client, &too_long);
	expect_status(&pair.client, SENDS, IBV_WC_REM_INV_REQ_ERR);
	expect_status(&pair.server, RECEIVES, IBV_WC_LOC_LEN_ERR);
	expect_event(&server, IBV_EVENT_QP_LAST_WQE_REACHED, pair.server.qp);
	expect_no_event(&server);
	close_srq();

	note("the peer asks for what it may not have");
	open_with_srq(IBV_QPT_RC);
	bad = (struct ibv_send_wr){.wr_id = SENDS, .sg_list = &long_sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE};
	post_send(&pair.client, &bad);
	expect_status(&pair.client, SENDS, IBV_WC_REM_ACCESS_ERR);
	expect_event(&server, IBV_EVENT_QP_ACCESS_ERR, pair.server.qp);
	expect_event(&server, IBV_EVENT_QP_LAST_WQE_REACHED, pair.server.qp);
	expect_no_event(&server);
	close_srq();
}

/* Destroying a QP is not an error. */
TEST(no_last_wqe_without_error)
{
	open_with_srq(IBV_QPT_RC);
	to_state(&pair.server, IBV_QPS_RESET);
	close_srq();
	expect_no_event(&server);
	to_state(&pair.server, IBV_QPS_ERR);
	expect_no_event(&server);
}

/* ---- CQ_ERR, QP_FATAL --------------------------------------------------------------------------------------- */

/* Expects both events, in either order, and no others. */
static void expect_overrun(const struct endpoint *endpoint)
{
	int cq_errors = 0, qp_errors = 0;

	while (!cq_errors || !qp_errors) {
		struct ibv_async_event event = next_event(endpoint->side);

		if (event.event_type == IBV_EVENT_CQ_ERR && event.element.cq == endpoint->cq)
			cq_errors++;
		else if (event.event_type == IBV_EVENT_QP_FATAL && event.element.qp == endpoint->qp)
			qp_errors++;
		else
			fail_at(HERE, "event \"%s\"", ibv_event_type_str(event.event_type));
	}
	assert_int_equal(cq_errors, 1);
	assert_int_equal(qp_errors, 1);
	expect_no_event(endpoint->side);
}

static uint32_t open_with_small_cqs(void)
{
	struct pair_options options = pair_defaults(IBV_QPT_RC);

	options.cqe = 3;
	pair_replace(&pair, &options);
	return (uint32_t)pair.client.cq->cqe;
}

/*
 * A CQ holds as many completions as it has entries (ibv_create_cq(3)). A completion that does not fit puts the CQ and its own QP
 * into error (IBTA C11-39). The ring may hold one entry more than promised.
 */
TEST(overrun_of_the_send_queue)
{
	uint32_t entries = open_with_small_cqs();

	for (uint32_t i = 0; i < entries; i++)
		post(&pair.client, IBV_WR_RDMA_WRITE, SENDS + i);
	expect_no_event(&client);
	expect_state(&pair.client, IBV_QPS_RTS);
	for (uint32_t i = 0; i < 2; i++)
		post(&pair.client, IBV_WR_RDMA_WRITE, SENDS + entries + i);
	expect_overrun(&pair.client);
	expect_state(&pair.client, IBV_QPS_ERR);
	/* The error is reported once, and only to this side. */
	for (uint32_t i = 0; i < 3; i++)
		post(&pair.client, IBV_WR_RDMA_WRITE, SENDS);
	expect_no_event(&client);
	expect_no_event(&server);
	expect_state(&pair.server, IBV_QPS_RTS);
}

TEST(overrun_of_the_receive_queue)
{
	uint32_t entries = open_with_small_cqs();

	/* Two receives complete after the CQ is full, before either overrun can be observed. */
	for (uint32_t i = 0; i < entries + 2; i++)
		post_receive(&pair.server, RECEIVES, NULL, 0);
	for (uint32_t i = 0; i < entries; i++) {
		post(&pair.client, IBV_WR_SEND, SENDS);
		expect_completion(&pair.client, SENDS, IBV_WC_SEND);
		expect_no_event(&server);
		expect_state(&pair.server, IBV_QPS_RTS);
	}
	for (uint32_t i = 0; i < 2; i++)
		post(&pair.client, IBV_WR_SEND, SENDS);
	expect_overrun(&pair.server);
	expect_state(&pair.server, IBV_QPS_ERR);
	expect_no_event(&client);
}

/* Another QP on the same CQ fails when one of its own completions is lost. */
TEST(overrun_of_a_shared_cq)
{
	struct ibv_qp_init_attr init = {
		.cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
	};
	uint32_t entries = open_with_small_cqs();
	struct endpoint loop = {.options = &pair.options, .side = &client, .peer = &loop};

	init.send_cq = init.recv_cq = pair.client.cq;
	loop.qp = ibv_create_qp(client.pd, &init);
	loop.cq = pair.client.cq;
	assert_non_null(loop.qp);
	endpoint_to_init(&loop);
	endpoint_to_rtr(&loop);
	endpoint_to_rts(&loop);
	for (uint32_t i = 0; i < entries + 2; i++)
		post(&pair.client, IBV_WR_RDMA_WRITE, SENDS);
	expect_overrun(&pair.client);
	expect_state(&loop, IBV_QPS_RTS);
	post(&loop, IBV_WR_RDMA_WRITE, SENDS);
	expect_event(&client, IBV_EVENT_QP_FATAL, loop.qp);
	expect_state(&loop, IBV_QPS_ERR);
	expect_no_event(&client);
	assert_int_equal(ibv_destroy_qp(loop.qp), 0);
}

/* A program that polls in time sees no overrun. */
TEST(no_overrun_if_polled)
{
	uint32_t entries = open_with_small_cqs();

	for (int round = 0; round < 100; round++) {
		for (uint32_t i = 0; i < entries; i++)
			post(&pair.client, IBV_WR_RDMA_WRITE, SENDS + i);
		for (uint32_t i = 0; i < entries; i++)
			expect_completion(&pair.client, SENDS + i, IBV_WC_RDMA_WRITE);
	}
	expect_no_event(&client);
}
