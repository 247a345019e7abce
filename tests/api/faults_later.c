/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests faults that a program sets after its queue pairs are connected (softhca_set_faults()). */
#include "softhca.h"
#include "support/program.h"

static void set_faults(const char *text)
{
	char error[512] = "";

	if (softhca_set_faults(client.context, text, error, sizeof(error)))
		fail_at(HERE, "%s: %s", text, error);
}

/* The pair connects without faults; each message is longer than what may be in flight at once. */
TEST(faults_come_later)
{
	static const char *const scripts[] = {"drop 1%; duplicate 1%; seed 1",
					      "drop 1%; duplicate 1%; seed 1",
					      "drop 1%; seed 1",
					      "of response drop 2%; seed 1",
					      "off",
					      "off",
					      "drop 1%"};
	struct pair_options options = pair_defaults(IBV_QPT_RC);
	const size_t bytes = 4 << 20;
	uint8_t *memory = malloc(2 * bytes);
	struct ibv_mr *mr = ibv_reg_mr(client.pd, memory, 2 * bytes, SIDE_ACCESS);
	struct ibv_mr *target = ibv_reg_mr(server.pd, memory, 2 * bytes, SIDE_ACCESS);
	struct ibv_sge sge = {(uintptr_t)memory, (uint32_t)bytes, mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .send_flags = IBV_SEND_SIGNALED,
				 .wr.rdma = {(uintptr_t)memory + bytes, target->rkey}};

	options.timeout = 13; /* 34 ms: a busy machine does not cause a timeout */
	options.retry_cnt = 7;
	pair_replace(&pair, &options);
	for (size_t i = 0; i < ARRAY_SIZE(scripts); i++) {
		bool read = i % 2;

		for (size_t j = 0; j < 2 * bytes; j++)
			memory[j] = (uint8_t)(j * 7 + j / 251 + i + (j >= bytes));
		wr.opcode = read ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE;
		wr.wr_id = i;
		post_send(&pair.client, &wr);
		expect_completion(&pair.client, i, read ? IBV_WC_RDMA_READ : IBV_WC_RDMA_WRITE);
		assert_memory_equal(memory, memory + bytes, bytes);
		set_faults(scripts[i]);
	}
	ibv_dereg_mr(mr);
	ibv_dereg_mr(target);
	free(memory);
}
