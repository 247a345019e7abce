/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A device with the link shm, with an RC QP connected to a process that the test plays (shm_hostile.h). The test group
 * opens the device (shm_world_open, shm_world_close); each test has its own QP and connection (shm_world_begin,
 * shm_world_end). Only the test's thread.
 */
#ifndef SOFTHCA_TESTS_SHM_WORLD_H
#define SOFTHCA_TESTS_SHM_WORLD_H

#include "test_case.h"

#include "device_fixture.h"
#include "observe/counters.h"
#include "transport/control/commands.h"
#include "shm_hostile.h"

enum {
	WRITE_ONLY = 0x0a,
	ACKNOWLEDGE = 0x11,
	NO_CREDITS = 0x1f,     /* syndrome of an acknowledgement (IBTA 9.7.7.2) */
	SECOND_HALF = 1 << 15, /* offset in the memory of the device that requests name */
	BLOCKS = 64,
};

static struct raw_cq cq;
static struct raw_qp end;
static struct hostile other;
static uint32_t its_qpn;

static inline uint64_t counted(enum counter counter)
{
	return counter_read(device.hca, counter);
}

/* Once the device thread has unlocked the queue pair it has also written the CQEs. */
static inline void let_it_finish(void)
{
	queue_lock(&end.qp->lock);
	queue_unlock(&end.qp->lock);
}

static inline int shm_world_begin(void **state)
{
	/* No timeout during a test: nothing is retransmitted. */
	const struct ibv_qp_attr options = {.timeout = 0, .retry_cnt = 7, .rnr_retry = 7, .min_rnr_timer = 1};

	(void)state;
	for (size_t i = 0; i < sizeof(device.memory); i++)
		device.memory[i] = (uint8_t)(i * 31 + (i >> 8));
	raw_cq_make(&device, &cq, 128);
	raw_qp_make(&device, &end, IBV_QPT_RC, &cq, BLOCKS);
	hostile_connect(&other, end.qp->number);
	/* In a slot that was never looked up: it is attributed to the process that connected last. */
	assert_int_equal(host_claim_slot(&its_qpn), 0);
	its_qpn += 5;
	raw_qp_connect(&device, &end, its_qpn, &options);
	return 0;
}

static inline int shm_world_end(void **state)
{
	(void)state;
	raw_qp_destroy(&end);
	raw_cq_destroy(&cq);
	shutdown(other.socket, SHUT_WR);
	WAIT_FOR(hostile_is_cut_off(&other));
	hostile_leave(&other);
	return 0;
}

static inline int shm_world_open(void **state)
{
	(void)state;
	setenv("SOFTHCA_LINK", "shm", 1);
	device_open(&device);
	return 0;
}

static inline int shm_world_close(void **state)
{
	(void)state;
	device_close(&device);
	return 0;
}

#endif
