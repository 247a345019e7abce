/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Block signatures made and checked by a program without an adapter, as in storage stacks: block by block, memcpy and a CRC of
 * ISA-L in two passes. The peer of the cases in signature.c.
 */
#ifndef SOFTHCA_BENCH_BY_HAND_H
#define SOFTHCA_BENCH_BY_HAND_H

#include "bench.h"

enum check {
	CHECK_T10_CRC,
	CHECK_T10_CHECKSUM, /* not in ISA-L: additions in a loop */
	CHECK_CRC32,
	CHECK_CRC32C,
	CHECK_CRC64, /* ISA-L has other polynomials: equally fast, but with a different result than the device */
	CHECK_COUNT,
};

/* Format of blocks and the signatures after them. All seeds are all ones, except for T10-DIF, where they are 0. */
struct format {
	enum check check;
	uint32_t block;
};

#define BY_HAND_APPLICATION_TAG 0x1234
#define BY_HAND_FIRST_REFERENCE_TAG 1

/** Returns the number of bytes after each block. */
uint32_t format_signature(const struct format *format);

struct by_hand {
	struct format format;
	uint8_t *to;
	const uint8_t *from;
	uint64_t blocks;
	uint64_t wrong; /* number of failed checks */
};

/** Converts plain blocks to blocks with signatures. */
void by_hand_insert(void *by_hand, uint64_t count);
/** Checks and removes the signatures of blocks. */
void by_hand_strip(void *by_hand, uint64_t count);
/** Checks and copies blocks with signatures. */
void by_hand_pass(void *by_hand, uint64_t count);

#endif
