/* SPDX-License-Identifier: BSD-2-Clause */
/* Binding windows of type 1, see window.h. */
#include "support/window.h"

struct ibv_mw_bind bind_request(size_t start, size_t length, unsigned int access)
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

struct view window_view(const struct ibv_mw *mw, size_t start, size_t length)
{
	return view_with_key(&server, mw->rkey, start, length);
}

struct view bind_window_(struct place place, struct ibv_mw *mw, size_t start, size_t length, unsigned int access)
{
	struct ibv_mw_bind bind = bind_request(start, length, access);

	expect_error_(place, "ibv_bind_mw()", ibv_bind_mw(pair.server.qp, mw, &bind), 0);
	expect_completion_(place, &pair.server, BIND_WR_ID, IBV_WC_BIND_MW);
	return window_view(mw, start, length);
}

void expect_bind_fails_(struct place place, struct ibv_mw *mw, struct ibv_mw_bind bind)
{
	uint32_t before = mw->rkey;

	expect_error_(place, "ibv_bind_mw()", ibv_bind_mw(pair.server.qp, mw, &bind), 0);
	expect_status_(place, &pair.server, BIND_WR_ID, IBV_WC_MW_BIND_ERR);
	expect_state_(place, &pair.server, IBV_QPS_ERR);
	pair_renew(&pair);
	mw->rkey = before;
}

void expect_no_remote_access_(struct place place, struct view window)
{
	struct view byte = client_memory(1), word = client_memory(8);

	expect_write_(place, &pair, IBV_WR_RDMA_WRITE, byte, view_part(window, 0, 1), IBV_WC_REM_ACCESS_ERR);
	expect_read_(place, &pair, byte, view_part(window, 0, 1), IBV_WC_REM_ACCESS_ERR);
	expect_atomic_(place, &pair, IBV_WR_ATOMIC_FETCH_AND_ADD, false, word, view_part(window, 0, 8),
		       IBV_WC_REM_ACCESS_ERR);
}
