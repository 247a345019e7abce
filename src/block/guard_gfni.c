/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CRCs with bit matrices. The CRC of a block is a linear map of its bits, so each byte adds to it its product with a
 * matrix that depends on its place alone. GF2P8AFFINEQB multiplies 64 bytes by 8x8 matrices, one for every eight
 * bytes; that makes as many instructions as the CRC has bytes ("planes"), each of them a quarter as long as a
 * carry-less multiplication.
 *
 * What the eight bytes under one matrix differ by in place is left for later: a plane's sum of eight bytes is a
 * polynomial of its own. So is what a few vectors of a group differ by that use the same matrices ("phases"), for
 * loading a matrix costs as much as loading the data. There are 8 or 16 sums of planes and phases in the end; the
 * eight-byte pieces of each are added up, and the results, as polynomials, are folded like 16 bytes of data.
 *
 * A CRC of 64 bits needs 8 planes, which is no gain over multiplication; but the two run beside each other in the CPU,
 * so half of the vectors go either way.
 */
#include "block/guard_kernels.h"

#ifdef __x86_64__
#include "block/guard_wide.h"

#include <string.h>

#define GFNI __attribute__((target(WIDE_FEATURES ",gfni")))
#define GFNI_INLINE GFNI __attribute__((always_inline)) static inline

/* Vector slot * slot_step + phase * phase_step of a group has the matrices of that slot. */
struct shape {
	unsigned int planes, phases, slots, slot_step, phase_step;
};

enum { MATRICES = 8 * 16, SUMS = 16 };

struct tables {
	uint64_t matrices[MATRICES][8]; /* [group from the end][slot][plane] */
	uint64_t factors[SUMS];         /* [phase][plane], ordered as wide_order() does */
};

static const struct shape t10_crc = {2, 4, 2, 4, 1};
static const struct shape crc32 = {4, 4, 2, 4, 1};
static const struct shape crc64 = {8, 2, 2, 4, 2};

static struct tables tables[GUARD_TYPE_COUNT] __attribute__((aligned(64)));

static inline struct shape shape_of(enum guard_type type)
{
	return type == GUARD_T10_CRC ? t10_crc : type == GUARD_CRC64_XP10 ? crc64 : crc32;
}

/* The matrix that gives byte @plane of the products of a byte's bits with @power, x^n modulo the polynomial. */
static uint64_t matrix(enum guard_type type, uint64_t power, unsigned int plane)
{
	unsigned int below = 64 - guard_crcs[type].width + 8 * plane;
	uint64_t rows = 0;

	for (unsigned int k = 0; k < 8; k++) {
		unsigned int column = guard_is_reflected(type) ? 7 - k : k;

		for (unsigned int i = 0; i < 8; i++) {
			unsigned int row = guard_is_reflected(type) ? i : 7 - i;

			rows |= (power >> (below + i) & 1) << (8 * row + column);
		}
		power = guard_times_x(type, power, 1);
	}
	return rows;
}

static void fill_matrices(enum guard_type type, struct shape shape)
{
	uint64_t power = 1ull << (64 - guard_crcs[type].width);

	/* In pieces of eight bytes from the end of the block. */
	for (unsigned int piece = 0; piece < 8 * 64; piece++) {
		unsigned int vector = piece / 8, group = vector / 8;

		for (unsigned int slot = 0; slot < shape.slots; slot++) {
			unsigned int first = (group * shape.slots + shape.slots - 1 - slot) * shape.planes;

			if (vector % 8 != slot * shape.slot_step)
				continue;
			for (unsigned int plane = 0; plane < shape.planes; plane++)
				tables[type].matrices[first + plane][7 - piece % 8] = matrix(type, power, plane);
		}
		power = guard_times_x(type, power, 64);
	}
}

static void fill_factors(enum guard_type type, struct shape shape)
{
	bool reflected = guard_is_reflected(type);

	for (unsigned int sum = 0; sum < shape.phases * shape.planes; sum++) {
		unsigned int phase = sum / shape.planes, plane = sum % shape.planes;
		unsigned int after = 7 - (shape.slots - 1) * shape.slot_step - phase * shape.phase_step;
		uint64_t power = guard_times_x(type, 1, 64 + 512 * after + 8 * plane - reflected);

		tables[type].factors[reflected ? sum : sum ^ 1] = reflected ? guard_reverse(power) : power;
	}
}

static bool supported(void)
{
	return wide_supported() && __builtin_cpu_supports("gfni");
}

static void prepare(void)
{
	guard_fold_prepare();
	for (unsigned int type = 0; type < GUARD_TYPE_COUNT; type++) {
		if (!guard_is_crc(type))
			continue;
		fill_matrices(type, shape_of(type));
		fill_factors(type, shape_of(type));
	}
}

/* Whether vector @i of a group is multiplied by matrices. */
GFNI_INLINE bool is_mapped(struct shape shape, unsigned int i)
{
	return i % shape.slot_step % shape.phase_step == 0 && i / shape.slot_step < shape.slots &&
	       i % shape.slot_step / shape.phase_step < shape.phases;
}

