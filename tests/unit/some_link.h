/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A link on which something arrives when the test says so. Included by tests of those that take it, behind cmocka.h; the
 * program adds arrivals_link once, since pollers stay for ever.
 */
#ifndef SOFTHCA_TESTS_UNIT_SOME_LINK_H
#define SOFTHCA_TESTS_UNIT_SOME_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "core/timer.h"
#include "device/progress.h"

static struct {
	bool waits;     /* atomic: something has arrived, and was not taken */
	bool armed;     /* atomic */
	uint32_t taken; /* atomic */
} arrivals = {.armed = true};

static bool take(struct poller *poller, struct run *run)
{
	(void)poller;
	(void)run;
	if (!__atomic_exchange_n(&arrivals.waits, false, __ATOMIC_ACQ_REL))
		return false;
	__atomic_add_fetch(&arrivals.taken, 1, __ATOMIC_RELEASE);
	return true;
}

static bool nothing_waits(struct poller *poller)
{
	(void)poller;
	return !__atomic_load_n(&arrivals.waits, __ATOMIC_ACQUIRE);
}

static void arm_arrivals(struct poller *poller, bool armed)
{
	(void)poller;
	__atomic_store_n(&arrivals.armed, armed, __ATOMIC_SEQ_CST);
}

static struct poller arrivals_link = {.poll = take, .idle = nothing_waits, .arm = arm_arrivals};

/* Something arrives, and is taken by some thread of the library. Returns whether the device thread had to be woken. */
static bool arrive(void)
{
	uint64_t deadline = clock_now_ns() + UINT64_C(10000000000);
	uint32_t before = __atomic_load_n(&arrivals.taken, __ATOMIC_ACQUIRE);
	bool armed;

	__atomic_store_n(&arrivals.waits, true, __ATOMIC_SEQ_CST);
	armed = __atomic_load_n(&arrivals.armed, __ATOMIC_SEQ_CST);
	if (armed)
		progress_wake();
	while (__atomic_load_n(&arrivals.taken, __ATOMIC_ACQUIRE) == before)
		assert_true(clock_now_ns() < deadline);
	return armed;
}

#endif
