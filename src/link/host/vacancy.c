/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Determines whether a process still has a slot, see host.h. All queue pairs share one query per slot and interval,
 * because each query wakes the slot's owner.
 */
#include <errno.h>
#include <unistd.h>

#include "core/cancellation.h"
#include "core/tunables.h"
#include "hca/hca.h"
#include "link/host/table.h"

/* An entry of `vacancy`: the number of the interval, then one of these values in the lower bits. */
enum { ANSWER_UNKNOWN, ANSWER_TAKEN, ANSWER_VACANT };
#define ANSWER_BITS 2
#define ANSWER_MASK ((1u << ANSWER_BITS) - 1)

/* Atomic; 0: never queried. */
static uint32_t vacancy[HOST_SLOTS];

/* Returns the number of the current interval, shifted past the answer; never 0. */
static uint32_t vacancy_interval(void)
{
	return ((uint32_t)(clock_now_ns() / TUNABLE_HOST_QUESTION_NS) | 1u << 29) << ANSWER_BITS;
}

static bool slot_ask(uint32_t slot)
{
	int fd;

	pthread_mutex_lock(&host_table.lock);
	fd = host_slot_connect(slot);
	if (fd >= 0)
		close(fd);
	pthread_mutex_unlock(&host_table.lock);
	return fd == -ECONNREFUSED;
}

bool host_slot_is_vacant(uint32_t qpn)
{
	WITHOUT_CANCELLATION;
	uint32_t slot = host_slot_of(qpn), interval = vacancy_interval(), known;
	bool vacant;

	if (slot >= HOST_SLOTS || host_owns(qpn))
		return false;
	known = __atomic_load_n(&vacancy[slot], __ATOMIC_RELAXED);
	/* While another thread queries, the slot counts as taken. */
	if ((known & ~ANSWER_MASK) == interval ||
	    !__atomic_compare_exchange_n(&vacancy[slot], &known, interval, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return (known & ANSWER_MASK) == ANSWER_VACANT && (known & ~ANSWER_MASK) == interval;
	vacant = slot_ask(slot);
	__atomic_store_n(&vacancy[slot], interval | (vacant ? ANSWER_VACANT : ANSWER_TAKEN), __ATOMIC_RELAXED);
	return vacant;
}
