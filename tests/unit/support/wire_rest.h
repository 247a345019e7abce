/* SPDX-License-Identifier: BSD-2-Clause */
/* Test for idle QPs that are connected by a wire. */
#ifndef SOFTHCA_TESTS_WIRE_REST_H
#define SOFTHCA_TESTS_WIRE_REST_H

#include "wire_clock.h"
#include "wire_link.h"

/** Returns true if nothing is pending: timers that are still armed expire without sending. */
static inline bool wire_rests(void)
{
	uint64_t sent = wire_sent();

	while (wire_clock_next())
		;
	return wire_sent() == sent;
}

#endif
