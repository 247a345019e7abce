/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Limits of posting: in each state of a QP (mlx5-formats 4.2), with as many SGEs and inline bytes as ibv_create_qp(3)
 * returned; a rejected request has no effect.
 */
#include "support/program.h"

enum { SEND_WR = 1, RECV_WR = 2 };

static struct pair_options options_of(enum ibv_qp_type type)
{
	struct pair_options options = pair_defaults(type);

	options.dv_send_ops = 0;
	return options;
}

/* ---- states ------------------------------------------------------------------------------------------------- */

static struct ibv_send_wr a_send(uint64_t wr_id)
{
	struct ibv_send_wr wr = send_wr(wr_id, IBV_WR_SEND, NULL);

	if (pair.options.type == IBV_QPT_UD) {
		wr.wr.ud.ah = pair.client.ah;
		wr.wr.ud.remote_qpn = pair.server.qp->qp_num;
		wr.wr.ud.remote_qkey = PAIR_QKEY;
	}
	return wr;
}

static int build_send(void)
{
	struct ibv_qp_ex *ex = pair.client.ex;

	ibv_wr_start(ex);
	ex->wr_id = SEND_WR;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(ex);
	ibv_wr_set_sge_list(ex, 0, NULL);
	if (pair.options.type == IBV_QPT_UD)
		ibv_wr_set_ud_addr(ex, pair.client.ah, pair.server.qp->qp_num, PAIR_QKEY);
	return ibv_wr_complete(ex);
}

/*
 * @send, @build, @receive: return values of ibv_post_send, ibv_wr_complete and ibv_post_recv. bad_wr points to the
 * rejected request, and the rest of the list, an invalid pointer, is not read.
 */
static void try_all(const char *state, int send, int build, int receive)
{
	struct ibv_send_wr *bad_send = NULL, wr = a_send(SEND_WR);
	struct ibv_recv_wr *bad_receive = NULL, recv = {.wr_id = RECV_WR};

	note("type %d, %s", pair.options.type, state);
	wr.next = send ? (struct ibv_send_wr *)(uintptr_t)1 : NULL;
	recv.next = receive ? (struct ibv_recv_wr *)(uintptr_t)1 : NULL;
	expect_error(ibv_post_send(pair.client.qp, &wr, &bad_send), send);
	assert_ptr_equal(bad_send, send ? &wr : NULL);
	expect_error(build_send(), build);
	expect_error(ibv_post_recv(pair.client.qp, &recv, &bad_receive), receive);
	assert_ptr_equal(bad_receive, receive ? &recv : NULL);
}

static void client_to(enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state};

	expect_error(ibv_modify_qp(pair.client.qp, &attr, IBV_QP_STATE), 0);
}

static void expect_flushes(int sends, int receives)
{
	while (sends || receives) {
		struct ibv_wc wc = next_completion(&pair.client);

		assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
		*(wc.wr_id == SEND_WR ? &sends : &receives) -= 1;
		assert_true(sends >= 0 && receives >= 0);
	}
	expect_idle(&pair.client);
}

static void all_states(enum ibv_qp_type type)
{
	struct pair_options options = options_of(type);
	struct ibv_recv_wr *bad, receive = {.wr_id = RECV_WR};
	static uint8_t headers[40]; /* of datagrams */
	struct ibv_mr *mr = ibv_reg_mr(server.pd, headers, sizeof(headers), IBV_ACCESS_LOCAL_WRITE);
	struct ibv_sge sge = {(uintptr_t)headers, sizeof(headers), mr->lkey};

	pair_replace(&pair, &options);
	client_to(IBV_QPS_RESET);
	try_all("RESET", ENOMEM, EINVAL, EINVAL);
	endpoint_to_init(&pair.client);
	try_all("INIT", ENOMEM, EINVAL, 0);
	/* The QP never reached RTS: sends still fail, and the receives are flushed. */
	client_to(IBV_QPS_ERR);
	try_all("ERR after INIT", ENOMEM, EINVAL, 0);
	expect_flushes(0, 2);

	client_to(IBV_QPS_RESET);
	endpoint_to_init(&pair.client);
	endpoint_to_rtr(&pair.client);
	try_all("RTR", ENOMEM, EINVAL, 0);
	endpoint_to_rts(&pair.client);
	client_to(IBV_QPS_SQD);
	try_all("SQD", 0, 0, 0);
	expect_idle(&pair.client);
	/* Requests posted while the queue was drained are sent now. */
	receive.sg_list = &sge;
	receive.num_sge = 1;
	for (int i = 0; i < 4; i++)
		expect_error(ibv_post_recv(pair.server.qp, &receive, &bad), 0);
	client_to(IBV_QPS_RTS);
	expect_completion(&pair.client, SEND_WR, IBV_WC_SEND);
	expect_completion(&pair.client, SEND_WR, IBV_WC_SEND);
	try_all("RTS", 0, 0, 0);
	expect_completion(&pair.client, SEND_WR, IBV_WC_SEND);
	expect_completion(&pair.client, SEND_WR, IBV_WC_SEND);
	client_to(IBV_QPS_ERR);
	expect_flushes(0, 3);
	try_all("ERR", 0, 0, 0);
	expect_flushes(2, 1);

	client_to(IBV_QPS_RESET);
	try_all("RESET again", ENOMEM, EINVAL, EINVAL);
	expect_idle(&pair.client);
	expect_error(ibv_dereg_mr(mr), 0);
}

