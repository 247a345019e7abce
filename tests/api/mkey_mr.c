/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mlx5dv_wr_mr_list and mlx5dv_wr_mr_interleaved of mlx5dv_wr_post(3). docs/reference/promises.md names the cases. The
 * server owns the keys.
 */
#include "support/layout_cases.h"

enum {
	SEND_ID = 0x5e,
	WRITE_ID = 0x31,
	RECEIVE_ID = 0x4e,
};

static struct layout layout, second_layout;

static struct ibv_sge list[2];
static struct mlx5dv_mr_interleaved pattern[2];

static int open_and_describe(void **state)
{
	int error = program_open(state);

	list[0] = side_sge(&server, 9000, 100);
	list[1] = side_sge(&server, 500, 60);
	pattern[0] = side_interleaved(&server, 20000, 8, 3);
	pattern[1] = side_interleaved(&server, 64, 5, 3);
	return error;
}

/* The two calls; a case can loop over both. */
enum call { MR_LIST, MR_INTERLEAVED, CALLS };

static void add_call(struct endpoint *endpoint, enum call call, struct mlx5dv_mkey *mkey, uint32_t access)
{
	if (call == MR_LIST)
		mlx5dv_wr_mr_list(endpoint->dv, mkey, access, 2, list);
	else
		mlx5dv_wr_mr_interleaved(endpoint->dv, mkey, access, 4, 2, pattern);
}

static struct view call_view(enum call call, struct mlx5dv_mkey *mkey)
{
	if (call == MR_LIST)
		layout_of_list(&layout, &server, 2, list);
	else
		layout_of_interleaved(&layout, &server, 4, 2, pattern);
	return view_key(&server, mkey, &layout);
}

static int call_with(enum call call, struct mlx5dv_mkey *mkey, uint32_t access, unsigned int flags)
{
	batch_start(&pair.server, CONFIGURE_WR_ID, flags);
	add_call(&pair.server, call, mkey, access);
	return ibv_wr_complete(pair.server.ex);
}

/* Registers and polls; returns a view of the key. */
static struct view must_call(enum call call, struct mlx5dv_mkey *mkey, uint32_t access)
{
	expect_error(call_with(call, mkey, access, IBV_SEND_INLINE | IBV_SEND_SIGNALED), 0);
	expect_completion(&pair.server, CONFIGURE_WR_ID, MLX5DV_WC_UMR);
	return call_view(call, mkey);
}

TEST(list_scatters_and_gathers)
{
	check_list_scatters_and_gathers(BY_MR_CALL);
}

TEST(list_offset_is_zero_based)
{
	check_list_offset_is_zero_based(BY_MR_CALL);
}

TEST(list_four_entries_by_default)
{
	check_list_entries_by_default(BY_MR_CALL);
	check_list_entries_with_max_inline_data(BY_MR_CALL);
}

TEST(interleaved_scatters_and_gathers)
{
	check_interleaved_scatters_and_gathers(BY_MR_CALL);
	check_interleaved_repeat_count(BY_MR_CALL);
}

TEST(interleaved_offset_is_zero_based)
{
	struct mlx5dv_mkey *mkey = side_create_mkey(&server, 4, NULL);
	struct view key = must_call(MR_INTERLEAVED, mkey, IBV_ACCESS_REMOTE_WRITE);

	assert_int_equal(key.length, 52);
	for (int64_t offset = 0; offset < 52; offset++) {
		note("offset %ld", offset);
		expect_write(&pair, client_memory(1), view_part(key, offset, 1), IBV_WC_SUCCESS);
	}
	expect_write(&pair, client_memory(1), view_part(key, 52, 1), IBV_WC_REM_ACCESS_ERR);
	expect_write(&pair, client_memory(1), view_part(key, (int64_t)pattern[0].addr, 1), IBV_WC_REM_ACCESS_ERR);
}

TEST(interleaved_three_entries_by_default)
{
	check_interleaved_entries_by_default(BY_MR_CALL);
	check_interleaved_entries_with_max_inline_data(BY_MR_CALL);
}

