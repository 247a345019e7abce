/* SPDX-License-Identifier: BSD-2-Clause */
/* Windows of type 1: ibv_bind_mw(3), case by case as docs/promises.md describes them. The server owns and binds. */
#include "support/program.h"

enum {
	BIND_WR_ID = 0xb14d,
	START = 4096,
	LENGTH = 4096,
};

/* What a bind of [@start, +@length) of the server's memory asks for. */
static struct ibv_mw_bind request(size_t start, size_t length, unsigned int access)
{
	return (struct ibv_mw_bind){
		.wr_id = BIND_WR_ID,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_info = {.mr = server.mr,
			      .addr = side_address(&server, start),
			      .length = length,
			      .mw_access_flags = access},
	};
}

static struct view window_view(const struct ibv_mw *mw, size_t start, size_t length)
{
	return view_with_key(&server, mw->rkey, start, length);
}

/* Binds, polls the success, and returns the window as the client sees it. */
static struct view bind_window(struct ibv_mw *mw, size_t start, size_t length, unsigned int access)
{
	struct ibv_mw_bind bind = request(start, length, access);

	expect_error(ibv_bind_mw(pair.server.qp, mw, &bind), 0);
	expect_completion(&pair.server, BIND_WR_ID, IBV_WC_BIND_MW);
	return window_view(mw, start, length);
}

/* The bind is posted and fails: MW_BIND_ERR, the QP in ERR. Then a fresh pair; the program puts the rkey back. */
static void expect_bind_fails(struct ibv_mw *mw, struct ibv_mw_bind bind)
{
	uint32_t before = mw->rkey;

	expect_error(ibv_bind_mw(pair.server.qp, mw, &bind), 0);
	expect_status(&pair.server, BIND_WR_ID, IBV_WC_MW_BIND_ERR);
	expect_state(&pair.server, IBV_QPS_ERR);
	pair_renew(&pair);
	mw->rkey = before;
}

static struct view local(size_t length)
{
	return view_memory(&client, 1000, length);
}

static void expect_no_access(struct view window)
{
	expect_write(&pair, local(1), view_part(window, 0, 1), IBV_WC_REM_ACCESS_ERR);
	expect_read(&pair, local(1), view_part(window, 0, 1), IBV_WC_REM_ACCESS_ERR);
	expect_fetch_add(&pair, local(8), view_part(window, 0, 8), IBV_WC_REM_ACCESS_ERR);
}

static void write_through_window(void **state)
{
	struct view window = bind_window(side_alloc_mw(&server, IBV_MW_TYPE_1), START, LENGTH,
					 IBV_ACCESS_REMOTE_WRITE);

	(void)state;
	expect_write(&pair, local(100), view_part(window, 10, 100), IBV_WC_SUCCESS);
}

static void completion_carries_wr_id(void **state)
{
	const uint64_t wr_id = 0x1122334455667788;
	struct ibv_mw *mw = side_alloc_mw(&server, IBV_MW_TYPE_1);
	struct ibv_mw_bind bind = request(START, LENGTH, IBV_ACCESS_REMOTE_WRITE);

	(void)state;
	bind.wr_id = wr_id;
	expect_error(ibv_bind_mw(pair.server.qp, mw, &bind), 0);
	expect_completion(&pair.server, wr_id, IBV_WC_BIND_MW);
	expect_idle(&pair.server);
	expect_idle(&pair.client);
}

static void window_starts_at_addr(void **state)
{
	struct view window = bind_window(side_alloc_mw(&server, IBV_MW_TYPE_1), 5001, 64, IBV_ACCESS_REMOTE_WRITE);

	(void)state;
	expect_write(&pair, local(1), view_part(window, 0, 1), IBV_WC_SUCCESS);
	expect_write(&pair, local(1), view_part(window, -1, 1), IBV_WC_REM_ACCESS_ERR);
	expect_write(&pair, local(2), view_part(window, -1, 2), IBV_WC_REM_ACCESS_ERR);
}

