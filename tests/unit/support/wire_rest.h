/* SPDX-License-Identifier: BSD-2-Clause */
/* Whether all is quiet between QPs that a wire connects. */
#ifndef SOFTHCA_TESTS_WIRE_REST_H
#define SOFTHCA_TESTS_WIRE_REST_H

#include "wire_clock.h"
#include "wire_link.h"

/** True if nothing is waited for: timers that are still armed run out, and nobody sends anything. */
static inline bool wire_rests(void)
{
	uint64_t sent = wire_sent();

	while (wire_clock_next())
		;
	return wire_sent() == sent;
}

#endif