TEST(interleaved_header_takes_an_entry)
{
	check_interleaved_header_takes_an_entry(BY_MR_CALL);
}

static void expect_write_only(struct view key)
{
	expect_write(&pair, client_memory(key.length), key, IBV_WC_SUCCESS);
	expect_send(&pair, client_memory(key.length), key, IBV_WC_SUCCESS, IBV_WC_SUCCESS);
	expect_read(&pair, client_memory(key.length), key, IBV_WC_REM_ACCESS_ERR);
	expect_fetch_add(&pair, client_memory(8), view_part(key, 0, 8), IBV_WC_REM_ACCESS_ERR);
}

TEST(access_flags_are_the_rights)
{
	/* Flags of the enum that are not rights, and a bit outside of the enum. */
	const uint32_t others = IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB |
				IBV_ACCESS_RELAXED_ORDERING,
		       unknown = UINT32_C(1) << 31;
	struct mlx5dv_mkey *mkey;

	if (!in_profile("man", __func__))
		return;
	mkey = side_create_mkey(&server, 4, NULL);
	for (enum call call = 0; call < CALLS; call++) {
		struct view key = must_call(call, mkey, IBV_ACCESS_REMOTE_READ | others);

		note("call %d", call);
		expect_read(&pair, client_memory(key.length), key, IBV_WC_SUCCESS);
		expect_write(&pair, client_memory(key.length), key, IBV_WC_REM_ACCESS_ERR);
		expect_send(&pair, client_memory(key.length), key, IBV_WC_REM_OP_ERR, IBV_WC_LOC_PROT_ERR);
		key = must_call(call, mkey, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE);
		expect_write_only(key);
		expect_error(call_with(call, mkey, unknown | KEY_ACCESS, IBV_SEND_INLINE | IBV_SEND_SIGNALED), EINVAL);
		expect_nothing_posted(&pair.server);
		expect_write_only(key);
	}
}

TEST(batch_of_its_own_or_mixed)
{
	struct mlx5dv_mkey *mkey = side_create_mkey(&server, 4, NULL);
	struct view key = must_call(MR_LIST, mkey, KEY_ACCESS), written = client_memory(160),
		    received = view_memory(&client, 0, 52);
	struct ibv_sge receive = side_sge(&client, 0, 52);
	struct view patterned;

	layout_of_interleaved(&second_layout, &server, 4, 2, pattern);
	patterned = view_key(&server, mkey, &second_layout);
	expect_write(&pair, client_memory(160), key, IBV_WC_SUCCESS);
	expect_read(&pair, client_memory(160), key, IBV_WC_SUCCESS);

	post_receive(&pair.client, RECEIVE_ID, &receive, 1);
	batch_start(&pair.server, 0, 0);
	batch_write(&pair.server, WRITE_ID, 0, key, written);
	pair.server.ex->wr_flags = IBV_SEND_INLINE;
	add_call(&pair.server, MR_INTERLEAVED, mkey, 0);
	batch_send(&pair.server, SEND_ID, IBV_SEND_SIGNALED, patterned);
	expect_error(ibv_wr_complete(pair.server.ex), 0);
	expect_completion(&pair.server, SEND_ID, IBV_WC_SEND);
	expect_idle(&pair.server);
	assert_int_equal(expect_completion(&pair.client, RECEIVE_ID, IBV_WC_RECV).byte_len, 52);
	model_copy(&key, &written);
	model_copy(&patterned, &received);
}

static struct ibv_qp *create_qp(enum ibv_qp_type type, uint64_t send_ops, uint64_t dv_send_ops)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = pair.server.cq,
		.recv_cq = pair.server.cq,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = type,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = server.pd,
		.send_ops_flags = send_ops,
	};
	struct mlx5dv_qp_init_attr dv = {
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS,
		.send_ops_flags = dv_send_ops,
	};

	errno = 0;
	return mlx5dv_create_qp(server.context, &attr, &dv);
}

