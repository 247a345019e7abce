/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv_bind_mw(3) as a posting call: return values, completions, and the rkey afterwards. docs/reference/promises.md
 * names the cases. The server owns and binds the windows.
 */
#include "support/window.h"

TEST(completion_carries_wr_id)
{
	const uint64_t wr_id = 0x1122334455667788;
	struct ibv_mw *mw = side_alloc_mw(&server, IBV_MW_TYPE_1);
	struct ibv_mw_bind bind = bind_request(WINDOW_START, WINDOW_LENGTH, IBV_ACCESS_REMOTE_WRITE);

	bind.wr_id = wr_id;
	expect_error(ibv_bind_mw(pair.server.qp, mw, &bind), 0);
	expect_completion(&pair.server, wr_id, IBV_WC_BIND_MW);
	expect_idle(&pair.server);
	expect_idle(&pair.client);
}

/* Checks that the call returns @error, the window keeps its rkey, and no request was posted. */
static void expect_refused_(struct place place, struct ibv_mw *mw, struct ibv_mw_bind bind, int error)
{
	uint32_t before = mw->rkey;

	expect_error_(place, "ibv_bind_mw()", ibv_bind_mw(pair.server.qp, mw, &bind), error);
	assert_int_equal(mw->rkey, before);
	expect_nothing_posted_(place, &pair.server);
}
#define expect_refused(mw, bind, error) expect_refused_(HERE, mw, bind, error)

/* The window keeps its old binding, and the QP still works. */
TEST(ud_qp_refused)
{
	struct pair_options options = pair_defaults(IBV_QPT_UD);
	struct pair datagrams;
	struct ibv_mw_bind bind;
	struct ibv_mw *mw;
	struct view bound;

	if (!in_profile("man", __func__))
		return;
	mw = side_alloc_mw(&server, IBV_MW_TYPE_1);
	bound = bind_window(mw, WINDOW_START, WINDOW_LENGTH, IBV_ACCESS_REMOTE_WRITE);
	pair_open(&datagrams, &client, &server, &options);
	bind = bind_request(0, 8, IBV_ACCESS_REMOTE_WRITE);
	expect_error(ibv_bind_mw(datagrams.server.qp, mw, &bind), EINVAL);
	assert_int_equal(mw->rkey, bound.key);
	expect_state(&datagrams.server, IBV_QPS_RTS);
	expect_idle(&datagrams.server);
	expect_send(&datagrams, view_memory(&server, 0, 100), client_memory(100), IBV_WC_SUCCESS, IBV_WC_SUCCESS);
	expect_write(&pair, client_memory(100), view_part(bound, 10, 100), IBV_WC_SUCCESS);
	pair_close(&datagrams);
}

/* The library of an adapter posts the bind. IBTA 10.3.1: a send error of a datagram QP leads to SQE. */
TEST(ud_qp_fails_in_connectx)
{
	struct pair_options options = pair_defaults(IBV_QPT_UD);
	struct ibv_mw_bind bind;
	struct ibv_mw *mw;
	struct view before;
	struct pair datagrams;

	if (!in_profile("connectx", __func__))
		return;
	mw = side_alloc_mw(&server, IBV_MW_TYPE_1);
	bind = bind_request(WINDOW_START, WINDOW_LENGTH, IBV_ACCESS_REMOTE_WRITE);
	before = window_view(mw, WINDOW_START, WINDOW_LENGTH);
	pair_open(&datagrams, &client, &server, &options);
	expect_error(ibv_bind_mw(datagrams.server.qp, mw, &bind), 0);
	expect_status(&datagrams.server, BIND_WR_ID, IBV_WC_LOC_QP_OP_ERR);
	expect_idle(&datagrams.server);
	expect_state(&datagrams.server, IBV_QPS_SQE);
	expect_no_remote_access(window_view(mw, WINDOW_START, WINDOW_LENGTH));
	expect_no_remote_access(before);
	pair_close(&datagrams);
}

/*
 * "Either 0 or the bitwise OR of" FENCE and SIGNALED; the flags of enum ibv_access_flags that programs pass are all
 * accepted.
 */
