/* SPDX-License-Identifier: BSD-2-Clause */
/* The 32 values of min_rnr_timer, in milliseconds as in Wireshark's InfiniBand decoder (IBTA table 45). */
#include "test_case.h"

#include "transport/qp/transport.h"
#include "transport/requester/requester.h"

static const double milliseconds[32] = {
	655.36, 0.01,  0.02,  0.03,  0.04,  0.06,   0.08,   0.12,   0.16,   0.24,   0.32,
	0.48,   0.64,  0.96,  1.28,  1.92,  2.56,   3.84,   5.12,   7.68,   10.24,  15.36,
	20.48,  30.72, 40.96, 61.44, 81.92, 122.88, 163.84, 245.76, 327.68, 491.52,
};

TEST(values)
{
	for (unsigned int code = 0; code < 32; code++)
		assert_int_equal(rnr_timer_ns((uint8_t)code), (uint64_t)(milliseconds[code] * 1e6 + 0.5));
	/* Bits above the five of the field are not part of it. */
	assert_int_equal(rnr_timer_ns(0x20 | 12), rnr_timer_ns(12));
}
