/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests that an XRC receiver rejects, and where errors are reported: statuses of both ends, events of the XRC_RECV
 * QP (IBTA annex A14, 11.6.2, 11.6.3), receives that stay with their SRQ, other connections that continue.
 */
#include <fcntl.h>

#include "support/event.h"
#include "support/xrc_world.h"

enum {
	REQUEST = 0x51,
	NEXT = 0x52,
	RECEIVE = 0xa1,
	LOCAL = 1000,
	REMOTE = 5000,
	SINK = 20000,
};

#define SERVER (&world.target[XRC_SERVER])
#define NEIGHBOUR (&world.target[XRC_NEIGHBOUR])

static const enum ibv_wr_opcode opcodes[] = {
	IBV_WR_SEND,      IBV_WR_SEND_WITH_IMM,      IBV_WR_RDMA_WRITE,           IBV_WR_RDMA_WRITE_WITH_IMM,
	IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD,
};

static void to_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state};

	expect_error(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
}

/* Builds a signalled request of 8 bytes. Valid until the next call. */
static struct ibv_send_wr *request(enum ibv_wr_opcode opcode, int target)
{
	static struct ibv_send_wr wr;
	static struct ibv_sge sge;

	sge = side_sge(&world.client, LOCAL, 8);
	wr = xrc_rdma_wr(REQUEST, opcode, target, &sge, REMOTE);
	if (opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = side_address(&world.target[target], REMOTE);
		wr.wr.atomic.compare_add = 1;
		wr.wr.atomic.swap = 0;
		wr.wr.atomic.rkey = world.target[target].mr->rkey;
	}
	return &wr;
}

static void compare_all(void)
{
	side_compare(&world.client);
	side_compare(SERVER);
	side_compare(NEIGHBOUR);
}

/* Expects @wr to end the connection with @status and flush later requests; @event (-1: only the last-WQE event). */
#define expect_refused(wr, status, event) expect_refused_(HERE, wr, status, event)
static void expect_refused_(struct place place, struct ibv_send_wr *wr, enum ibv_wc_status status, int event)
{
	struct ibv_send_wr next = xrc_wr(NEXT, IBV_WR_SEND, XRC_SERVER, NULL, 0);
	struct ibv_wc wc;

	wr->next = &next;
	xrc_post_(place, world.send, wr);
	wc = xrc_completion_(place, world.cq, REQUEST, world.send->qp_num, status);
	if (!wc.vendor_err)
		fail_at(place, "vendor_err says nothing");
	xrc_completion_(place, world.cq, NEXT, world.send->qp_num, IBV_WC_WR_FLUSH_ERR);
	xrc_expect_state_(place, world.send, IBV_QPS_ERR);
	xrc_expect_state_(place, world.recv, IBV_QPS_ERR);
	if (event >= 0)
		expect_event_(place, SERVER, event, world.recv);
	expect_event_(place, SERVER, IBV_EVENT_QP_LAST_WQE_REACHED, world.recv);
	expect_no_event_(place, SERVER);
	expect_no_event_(place, NEIGHBOUR);
	expect_no_event_(place, &world.client);
}

/* Checks with a new connection that both SRQs are unchanged: each has one receive, RECEIVE. */
#define expect_receives_left() expect_receives_left_(HERE)
static void expect_receives_left_(struct place place)
{
	xrc_world_connect();
	for (int i = 0; i < XRC_TARGETS; i++) {
		struct ibv_send_wr wr = xrc_wr(REQUEST, IBV_WR_SEND, i, NULL, 0);

		xrc_post_(place, world.send, &wr);
		xrc_completion_(place, world.cq, REQUEST, world.send->qp_num, IBV_WC_SUCCESS);
		xrc_completion_(place, world.srq[i].cq, RECEIVE, world.recv->qp_num, IBV_WC_SUCCESS);
	}
	xrc_all_idle_(place);
	compare_all();
}

static void post_receives(void)
{
	for (int i = 0; i < XRC_TARGETS; i++)
		xrc_post_receive(&world.srq[i], RECEIVE, NULL, 0);
}

/* ---- which SRQ ------------------------------------------------------------------------------------------------- */

