/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Access through a window of type 1: the range and rights given to ibv_bind_mw(3). docs/reference/promises.md names the
 * cases. The server owns and binds the windows; mw_bind.c tests the call itself.
 */
#include "support/window.h"

TEST(write_through_window)
{
	struct view window = bind_window(side_alloc_mw(&server, IBV_MW_TYPE_1), WINDOW_START, WINDOW_LENGTH,
					 IBV_ACCESS_REMOTE_WRITE);

	expect_write(&pair, client_memory(100), view_part(window, 10, 100), IBV_WC_SUCCESS);
}

TEST(window_starts_at_addr)
{
	struct view window = bind_window(side_alloc_mw(&server, IBV_MW_TYPE_1), 5001, 64, IBV_ACCESS_REMOTE_WRITE);

	expect_write(&pair, client_memory(1), view_part(window, 0, 1), IBV_WC_SUCCESS);
	expect_write(&pair, client_memory(1), view_part(window, -1, 1), IBV_WC_REM_ACCESS_ERR);
	expect_write(&pair, client_memory(2), view_part(window, -1, 2), IBV_WC_REM_ACCESS_ERR);
}

TEST(window_spans_length)
{
	static const struct {
		size_t start, length;
	} ranges[] = {{77, 1}, {WINDOW_START, 4095}, {0, SIDE_BYTES}};
	struct ibv_mw *mw = side_alloc_mw(&server, IBV_MW_TYPE_1);

	for (size_t i = 0; i < ARRAY_SIZE(ranges); i++) {
		struct view window = bind_window(mw, ranges[i].start, ranges[i].length, IBV_ACCESS_REMOTE_WRITE);
		int64_t length = (int64_t)ranges[i].length;

		note("length %ld", length);
		expect_write(&pair, client_memory(1), view_part(window, length - 1, 1), IBV_WC_SUCCESS);
		expect_write(&pair, client_memory(1), view_part(window, length, 1), IBV_WC_REM_ACCESS_ERR);
		expect_write(&pair, client_memory(2), view_part(window, length - 1, 2), IBV_WC_REM_ACCESS_ERR);
	}
}

TEST(uc_qp_binds)
{
	struct pair_options options = pair_defaults(IBV_QPT_UC);
	struct ibv_mw *mw = side_alloc_mw(&server, IBV_MW_TYPE_1);
	struct view window;

	pair_replace(&pair, &options);
	window = bind_window(mw, WINDOW_START, WINDOW_LENGTH, IBV_ACCESS_REMOTE_WRITE);
	expect_write(&pair, client_memory(100), view_part(window, 10, 100), IBV_WC_SUCCESS);
	expect_write_imm(&pair, client_memory(100), view_part(window, 10, 100), IBV_WC_SUCCESS);
}

TEST(unbound_window_gives_no_access)
{
	expect_no_remote_access(window_view(side_alloc_mw(&server, IBV_MW_TYPE_1), WINDOW_START, WINDOW_LENGTH));
}

TEST(no_flags_no_rights)
{
	expect_no_remote_access(bind_window(side_alloc_mw(&server, IBV_MW_TYPE_1), WINDOW_START, WINDOW_LENGTH, 0));
}

static enum ibv_wc_status allowed(unsigned int access, unsigned int right)
{
	return access & right ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR;
}

TEST(combined_rights)
{
	struct ibv_mw *mw = side_alloc_mw(&server, IBV_MW_TYPE_1);

	for (unsigned int access = 0; access <= SIDE_REMOTE; access++) {
		struct view window;

		if (access & ~(unsigned int)SIDE_REMOTE)
			continue;
		note("rights %#x", access);
		window = bind_window(mw, WINDOW_START, WINDOW_LENGTH, access);
		expect_write(&pair, client_memory(30), view_part(window, 8, 30),
			     allowed(access, IBV_ACCESS_REMOTE_WRITE));
		expect_read(&pair, client_memory(30), view_part(window, 8, 30),
			    allowed(access, IBV_ACCESS_REMOTE_READ));
		expect_compare_swap(&pair, client_memory(8), view_part(window, 8, 8), true,
				    allowed(access, IBV_ACCESS_REMOTE_ATOMIC));
	}
}

TEST(remote_write_right)
{
	struct view window = bind_window(side_alloc_mw(&server, IBV_MW_TYPE_1), WINDOW_START, WINDOW_LENGTH,
					 IBV_ACCESS_REMOTE_WRITE);

	expect_write(&pair, client_memory(WINDOW_LENGTH), window, IBV_WC_SUCCESS);
	expect_read(&pair, client_memory(WINDOW_LENGTH), window, IBV_WC_REM_ACCESS_ERR);
}

