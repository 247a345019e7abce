/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ranges of the values set by rsetsockopt() and /etc/rdma/rsocket. Other values become the nearest limit, as with
 * setsockopt(2).
 */
#ifndef SOFTHCA_RSOCKET_OPTIONS_H
#define SOFTHCA_RSOCKET_OPTIONS_H

#include <stdint.h>

enum {
	/* Queues: sequence numbers have 16 bits (rdma-cm 5). */
	LEAST_ENTRIES = 16,
	MOST_ENTRIES = 16384,
	MOST_INLINE = 512,
	/* Rings, which have two halves. */
	LEAST_BYTES = 4096,
	MOST_BYTES = 1 << 28,
	/* Most that private data can express: 127 * 256. */
	MOST_MAPPINGS = 127 << 8,
};

/** Returns the nearest value in the range. Pure. */
uint32_t clamp_setting(uint64_t value, uint32_t least, uint32_t most);

#endif