TEST(unknown_flags_refused)
{
	const unsigned int send_flags = IBV_SEND_FENCE | IBV_SEND_SIGNALED;
	const unsigned int access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
					  IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED |
					  IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB | IBV_ACCESS_RELAXED_ORDERING;
	struct ibv_mw *mw;
	struct view bound;

	if (!in_profile("man", __func__))
		return;
	mw = side_alloc_mw(&server, IBV_MW_TYPE_1);
	bound = bind_window(mw, WINDOW_START, WINDOW_LENGTH, IBV_ACCESS_REMOTE_WRITE);
	for (int bit = 0; bit < 32; bit++) {
		struct ibv_mw_bind bind = bind_request(0, 8, IBV_ACCESS_REMOTE_WRITE);
		unsigned int flag = 1u << bit;

		note("bit %d", bit);
		bind.send_flags |= flag;
		if (!(flag & send_flags))
			expect_refused(mw, bind, EINVAL);
		bind.send_flags &= send_flags;
		bind.bind_info.mw_access_flags |= flag;
		if (!(flag & access_flags))
			expect_refused(mw, bind, EINVAL);
	}
	expect_write(&pair, client_memory(100), view_part(bound, 10, 100), IBV_WC_SUCCESS);
	/* Flags that are not remote rights grant nothing. */
	bound = bind_window(mw, WINDOW_START, WINDOW_LENGTH,
			    access_flags & ~(unsigned int)(SIDE_REMOTE | IBV_ACCESS_ZERO_BASED));
	expect_no_remote_access(bound);
}

TEST(unsignalled_bind_has_no_completion)
{
	struct ibv_mw *mw = side_alloc_mw(&server, IBV_MW_TYPE_1);
	struct ibv_mw_bind bind = bind_request(WINDOW_START, WINDOW_LENGTH, IBV_ACCESS_REMOTE_WRITE);

	bind.send_flags = 0;
	expect_error(ibv_bind_mw(pair.server.qp, mw, &bind), 0);
	expect_nothing_posted(&pair.server); /* no request that completes */
	expect_write(&pair, client_memory(100), view_part(window_view(mw, WINDOW_START, WINDOW_LENGTH), 10, 100),
		     IBV_WC_SUCCESS);
}

TEST(sq_sig_all_completes_every_bind)
{
	struct pair_options options = pair.options;
	struct ibv_mw *mw = side_alloc_mw(&server, IBV_MW_TYPE_1);
	struct ibv_mw_bind bind = bind_request(WINDOW_START, WINDOW_LENGTH, IBV_ACCESS_REMOTE_WRITE);

	options.sq_sig_all = true;
	pair_replace(&pair, &options);
	bind.send_flags = 0;
	expect_error(ibv_bind_mw(pair.server.qp, mw, &bind), 0);
	expect_completion(&pair.server, BIND_WR_ID, IBV_WC_BIND_MW);
	expect_idle(&pair.server);
}

/* mlx5-formats 1.15: a bind has 12 units of 16 bytes, three blocks; 1.3: the fence is in bits 7 to 5 of byte 11. */
TEST(fence_is_in_the_wqe)
{
	static const struct {
		unsigned int flags;
		uint8_t fence;
	} binds[] = {{0, 0}, {IBV_SEND_FENCE, 4}, {0, 1}};
	struct ibv_mw *mw = side_alloc_mw(&server, IBV_MW_TYPE_1);
	struct ibv_mw_bind bind = bind_request(WINDOW_START, WINDOW_LENGTH, IBV_ACCESS_REMOTE_WRITE);
	struct mlx5dv_qp ring = {0};
	struct mlx5dv_obj object = {.qp = {.in = pair.server.qp, .out = &ring}};

	expect_error(mlx5dv_init_obj(&object, MLX5DV_OBJ_QP), 0);
	for (size_t i = 0; i < ARRAY_SIZE(binds); i++) {
		const uint8_t *wqe = (const uint8_t *)ring.sq.buf + 3 * i * 64;

		note("bind %zu", i);
		bind.send_flags = IBV_SEND_SIGNALED | binds[i].flags;
		expect_error(ibv_bind_mw(pair.server.qp, mw, &bind), 0);
		expect_completion(&pair.server, BIND_WR_ID, IBV_WC_BIND_MW);
		assert_int_equal(wqe[7] & 0x3f, 12);
		assert_int_equal(wqe[11] >> 5, binds[i].fence);
	}
}

/*
 * The READ of a QP with an unconnected peer stays in flight. A bind after it is executed at once; with a fence, it
 * is executed when the READ is done (IBTA 10.8.3.3).
 */
