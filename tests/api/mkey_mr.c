/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mlx5dv_wr_mr_list and mlx5dv_wr_mr_interleaved of mlx5dv_wr_post(3), case by case as docs/promises.md describes them.
 * Keys are the server's.
 */
#include "support/layout_cases.h"

enum {
	SEND_ID = 0x5e,
	WRITE_ID = 0x31,
	RECEIVE_ID = 0x4e,
};

static struct layout layout, second_layout;

static struct view local(size_t length)
{
	return view_memory(&client, 3000, length);
}

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

#undef API_CASE
#define API_CASE(function) cmocka_unit_test_setup_teardown(function, open_and_describe, program_close)

/* The two calls, so that a case can say "for both". */
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

/* Registers and polls; returns the key's view. */
static struct view must_call(enum call call, struct mlx5dv_mkey *mkey, uint32_t access)
{
	expect_error(call_with(call, mkey, access, IBV_SEND_INLINE | IBV_SEND_SIGNALED), 0);
	expect_completion(&pair.server, CONFIGURE_WR_ID, MLX5DV_WC_UMR);
	return call_view(call, mkey);
}

static void list_scatters_and_gathers_(void)
{
	list_scatters_and_gathers(BY_MR_CALL);
}
