/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A link on which a message arrives at the request of the test. Its sender wakes the device thread if it is armed, as
 * the senders of all links do. The test adds `arrivals_link` once and never removes it. Any thread.
 */
#ifndef SOFTHCA_TESTS_ARRIVALS_H
#define SOFTHCA_TESTS_ARRIVALS_H

#include "test_case.h"

#include "core/timer.h"
#include "progress/progress.h"

#define ARRIVALS_PATIENCE_NS UINT64_C(10000000000)

static struct {
	bool waits;     /* atomic: a message has arrived and was not received yet */
	bool armed;     /* atomic: a sender must wake the device thread */
	uint32_t taken; /* atomic */
} arrivals = {.armed = true};

static bool arrivals_take(struct poller *poller, struct run *run)
{
	(void)poller;
	(void)run;
	if (!__atomic_exchange_n(&arrivals.waits, false, __ATOMIC_ACQ_REL))
		return false;
	__atomic_add_fetch(&arrivals.taken, 1, __ATOMIC_RELEASE);
	return true;
}

static bool arrivals_idle(struct poller *poller)
{
	(void)poller;
	return !__atomic_load_n(&arrivals.waits, __ATOMIC_ACQUIRE);
}

static void arrivals_arm(struct poller *poller, bool armed)
{
	(void)poller;
	__atomic_store_n(&arrivals.armed, armed, __ATOMIC_SEQ_CST);
}

static struct poller arrivals_link = {.poll = arrivals_take, .idle = arrivals_idle, .arm = arrivals_arm};

static inline bool arrivals_armed(void)
{
	return __atomic_load_n(&arrivals.armed, __ATOMIC_SEQ_CST);
}

static inline void arrivals_become_armed(void)
{
	uint64_t deadline = clock_now_ns() + ARRIVALS_PATIENCE_NS;

	while (!arrivals_armed())
		assert_true(clock_now_ns() < deadline);
}

/* Makes a message arrive, which some thread of the library receives. Returns whether the device thread had to be woken. */
static inline bool arrive(void)
{
	uint64_t deadline = clock_now_ns() + ARRIVALS_PATIENCE_NS;
	uint32_t before = __atomic_load_n(&arrivals.taken, __ATOMIC_ACQUIRE);
	bool armed;

	__atomic_store_n(&arrivals.waits, true, __ATOMIC_SEQ_CST);
	armed = arrivals_armed();
	if (armed)
		progress_wake();
	while (__atomic_load_n(&arrivals.taken, __ATOMIC_ACQUIRE) == before)
		assert_true(clock_now_ns() < deadline);
	return armed;
}

#endif
