/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What lies behind guard.h: kernels, each for some guard types and some CPUs, and what they share.
 *
 * The running value means the same to all of them, so it may go from one to another:
 *   CRCs: a register of 64 bits, whatever the width. A CRC of W bits is the CRC of 64 bits whose polynomial is
 *     x^(64-W) times as large; its register stands in the high bits (not reflected), or the low ones (reflected).
 *   Internet checksum: the one's-complement sum so far in bits 0 to 15; bit 16 tells that a first byte of a pair has
 *     been added and its second one is to follow.
 *
 * All tables are written once, before the first use (prepare()), and are read-only from then on.
 */
#ifndef SOFTHCA_BLOCK_GUARD_KERNELS_H
#define SOFTHCA_BLOCK_GUARD_KERNELS_H

#include "block/guard.h"

/** A CRC as a 64-bit one (see above); mlx5-formats 5.1. */
struct guard_crc {
	unsigned int width;
	uint64_t polynomial; /* without x^64; the highest power is the highest bit, reflected or not */
	uint64_t reversed;   /* its bits in opposite order */
	uint64_t ones;       /* the register for the seed of all ones */
};

/** By type; of no use for GUARD_NONE and GUARD_IP_CHECKSUM, whose width is 0. */
extern const struct guard_crc guard_crcs[GUARD_TYPE_COUNT];

static inline bool guard_is_crc(enum guard_type type)
{
	return guard_crcs[type].width != 0;
}

/** Whether the lowest bit of each byte is its highest power. */
static inline bool guard_is_reflected(enum guard_type type)
{
	return type == GUARD_CRC32C || type == GUARD_CRC64_XP10;
}

#define GUARD_CHECKSUM_ODD (1u << 16)

struct guard_kernel {
	const char *name;
	/** Whether this CPU has the instructions. */
	bool (*supported)(void);
	/** Fills the tables of the kernel, or NULL. Called once, and only if it is supported. */
	void (*prepare)(void);
	/** The types that it serves: bit 1 << type. */
	unsigned int types;
	/** guard_copy(); @to may be NULL: nothing is copied. */
	uint64_t (*copy)(enum guard_type type, uint64_t running, uint8_t *to, const uint8_t *from, size_t bytes);
	/** Whether copy_blocks() takes blocks of that many bytes. NULL if there is no copy_blocks(). */
	bool (*takes)(size_t bytes);
	/** guard_copy_blocks(), @begin being what guard_begin() gives for the seed. */
	void (*copy_blocks)(enum guard_type type, uint64_t begin, const struct guard_blocks *blocks, size_t count,
			    uint64_t *guards);
};

/** All kernels that are compiled in, the best first, ended by NULL. The last ones serve everything, everywhere. */
extern const struct guard_kernel *const guard_kernels[];

extern const struct guard_kernel guard_kernel_bitwise;
extern const struct guard_kernel guard_kernel_table;
extern const struct guard_kernel guard_kernel_words;
extern const struct guard_kernel guard_kernel_isal;
#ifdef __x86_64__
extern const struct guard_kernel guard_kernel_gfni;
extern const struct guard_kernel guard_kernel_vpclmulqdq;
extern const struct guard_kernel guard_kernel_pclmulqdq;
extern const struct guard_kernel guard_kernel_avx512;
extern const struct guard_kernel guard_kernel_avx2;
#endif

/**
 * For tests: serves each type of @kernel by it from now on, and by the choice for the CPU again if it is NULL.
 * @kernel must be supported. Not while another thread is in here.
 */
void guard_force(const struct guard_kernel *kernel);

/* CRCs by tables, for the ends that are too short for wider steps. guard_copy() with @to NULL. */
uint64_t guard_table_update(enum guard_type type, uint64_t running, const uint8_t *from, size_t bytes);

#endif
