/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * block/guard_kernels: every kernel that this CPU supports yields the result of the bitwise reference (which
 * unit/guard.c checks against the vectors), for all lengths, alignments and cuts, and accesses nothing outside of its
 * ranges.
 */
#include "test_case.h"

#include <sys/mman.h>

#include "block/guard_kernels.h"
#include "test_random.h"

enum {
	SHORT = 700,
	LONG = 4040,
	LONGEST = 4168,
	ALIGNMENTS = 64,
	MOST_BLOCKS = 20,
	EDGE = 64, /* bytes around a target that must not change */
	FILL = 0xee,
};

static uint8_t data[MOST_BLOCKS * 2 * LONGEST];
static uint8_t target[MOST_BLOCKS * 2 * LONGEST];
static uint64_t reference(enum guard_type type, uint64_t running, const uint8_t *from, size_t bytes)
{
	return guard_kernel_bitwise.copy(type, running, NULL, from, bytes);
}

/* Returns a value that could be the running value after some data. */
static uint64_t random_running(enum guard_type type)
{
	uint64_t bytes = random64();

	return reference(type, guard_begin(type, bytes & 1), (const uint8_t *)&bytes, sizeof(bytes));
}

/* Finds the next pair of a supported kernel and a type it supports, after (*kernel, *type). */
static bool next_pair(unsigned int *kernel, unsigned int *type)
{
	for (; guard_kernels[*kernel]; ++*kernel, *type = 0) {
		if (!cpu_has(guard_kernels[*kernel]->needs))
			continue;
		while (++*type < GUARD_TYPE_COUNT) {
			if (guard_kernels[*kernel]->types & 1u << *type && *type != GUARD_NONE) {
				guard_force(guard_kernels[*kernel]);
				return true;
			}
		}
	}
	guard_force(NULL);
	return false;
}

static void assert_same(unsigned int kernel, unsigned int type, size_t length, uint64_t actual, uint64_t expected)
{
	if (actual != expected)
		print_error("%s, type %u, %zu bytes: %#lx, expected %#lx\n", guard_kernels[kernel]->name, type, length,
			    (unsigned long)actual, (unsigned long)expected);
	assert_true(actual == expected);
}

static void assert_filled(const uint8_t *from, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		assert_int_equal(from[i], FILL);
}

static void check_length(unsigned int kernel, unsigned int type, uint64_t begin, size_t length, size_t alignment,
			 uint64_t expected)
{
	const uint8_t *from = data + alignment;
	/* As the length increases, all pairs of alignments occur. */
	uint8_t *to = target + EDGE + (5 * alignment + length) % ALIGNMENTS;

	assert_same(kernel, type, length, guard_update(type, begin, from, length), expected);
	memset(to - EDGE, FILL, length + 2 * EDGE);
	assert_same(kernel, type, length, guard_copy(type, begin, to, from, length), expected);
	assert_memory_equal(to, from, length);
	assert_filled(to - EDGE, EDGE);
	assert_filled(to + length, EDGE);
}

TEST(all_lengths_and_alignments)
{
	unsigned int kernel = 0, type = 0;

	while (next_pair(&kernel, &type)) {
		for (size_t alignment = 0; alignment < ALIGNMENTS; alignment++) {
			uint64_t begin = random_running(type), expected = begin;

			for (size_t length = 0; length <= LONGEST; length++) {
				if (length <= SHORT || length >= LONG)
					check_length(kernel, type, begin, length, alignment, expected);
				expected = reference(type, expected, data + alignment + length, 1);
			}
		}
	}
}

/* Also long pieces, which kernels process in parts. */
TEST(cuts_anywhere)
{
	unsigned int kernel = 0, type = 0;

	while (next_pair(&kernel, &type)) {
		for (unsigned int round = 0; round < 40; round++) {
			size_t length = random64() % (3 * LONGEST), done = 0;
			uint64_t begin = random_running(type), running = begin;

			memset(target, FILL, length + EDGE);
			while (done < length) {
				size_t most = round % 4 ? 1 + random64() % 300 : length;
				size_t piece = length - done < most ? length - done : random64() % (most + 1);

				if (random64() % 3)
					running = guard_copy(type, running, target + done, data + done, piece);
				else
					running = guard_update(type, running, memcpy(target + done, data + done, piece),
							       piece);
				done += piece;
			}
			assert_same(kernel, type, length, running, reference(type, begin, data, length));
			assert_memory_equal(target, data, length);
			assert_filled(target + length, EDGE);
		}
	}
}

/* One kernel can continue with the running value of another. */
TEST(kernels_share_running_values)
{
	for (unsigned int type = 1; type < GUARD_TYPE_COUNT; type++) {
		uint64_t begin = random_running(type), running = begin;
		size_t done = 0;

		for (unsigned int kernel = 0; done < 3 * LONGEST; kernel++) {
			size_t piece = 1 + random64() % 700;

			if (!guard_kernels[kernel])
				kernel = 0;
			if (!cpu_has(guard_kernels[kernel]->needs) || !(guard_kernels[kernel]->types & 1u << type))
				continue;
			running = guard_kernels[kernel]->copy(type, running, NULL, data + done, piece);
			done += piece;
		}
		assert_true(running == reference(type, begin, data, done));
	}
}