TEST(unsupported_send_ops_refused)
{
	enum { UNKNOWN_OP = 1 << 11, UNKNOWN_DV_OP = 1 << 20 };
	static const struct {
		enum ibv_qp_type type;
		uint64_t send_ops, dv_send_ops;
	} refused[] = {
		{IBV_QPT_RC, IBV_QP_EX_WITH_SEND, UNKNOWN_DV_OP},
		{IBV_QPT_RC, IBV_QP_EX_WITH_SEND, UNKNOWN_DV_OP | DV_KEY_OPS},
		{IBV_QPT_UC, IBV_QP_EX_WITH_SEND, MLX5DV_QP_EX_WITH_MR_LIST},
		{IBV_QPT_UC, IBV_QP_EX_WITH_SEND, MLX5DV_QP_EX_WITH_MR_INTERLEAVED},
		{IBV_QPT_UC, IBV_QP_EX_WITH_SEND, MLX5DV_QP_EX_WITH_MKEY_CONFIGURE},
		{IBV_QPT_UD, IBV_QP_EX_WITH_SEND, MLX5DV_QP_EX_WITH_MR_LIST},
		{IBV_QPT_UD, IBV_QP_EX_WITH_SEND, MLX5DV_QP_EX_WITH_MR_INTERLEAVED},
		{IBV_QPT_UD, IBV_QP_EX_WITH_SEND, MLX5DV_QP_EX_WITH_MKEY_CONFIGURE},
		{IBV_QPT_RC, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_TSO, 0},
		{IBV_QPT_UC, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_READ, 0},
		{IBV_QPT_UD, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE, 0},
		{IBV_QPT_RC, IBV_QP_EX_WITH_SEND | UNKNOWN_OP, 0},
	};
	struct ibv_qp *qp;

	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		note("QP %zu", i);
		assert_null(create_qp(refused[i].type, refused[i].send_ops, refused[i].dv_send_ops));
		assert_int_equal(errno, EOPNOTSUPP);
	}
	qp = create_qp(IBV_QPT_RC, pair.options.send_ops, DV_KEY_OPS);
	assert_non_null(qp);
	expect_error(ibv_destroy_qp(qp), 0);
}

TEST(qp_ex_of_the_qp)
{
	struct mlx5dv_mkey *mkey = side_create_mkey(&server, 4, NULL);
	struct pair other;
	struct endpoint *ends[2] = {&pair.server, &other.server};

	pair_open(&other, &client, &server, &pair.options);
	for (int i = 0; i < 2; i++) {
		struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(ends[i]->qp);

		assert_non_null(ex);
		assert_ptr_equal(&ex->qp_base, ends[i]->qp);
		assert_ptr_equal(mlx5dv_qp_ex_from_ibv_qp_ex(ex), ends[i]->dv);
		batch_start(ends[i], CONFIGURE_WR_ID, IBV_SEND_INLINE | IBV_SEND_SIGNALED);
		add_call(ends[i], MR_LIST, mkey, KEY_ACCESS);
		expect_error(ibv_wr_complete(ex), 0);
		expect_completion(ends[i], CONFIGURE_WR_ID, MLX5DV_WC_UMR);
		expect_idle(ends[!i]);
	}
	pair_close(&other);
}

/* Posts exactly as many requests as the queue has room for. */
static void expect_queue_is_empty(void)
{
	struct ibv_send_wr wr = {.wr_id = WRITE_ID, .opcode = IBV_WR_RDMA_WRITE}, *bad;
	uint32_t most = pair.server.cap.max_send_wr;

	for (uint32_t i = 1; i <= most; i++) {
		wr.send_flags = i == most ? IBV_SEND_SIGNALED : 0;
		post_send(&pair.server, &wr);
	}
	expect_error(ibv_post_send(pair.server.qp, &wr, &bad), ENOMEM);
	expect_completion(&pair.server, WRITE_ID, IBV_WC_RDMA_WRITE);
	expect_idle(&pair.server);
}

