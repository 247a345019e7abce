/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Acknowledgements that arrive together at our requester. IBTA 9.7.5.1.2: one covers all earlier requests. Completions
 * are in the order of the send queue (IBTA 10.8.3.1), and requests acknowledged before a message was sent complete
 * before that message.
 */
#include "test_case.h"

#include "progress/pollers.h"
#include "../support/shm_world.h"

enum { SEND_ONLY = 0x04, BYTES = 8 };

/* Defers arrivals until poll(). */
static void hold(void)
{
	WAIT_FOR(progress_begin_polling());
}

static void poll(void)
{
	progress_poll_all();
	progress_end_polling();
}

static uint32_t psn_of(uint32_t request)
{
	return (SQ_START_PSN + request) & 0xffffff;
}

/* Acknowledges, as the other side, all requests of @from up to @request, which counts from 0. */
static void acknowledge_to(const struct raw_qp *from, uint32_t request)
{
	struct shm_slot slot = hostile_bth(ACKNOWLEDGE, from->qp->number, psn_of(request), 0);

	slot.bytes[12] = NO_CREDITS;
	slot.headers = 16;
	hostile_send(&other, &slot, NULL, 0);
}

static void acknowledge(uint32_t request)
{
	acknowledge_to(&end, request);
}

static void send_from_there(uint32_t number)
{
	const struct shm_slot slot = hostile_bth(SEND_ONLY, end.qp->number, psn_of(number), BYTES);
	const uint8_t bytes[BYTES] = {1};

	hostile_send(&other, &slot, bytes, sizeof(bytes));
}

static void post_to(struct raw_qp *queue, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		put_send(&device, queue, 0, BYTES);
	ring(queue);
}

static void post(uint32_t count)
{
	post_to(&end, count);
}

static void expect_completion(uint8_t opcode, uint16_t index)
{
	const struct mlx5_err_cqe *cqe = raw_cq_poll(&cq);

	assert_non_null(cqe);
	assert_int_equal(cqe->op_own >> 4, opcode);
	assert_int_equal(be16toh(cqe->wqe_counter), index);
}

TEST(test_together)
{
	post(4);
	hold();
	acknowledge(0);
	acknowledge(1);
	acknowledge(2);
	poll();
	for (uint16_t i = 0; i < 3; i++)
		expect_completion(MLX5_CQE_REQ, i);
	assert_null(raw_cq_poll(&cq));
	hold();
	acknowledge(3);
	poll();
	expect_completion(MLX5_CQE_REQ, 3);
}

/* An older acknowledgement after a newer one has no effect. */
TEST(test_older_after_newer)
{
	post(3);
	hold();
	acknowledge(1);
	acknowledge(0);
	poll();
	expect_completion(MLX5_CQE_REQ, 0);
	expect_completion(MLX5_CQE_REQ, 1);
	assert_null(raw_cq_poll(&cq));
}

/*
 * An acknowledgement of a request that was never sent is ignored (IBTA 9.7.5.1.2), and does not affect those that
 * arrive with it.
 */
TEST(test_ghosts)
{
	post(2);
	hold();
	acknowledge(7);
	acknowledge(0);
	acknowledge(2);
	poll();
	expect_completion(MLX5_CQE_REQ, 0);
	assert_null(raw_cq_poll(&cq));
}

/* Requests acknowledged before a message complete before it; requests acknowledged after it complete after it. */
TEST(test_around_a_message)
{
	post_receive(&device, &end, SECOND_HALF, BYTES);
	post(3);
	hold();
	acknowledge(0);
	acknowledge(1);
	send_from_there(0);
	acknowledge(2);
	poll();
	expect_completion(MLX5_CQE_REQ, 0);
	expect_completion(MLX5_CQE_REQ, 1);
	expect_completion(MLX5_CQE_RESP_SEND, 0);
	expect_completion(MLX5_CQE_REQ, 2);
}

/* Acknowledgements of two alternating queue pairs; and one followed by a record that breaks the ring. */
TEST(test_two_queue_pairs)
{
	const struct ibv_qp_attr options = {.timeout = 0, .retry_cnt = 7, .rnr_retry = 7, .min_rnr_timer = 1};
	struct shm_slot slot = {.headers = 1};
	struct raw_qp second;

	raw_qp_make(&device, &second, IBV_QPT_RC, &cq, BLOCKS);
	raw_qp_connect(&device, &second, its_qpn, &options);
	post(2);
	post_to(&second, 2);
	hold();
	acknowledge_to(&second, 0);
	acknowledge(0);
	acknowledge_to(&second, 1);
	acknowledge(1);
	hostile_send(&other, &slot, NULL, 0);
	poll();
	expect_completion(MLX5_CQE_REQ, 0);
	expect_completion(MLX5_CQE_REQ, 0);
	expect_completion(MLX5_CQE_REQ, 1);
	expect_completion(MLX5_CQE_REQ, 1);
	raw_qp_destroy(&second);
}

int main(void)
{
	return run_cases(.setup = shm_world_begin, .teardown = shm_world_end, .group_setup = shm_world_open,
			 .group_teardown = shm_world_close);
}