/* Checks that no operation on SRQ @number has an effect. */
static void expect_no_srq(uint32_t number)
{
	for (size_t i = 0; i < ARRAY_SIZE(opcodes); i++) {
		struct ibv_send_wr *wr = request(opcodes[i], XRC_SERVER);

		note("opcode %d to SRQ %#x", opcodes[i], number);
		post_receives();
		wr->qp_type.xrc.remote_srqn = number;
		expect_refused(wr, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
		expect_receives_left();
	}
}

TEST(unknown_srq)
{
	struct xrc_srq gone = xrc_srq_open(SERVER, world.xrcd[XRC_SERVER], 3);

	xrc_srq_close(&gone);
	expect_no_srq(gone.number);
	expect_no_srq(0);
	expect_no_srq(0xffffff);
}

/* A basic SRQ belongs to no domain. */
TEST(basic_srq)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 3, .max_sge = 1}};
	struct ibv_srq *basic = ibv_create_srq(SERVER->pd, &attr);
	struct ibv_recv_wr wr = {.wr_id = RECEIVE}, *bad;
	uint32_t number;

	expect_error(ibv_post_srq_recv(basic, &wr, &bad), 0);
	expect_error(ibv_get_srq_num(basic, &number), 0);
	expect_no_srq(number);
	expect_error(ibv_destroy_srq(basic), 0);
}

TEST(srq_of_another_domain)
{
	struct ibv_xrcd *other = expect_xrcd(SERVER->context, -1, O_CREAT);
	struct xrc_srq srq = xrc_srq_open(SERVER, other, 3);

	xrc_post_receive(&srq, RECEIVE, NULL, 0);
	expect_no_srq(srq.number);
	xrc_idle(srq.cq);
	xrc_srq_close(&srq);
	expect_error(ibv_close_xrcd(other), 0);
}