static void check_blocks(unsigned int kernel, unsigned int type, const struct guard_blocks *blocks, size_t count,
			 bool ones)
{
	struct guard_blocks no_target = *blocks;
	uint64_t guards[MOST_BLOCKS + 1], again[MOST_BLOCKS];

	memset(target, FILL, sizeof(target));
	guards[count] = 0x123456789abcdef;
	guard_copy_blocks(type, ones, blocks, count, guards);
	assert_true(guards[count] == 0x123456789abcdef);
	no_target.to = NULL;
	guard_copy_blocks(type, ones, &no_target, count, again);
	assert_filled(target, blocks->to - target);
	for (size_t i = 0; i < count; i++) {
		const uint8_t *from = blocks->from + i * blocks->from_stride;
		uint8_t *to = blocks->to + i * blocks->to_stride;
		uint64_t expected = guard_finish(type, reference(type, guard_begin(type, ones), from, blocks->block));

		assert_same(kernel, type, blocks->block, guards[i], expected);
		assert_same(kernel, type, blocks->block, again[i], expected);
		assert_memory_equal(to, from, blocks->block);
		assert_filled(to + blocks->block, i + 1 < count ? blocks->to_stride - blocks->block : EDGE);
	}
}

TEST(all_strides_and_counts)
{
	static const size_t sizes[] = {512, 520, 4048, 4096, 4160, 2, 63, 64, 71, 72, 448, 1024, 5000};
	unsigned int kernel = 0, type = 0, round = 0;

	while (next_pair(&kernel, &type)) {
		for (size_t count = 1; count <= MOST_BLOCKS; count++) {
			/* A count with each of the usual sizes and one of the unusual ones. */
			for (size_t s = 0; s < 6; s++, round++) {
				size_t block = sizes[s < 5 ? s : 5 + round % 8];
				size_t gaps[] = {0, 8, random64() % 64, 4};
				struct guard_blocks blocks = {
					.from = data + random64() % 64,
					.to = target + EDGE + random64() % 64,
					.from_stride = block + gaps[round % 4],
					.to_stride = block + gaps[round / 4 % 4],
					.block = block,
					.far = round & 2,
				};

				check_blocks(kernel, type, &blocks, count, round & 1);
			}
		}
	}
}

/* Makes a mapping with inaccessible pages before and after it. */
static uint8_t *map_pages(size_t pages)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *area = mmap(NULL, (pages + 2) * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(area != MAP_FAILED);
	assert_int_equal(mprotect(area + page, pages * page, PROT_READ | PROT_WRITE), 0);
	return area + page;
}

static void unmap_pages(uint8_t *area, size_t pages)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	assert_int_equal(munmap(area - page, (pages + 2) * page), 0);
}

/* Checks @count blocks with @from and @to at either end of their mappings. */
static void check_edge(unsigned int kernel, unsigned int type, uint8_t *to, const uint8_t *from, size_t block,
		       size_t count)
{
	struct guard_blocks blocks = {from, to, block, block, block, block & 2};
	uint64_t begin = guard_begin(type, block & 1), guards[2];
	uint64_t expected = reference(type, begin, from, block * count);

	assert_same(kernel, type, block * count, guard_update(type, begin, from, block * count), expected);
	assert_same(kernel, type, block * count, guard_copy(type, begin, to, from, block * count), expected);
	assert_memory_equal(to, from, block * count);
	memset(to, FILL, block * count);
	guard_copy_blocks(type, block & 1, &blocks, count, guards);
	assert_memory_equal(to, from, block * count);
	for (size_t i = 0; i < count; i++) {
		expected = guard_finish(type, reference(type, begin, from + i * block, block));
		assert_same(kernel, type, block, guards[i], expected);
	}
}

TEST(nothing_outside_is_touched)
{
	const size_t pages = 4, bytes = pages * (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *from = map_pages(pages), *to = map_pages(pages);
	unsigned int kernel = 0, type = 0;

	memcpy(from, data, bytes);
	while (next_pair(&kernel, &type)) {
		for (size_t block = 1; block <= LONGEST; block += block < SHORT ? 1 : block < LONG ? 61 : 3) {
			check_edge(kernel, type, to, from, block, 1);
			check_edge(kernel, type, to + bytes - block, from + bytes - block, block, 1);
			check_edge(kernel, type, to, from + bytes - 2 * block, block, 2);
			check_edge(kernel, type, to + bytes - 2 * block, from, block, 2);
		}
	}
	unmap_pages(from, pages);
	unmap_pages(to, pages);
}

static int make_data(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(random64() >> 24);
	return 0;
}

int main(void)
{
	return run_cases(.group_setup = make_data);
}
