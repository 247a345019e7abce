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

/* The marker takes an index, but no place from the CQEs: the new ring holds as many as it has entries at once. */
static void no_overrun_while_the_driver_copies(void **state)
{
	struct raw_cq cq;
	uint8_t *old, *ring = new_ring(4);

	(void)state;
	raw_cq_make(&device, &cq, 8);
	for (uint16_t i = 0; i < 3; i++)
		assert_true(write_cqe(&cq, i));
	old = cq.ring;
	assert_int_equal(hca_cq_resize(cq.cq, ring, 4), 0);
	assert_int_equal(old[64 * 3 + 63], MLX5_CQE_RESIZE_CQ << 4);
	/* The driver is still copying; three are waiting, there is room for one. */
	assert_true(write_cqe(&cq, 3));
	assert_false(write_cqe(&cq, 4));
	free(old);
	cq.ring = ring;
	cq.count = 4;
	cq.consumer = 4; /* what the driver would have copied to 1 to 3 is consumed */
	cq.dbrec[0] = htobe32(cq.consumer);
	expect_cqe(&cq, 3, 0);
	assert_null(raw_cq_poll(&cq));
	raw_cq_destroy(&cq);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_overrun_while_the_driver_copies),
	};

	return cmocka_run_group_tests(tests, open_device, close_device);
}
