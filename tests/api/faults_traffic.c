/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs checked traffic of one reliable pair, for tests/tool/faults.py, which sets the faults and reads the counters. */
#include "support/program.h"
#include "support/transfer.h"

TEST(traffic)
{
	struct pair_options options = pair_defaults(IBV_QPT_RC);

	options.timeout = 13; /* 34 ms: a busy machine does not cause a timeout */
	options.retry_cnt = 7;
	pair_replace(&pair, &options);
	for (size_t i = 0; i < 40; i++) {
		struct view here = view_memory(&client, 10 * i, 1000 * i),
			    there = view_memory(&server, 20 * i, 1000 * i);

		expect_write(&pair, here, there, IBV_WC_SUCCESS);
		expect_read(&pair, here, there, IBV_WC_SUCCESS);
		expect_send(&pair, here, there, IBV_WC_SUCCESS, IBV_WC_SUCCESS);
	}
}