TEST(fence_waits_for_reads)
{
	struct view source = view_memory(&client, 16, 8), target = view_memory(&server, 0, 8);

	for (int fenced = 0; fenced < 2; fenced++) {
		struct ibv_mw *mw = side_alloc_mw(&server, IBV_MW_TYPE_1);
		struct ibv_mw_bind bind = bind_request(WINDOW_START, WINDOW_LENGTH, IBV_ACCESS_REMOTE_WRITE);
		struct ibv_sge sge = side_sge(&server, 0, 8);
		struct ibv_send_wr read = {.wr_id = 1,
					   .sg_list = &sge,
					   .num_sge = 1,
					   .opcode = IBV_WR_RDMA_READ,
					   .send_flags = IBV_SEND_SIGNALED,
					   .wr.rdma = {.remote_addr = source.address, .rkey = source.key}};
		struct pair late;
		struct view bound;

		note("fenced %d", fenced);
		pair_create(&late, &client, &server, &pair.options);
		endpoint_to_init(&late.client);
		endpoint_to_init(&late.server);
		endpoint_to_rtr(&late.server);
		endpoint_to_rts(&late.server);
		post_send(&late.server, &read);
		bind.send_flags |= fenced ? IBV_SEND_FENCE : 0;
		expect_error(ibv_bind_mw(late.server.qp, mw, &bind), 0);
		bound = window_view(mw, WINDOW_START, WINDOW_LENGTH);
		expect_write(&pair, client_memory(100), view_part(bound, 10, 100),
			     fenced ? IBV_WC_REM_ACCESS_ERR : IBV_WC_SUCCESS);
		expect_idle(&late.server);

		endpoint_to_rtr(&late.client);
		expect_completion(&late.server, 1, IBV_WC_RDMA_READ);
		model_copy(&source, &target);
		expect_completion(&late.server, BIND_WR_ID, IBV_WC_BIND_MW);
		expect_write(&pair, client_memory(100), view_part(bound, 10, 100), IBV_WC_SUCCESS);
		pair_close(&late);
	}
}

TEST(zero_based_refused_by_connectx)
{
	struct ibv_mw *mw;

	if (!in_profile("connectx", __func__))
		return;
	mw = side_alloc_mw(&server, IBV_MW_TYPE_1);
	expect_refused(mw, bind_request(WINDOW_START, WINDOW_LENGTH, IBV_ACCESS_ZERO_BASED | IBV_ACCESS_REMOTE_WRITE),
		       EINVAL);
	expect_no_remote_access(window_view(mw, WINDOW_START, WINDOW_LENGTH));
}

TEST(returns_zero_and_new_rkey)
{
	struct ibv_mw *mw = side_alloc_mw(&server, IBV_MW_TYPE_1);
	struct ibv_mw_bind bind = bind_request(WINDOW_START, WINDOW_LENGTH, IBV_ACCESS_REMOTE_WRITE);
	struct view first, second;
	uint32_t before = mw->rkey;

	expect_error(ibv_bind_mw(pair.server.qp, mw, &bind), 0);
	assert_int_equal(mw->rkey, ibv_inc_rkey(before));
	expect_completion(&pair.server, BIND_WR_ID, IBV_WC_BIND_MW);
	first = window_view(mw, WINDOW_START, WINDOW_LENGTH);
	expect_write(&pair, client_memory(100), view_part(first, 10, 100), IBV_WC_SUCCESS);
	expect_no_remote_access(view_with_key(&server, before, WINDOW_START, WINDOW_LENGTH));

	second = bind_window(mw, WINDOW_START, WINDOW_LENGTH, IBV_ACCESS_REMOTE_WRITE);
	assert_int_equal(second.key, ibv_inc_rkey(first.key));
	expect_write(&pair, client_memory(100), view_part(second, 10, 100), IBV_WC_SUCCESS);
	expect_no_remote_access(first);
}

