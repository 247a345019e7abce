/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queues as the device keeps them, with the test as their driver (mlx5-formats 3.1, 3.6 and 3.7). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "device_fixture.h"

static struct device device;

static int open_device(void **state)
{
	(void)state;
	device_open(&device);
	return 0;
}

static int close_device(void **state)
{
	(void)state;
	device_close(&device);
	return 0;
}

static bool write_cqe(struct raw_cq *cq, uint16_t counter)
{
	return hca_cq_write(cq->cq, &(struct completion){.opcode = MLX5_CQE_REQ, .wqe_counter = counter});
}

static uint8_t *new_ring(uint32_t count)
{
	uint8_t *ring = aligned_alloc(64, count * 64);

	memset(ring, 0, count * 64);
	for (uint32_t i = 0; i < count; i++)
		ring[64 * i + 63] = MLX5_CQE_INVALID << 4;
	return ring;
}

struct move {
	struct raw_cq *cq;
	uint8_t *ring;
	uint32_t count;
};

/* As a driver does: all CQEs up to the marker go one index further on. */
static void carry_over(void *argument)
{
	const struct move *move = argument;
	struct raw_cq *cq = move->cq;
	uint32_t end = cq->consumer + 3;

	for (uint32_t i = cq->consumer; i < end; i++) {
		uint8_t *to = move->ring + 64 * (size_t)((i + 1) & (move->count - 1));

		memcpy(to, cq->ring + 64 * (size_t)(i & (cq->count - 1)), 64);
		to[63] = (uint8_t)((to[63] & ~1) | !!((i + 1) & move->count));
	}
	assert_int_equal(cq->ring[64 * (size_t)(end & (cq->count - 1)) + 63] >> 4, MLX5_CQE_RESIZE_CQ);
	cq->ring = move->ring;
	cq->count = move->count;
	cq->dbrec[0] = htobe32(++cq->consumer);
}

/* The marker takes an index, but no place from the CQEs: the new ring holds as many as it has entries at once. */
static void new_ring_is_used_to_the_last_entry(void **state)
{
	struct raw_cq cq;
	struct move move = {&cq, new_ring(4), 4};
	uint8_t *old;

	(void)state;
	raw_cq_make(&device, &cq, 8);
	old = cq.ring;
	for (uint16_t i = 0; i < 3; i++)
		assert_true(write_cqe(&cq, i));
	assert_int_equal(hca_cq_resize(cq.cq, move.ring, 4, carry_over, &move), 0);
	free(old);
	assert_true(write_cqe(&cq, 3));
	assert_false(write_cqe(&cq, 4));
	for (uint16_t i = 0; i < 4; i++)
		expect_cqe(&cq, i, 0);
	assert_null(raw_cq_poll(&cq));
	raw_cq_destroy(&cq);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(new_ring_is_used_to_the_last_entry),
	};

	return cmocka_run_group_tests(tests, open_device, close_device);
}
