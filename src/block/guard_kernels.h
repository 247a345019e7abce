/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Kernels of guard.h: each supports some guard types and some CPUs. For this directory and tests only.
 *
 * All kernels use the same running value, so one may continue what another began:
 *   CRCs: a register of 64 bits, whatever the width. A CRC of W bits is that of 64 bits with a polynomial that is
 *     x^(64-W) times as large; its register is in the high bits (not reflected), or the low ones (reflected).
 *   Internet checksum: the one's-complement sum so far in bits 0 to 15; bit 16 is set after the first byte of a pair.
 *
 * Tables are written before the first use (prepare()), and read-only from then on.
 */
#ifndef SOFTHCA_BLOCK_GUARD_KERNELS_H
#define SOFTHCA_BLOCK_GUARD_KERNELS_H

#include "block/cpu.h"
#include "block/guard.h"

/** As a 64-bit CRC; mlx5-formats 5.1. */
struct guard_crc {
	unsigned int width;
	uint64_t polynomial; /* without x^64; the highest power is the highest bit, reflected or not */
	uint64_t reversed;   /* the polynomial, of `width` bits, in reverse bit order */
	uint64_t ones;       /* register for the seed of all ones */
};

/** Indexed by type. GUARD_NONE and GUARD_IP_CHECKSUM have width 0. */
extern const struct guard_crc guard_crcs[GUARD_TYPE_COUNT];

static inline bool guard_is_crc(enum guard_type type)
{
	return guard_crcs[type].width != 0;
}

/** Returns true if the lowest bit of each byte is its highest power. */
static inline bool guard_is_reflected(enum guard_type type)
{
	return type == GUARD_CRC32C || type == GUARD_CRC64_XP10;
}

#define GUARD_CHECKSUM_ODD (1u << 16)

struct guard_kernel {
	const char *name;
	/** enum cpu_feature */
	uint32_t needs;
	/** Fills the tables; may be NULL. Called once, and only if the kernel is supported. */
	void (*prepare)(void);
	/** Bits 1 << type. */
	unsigned int types;
	/** Implements guard_copy(), and guard_update() with @to NULL. */
	uint64_t (*copy)(enum guard_type type, uint64_t running, uint8_t *to, const uint8_t *from, size_t bytes);
	/** Returns true if copy_blocks() accepts blocks of @bytes. NULL without copy_blocks(). */
	bool (*takes)(size_t bytes);
	/** Implements guard_copy_blocks(). @begin: result of guard_begin(). */
	void (*copy_blocks)(enum guard_type type, uint64_t begin, const struct guard_blocks *blocks, size_t count,
			    uint64_t *guards);
};

/** The fastest first, ended by NULL. The last two run everywhere and implement all types together. */
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
#ifdef __aarch64__
extern const struct guard_kernel guard_kernel_pmull;
#endif

/** Returns the first of guard_kernels that implements @type on a CPU with @features, enum cpu_feature. */
const struct guard_kernel *guard_choose(uint32_t features, enum guard_type type);

/**
 * For tests: uses @kernel, which must be supported, for all its types; NULL: as usual. No other thread may use guards
 * meanwhile.
 */
void guard_force(const struct guard_kernel *kernel);

/* For ends too short for wider kernels. */
uint64_t guard_table_update(enum guard_type type, uint64_t running, const uint8_t *from, size_t bytes);

#endif