static void window_spans_length(void **state)
{
	static const struct {
		size_t start, length;
	} ranges[] = {{77, 1}, {START, 4095}, {0, SIDE_BYTES}};
	struct ibv_mw *mw = side_alloc_mw(&server, IBV_MW_TYPE_1);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(ranges); i++) {
		struct view window = bind_window(mw, ranges[i].start, ranges[i].length, IBV_ACCESS_REMOTE_WRITE);
		int64_t length = (int64_t)ranges[i].length;

		note("length %ld", length);
		expect_write(&pair, local(1), view_part(window, length - 1, 1), IBV_WC_SUCCESS);
		expect_write(&pair, local(1), view_part(window, length, 1), IBV_WC_REM_ACCESS_ERR);
		expect_write(&pair, local(2), view_part(window, length - 1, 2), IBV_WC_REM_ACCESS_ERR);
	}
}

static void uc_qp_binds(void **state)
{
	struct pair_options options = pair_defaults(IBV_QPT_UC);
	struct ibv_mw *mw = side_alloc_mw(&server, IBV_MW_TYPE_1);
	struct view window;

	(void)state;
	pair_replace(&pair, &options);
	window = bind_window(mw, START, LENGTH, IBV_ACCESS_REMOTE_WRITE);
	expect_write(&pair, local(100), view_part(window, 10, 100), IBV_WC_SUCCESS);
	expect_write_imm(&pair, local(100), view_part(window, 10, 100), IBV_WC_SUCCESS);
}

/* IBTA 10.3.1: a send error of a datagram QP leads to SQE, where its receive queue goes on. */
static void ud_qp_refused(void **state)
{
	struct pair_options options = pair_defaults(IBV_QPT_UD);
	struct ibv_mw *mw = side_alloc_mw(&server, IBV_MW_TYPE_1);
	struct ibv_mw_bind bind = request(START, LENGTH, IBV_ACCESS_REMOTE_WRITE);
	struct view before = window_view(mw, START, LENGTH);
	struct pair datagrams;

	(void)state;
	pair_open(&datagrams, &client, &server, &options);
	expect_send(&datagrams, view_memory(&server, 0, 100), local(100), IBV_WC_SUCCESS, IBV_WC_SUCCESS);
	expect_error(ibv_bind_mw(datagrams.server.qp, mw, &bind), 0);
	expect_status(&datagrams.server, BIND_WR_ID, IBV_WC_LOC_QP_OP_ERR);
	expect_idle(&datagrams.server);
	expect_state(&datagrams.server, IBV_QPS_SQE);
	expect_no_access(window_view(mw, START, LENGTH));
	expect_no_access(before);
	pair_close(&datagrams);
}

static void unsignalled_bind_has_no_completion(void **state)
{
	struct ibv_mw *mw = side_alloc_mw(&server, IBV_MW_TYPE_1);
	struct ibv_mw_bind bind = request(START, LENGTH, IBV_ACCESS_REMOTE_WRITE);

	(void)state;
	bind.send_flags = 0;
	expect_error(ibv_bind_mw(pair.server.qp, mw, &bind), 0);
	expect_nothing_posted(&pair.server); /* nothing that completes */
	expect_write(&pair, local(100), view_part(window_view(mw, START, LENGTH), 10, 100), IBV_WC_SUCCESS);
}

static void sq_sig_all_completes_every_bind(void **state)
{
	struct pair_options options = pair.options;
	struct ibv_mw *mw = side_alloc_mw(&server, IBV_MW_TYPE_1);
	struct ibv_mw_bind bind = request(START, LENGTH, IBV_ACCESS_REMOTE_WRITE);

	(void)state;
	options.sq_sig_all = true;
	pair_replace(&pair, &options);
	bind.send_flags = 0;
	expect_error(ibv_bind_mw(pair.server.qp, mw, &bind), 0);
	expect_completion(&pair.server, BIND_WR_ID, IBV_WC_BIND_MW);
	expect_idle(&pair.server);
}