/* mlx5-formats 4.2: the QP is not in RTS, or its queue is full. */
static void queue_that_takes_no_bind(struct ibv_mw *mw)
{
	struct ibv_mw_bind bind = bind_request(WINDOW_START, WINDOW_LENGTH, IBV_ACCESS_REMOTE_WRITE);
	struct pair_options options = pair.options;
	uint32_t before = mw->rkey;

	pair_close(&pair);
	pair_create(&pair, &client, &server, &options);
	expect_error(ibv_bind_mw(pair.server.qp, mw, &bind), ENOMEM);
	endpoint_to_init(&pair.server);
	expect_error(ibv_bind_mw(pair.server.qp, mw, &bind), ENOMEM);
	endpoint_to_rtr(&pair.server);
	expect_error(ibv_bind_mw(pair.server.qp, mw, &bind), ENOMEM);
	endpoint_to_rts(&pair.server);
	endpoint_to_init(&pair.client);
	endpoint_to_rtr(&pair.client);
	endpoint_to_rts(&pair.client);
	assert_int_equal(mw->rkey, before);
	expect_nothing_posted(&pair.server);

	for (uint32_t i = 0; i < pair.server.cap.max_send_wr; i++) {
		struct ibv_send_wr wr = send_wr(i, IBV_WR_RDMA_WRITE, NULL);

		post_send(&pair.server, &wr);
	}
	expect_error(ibv_bind_mw(pair.server.qp, mw, &bind), ENOMEM);
	assert_int_equal(mw->rkey, before);
	for (uint32_t i = 0; i < pair.server.cap.max_send_wr; i++)
		expect_completion(&pair.server, i, IBV_WC_RDMA_WRITE);
	expect_nothing_posted(&pair.server);
}

TEST(errno_values)
{
	struct ibv_mw *mw = side_alloc_mw(&server, IBV_MW_TYPE_1);
	struct ibv_mw_bind bind = bind_request(WINDOW_START, WINDOW_LENGTH, IBV_ACCESS_REMOTE_WRITE);
	struct ibv_pd *other_pd = ibv_alloc_pd(server.context);
	struct ibv_mr *foreign, *null_mr = ibv_alloc_null_mr(server.pd);

	assert_non_null(other_pd);
	assert_non_null(null_mr);
	foreign = ibv_reg_mr(other_pd, server.memory, SIDE_BYTES, SIDE_ACCESS);
	assert_non_null(foreign);

	bind.bind_info.length = (UINT64_C(1) << 31) + 1;
	expect_refused(mw, bind, EOPNOTSUPP);
	bind.bind_info.length = WINDOW_LENGTH;
	bind.bind_info.mr = foreign;
	expect_refused(mw, bind, EPERM);
	bind.bind_info.mr = NULL;
	expect_refused(mw, bind, EINVAL);
	bind.bind_info.mr = null_mr;
	expect_refused(mw, bind, ENOTSUP);
	bind.bind_info.mr = server.mr;
	expect_refused(side_alloc_mw(&server, IBV_MW_TYPE_2), bind, EINVAL);
	queue_that_takes_no_bind(mw);
	expect_no_remote_access(window_view(mw, WINDOW_START, WINDOW_LENGTH));

	expect_error(ibv_dereg_mr(null_mr), 0);
	expect_error(ibv_dereg_mr(foreign), 0);
	expect_error(ibv_dealloc_pd(other_pd), 0);
}

TEST(failed_bind_is_a_completion)
{
	struct ibv_mr *mr = side_register(&server, WINDOW_START, WINDOW_LENGTH, SIDE_ACCESS);
	struct ibv_mr *no_bind = side_register(&server, WINDOW_START, WINDOW_LENGTH, SIDE_ACCESS & ~IBV_ACCESS_MW_BIND);
	const uint64_t first = side_address(&server, WINDOW_START);
	const struct {
		struct ibv_mr *mr;
		uint64_t addr, length;
	} binds[] = {
		{mr, first - 1, WINDOW_LENGTH}, {mr, first, WINDOW_LENGTH + 1},     {mr, first + WINDOW_LENGTH - 1, 2},
		{mr, first + WINDOW_LENGTH, 1}, {mr, first + 2 * WINDOW_LENGTH, 1}, {mr, first, UINT64_C(1) << 31},
		{mr, UINT64_MAX - 99, 4096},    {no_bind, first, WINDOW_LENGTH},
	};
	struct ibv_mw *mw = side_alloc_mw(&server, IBV_MW_TYPE_1);

	for (size_t i = 0; i < ARRAY_SIZE(binds); i++) {
		struct ibv_mw_bind bind = bind_request(WINDOW_START, WINDOW_LENGTH, SIDE_REMOTE);
		struct view wanted;

		note("bind %zu", i);
		bind.bind_info.mr = binds[i].mr;
		bind.bind_info.addr = binds[i].addr;
		bind.bind_info.length = binds[i].length;
		expect_bind_fails(mw, bind);
		wanted = view_with_key(&server, ibv_inc_rkey(mw->rkey), WINDOW_START, WINDOW_LENGTH);
		expect_no_remote_access(wanted);
		wanted.address = binds[i].addr;
		expect_write(&pair, client_memory(1), view_part(wanted, 0, 1), IBV_WC_REM_ACCESS_ERR);
	}
}