TEST(states_of_rc)
{
	all_states(IBV_QPT_RC);
}

TEST(states_of_uc)
{
	all_states(IBV_QPT_UC);
}

TEST(states_of_ud)
{
	all_states(IBV_QPT_UD);
}

/* ---- SGEs and inline data ----------------------------------------------------------------------------------- */

/* Fills the queue with requests without data: exactly as many as promised. */
static void fill_up(void)
{
	struct ibv_send_wr *bad = NULL, wr = a_send(SEND_WR);
	uint32_t most = pair.client.cap.max_send_wr;

	for (uint32_t i = 0; i < most; i++)
		expect_error(i % 2 ? build_send() : ibv_post_send(pair.client.qp, &wr, &bad), 0);
	expect_error(ibv_post_send(pair.client.qp, &wr, &bad), ENOMEM);
	assert_ptr_equal(bad, &wr);
	expect_error(build_send(), ENOMEM);
}

/* No request was posted before: one is posted now, and it is the only one that completes. */
static void refuse_data(uint32_t max_inline)
{
	struct ibv_qp_ex *ex = pair.client.ex;
	uint8_t data[1024] = {0};
	struct ibv_sge sge = {(uintptr_t)data, max_inline + 1, 0}, one = side_sge(&client, 0, 1);
	struct ibv_send_wr *bad, wr = a_send(SEND_WR);

	wr.num_sge = 1;
	wr.sg_list = &sge;
	wr.send_flags |= IBV_SEND_INLINE;
	expect_error(ibv_post_send(pair.client.qp, &wr, &bad), ENOMEM);
	wr.sg_list = &one;
	wr.send_flags &= ~(unsigned int)IBV_SEND_INLINE;
	expect_error(ibv_post_send(pair.client.qp, &wr, &bad), ENOMEM);
	for (int setter = 0; setter < 4; setter++) {
		struct ibv_data_buf buffer = {data, max_inline + 1};

		ibv_wr_start(ex);
		ibv_wr_send(ex);
		if (setter == 0)
			ibv_wr_set_sge(ex, one.lkey, one.addr, one.length);
		else if (setter == 1)
			ibv_wr_set_sge_list(ex, 1, &one);
		else if (setter == 2)
			ibv_wr_set_inline_data(ex, data, max_inline + 1);
		else
			ibv_wr_set_inline_data_list(ex, 1, &buffer);
		expect_error(ibv_wr_complete(ex), ENOMEM);
	}
}

/*
 * ibv_create_qp(3): max_send_sge 0 is a QP that sends no data. The overhead of a WQE may then fill its blocks to the
 * last byte, with no room for inline data either (mlx5-formats 4.1).
 */
static void no_sges(enum ibv_qp_type type)
{
	struct pair_options options = options_of(type);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	uint32_t max_inline;

	options.max_send_sge = 0;
	options.max_send_wr = 3;
	for (int all_operations = 0; all_operations < 2; all_operations++) {
		options.send_ops = all_operations ? pair_defaults(type).send_ops : IBV_QP_EX_WITH_SEND;
		pair_replace(&pair, &options);
		max_inline = pair.client.cap.max_inline_data;
		note("type %d, send_ops 0x%lx, inline %u", type, options.send_ops, max_inline);
		assert_true(max_inline < 64); /* one block; no inline data was requested */
		assert_int_equal(pair.client.cap.max_send_sge, 0);
		expect_error(ibv_query_qp(pair.client.qp, &attr, IBV_QP_CAP, &init), 0);
		assert_int_equal(attr.cap.max_inline_data, max_inline);
		refuse_data(max_inline);
		client_to(IBV_QPS_SQD);
		fill_up();
		client_to(IBV_QPS_ERR);
		expect_flushes((int)pair.client.cap.max_send_wr, 0);
	}
}

TEST(without_sges)
{
	no_sges(IBV_QPT_RC);
	no_sges(IBV_QPT_UC);
	no_sges(IBV_QPT_UD);
}