/* mlx5-formats 1.15: a bind has 12 units of 16 bytes, three blocks; 1.3: the fence is in bits 7 to 5 of byte 11. */
static void fence_is_in_the_wqe(void **state)
{
	static const struct {
		unsigned int flags;
		uint8_t fence;
	} binds[] = {{0, 0}, {IBV_SEND_FENCE, 4}, {0, 1}};
	struct ibv_mw *mw = side_alloc_mw(&server, IBV_MW_TYPE_1);
	struct ibv_mw_bind bind = request(START, LENGTH, IBV_ACCESS_REMOTE_WRITE);
	struct mlx5dv_qp ring = {0};
	struct mlx5dv_obj object = {.qp = {.in = pair.server.qp, .out = &ring}};

	(void)state;
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

static void unbound_window_gives_no_access(void **state)
{
	(void)state;
	expect_no_access(window_view(side_alloc_mw(&server, IBV_MW_TYPE_1), START, LENGTH));
}

static void no_flags_no_rights(void **state)
{
	(void)state;
	expect_no_access(bind_window(side_alloc_mw(&server, IBV_MW_TYPE_1), START, LENGTH, 0));
}

static enum ibv_wc_status allowed(unsigned int access, unsigned int right)
{
	return access & right ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR;
}

static void combined_rights(void **state)
{
	struct ibv_mw *mw = side_alloc_mw(&server, IBV_MW_TYPE_1);

	(void)state;
	for (unsigned int access = 0; access <= SIDE_REMOTE; access++) {
		struct view window;

		if (access & ~(unsigned int)SIDE_REMOTE)
			continue;
		note("rights %#x", access);
		window = bind_window(mw, START, LENGTH, access);
		expect_write(&pair, local(30), view_part(window, 8, 30), allowed(access, IBV_ACCESS_REMOTE_WRITE));
		expect_read(&pair, local(30), view_part(window, 8, 30), allowed(access, IBV_ACCESS_REMOTE_READ));
		expect_compare_swap(&pair, local(8), view_part(window, 8, 8), true,
				    allowed(access, IBV_ACCESS_REMOTE_ATOMIC));
	}
}

static void remote_write_right(void **state)
{
	struct view window = bind_window(side_alloc_mw(&server, IBV_MW_TYPE_1), START, LENGTH,
					 IBV_ACCESS_REMOTE_WRITE);

	(void)state;
	expect_write(&pair, local(LENGTH), window, IBV_WC_SUCCESS);
	expect_read(&pair, local(LENGTH), window, IBV_WC_REM_ACCESS_ERR);
}

static void remote_read_right(void **state)
{
	struct view window = bind_window(side_alloc_mw(&server, IBV_MW_TYPE_1), START, LENGTH,
					 IBV_ACCESS_REMOTE_READ);

	(void)state;
	expect_read(&pair, local(LENGTH), window, IBV_WC_SUCCESS);
	expect_write(&pair, local(LENGTH), window, IBV_WC_REM_ACCESS_ERR);
	expect_fetch_add(&pair, local(8), view_part(window, 8, 8), IBV_WC_REM_ACCESS_ERR);
}

static void remote_atomic_right(void **state)
{
	struct view window = bind_window(side_alloc_mw(&server, IBV_MW_TYPE_1), START, LENGTH,
					 IBV_ACCESS_REMOTE_ATOMIC);

	(void)state;
	expect_fetch_add(&pair, local(8), view_part(window, 8, 8), IBV_WC_SUCCESS);
	expect_compare_swap(&pair, local(8), view_part(window, 8, 8), true, IBV_WC_SUCCESS);
	expect_compare_swap(&pair, local(8), view_part(window, 8, 8), false, IBV_WC_SUCCESS);
	expect_write(&pair, local(8), view_part(window, 8, 8), IBV_WC_REM_ACCESS_ERR);
	expect_read(&pair, local(8), view_part(window, 8, 8), IBV_WC_REM_ACCESS_ERR);
}

static void right_needs_local_write(unsigned int right)
{
	struct ibv_mw *mw = side_alloc_mw(&server, IBV_MW_TYPE_1);
	struct ibv_mr *read_only = side_register(&server, START, LENGTH, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_MW_BIND);
	struct ibv_mw_bind bind = request(START, LENGTH, right);

	bind.bind_info.mr = read_only;
	expect_bind_fails(mw, bind);
	bind.bind_info.mw_access_flags = IBV_ACCESS_REMOTE_READ;
	expect_error(ibv_bind_mw(pair.server.qp, mw, &bind), 0);
	expect_completion(&pair.server, BIND_WR_ID, IBV_WC_BIND_MW);
	expect_read(&pair, local(LENGTH), window_view(mw, START, LENGTH), IBV_WC_SUCCESS);
}

static void write_right_needs_local_write(void **state)
{
	(void)state;
	right_needs_local_write(IBV_ACCESS_REMOTE_WRITE);
}

static void atomic_right_needs_local_write(void **state)
{
	(void)state;
	right_needs_local_write(IBV_ACCESS_REMOTE_ATOMIC);
}

static void zero_based_offset(void **state)
{
	static const int64_t offsets[] = {0, 17, 4095};
	struct ibv_mw *mw;
	struct view at_address, window;

	(void)state;
	if (!in_profile("man", __func__))
		return;
	mw = side_alloc_mw(&server, IBV_MW_TYPE_1);
	window = at_address = bind_window(mw, 3 * 4096, LENGTH,
					  IBV_ACCESS_ZERO_BASED | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	window.address = 0;
	for (size_t i = 0; i < ARRAY_SIZE(offsets); i++)
		expect_write(&pair, local(1), view_part(window, offsets[i], 1), IBV_WC_SUCCESS);
	expect_read(&pair, local(100), view_part(window, 17, 100), IBV_WC_SUCCESS);
	expect_write(&pair, local(1), view_part(window, LENGTH, 1), IBV_WC_REM_ACCESS_ERR);
	expect_write(&pair, local(1), view_part(window, -1, 1), IBV_WC_REM_ACCESS_ERR);
	expect_write(&pair, local(1), view_part(at_address, 0, 1), IBV_WC_REM_ACCESS_ERR);
}

/* The call returns @error, the window keeps its rkey, and nothing was posted. */
static void expect_refused_(struct place place, struct ibv_mw *mw, struct ibv_mw_bind bind, int error)
{
	uint32_t before = mw->rkey;

	expect_error_(place, "ibv_bind_mw()", ibv_bind_mw(pair.server.qp, mw, &bind), error);
	assert_int_equal(mw->rkey, before);
	expect_nothing_posted_(place, &pair.server);
}
#define expect_refused(mw, bind, error) expect_refused_(HERE, mw, bind, error)

static void zero_based_refused_by_connectx(void **state)
{
	struct ibv_mw *mw;

	(void)state;
	if (!in_profile("connectx", __func__))
		return;
	mw = side_alloc_mw(&server, IBV_MW_TYPE_1);
	expect_refused(mw, request(START, LENGTH, IBV_ACCESS_ZERO_BASED | IBV_ACCESS_REMOTE_WRITE), EINVAL);
	expect_no_access(window_view(mw, START, LENGTH));
}

static void returns_zero_and_new_rkey(void **state)
{
	struct ibv_mw *mw = side_alloc_mw(&server, IBV_MW_TYPE_1);
	struct ibv_mw_bind bind = request(START, LENGTH, IBV_ACCESS_REMOTE_WRITE);
	struct view first, second;
	uint32_t before = mw->rkey;

	(void)state;
	expect_error(ibv_bind_mw(pair.server.qp, mw, &bind), 0);
	assert_int_equal(mw->rkey, ibv_inc_rkey(before));
	expect_completion(&pair.server, BIND_WR_ID, IBV_WC_BIND_MW);
	first = window_view(mw, START, LENGTH);
	expect_write(&pair, local(100), view_part(first, 10, 100), IBV_WC_SUCCESS);
	expect_no_access(view_with_key(&server, before, START, LENGTH));

	second = bind_window(mw, START, LENGTH, IBV_ACCESS_REMOTE_WRITE);
	assert_int_equal(second.key, ibv_inc_rkey(first.key));
	expect_write(&pair, local(100), view_part(second, 10, 100), IBV_WC_SUCCESS);
	expect_no_access(first);
}

/* mlx5-formats 4.2: so long as the QP is not in RTS, and when it has no room. */
static void queue_that_takes_no_bind(struct ibv_mw *mw)
{
	struct ibv_mw_bind bind = request(START, LENGTH, IBV_ACCESS_REMOTE_WRITE);
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
		struct ibv_send_wr wr = {.wr_id = i, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED};

		post_send(&pair.server, &wr);
	}
	expect_error(ibv_bind_mw(pair.server.qp, mw, &bind), ENOMEM);
	assert_int_equal(mw->rkey, before);
	for (uint32_t i = 0; i < pair.server.cap.max_send_wr; i++)
		expect_completion(&pair.server, i, IBV_WC_RDMA_WRITE);
	expect_nothing_posted(&pair.server);
}

static void errno_values(void **state)
{
	struct ibv_mw *mw = side_alloc_mw(&server, IBV_MW_TYPE_1);
	struct ibv_mw_bind bind = request(START, LENGTH, IBV_ACCESS_REMOTE_WRITE);
	struct ibv_pd *other_pd = ibv_alloc_pd(server.context);
	struct ibv_mr *foreign, *null_mr = ibv_alloc_null_mr(server.pd);

	(void)state;
	assert_non_null(other_pd);
	assert_non_null(null_mr);
	foreign = ibv_reg_mr(other_pd, server.memory, SIDE_BYTES, SIDE_ACCESS);
	assert_non_null(foreign);

	bind.bind_info.length = (UINT64_C(1) << 31) + 1;
	expect_refused(mw, bind, EOPNOTSUPP);
	bind.bind_info.length = LENGTH;
	bind.bind_info.mr = foreign;
	expect_refused(mw, bind, EPERM);
	bind.bind_info.mr = NULL;
	expect_refused(mw, bind, EINVAL);
	bind.bind_info.mr = null_mr;
	expect_refused(mw, bind, ENOTSUP);
	bind.bind_info.mr = server.mr;
	expect_refused(side_alloc_mw(&server, IBV_MW_TYPE_2), bind, EINVAL);
	queue_that_takes_no_bind(mw);
	expect_no_access(window_view(mw, START, LENGTH));

	expect_error(ibv_dereg_mr(null_mr), 0);
	expect_error(ibv_dereg_mr(foreign), 0);
	expect_error(ibv_dealloc_pd(other_pd), 0);
}

static void failed_bind_is_a_completion(void **state)
{
	struct ibv_mr *mr = side_register(&server, START, LENGTH, SIDE_ACCESS);
	struct ibv_mr *no_bind = side_register(&server, START, LENGTH, SIDE_ACCESS & ~IBV_ACCESS_MW_BIND);
	const uint64_t first = side_address(&server, START);
	const struct {
		struct ibv_mr *mr;
		uint64_t addr, length;
	} binds[] = {
		{mr, first - 1, LENGTH},     {mr, first, LENGTH + 1},
		{mr, first + LENGTH - 1, 2}, {mr, first + LENGTH, 1},
		{mr, first + 2 * LENGTH, 1}, {mr, first, UINT64_C(1) << 31},
		{mr, UINT64_MAX - 99, 4096}, {no_bind, first, LENGTH},
	};
	struct ibv_mw *mw = side_alloc_mw(&server, IBV_MW_TYPE_1);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(binds); i++) {
		struct ibv_mw_bind bind = request(START, LENGTH, SIDE_REMOTE);
		struct view wanted;

		note("bind %zu", i);
		bind.bind_info.mr = binds[i].mr;
		bind.bind_info.addr = binds[i].addr;
		bind.bind_info.length = binds[i].length;
		expect_bind_fails(mw, bind);
		wanted = view_with_key(&server, ibv_inc_rkey(mw->rkey), START, LENGTH);
		expect_no_access(wanted);
		wanted.address = binds[i].addr;
		expect_write(&pair, local(1), view_part(wanted, 0, 1), IBV_WC_REM_ACCESS_ERR);
	}
}

