/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs by command that are reset and used again at once: the doorbell record of the new life comes to the value that it had
 * in the one before, perhaps with nobody looking in between.
 */
#include "support/devx.h"

enum { LIVES = 1000 };

static void nothing(struct own *own)
{
	uint8_t wqe[16] = {0};

	put32(wqe, 8, 8);
	own_post(own, MLX5_OPCODE_NOP, wqe, sizeof(wqe));
	assert_int_equal(own_next_cqe(own).op_own >> 4, MLX5_CQE_REQ);
}

static void same_count_again(void **state)
{
	struct command reset = command_of(0x50a);
	struct own own;

	(void)state;
	own_open(&own, &client, 0);
	for (uint32_t life = 0; life < LIVES; life++) {
		own_connect(&own, &own);
		nothing(&own);
		assert_int_equal(own_modify(&own, &reset, 16), 0);
		own.requests = 0;
		put32(own.memory + OWN_QP_RECORD, 4, 0);
	}
	own_close(&own);
}

int main(void)
{
	const struct CMUnitTest cases[] = {
		API_CASE(same_count_again),
	};

	return run_cases("devx_restart", cases);
}
