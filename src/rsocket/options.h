/* SPDX-License-Identifier: BSD-2-Clause */
/* Ranges of what rsetsockopt() and /etc/rdma/rsocket set. Values beyond are taken to the nearest end, as by setsockopt(2). */
#ifndef SOFTHCA_RSOCKET_OPTIONS_H
#define SOFTHCA_RSOCKET_OPTIONS_H

#include <stdint.h>

enum {
	/* Of queues: sequence numbers have 16 bits (rdma-cm 5). */
	LEAST_ENTRIES = 16,
	MOST_ENTRIES = 16384,
	MOST_INLINE = 512,
	/* Of rings; each has two halves. */
	LEAST_BYTES = 4096,
	MOST_BYTES = 1 << 28,
	/* The largest number that private data can tell: 127 * 256. */
	MOST_MAPPINGS = 127 << 8,
};

/** @value, or the end of the range that is nearest. Pure. */
uint32_t clamp_setting(uint64_t value, uint32_t least, uint32_t most);

#endif
