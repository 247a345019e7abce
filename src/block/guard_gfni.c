/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CRCs by bit matrices. The CRC of a block is a linear map of its bits: each byte contributes its product with a matrix
 * that depends only on its position. GF2P8AFFINEQB multiplies 64 bytes by 8x8 matrices, one for every eight bytes. A CRC
 * needs one instruction per byte of its width ("planes"). For 64-bit CRCs this gains nothing over guard_vpclmul.c.
 *
 * The different positions of the eight bytes under one matrix are corrected at the end: the sum of a plane over these
 * bytes is itself a polynomial. Neighbouring vectors share matrices ("phases"), too, since loading a matrix costs as
 * much as loading data. The 8-byte pieces of all sums are then added up and folded like 16 bytes of data.
 */
#include "block/guard_kernels.h"
#include "core/compiler.h"

#ifdef __x86_64__
#include "block/guard_wide.h"

#define GFNI_FEATURES WIDE_FEATURES ",gfni"
#define GFNI __attribute__((target(GFNI_FEATURES)))
#define GFNI_INLINE GFNI static inline SPECIALISED

/* Eight vectors have 8 / phases slots, each with its own matrices. */
struct shape {
	unsigned int planes, phases;
};

enum { MOST_SUMS = 16 };

struct tables {
	uint64_t matrices[8 * 8][8]; /* [group from the end][slot][plane] */
	uint64_t factors[MOST_SUMS]; /* multipliers of the sums [phase][plane], in the order of wide_order() */
};

/* Tables by type; [0] for several groups, [1] for one. */
static struct tables tables[GUARD_TYPE_COUNT][2] __attribute__((aligned(64)));

/* A single group has one phase, as adding up many sums would be more than half of the work. */
static inline struct shape shape_of(enum guard_type type, bool single)
{
	return (struct shape){guard_crcs[type].width / 8, single ? 1 : 4};
}

/* Returns the matrix of byte @plane of a byte's product with @power, x^n modulo the polynomial. */
static uint64_t byte_matrix(enum guard_type type, uint64_t power, unsigned int plane)
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

static void fill_matrices(struct tables *to, enum guard_type type, struct shape shape, unsigned int groups)
{
	unsigned int slots = 8 / shape.phases;
	uint64_t power = 1ull << (64 - guard_crcs[type].width);

	/* From the end of the block. The last vector of a slot determines the slot's matrices. */
	for (unsigned int piece = 0; piece < 64 * groups; piece++) {
		unsigned int vector = piece / 8, slot = vector / shape.phases;
		uint64_t(*matrices)[8] = &to->matrices[(slot ^ (slots - 1)) * shape.planes];

		for (unsigned int plane = 0; vector % shape.phases == 0 && plane < shape.planes; plane++)
			matrices[plane][7 - piece % 8] = byte_matrix(type, power, plane);
		power = guard_times_x(type, power, 64);
	}
}

static void fill_factors(struct tables *to, enum guard_type type, struct shape shape)
{
	bool reflected = guard_is_reflected(type);

	for (unsigned int i = 0; i < MOST_SUMS; i++) {
		unsigned int sum = i % (shape.phases * shape.planes);
		unsigned int after = shape.phases - 1 - sum / shape.planes;
		unsigned int bits = 64 + 512 * after + 8 * (sum % shape.planes);
		uint64_t power = guard_times_x(type, 1, bits - reflected);

		to->factors[reflected ? i : i ^ 1] = reflected ? guard_reverse(power) : power;
	}
}

static void gfni_prepare(void)
{
	static const enum guard_type types[] = {GUARD_T10_CRC, GUARD_CRC32, GUARD_CRC32C};

	guard_fold_prepare();
	for (unsigned int i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		for (unsigned int single = 0; single < 2; single++) {
			struct tables *to = &tables[types[i]][single];

			fill_matrices(to, types[i], shape_of(types[i], single), single ? 1 : 8);
			fill_factors(to, types[i], shape_of(types[i], single));
		}
	}
}

GFNI_INLINE __m512i matrix_multiply(__m512i value, __m512i matrices)
{
	return _mm512_gf2p8affine_epi64_epi8(value, matrices, 0);
}

/* Adds the products of the vectors of two slots with their @matrices to @sums. */
GFNI_INLINE void map_slots(struct shape shape, const __m512i *value, const uint64_t (*matrices)[8], __m512i *sums)
{
#pragma GCC unroll 4
	for (unsigned int plane = 0; plane < shape.planes; plane++) {
		__m512i first = _mm512_load_si512(matrices[plane]);
		__m512i second = _mm512_load_si512(matrices[shape.planes + plane]);

		/* Forces one load; gcc would load the matrix for each phase. */
		if (shape.phases > 1)
			__asm__("" : "+v"(first), "+v"(second));
#pragma GCC unroll 4
		for (unsigned int phase = 0; phase < shape.phases; phase++) {
			__m512i *sum = &sums[phase * shape.planes + plane];

			*sum = wide_add(*sum, matrix_multiply(value[phase], first),
					matrix_multiply(value[shape.phases + phase], second));
		}
	}
}