TEST(remote_read_right)
{
	struct view window =
		bind_window(side_alloc_mw(&server, IBV_MW_TYPE_1), WINDOW_START, WINDOW_LENGTH, IBV_ACCESS_REMOTE_READ);

	expect_read(&pair, client_memory(WINDOW_LENGTH), window, IBV_WC_SUCCESS);
	expect_write(&pair, client_memory(WINDOW_LENGTH), window, IBV_WC_REM_ACCESS_ERR);
	expect_fetch_add(&pair, client_memory(8), view_part(window, 8, 8), IBV_WC_REM_ACCESS_ERR);
}

TEST(remote_atomic_right)
{
	struct view window = bind_window(side_alloc_mw(&server, IBV_MW_TYPE_1), WINDOW_START, WINDOW_LENGTH,
					 IBV_ACCESS_REMOTE_ATOMIC);

	expect_fetch_add(&pair, client_memory(8), view_part(window, 8, 8), IBV_WC_SUCCESS);
	expect_compare_swap(&pair, client_memory(8), view_part(window, 8, 8), true, IBV_WC_SUCCESS);
	expect_compare_swap(&pair, client_memory(8), view_part(window, 8, 8), false, IBV_WC_SUCCESS);
	expect_write(&pair, client_memory(8), view_part(window, 8, 8), IBV_WC_REM_ACCESS_ERR);
	expect_read(&pair, client_memory(8), view_part(window, 8, 8), IBV_WC_REM_ACCESS_ERR);
}

static void right_needs_local_write(unsigned int right)
{
	struct ibv_mw *mw = side_alloc_mw(&server, IBV_MW_TYPE_1);
	struct ibv_mr *read_only =
		side_register(&server, WINDOW_START, WINDOW_LENGTH, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_MW_BIND);
	struct ibv_mw_bind bind = bind_request(WINDOW_START, WINDOW_LENGTH, right);

	bind.bind_info.mr = read_only;
	expect_bind_fails(mw, bind);
	bind.bind_info.mw_access_flags = IBV_ACCESS_REMOTE_READ;
	expect_error(ibv_bind_mw(pair.server.qp, mw, &bind), 0);
	expect_completion(&pair.server, BIND_WR_ID, IBV_WC_BIND_MW);
	expect_read(&pair, client_memory(WINDOW_LENGTH), window_view(mw, WINDOW_START, WINDOW_LENGTH), IBV_WC_SUCCESS);
}

TEST(write_right_needs_local_write)
{
	right_needs_local_write(IBV_ACCESS_REMOTE_WRITE);
}

TEST(atomic_right_needs_local_write)
{
	right_needs_local_write(IBV_ACCESS_REMOTE_ATOMIC);
}

TEST(zero_based_offset)
{
	static const int64_t offsets[] = {0, 17, 4095};
	struct ibv_mw *mw;
	struct view at_address, window;

	if (!in_profile("man", __func__))
		return;
	mw = side_alloc_mw(&server, IBV_MW_TYPE_1);
	window = at_address = bind_window(mw, 3 * 4096, WINDOW_LENGTH,
					  IBV_ACCESS_ZERO_BASED | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	window.address = 0;
	for (size_t i = 0; i < ARRAY_SIZE(offsets); i++)
		expect_write(&pair, client_memory(1), view_part(window, offsets[i], 1), IBV_WC_SUCCESS);
	expect_read(&pair, client_memory(100), view_part(window, 17, 100), IBV_WC_SUCCESS);
	expect_write(&pair, client_memory(1), view_part(window, WINDOW_LENGTH, 1), IBV_WC_REM_ACCESS_ERR);
	expect_write(&pair, client_memory(1), view_part(window, -1, 1), IBV_WC_REM_ACCESS_ERR);
	expect_write(&pair, client_memory(1), view_part(at_address, 0, 1), IBV_WC_REM_ACCESS_ERR);
}

TEST(rkey_given_out_after_completion)
{
	struct view window = bind_window(side_alloc_mw(&server, IBV_MW_TYPE_1), WINDOW_START, WINDOW_LENGTH,
					 IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	struct pair other;

	expect_write(&pair, client_memory(100), view_part(window, 10, 100), IBV_WC_SUCCESS);
	expect_read(&pair, client_memory(100), view_part(window, 10, 100), IBV_WC_SUCCESS);
	pair_open(&other, &client, &server, &pair.options);
	expect_write(&other, client_memory(100), view_part(window, 10, 100), IBV_WC_SUCCESS);
	expect_read(&other, client_memory(100), view_part(window, 10, 100), IBV_WC_SUCCESS);
	pair_close(&other);
}
