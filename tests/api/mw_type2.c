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

/* IBTA o10-37.2.40. Neither a range that was bound before is touched, nor one that the address names. */
static void bind_of_no_bytes(void **state)
{
	enum { WR_ID = 0x2222, START = 8192, LENGTH = 4096 };

	(void)state;
	for (int i = 0; i < 4; i++) {
		bool by_builder = i & 1, with_region = i & 2;
		struct ibv_mw *mw = side_alloc_mw(&server, IBV_MW_TYPE_2);
		struct ibv_send_wr wr = {
			.wr_id = WR_ID,
			.opcode = IBV_WR_BIND_MW,
			.send_flags = IBV_SEND_SIGNALED,
			.bind_mw = {.mw = mw,
				    .rkey = ibv_inc_rkey(mw->rkey),
				    .bind_info = {.mr = with_region ? server.mr : NULL,
						  .addr = with_region ? side_address(&server, START) : 0,
						  .mw_access_flags = IBV_ACCESS_REMOTE_WRITE}},
		};

		note("by builder %d, with a region %d", by_builder, with_region);
		if (by_builder) {
			ibv_wr_start(pair.server.ex);
			pair.server.ex->wr_id = WR_ID;
			pair.server.ex->wr_flags = IBV_SEND_SIGNALED;
			ibv_wr_bind_mw(pair.server.ex, mw, wr.bind_mw.rkey, &wr.bind_mw.bind_info);
			expect_error(ibv_wr_complete(pair.server.ex), 0);
		} else {
			post_send(&pair.server, &wr);
		}
		expect_status(&pair.server, WR_ID, IBV_WC_MW_BIND_ERR);
		expect_state(&pair.server, IBV_QPS_ERR);
		pair_renew(&pair);
		expect_write(&pair, client_memory(8), view_with_key(&server, wr.bind_mw.rkey, START, LENGTH),
			     IBV_WC_REM_ACCESS_ERR);
	}
}

/* What the page asks for, and an adapter does not: IBV_ACCESS_MW_BIND, and local write for remote writes and atomics. */
static void region_without_rights(void **state)
{
	static const unsigned int regions[] = {IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_MW_BIND, 0};
	bool connectx = in_profile("connectx", __func__); /* and then here, in the other one */

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(regions); i++) {
		struct ibv_mw *mw = side_alloc_mw(&server, IBV_MW_TYPE_2);
		struct ibv_send_wr wr = {
			.wr_id = 7,
			.opcode = IBV_WR_BIND_MW,
			.send_flags = IBV_SEND_SIGNALED,
			.bind_mw = {.mw = mw,
				    .rkey = ibv_inc_rkey(mw->rkey),
				    .bind_info = {.mr = side_register(&server, 8192, 4096, regions[i]),
						  .addr = side_address(&server, 8192),
						  .length = 4096,
						  .mw_access_flags = IBV_ACCESS_REMOTE_WRITE}},
		};

		note("region %zu", i);
		post_send(&pair.server, &wr);
		if (connectx) {
			expect_completion(&pair.server, 7, IBV_WC_BIND_MW);
			continue;
		}
		expect_status(&pair.server, 7, IBV_WC_MW_BIND_ERR);
		pair_renew(&pair);
	}
}

int main(void)
{
	const struct CMUnitTest cases[] = {
		API_CASE(bind_by_post_send),
		API_CASE(bind_of_no_bytes),
		API_CASE(region_without_rights),
	};

	return run_cases("mw_type2", cases);
}