TEST(start_complete_abort)
{
	struct mlx5dv_mkey *mkey = side_create_mkey(&server, 4, NULL);

	for (enum call call = 0; call < CALLS; call++) {
		struct view before = must_call(!call, mkey, KEY_ACCESS);

		note("call %d", call);
		batch_start(&pair.server, CONFIGURE_WR_ID, IBV_SEND_INLINE | IBV_SEND_SIGNALED);
		add_call(&pair.server, call, mkey, 0);
		ibv_wr_abort(pair.server.ex);
		expect_nothing_posted(&pair.server);
		expect_read(&pair, client_memory(before.length), before, IBV_WC_SUCCESS);
		expect_queue_is_empty();

		batch_start(&pair.server, CONFIGURE_WR_ID, IBV_SEND_INLINE | IBV_SEND_SIGNALED);
		add_call(&pair.server, call, mkey, IBV_ACCESS_REMOTE_READ);
		pair.server.ex->wr_id = 0;
		pair.server.ex->wr_flags = 0;
		expect_error(ibv_wr_complete(pair.server.ex), 0);
		expect_completion(&pair.server, CONFIGURE_WR_ID, MLX5DV_WC_UMR);
		expect_idle(&pair.server);
		before = call_view(call, mkey);
		expect_read(&pair, client_memory(before.length), before, IBV_WC_SUCCESS);
		expect_write(&pair, client_memory(before.length), before, IBV_WC_REM_ACCESS_ERR);
	}
}

TEST(inline_flag_required)
{
	struct mlx5dv_mkey *mkey = side_create_mkey(&server, 4, NULL);

	for (enum call call = 0; call < CALLS; call++) {
		struct view before = must_call(!call, mkey, KEY_ACCESS);

		note("call %d", call);
		expect_error(call_with(call, mkey, 0, IBV_SEND_SIGNALED), EOPNOTSUPP);
		expect_nothing_posted(&pair.server);
		expect_read(&pair, client_memory(before.length), before, IBV_WC_SUCCESS);
	}
}

TEST(completion_opcode_is_umr)
{
	const uint64_t wr_id = 0x123456789abcdef0;
	struct mlx5dv_mkey *mkey = side_create_mkey(&server, 4, NULL);

	for (enum call call = 0; call < CALLS; call++) {
		note("call %d", call);
		batch_start(&pair.server, wr_id, IBV_SEND_INLINE | IBV_SEND_SIGNALED);
		add_call(&pair.server, call, mkey, 0);
		expect_error(ibv_wr_complete(pair.server.ex), 0);
		expect_completion(&pair.server, wr_id, MLX5DV_WC_UMR);
		expect_idle(&pair.server);
		expect_idle(&pair.client);

		expect_error(call_with(call, mkey, 0, IBV_SEND_INLINE), 0);
		expect_nothing_posted(&pair.server); /* no request that completes */
	}
}

static void unregister(struct mlx5dv_mkey *mkey, struct view key)
{
	struct ibv_send_wr wr = {
		.wr_id = 0x11,
		.opcode = IBV_WR_LOCAL_INV,
		.send_flags = IBV_SEND_SIGNALED,
		.invalidate_rkey = mkey->rkey,
	};

	post_send(&pair.server, &wr);
	expect_completion(&pair.server, 0x11, IBV_WC_LOCAL_INV);
	expect_write(&pair, client_memory(8), view_part(key, 0, 8), IBV_WC_REM_ACCESS_ERR);
	expect_send(&pair, view_part(key, 0, 8), client_memory(8), IBV_WC_LOC_PROT_ERR, IBV_WC_SUCCESS);
}

TEST(unregister_then_register_again)
{
	static const enum call calls[] = {MR_LIST, MR_INTERLEAVED, MR_LIST};
	struct mlx5dv_mkey *mkey = side_create_mkey(&server, 4, NULL);

	for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
		struct view key = must_call(calls[i], mkey, KEY_ACCESS);

		note("registration %zu", i);
		expect_write(&pair, client_memory(key.length), key, IBV_WC_SUCCESS);
		expect_read(&pair, client_memory(key.length), key, IBV_WC_SUCCESS);
		expect_read(&pair, client_memory(1), view_part(key, (int64_t)key.length, 1), IBV_WC_REM_ACCESS_ERR);
		unregister(mkey, key);
	}
}

int main(void)
{
	program_memory(INTERLEAVED_MEMORY);
	return run_cases(.setup = open_and_describe, .teardown = program_close);
}
