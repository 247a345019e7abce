/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ranges of the values set by rsetsockopt() and /etc/rdma/rsocket. As with setsockopt(2), values out of range become
 * the nearest limit.
 */
#ifndef SOFTHCA_RSOCKET_OPTIONS_H
#define SOFTHCA_RSOCKET_OPTIONS_H

#include <stdint.h>

enum {
	/* For queues: sequence numbers have 16 bits (rdma-cm 5). */
	LEAST_ENTRIES = 16,
	MOST_ENTRIES = 16384,
	MOST_INLINE = 512,
	/* For rings; each has two halves. */
	LEAST_BYTES = 4096,
	MOST_BYTES = 1 << 28,
	/* The largest number that private data can express: 127 * 256. */
	MOST_MAPPINGS = 127 << 8,
};

/** Returns @value, or the nearest end of the range. Pure. */
uint32_t clamp_setting(uint64_t value, uint32_t least, uint32_t most);

#endif