/* Adds neighbouring 8-byte pieces of two sums, which alternate in the result. */
GFNI_INLINE __m512i add_pair(const __m512i sums[2])
{
	return _mm512_xor_si512(_mm512_unpacklo_epi64(sums[0], sums[1]), _mm512_unpackhi_epi64(sums[0], sums[1]));
}

/* Adds up the pieces of @count sums, at most eight, to one vector, in which the sums alternate. */
GFNI_INLINE __m512i add_sums(const __m512i *sums, unsigned int count)
{
	if (count == 2)
		return add_pair(sums);
	if (count == 4)
		return wide_add_neighbours(add_pair(sums), add_pair(sums + 2));
	return wide_pieces(add_pair(sums), add_pair(sums + 2), add_pair(sums + 4), add_pair(sums + 6));
}

/*
 * Stores a group, except its first vector, after all of it has been loaded: a load waits for a pending store with the
 * same lower 12 address bits, and with a field after each block, those of source and target soon differ little.
 */
GFNI_INLINE void store_group(uint8_t *to, const __m512i value[8])
{
	__asm__ volatile("" ::: "memory");
#pragma GCC unroll 7
	for (unsigned int i = 1; i < 8; i++)
		_mm512_storeu_si512(to + 64 * i, value[i]);
}

GFNI_INLINE __m512i map_groups(enum guard_type type, const uint8_t *from, uint8_t *to, size_t groups, __m512i first,
			       bool copy, bool single, bool ahead)
{
	const struct shape shape = {type == GUARD_T10_CRC ? 2 : 4, single ? 1 : 4};
	const struct tables *table = &tables[type][single];
	const unsigned int count = shape.phases * shape.planes;
	__m512i value[8], sums[MOST_SUMS], total = _mm512_setzero_si512();

#pragma GCC unroll 16
	for (unsigned int i = 0; i < count; i++)
		sums[i] = _mm512_setzero_si512();
#pragma GCC unroll 1
	do {
		const uint64_t(*matrices)[8] = &table->matrices[(groups - 1) * 8 / shape.phases * shape.planes];

#pragma GCC unroll 8
		for (unsigned int i = 0; i < 8; i++) {
			if (ahead)
				_mm_prefetch(from + WIDE_AHEAD + 64 * i, _MM_HINT_T0);
			value[i] = i ? _mm512_loadu_si512(from + 64 * i) : first;
			__asm__("" : "+v"(value[i])); /* forces the load here, not at its use */
		}
		if (copy)
			store_group(to, value);
#pragma GCC unroll 8
		for (unsigned int i = 0; i < 8; i += 2 * shape.phases)
			map_slots(shape, &value[i], &matrices[i / shape.phases * shape.planes], sums);
		from += WIDE_GROUP;
		to += WIDE_GROUP;
		if (!single && groups > 1)
			first = wide_copy(from, to, copy);
	} while (--groups);
#pragma GCC unroll 2
	for (unsigned int i = 0; i < count; i += 8)
		total = wide_fold(total, wide_order(type, add_sums(&sums[i], count)),
				  _mm512_loadu_si512(&table->factors[i]));
	return total;
}

/* Prefetches only far data: for data in the L2 cache, that is slower. */
GFNI_INLINE __m512i gfni_sum_groups(enum guard_type type, const uint8_t *from, uint8_t *to, size_t groups,
				    __m512i first, bool copy, bool single, bool far)
{
	if (far && !single)
		return map_groups(type, from, to, groups, first, copy, single, true);
	return map_groups(type, from, to, groups, first, copy, single, false);
}

WIDE_INSTANCES(t10_crc, GFNI_FEATURES, gfni_sum_groups, GUARD_T10_CRC)
WIDE_INSTANCES(crc32, GFNI_FEATURES, gfni_sum_groups, GUARD_CRC32)
WIDE_INSTANCES(crc32c, GFNI_FEATURES, gfni_sum_groups, GUARD_CRC32C)

static wide_instance *const (*instances[GUARD_TYPE_COUNT])[2] = {
	[GUARD_T10_CRC] = t10_crc,
	[GUARD_CRC32] = crc32,
	[GUARD_CRC32C] = crc32c,
};

WIDE static void gfni_copy_blocks(enum guard_type type, uint64_t begin, const struct guard_blocks *blocks, size_t count,
				  uint64_t *guards)
{
	wide_dispatch(instances[type], type, begin, blocks, count, guards);
}

static uint64_t gfni_copy(enum guard_type type, uint64_t running, uint8_t *to, const uint8_t *from, size_t bytes)
{
	return wide_copy_any(gfni_copy_blocks, type, running, to, from, bytes);
}

const struct guard_kernel guard_kernel_gfni = {
	.name = "gfni",
	.needs = WIDE_NEEDS | CPU_GFNI,
	.prepare = gfni_prepare,
	.types = 1u << GUARD_T10_CRC | 1u << GUARD_CRC32 | 1u << GUARD_CRC32C,
	.takes = wide_takes,
	.copy = gfni_copy,
	.copy_blocks = gfni_copy_blocks,
};
#endif
