/* SPDX-License-Identifier: BSD-2-Clause */
/* Ring sizes and returned capabilities: the worked examples of mlx5-formats 4.1 and 2.1, and their limits. */
#include "../support/posting_fixture.h"

#include "core/limits.h"

#define ALL_RC 0 /* send_ops of a QP that sets none */

struct example {
	enum ibv_qp_type type;
	uint64_t send_ops, dv_send_ops;
	struct ibv_qp_cap asked;
	uint32_t wqe_size, ring_bytes;
	struct ibv_qp_cap returned;
};

/* clang-format off */
static const struct example examples[] = {
	/* the example of the sheet */
	{IBV_QPT_RC, ALL_RC, 0, {.max_send_wr = 1, .max_send_sge = 1}, 256, 256,
	 {.max_send_wr = 1, .max_send_sge = 1, .max_inline_data = 60}},
	{IBV_QPT_RC, IBV_QP_EX_WITH_SEND, 0, {.max_send_wr = 1, .max_send_sge = 1}, 64, 64,
	 {.max_send_wr = 1, .max_send_sge = 1, .max_inline_data = 44}},
	{IBV_QPT_RC, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE, 0, {.max_send_wr = 1, .max_send_sge = 1},
	 64, 64, {.max_send_wr = 1, .max_send_sge = 1, .max_inline_data = 28}},
	{IBV_QPT_UD, ALL_RC, 0, {.max_send_wr = 1, .max_send_sge = 1}, 128, 128,
	 {.max_send_wr = 1, .max_send_sge = 1, .max_inline_data = 60}},
	{IBV_QPT_RC, ALL_RC, 0, {.max_send_wr = 16, .max_send_sge = 1, .max_inline_data = 512}, 768, 16384,
	 {.max_send_wr = 21, .max_send_sge = 1, .max_inline_data = 572}},
	/* "the default max inline of RC about 828" */
	{IBV_QPT_RC, ALL_RC, 0, {.max_send_wr = 1, .max_send_sge = 1, .max_inline_data = 828}, 1024, 1024,
	 {.max_send_wr = 1, .max_send_sge = 1, .max_inline_data = 828}},
	/* MKEY_CONFIGURE alone also yields 60 */
	{IBV_QPT_RC, IBV_QP_EX_WITH_SEND, MLX5DV_QP_EX_WITH_MKEY_CONFIGURE,
	 {.max_send_wr = 1, .max_send_sge = 1}, 256, 256,
	 {.max_send_wr = 1, .max_send_sge = 1, .max_inline_data = 60}},
	/* layout of 4 and a signature: 124 */
	{IBV_QPT_RC, ALL_RC, 0, {.max_send_wr = 1, .max_send_sge = 1, .max_inline_data = 124}, 320, 512,
	 {.max_send_wr = 1, .max_send_sge = 1, .max_inline_data = 124}},
	/* RAW_WQE adds nothing */
	{IBV_QPT_RC, IBV_QP_EX_WITH_SEND, MLX5DV_QP_EX_WITH_RAW_WQE,
	 {.max_send_wr = 1, .max_send_sge = 1}, 64, 64,
	 {.max_send_wr = 1, .max_send_sge = 1, .max_inline_data = 44}},
	/* atomics: 48 */
	{IBV_QPT_RC, IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD, 0, {.max_send_wr = 3, .max_send_sge = 2}, 128, 512,
	 {.max_send_wr = 4, .max_send_sge = 2, .max_inline_data = 76}},
	/* UC assumes all operations too */
	{IBV_QPT_UC, ALL_RC, 0, {.max_send_wr = 5, .max_send_sge = 4}, 256, 2048,
	 {.max_send_wr = 8, .max_send_sge = 4, .max_inline_data = 60}},
	/* without SGEs the overhead fills its blocks: no room for the header of inline data, so no inline data */
	{IBV_QPT_RC, ALL_RC, 0, {.max_send_wr = 1}, 192, 256, {.max_send_wr = 1}},
	{IBV_QPT_UD, ALL_RC, 0, {.max_send_wr = 4}, 64, 256, {.max_send_wr = 4}},
	{IBV_QPT_RC, IBV_QP_EX_WITH_SEND, 0, {.max_send_wr = 1}, 64, 64,
	 {.max_send_wr = 1, .max_inline_data = 44}},
	/* receive: 1 WR of 1 SGE fills 64 bytes with 4 entries, 3 SGEs become 4 */
	{IBV_QPT_RC, ALL_RC, 0, {.max_recv_wr = 1, .max_recv_sge = 1}, 0, 0,
	 {.max_recv_wr = 4, .max_recv_sge = 1}},
	{IBV_QPT_RC, ALL_RC, 0, {.max_recv_wr = 5, .max_recv_sge = 3}, 0, 0,
	 {.max_recv_wr = 8, .max_recv_sge = 4}},
	{IBV_QPT_RC, ALL_RC, 0, {.max_recv_wr = 1, .max_recv_sge = 0}, 0, 0,
	 {.max_recv_wr = 4, .max_recv_sge = 1}},
	{IBV_QPT_RC, ALL_RC, 0, {.max_recv_wr = 1, .max_recv_sge = 32}, 0, 0,
	 {.max_recv_wr = 1, .max_recv_sge = 32}},
	/* no send queue: max_inline_data is unchanged */
	{IBV_QPT_RC, ALL_RC, 0, {.max_send_sge = 7, .max_inline_data = 9}, 0, 0,
	 {.max_send_sge = 7, .max_inline_data = 9}},
};
/* clang-format on */