TEST(failed_bind_keeps_old_binding)
{
	struct ibv_mw *mw = side_alloc_mw(&server, IBV_MW_TYPE_1);
	struct view bound = bind_window(mw, WINDOW_START, WINDOW_LENGTH, IBV_ACCESS_REMOTE_WRITE);
	struct ibv_mw_bind bind = bind_request(SIDE_BYTES - 1, 2, IBV_ACCESS_REMOTE_WRITE);
	struct pair other;

	pair_open(&other, &client, &server, &pair.options);
	expect_error(ibv_bind_mw(pair.server.qp, mw, &bind), 0);
	assert_int_equal(mw->rkey, ibv_inc_rkey(bound.key));
	expect_status(&pair.server, BIND_WR_ID, IBV_WC_MW_BIND_ERR);
	expect_write(&other, client_memory(100), view_part(bound, 10, 100), IBV_WC_SUCCESS);
	expect_write(&other, client_memory(100), view_part(window_view(mw, WINDOW_START, WINDOW_LENGTH), 10, 100),
		     IBV_WC_REM_ACCESS_ERR);

	mw->rkey = bound.key;
	bind = bind_request(2 * WINDOW_START, WINDOW_LENGTH, IBV_ACCESS_REMOTE_WRITE);
	expect_error(ibv_bind_mw(other.server.qp, mw, &bind), 0);
	expect_completion(&other.server, BIND_WR_ID, IBV_WC_BIND_MW);
	expect_write(&other, client_memory(100), view_part(window_view(mw, 2 * WINDOW_START, WINDOW_LENGTH), 10, 100),
		     IBV_WC_SUCCESS);
	expect_write(&other, client_memory(100), view_part(bound, 10, 100), IBV_WC_REM_ACCESS_ERR);
	pair_close(&other);
}

/* Posts a bind and a SEND that carries the new rkey, back to back. The client polls only its own completion. */
static uint32_t bind_and_send(struct ibv_mw *mw)
{
	struct ibv_mw_bind bind = bind_request(WINDOW_START, WINDOW_LENGTH, IBV_ACCESS_REMOTE_WRITE);
	struct ibv_sge receive = side_sge(&client, 0, sizeof(uint32_t)), send;
	struct ibv_send_wr wr = {.wr_id = 1,
				 .sg_list = &send,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED};
	uint32_t rkey;

	post_receive(&pair.client, 2, &receive, 1);
	bind.send_flags = 0;
	expect_error(ibv_bind_mw(pair.server.qp, mw, &bind), 0);
	rkey = mw->rkey;
	send = (struct ibv_sge){.addr = (uintptr_t)&rkey, .length = sizeof(rkey)};
	post_send(&pair.server, &wr);
	expect_completion(&pair.client, 2, IBV_WC_RECV);
	memcpy(client.expected, &rkey, sizeof(rkey));
	memcpy(&rkey, client.memory, sizeof(rkey));
	return rkey;
}

TEST(send_after_bind_carries_rkey)
{
	struct ibv_mw *mw = side_alloc_mw(&server, IBV_MW_TYPE_1);
	uint32_t before = mw->rkey;

	for (int round = 0; round < 1000; round++) {
		struct ibv_sge sge = side_sge(&client, 0, sizeof(uint32_t));
		struct ibv_send_wr wr = {.wr_id = 3,
					 .sg_list = &sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_RDMA_WRITE,
					 .send_flags = IBV_SEND_SIGNALED,
					 .wr.rdma = {.remote_addr = side_address(&server, WINDOW_START)}};

		note("round %d", round);
		before = mw->rkey;
		wr.wr.rdma.rkey = bind_and_send(mw);
		post_send(&pair.client, &wr);
		expect_completion(&pair.client, 3, IBV_WC_RDMA_WRITE);
		memcpy(server.expected + WINDOW_START, client.expected, sizeof(uint32_t));
		expect_completion(&pair.server, 1, IBV_WC_SEND);
		side_compare(&client);
		side_compare(&server);
	}
	expect_no_remote_access(view_with_key(&server, before, WINDOW_START, WINDOW_LENGTH));
}

TEST(type_2_window_refused)
{
	struct ibv_mw *mw = side_alloc_mw(&server, IBV_MW_TYPE_2);

	expect_refused(mw, bind_request(WINDOW_START, WINDOW_LENGTH, IBV_ACCESS_REMOTE_WRITE), EINVAL);
	expect_no_remote_access(window_view(mw, WINDOW_START, WINDOW_LENGTH));
}
