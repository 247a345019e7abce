/* SPDX-License-Identifier: BSD-2-Clause */
/* Windows of type 2: NOTES of ibv_bind_mw(3). */
#include "support/program.h"

static void bind_by_post_send(void **state)
{
	enum { WR_ID = 0x2222, START = 8192, LENGTH = 4096 };
	struct ibv_mw *mw = side_alloc_mw(&server, IBV_MW_TYPE_2);
	uint32_t before = mw->rkey, bound = ibv_inc_rkey(before);
	struct ibv_send_wr wr = {
		.wr_id = WR_ID,
		.opcode = IBV_WR_BIND_MW,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_mw = {.mw = mw,
			    .rkey = bound,
			    .bind_info = {.mr = server.mr,
					  .addr = side_address(&server, START),
					  .length = LENGTH,
					  .mw_access_flags = IBV_ACCESS_REMOTE_WRITE}},
	};
	struct view memory = view_memory(&client, 1000, LENGTH);

	(void)state;
	post_send(&pair.server, &wr);
	expect_completion(&pair.server, WR_ID, IBV_WC_BIND_MW);
	expect_idle(&pair.server);
	assert_int_equal(mw->rkey, before);
	expect_write(&pair, memory, view_with_key(&server, bound, START, LENGTH), IBV_WC_SUCCESS);
	expect_write(&pair, memory, view_with_key(&server, before, START, LENGTH), IBV_WC_REM_ACCESS_ERR);
}

int main(void)
{
	const struct CMUnitTest cases[] = {
		API_CASE(bind_by_post_send),
	};

	return run_cases("mw_type2", cases);
}
