/* SPDX-License-Identifier: BSD-2-Clause */
/* Times from codes in messages (IBTA 12.6: 4.096 us * 2^code). Pure functions. */
#ifndef SOFTHCA_CM_TIMEOUTS_H
#define SOFTHCA_CM_TIMEOUTS_H

#include <stdint.h>

/* Service timeout in MRAs: 65.5 s, as in Linux, to give a program time to accept. */
#define CM_SERVICE_TIMEOUT 24

/**
 * Returns the milliseconds of @code, 0 to 31: 2^(code - 8), at least 1. As in Linux, so its peers see the same
 * intervals.
 */
static inline uint32_t cm_code_ms(uint32_t code)
{
	code &= 31;
	return code > 8 ? UINT32_C(1) << (code - 8) : 1;
}

/**
 * Returns the code of a QP's timeout: twice 4.096 us * 2^@lifetime plus the delay @ack_delay (a code) of the responder,
 * rounded up to a power of two as in Linux (IBTA 12.6.5).
 */
static inline uint8_t cm_ack_timeout(uint8_t lifetime, uint8_t ack_delay)
{
	uint32_t round_trip = lifetime + 1u, code;

	if (round_trip >= ack_delay)
		code = round_trip + (ack_delay >= round_trip - 1);
	else
		code = ack_delay + (round_trip >= ack_delay - 1u);
	return code < 31 ? (uint8_t)code : 31;
}

#endif