/* Access is checked against the protection domain of the SRQ (annex A14). */
TEST(key_of_the_other_target)
{
	for (int target = 0; target < XRC_TARGETS; target++)
		for (size_t i = 2; i < ARRAY_SIZE(opcodes); i++) {
			struct ibv_send_wr *wr = request(opcodes[i], target);

			note("opcode %d, SRQ of target %d", opcodes[i], !target);
			if (opcodes[i] == IBV_WR_RDMA_WRITE_WITH_IMM)
				continue; /* takes a receive: see write_with_immediate_refused */
			post_receives();
			wr->qp_type.xrc.remote_srqn = world.srq[!target].number;
			expect_refused(wr, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
			expect_receives_left();
		}
}

/* The consumed receive reports the error in the CQ of the SRQ. */
TEST(write_with_immediate_refused)
{
	struct ibv_send_wr *wr = request(IBV_WR_RDMA_WRITE_WITH_IMM, XRC_SERVER);

	xrc_post_receive(&world.srq[XRC_NEIGHBOUR], RECEIVE + 1, NULL, 0);
	post_receives();
	wr->qp_type.xrc.remote_srqn = world.srq[XRC_NEIGHBOUR].number;
	xrc_post(world.send, wr);
	xrc_sent(REQUEST, IBV_WC_REM_ACCESS_ERR);
	xrc_received(XRC_NEIGHBOUR, RECEIVE + 1, IBV_WC_LOC_ACCESS_ERR);
	while (event_waits(SERVER))
		next_event(SERVER);
	expect_no_event(NEIGHBOUR);
	expect_receives_left();
}

/* ---- operations that the QP does not permit -------------------------------------------------------------------- */

TEST(operation_not_permitted)
{
	struct ibv_qp_attr attr = {.qp_access_flags = 0};

	for (size_t i = 2; i < ARRAY_SIZE(opcodes); i++) {
		note("opcode %d", opcodes[i]);
		expect_error(ibv_modify_qp(world.recv, &attr, IBV_QP_ACCESS_FLAGS), 0);
		post_receives();
		expect_refused(request(opcodes[i], XRC_SERVER), IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
		expect_receives_left();
	}
}

/* ---- receives -------------------------------------------------------------------------------------------------- */

TEST(message_too_long)
{
	struct ibv_sge sink = side_sge(NEIGHBOUR, SINK, 7);

	xrc_post_receive(&world.srq[XRC_NEIGHBOUR], RECEIVE + 1, &sink, 1);
	post_receives();
	expect_refused(request(IBV_WR_SEND, XRC_NEIGHBOUR), IBV_WC_REM_INV_REQ_ERR, -1);
	xrc_received(XRC_NEIGHBOUR, RECEIVE + 1, IBV_WC_LOC_LEN_ERR);
	expect_receives_left();
}

TEST(receive_of_a_wrong_key)
{
	struct ibv_sge sink = side_sge(NEIGHBOUR, SINK, 100);

	sink.lkey = SERVER->mr->lkey; /* another protection domain */
	xrc_post_receive(&world.srq[XRC_NEIGHBOUR], RECEIVE + 1, &sink, 1);
	post_receives();
	expect_refused(request(IBV_WR_SEND, XRC_NEIGHBOUR), IBV_WC_REM_OP_ERR, -1);
	xrc_received(XRC_NEIGHBOUR, RECEIVE + 1, IBV_WC_LOC_PROT_ERR);
	expect_receives_left();
}

/* The receives of the other SRQ are not used. */
TEST(no_receive)
{
	struct ibv_send_wr *wr;

	world.rnr_retry = 1;
	xrc_world_connect();
	xrc_post_receive(&world.srq[XRC_NEIGHBOUR], RECEIVE, NULL, 0);
	xrc_post(world.send, request(IBV_WR_SEND, XRC_SERVER));
	xrc_sent(REQUEST, IBV_WC_RNR_RETRY_EXC_ERR);
	xrc_expect_state(world.recv, IBV_QPS_RTS);
	/* 7: retry forever */
	world.rnr_retry = 7;
	xrc_world_connect();
	wr = request(IBV_WR_SEND, XRC_SERVER);
	wr->num_sge = 0;
	xrc_post(world.send, wr);
	xrc_idle(world.cq);
	xrc_post_receive(&world.srq[XRC_SERVER], RECEIVE, NULL, 0);
	xrc_sent(REQUEST, IBV_WC_SUCCESS);
	xrc_received(XRC_SERVER, RECEIVE, IBV_WC_SUCCESS);
	xrc_post_receive(&world.srq[XRC_SERVER], RECEIVE, NULL, 0);
	expect_receives_left();
}

/* ibv_modify_srq(3): the creator of the SRQ gets one event when it runs low. */
TEST(limit_of_an_srq)
{
	struct ibv_srq_attr attr = {.srq_limit = 3};

	for (int i = 0; i < 5; i++)
		xrc_post_receive(&world.srq[XRC_NEIGHBOUR], i, NULL, 0);
	expect_error(ibv_modify_srq(world.srq[XRC_NEIGHBOUR].srq, &attr, IBV_SRQ_LIMIT), 0);
	for (int i = 0; i < 5; i++) {
		struct ibv_send_wr wr = xrc_wr(REQUEST, IBV_WR_SEND, XRC_NEIGHBOUR, NULL, 0);

		xrc_post(world.send, &wr);
		xrc_sent(REQUEST, IBV_WC_SUCCESS);
		xrc_received(XRC_NEIGHBOUR, i, IBV_WC_SUCCESS);
		if (i == 2)
			expect_event(NEIGHBOUR, IBV_EVENT_SRQ_LIMIT_REACHED, world.srq[XRC_NEIGHBOUR].srq);
		expect_no_event(NEIGHBOUR);
		expect_no_event(SERVER);
	}
	expect_error(ibv_query_srq(world.srq[XRC_NEIGHBOUR].srq, &attr), 0);
	assert_int_equal(attr.srq_limit, 0);
}

/* ---- the sending half ------------------------------------------------------------------------------------------ */

/* A local error does not affect the receiver. */
TEST(local_error)
{
	struct ibv_send_wr *wr = request(IBV_WR_SEND, XRC_SERVER);

	post_receives();
	wr->sg_list->lkey = SERVER->mr->lkey;
	xrc_post(world.send, wr);
	xrc_sent(REQUEST, IBV_WC_LOC_PROT_ERR);
	xrc_expect_state(world.send, IBV_QPS_ERR);
	xrc_expect_state(world.recv, IBV_QPS_RTS);
	expect_no_event(SERVER);
	expect_receives_left();
}

TEST(flushed_requests)
{
	post_receives();
	to_state(world.send, IBV_QPS_ERR);
	for (int i = 0; i < 3; i++)
		xrc_post(world.send, request(IBV_WR_SEND, XRC_SERVER));
	for (int i = 0; i < 3; i++)
		xrc_sent(REQUEST, IBV_WC_WR_FLUSH_ERR);
	expect_no_event(&world.client); /* it consumed no last WQE of an SRQ */
	expect_receives_left();
}

/* ---- lives of QPs and SRQs ------------------------------------------------------------------------------------- */

/* A QP in ERR consumes nothing from an SRQ; another connection of the domain continues. */
TEST(one_connection_fails)
{
	struct ibv_qp *recv = xrc_create_recv(world.xrcd[XRC_NEIGHBOUR]);
	struct ibv_qp *send = xrc_create_send(&world.client, world.cq);
	struct ibv_send_wr *wr;

	xrc_connect(recv, NEIGHBOUR, send->qp_num, &world.client, 7);
	xrc_connect(send, &world.client, recv->qp_num, NEIGHBOUR, 7);
	post_receives();
	wr = request(IBV_WR_SEND, XRC_SERVER);
	wr->qp_type.xrc.remote_srqn = 0xffffff;
	expect_refused(wr, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
	for (int i = 0; i < XRC_TARGETS; i++) {
		struct ibv_send_wr good = xrc_wr(REQUEST, IBV_WR_SEND, i, NULL, 0);

		xrc_post(send, &good);
		xrc_completion(world.cq, REQUEST, send->qp_num, IBV_WC_SUCCESS);
		xrc_completion(world.srq[i].cq, RECEIVE, recv->qp_num, IBV_WC_SUCCESS);
	}
	expect_error(ibv_destroy_qp(send), 0);
	expect_error(ibv_destroy_qp(recv), 0);
	post_receives();
	expect_receives_left();
}

/* A remaining opener keeps the connection when the creator closes its handle, and gets the error events. */
TEST(creator_goes)
{
	struct ibv_qp *opened = xrc_open_qp(world.xrcd[XRC_NEIGHBOUR], world.recv->qp_num);
	struct ibv_send_wr *wr;

	assert_non_null(opened);
	expect_error(ibv_destroy_qp(world.recv), 0);
	world.recv = opened;
	post_receives();
	wr = request(IBV_WR_SEND, XRC_SERVER);
	wr->num_sge = 0;
	xrc_post(world.send, wr);
	xrc_sent(REQUEST, IBV_WC_SUCCESS);
	xrc_received(XRC_SERVER, RECEIVE, IBV_WC_SUCCESS);
	wr = request(IBV_WR_RDMA_READ, XRC_SERVER);
	wr->wr.rdma.rkey = NEIGHBOUR->mr->rkey;
	xrc_post(world.send, wr);
	xrc_sent(REQUEST, IBV_WC_REM_ACCESS_ERR);
	expect_event(NEIGHBOUR, IBV_EVENT_QP_ACCESS_ERR, opened);
	expect_event(NEIGHBOUR, IBV_EVENT_QP_LAST_WQE_REACHED, opened);
	expect_no_event(SERVER);
	xrc_post_receive(&world.srq[XRC_SERVER], RECEIVE, NULL, 0);
	expect_receives_left();
}

/* Without an XRC_RECV QP requests are not answered. */
TEST(receiving_qp_goes)
{
	post_receives();
	expect_error(ibv_destroy_qp(world.recv), 0);
	xrc_post(world.send, request(IBV_WR_RDMA_WRITE, XRC_SERVER));
	xrc_sent(REQUEST, IBV_WC_RETRY_EXC_ERR);
	world.recv = xrc_create_recv(world.xrcd[XRC_SERVER]);
	assert_non_null(world.recv);
	expect_receives_left();
}

/* An SRQ is destroyed while connections use it: later requests to it fail, and a new SRQ has another number. */
TEST(srq_goes)
{
	struct xrc_srq srq = xrc_srq_open(SERVER, world.xrcd[XRC_SERVER], 3);
	struct ibv_send_wr wr = xrc_wr(REQUEST, IBV_WR_SEND, XRC_SERVER, NULL, 0);

	post_receives();
	wr.qp_type.xrc.remote_srqn = srq.number;
	for (int i = 0; i < 2; i++)
		xrc_post_receive(&srq, RECEIVE, NULL, 0);
	xrc_post(world.send, &wr);
	xrc_sent(REQUEST, IBV_WC_SUCCESS);
	xrc_completion(srq.cq, RECEIVE, world.recv->qp_num, IBV_WC_SUCCESS);
	xrc_srq_close(&srq);
	expect_refused(&wr, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
	expect_receives_left();
}

int main(void)
{
	return run_cases(.setup = xrc_world_open, .teardown = xrc_world_close);
}