static void failed_bind_keeps_old_binding(void **state)
{
	struct ibv_mw *mw = side_alloc_mw(&server, IBV_MW_TYPE_1);
	struct view bound = bind_window(mw, START, LENGTH, IBV_ACCESS_REMOTE_WRITE);
	struct ibv_mw_bind bind = request(SIDE_BYTES - 1, 2, IBV_ACCESS_REMOTE_WRITE);
	struct pair other;

	(void)state;
	pair_open(&other, &client, &server, &pair.options);
	expect_error(ibv_bind_mw(pair.server.qp, mw, &bind), 0);
	assert_int_equal(mw->rkey, ibv_inc_rkey(bound.key));
	expect_status(&pair.server, BIND_WR_ID, IBV_WC_MW_BIND_ERR);
	expect_write(&other, local(100), view_part(bound, 10, 100), IBV_WC_SUCCESS);
	expect_write(&other, local(100), view_part(window_view(mw, START, LENGTH), 10, 100), IBV_WC_REM_ACCESS_ERR);

	mw->rkey = bound.key;
	bind = request(2 * START, LENGTH, IBV_ACCESS_REMOTE_WRITE);
	expect_error(ibv_bind_mw(other.server.qp, mw, &bind), 0);
	expect_completion(&other.server, BIND_WR_ID, IBV_WC_BIND_MW);
	expect_write(&other, local(100), view_part(window_view(mw, 2 * START, LENGTH), 10, 100), IBV_WC_SUCCESS);
	expect_write(&other, local(100), view_part(bound, 10, 100), IBV_WC_REM_ACCESS_ERR);
	pair_close(&other);
}