/* Adds the products of the mapped vectors of a group. */
GFNI_INLINE void map(struct shape shape, const uint64_t (*matrices)[8], const __m512i value[8], __m512i *sums)
{
#pragma GCC unroll 8
	for (unsigned int plane = 0; plane < shape.planes; plane++) {
#pragma GCC unroll 4
		for (unsigned int slot = 0; slot < shape.slots; slot += 2) {
			__m512i a = _mm512_load_si512(matrices[slot * shape.planes + plane]);
			__m512i b = _mm512_load_si512(matrices[(slot + 1) * shape.planes + plane]);

			/* Once into a register; gcc would load it again for each phase. */
			__asm__("" : "+v"(a), "+v"(b));
#pragma GCC unroll 4
			for (unsigned int phase = 0; phase < shape.phases; phase++) {
				const __m512i *first = &value[slot * shape.slot_step + phase * shape.phase_step];
				__m512i *sum = &sums[phase * shape.planes + plane];

				*sum = wide_add(*sum, _mm512_gf2p8affine_epi64_epi8(first[0], a, 0),
						_mm512_gf2p8affine_epi64_epi8(first[shape.slot_step], b, 0));
			}
		}
	}
}

/* Each eight bytes of the result are the sum of the eight-byte pieces of one of eight vectors. */
GFNI_INLINE __m512i add_up(const __m512i sums[8])
{
	__m512i pairs[4];

#pragma GCC unroll 4
	for (int i = 0; i < 4; i++)
		pairs[i] = _mm512_xor_si512(_mm512_unpacklo_epi64(sums[2 * i], sums[2 * i + 1]),
					    _mm512_unpackhi_epi64(sums[2 * i], sums[2 * i + 1]));
	return wide_pieces(pairs[0], pairs[1], pairs[2], pairs[3]);
}

GFNI_INLINE __m512i sum_groups(enum guard_type type, const struct wide_block *block, __m512i first, bool copy)
{
	const struct guard_fold *fold = &guard_folds[type];
	const struct shape shape = shape_of(type);
	const __m512i by = wide_multipliers(&fold->by_512_bytes);
	const size_t matrices = shape.slots * shape.planes;
	uintptr_t from = block->from, to = block->to;
	size_t groups = block->vectors / 8;
	__m512i value[8], folded[8], sums[SUMS], total = _mm512_setzero_si512();

#pragma GCC unroll 16
	for (int i = 0; i < SUMS; i++)
		sums[i] = _mm512_setzero_si512();
#pragma GCC unroll 8
	for (int i = 0; i < 8; i++)
		folded[i] = _mm512_setzero_si512();
	value[0] = _mm512_xor_si512(wide_copy_cut(block, copy), first);
	for (;;) {
#pragma GCC unroll 8
		for (unsigned int i = 1; i < 8; i++)
			value[i] = wide_copy(from + 64 * i, to + 64 * i, copy);
#pragma GCC unroll 8
		for (unsigned int i = 0; i < 8; i++)
			if (!is_mapped(shape, i))
				folded[i] = _mm512_xor_si512(folded[i], wide_order(type, value[i]));
		map(shape, &tables[type].matrices[--groups * matrices], value, sums);
		if (!groups)
			break;
		from += WIDE_GROUP;
		to += WIDE_GROUP;
#pragma GCC unroll 8
		for (unsigned int i = 0; i < 8; i++)
			if (!is_mapped(shape, i))
				folded[i] = wide_fold(_mm512_setzero_si512(), folded[i], by);
		value[0] = wide_copy(from, to, copy);
	}
#pragma GCC unroll 8
	for (unsigned int i = 0; i < 8; i++)
		if (!is_mapped(shape, i))
			total = wide_fold(total, folded[i], _mm512_loadu_si512(&fold->last[4 * i]));
#pragma GCC unroll 2
	for (unsigned int i = 0; i < shape.phases * shape.planes; i += 8)
		total = wide_fold(total, wide_order(type, add_up(&sums[i])),
				  _mm512_loadu_si512(&tables[type].factors[i]));
	return total;
}

GFNI static void kernel(enum guard_type type, uint64_t begin, const struct guard_blocks *blocks, size_t count,
			uint64_t *running)
{
	switch (type) {
		WIDE_CASE(GUARD_T10_CRC, sum_groups);
		WIDE_CASE(GUARD_CRC32, sum_groups);
		WIDE_CASE(GUARD_CRC32C, sum_groups);
		WIDE_CASE(GUARD_CRC64_XP10, sum_groups);
	default:
		break;
	}
}

static uint64_t copy(enum guard_type type, uint64_t running, uint8_t *to, const uint8_t *from, size_t bytes)
{
	return wide_copy_any(kernel, type, running, to, from, bytes);
}

const struct guard_kernel guard_kernel_gfni = {
	.name = "gfni",
	.supported = supported,
	.prepare = prepare,
	.types = WIDE_TYPES,
	.takes = wide_takes,
	.copy = copy,
	.copy_blocks = kernel,
};
#endif