static int size(enum ibv_qp_type type, uint64_t send_ops, uint64_t dv_send_ops, struct ibv_qp_cap cap, bool srq,
		struct qp_sizing *sizing)
{
	const struct qp_type_info *info = qp_type_info(type, 0);
	struct qp_sizing_request request = {
		.type = info,
		.cap = cap,
		.send_ops = send_ops ? send_ops : info->assumed_ops,
		.dv_send_ops = dv_send_ops,
		.srq = srq,
		.call = "test",
	};

	return qp_sizing_compute(&request, sizing);
}

TEST(worked_examples)
{
	for (size_t i = 0; i < sizeof(examples) / sizeof(examples[0]); i++) {
		const struct example *e = &examples[i];
		struct qp_sizing sizing;

		assert_int_equal(size(e->type, e->send_ops, e->dv_send_ops, e->asked, false, &sizing), 0);
		if (memcmp(&sizing.cap, &e->returned, sizeof(sizing.cap)))
			fail_msg("example %zu: returned %u %u %u %u %u", i, sizing.cap.max_send_wr,
				 sizing.cap.max_recv_wr, sizing.cap.max_send_sge, sizing.cap.max_recv_sge,
				 sizing.cap.max_inline_data);
		assert_int_equal(sizing.wqe_size, e->wqe_size);
		assert_int_equal(sizing.wqebb_count * 64, e->ring_bytes);
	}
}

TEST(srq_takes_no_receives)
{
	struct qp_sizing sizing;

	assert_int_equal(size(IBV_QPT_RC, 0, 0, (struct ibv_qp_cap){.max_recv_wr = UINT32_MAX, .max_recv_sge = 99},
			      true, &sizing),
			 0);
	assert_int_equal(sizing.rq_count, 0);
	assert_int_equal(sizing.cap.max_recv_wr, 0);
	assert_int_equal(sizing.cap.max_recv_sge, 0);
}

static void refuse(enum ibv_qp_type type, uint64_t send_ops, struct ibv_qp_cap cap, enum explain_rule rule)
{
	struct qp_sizing sizing;

	device.rule = RULE_NONE;
	assert_int_equal(size(type, send_ops, 0, cap, false, &sizing), -EINVAL);
	assert_int_equal(device.rule, rule);
}