/* A bind and a SEND that carries the new rkey, posted back to back. The client looks at its own completion only. */
static uint32_t bind_and_send(struct ibv_mw *mw)
{
	struct ibv_mw_bind bind = request(START, LENGTH, IBV_ACCESS_REMOTE_WRITE);
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

static void send_after_bind_carries_rkey(void **state)
{
	struct ibv_mw *mw = side_alloc_mw(&server, IBV_MW_TYPE_1);
	uint32_t before = mw->rkey;

	(void)state;
	for (int round = 0; round < 1000; round++) {
		struct ibv_sge sge = side_sge(&client, 0, sizeof(uint32_t));
		struct ibv_send_wr wr = {.wr_id = 3,
					 .sg_list = &sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_RDMA_WRITE,
					 .send_flags = IBV_SEND_SIGNALED,
					 .wr.rdma = {.remote_addr = side_address(&server, START)}};

		note("round %d", round);
		before = mw->rkey;
		wr.wr.rdma.rkey = bind_and_send(mw);
		post_send(&pair.client, &wr);
		expect_completion(&pair.client, 3, IBV_WC_RDMA_WRITE);
		memcpy(server.expected + START, client.expected, sizeof(uint32_t));
		expect_completion(&pair.server, 1, IBV_WC_SEND);
		side_compare(&client);
		side_compare(&server);
	}
	expect_no_access(view_with_key(&server, before, START, LENGTH));
}

static void rkey_given_out_after_completion(void **state)
{
	struct view window = bind_window(side_alloc_mw(&server, IBV_MW_TYPE_1), START, LENGTH,
					 IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	struct pair other;

	(void)state;
	expect_write(&pair, local(100), view_part(window, 10, 100), IBV_WC_SUCCESS);
	expect_read(&pair, local(100), view_part(window, 10, 100), IBV_WC_SUCCESS);
	pair_open(&other, &client, &server, &pair.options);
	expect_write(&other, local(100), view_part(window, 10, 100), IBV_WC_SUCCESS);
	expect_read(&other, local(100), view_part(window, 10, 100), IBV_WC_SUCCESS);
	pair_close(&other);
}

static void type_2_window_refused(void **state)
{
	struct ibv_mw *mw = side_alloc_mw(&server, IBV_MW_TYPE_2);

	(void)state;
	expect_refused(mw, request(START, LENGTH, IBV_ACCESS_REMOTE_WRITE), EINVAL);
	expect_no_access(window_view(mw, START, LENGTH));
}

int main(void)
{
	const struct CMUnitTest cases[] = {
		API_CASE(write_through_window),
		API_CASE(completion_carries_wr_id),
		API_CASE(window_starts_at_addr),
		API_CASE(window_spans_length),
		API_CASE(uc_qp_binds),
		API_CASE(ud_qp_refused),
		API_CASE(unsignalled_bind_has_no_completion),
		API_CASE(sq_sig_all_completes_every_bind),
		API_CASE(fence_is_in_the_wqe),
		API_CASE(unbound_window_gives_no_access),
		API_CASE(no_flags_no_rights),
		API_CASE(combined_rights),
		API_CASE(remote_write_right),
		API_CASE(write_right_needs_local_write),
		API_CASE(remote_read_right),
		API_CASE(remote_atomic_right),
		API_CASE(atomic_right_needs_local_write),
		API_CASE(zero_based_offset),
		API_CASE(zero_based_refused_by_connectx),
		API_CASE(returns_zero_and_new_rkey),
		API_CASE(errno_values),
		API_CASE(failed_bind_is_a_completion),
		API_CASE(failed_bind_keeps_old_binding),
		API_CASE(send_after_bind_carries_rkey),
		API_CASE(rkey_given_out_after_completion),
		API_CASE(type_2_window_refused),
	};

	return run_cases("mw_type1", cases);
}
