/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Block signatures as a program makes and checks them that has no adapter to do it, as storage stacks do: block by block,
 * memcpy and a CRC of ISA-L in two passes. The peer of the cases in signature.c.
 */
#ifndef SOFTHCA_BENCH_BY_HAND_H
#define SOFTHCA_BENCH_BY_HAND_H

#include "bench.h"

enum check {
	CHECK_T10_CRC,
	CHECK_T10_CHECKSUM, /* ISA-L has none: additions in a loop */
	CHECK_CRC32,
	CHECK_CRC32C,
	CHECK_CRC64, /* ISA-L has other polynomials: as fast, but what it makes is not what the device makes */
	CHECK_COUNT,
};

/* Blocks and what stands behind each of them. All seeds are all ones, but for T10-DIF, where they are 0. */
struct format {
	enum check check;
	uint32_t block;
};

#define BY_HAND_APPLICATION_TAG 0x1234
#define BY_HAND_FIRST_REFERENCE_TAG 1

/** Bytes that stand behind each block. */
uint32_t format_signature(const struct format *format);

struct by_hand {
	struct format format;
	uint8_t *to;
	const uint8_t *from;
	uint64_t blocks;
	uint64_t wrong; /* counts checks that did not agree */
};

/** Plain blocks to blocks with signatures. */
void by_hand_insert(void *by_hand, uint64_t count);
/** Blocks with signatures, which are checked, to plain blocks. */
void by_hand_strip(void *by_hand, uint64_t count);
/** Blocks with signatures, which are checked, to the same. */
void by_hand_pass(void *by_hand, uint64_t count);

#endif