TEST(limits)
{
	struct qp_sizing sizing;

	/* (1024 - 192) / 16 = 52 */
	assert_int_equal(
		size(IBV_QPT_RC, 0, 0, (struct ibv_qp_cap){.max_send_wr = 1, .max_send_sge = 52}, false, &sizing), 0);
	refuse(IBV_QPT_RC, 0, (struct ibv_qp_cap){.max_send_wr = 1, .max_send_sge = 53}, RULE_QP_MAX_SEND_SGE);
	assert_int_equal(device.figures[0], 53);
	assert_int_equal(device.figures[1], 52);
	assert_int_equal(device.figures[2], 192);
	refuse(IBV_QPT_UD, 0, (struct ibv_qp_cap){.max_send_wr = 1, .max_send_sge = 0xffff}, RULE_QP_MAX_SEND_SGE);
	refuse(IBV_QPT_RC, 0, (struct ibv_qp_cap){.max_send_wr = 1, .max_send_sge = UINT32_MAX}, RULE_QP_MAX_SEND_SGE);
	refuse(IBV_QPT_RC, 0, (struct ibv_qp_cap){.max_send_wr = 1, .max_inline_data = 829}, RULE_QP_MAX_INLINE);
	refuse(IBV_QPT_RC, 0, (struct ibv_qp_cap){.max_send_wr = 1, .max_inline_data = UINT32_MAX}, RULE_QP_MAX_INLINE);
	refuse(IBV_QPT_UD, 0, (struct ibv_qp_cap){.max_send_wr = UINT32_MAX, .max_send_sge = 1}, RULE_QP_MAX_SEND_WR);
	refuse(IBV_QPT_UD, 0, (struct ibv_qp_cap){.max_recv_wr = UINT32_MAX}, RULE_QP_MAX_RECV_WR);
	refuse(IBV_QPT_UD, 0, (struct ibv_qp_cap){.max_recv_wr = 1, .max_recv_sge = 0xffff}, RULE_QP_MAX_RECV_SGE);
	refuse(IBV_QPT_UD, 0, (struct ibv_qp_cap){.max_recv_wr = 1, .max_recv_sge = 33}, RULE_QP_MAX_RECV_SGE);

	/* The largest ring, and one WR more. */
	assert_int_equal(size(IBV_QPT_RC, IBV_QP_EX_WITH_SEND, 0,
			      (struct ibv_qp_cap){.max_send_wr = LIMIT_MAX_SEND_WQEBB, .max_send_sge = 1}, false,
			      &sizing),
			 0);
	assert_int_equal(sizing.cap.max_send_wr, LIMIT_MAX_SEND_WQEBB);
	refuse(IBV_QPT_RC, IBV_QP_EX_WITH_SEND,
	       (struct ibv_qp_cap){.max_send_wr = LIMIT_MAX_SEND_WQEBB + 1, .max_send_sge = 1}, RULE_QP_MAX_SEND_WR);
}

/* `ds` counts up to 63 units: a WQE share of 1024 bytes must not promise a 64th (mlx5-formats 1.1). */
TEST(sixty_three_units)
{
	struct qp_sizing sizing;

	assert_int_equal(size(IBV_QPT_RC, IBV_QP_EX_WITH_SEND, 0,
			      (struct ibv_qp_cap){.max_send_wr = 1, .max_send_sge = 62}, false, &sizing),
			 0);
	refuse(IBV_QPT_RC, IBV_QP_EX_WITH_SEND, (struct ibv_qp_cap){.max_send_wr = 1, .max_send_sge = 63},
	       RULE_QP_MAX_SEND_SGE);
	assert_int_equal(sizing.cap.max_inline_data, 63 * 16 - 16 - 4);
	/* UD: control 16, AV 48 */
	assert_int_equal(size(IBV_QPT_UD, 0, 0, (struct ibv_qp_cap){.max_send_wr = 1, .max_inline_data = 940}, false,
			      &sizing),
			 0);
	assert_int_equal(sizing.cap.max_inline_data, 940);
	refuse(IBV_QPT_UD, 0, (struct ibv_qp_cap){.max_send_wr = 1, .max_inline_data = 941}, RULE_QP_MAX_INLINE);
}

/* Granted capabilities are at least the requested ones, fit, and are granted again when requested. */
TEST(granted_caps)
{
	static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};

	srand(1);
	for (int i = 0; i < 100000; i++) {
		enum ibv_qp_type type = types[rand() % 3];
		struct ibv_qp_cap cap = {
			.max_send_wr = rand() % (LIMIT_MAX_QP_WR / 8) + 1,
			.max_recv_wr = rand() % (LIMIT_MAX_QP_WR / 8) + 1,
			.max_send_sge = rand() % (LIMIT_MAX_SGE / 2),
			.max_recv_sge = rand() % (LIMIT_MAX_SGE / 2),
			.max_inline_data = rand() % 64,
		};
		struct qp_sizing first, second;

		assert_int_equal(size(type, 0, 0, cap, false, &first), 0);
		assert_true(first.cap.max_send_wr >= cap.max_send_wr);
		assert_true(first.cap.max_recv_wr >= cap.max_recv_wr);
		assert_true(first.cap.max_send_sge >= cap.max_send_sge);
		assert_true(first.cap.max_recv_sge >= cap.max_recv_sge);
		assert_true(first.cap.max_inline_data >= cap.max_inline_data);
		assert_true(first.cap.max_inline_data < first.wqe_size);
		assert_int_equal(first.wqebb_count & (first.wqebb_count - 1), 0);
		assert_true((uint64_t)first.cap.max_send_wr * first.wqe_size <= first.wqebb_count * UINT64_C(64));
		assert_int_equal(((uint64_t)first.rq_count << first.rq_shift) % 64, 0);

		assert_int_equal(size(type, 0, 0, first.cap, false, &second), 0);
		assert_memory_equal(&first, &second, sizeof(first));
	}
}
