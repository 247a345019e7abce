/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mkey/records: every implementation of copying records that this CPU supports gives the result of a loop over bytes,
 * for all sizes up to some lines, alignments and distances, and touches nothing between records. Overlapping records are
 * read whole before they are written.
 */
#include "test_case.h"

#include "mkey/records.h"

enum { MOST = 300, COUNT = 9, GAP = 77, ROOM = COUNT * (MOST + GAP) + 128 };

static uint8_t source[ROOM], target[ROOM], expected[ROOM];

static void by_bytes(uint64_t to, uint64_t to_step, uint64_t from, uint64_t from_step, uint64_t bytes, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		for (uint64_t j = 0; j < bytes; j++)
			expected[to + i * to_step + j] = source[from + i * from_step + j];
}

static void expect_same(const struct record_kernel *kernel, uint64_t bytes, uint64_t count, uint64_t place)
{
	/* Gathered, scattered, or both with gaps. */
	const uint64_t to_step = bytes + place % 3 * (GAP / 2), from_step = bytes + (place + 1) % 3 * (GAP / 2);
	const uint64_t to = place % 64, from = place * 7 % 64;

	memset(target, 0xa5, sizeof(target));
	memset(expected, 0xa5, sizeof(expected));
	by_bytes(to, to_step, from, from_step, bytes, count);
	kernel->copy(target + to, to_step, source + from, from_step, bytes, count);
	if (memcmp(target, expected, sizeof(target)) != 0)
		fail_msg("%s: %lu records of %lu bytes, place %lu", kernel->name, (unsigned long)count,
			 (unsigned long)bytes, (unsigned long)place);
}

TEST(all_sizes_and_alignments)
{
	for (const struct record_kernel *kernel = record_kernels; kernel->name; kernel++) {
		if (!kernel->supported())
			continue;
		for (uint64_t bytes = 1; bytes <= MOST; bytes++)
			for (uint64_t place = 0; place < 192; place += bytes % 32 ? 13 : 1)
				expect_same(kernel, bytes, (bytes + place) % (COUNT + 1), place);
	}
}

/* mkey/copy.h: ranges may overlap. A record is read before it is written, in ascending order. */
TEST(records_on_top_of_themselves)
{
	static const uint64_t sizes[] = {8, 64, 128, 200};

	for (const struct record_kernel *kernel = record_kernels; kernel->name; kernel++) {
		for (size_t i = 0; kernel->supported() && i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			const uint64_t bytes = sizes[i], shift = bytes / 2;

			memcpy(target, source, sizeof(target));
			memcpy(expected, source, sizeof(expected));
			for (uint64_t record = 0; record < COUNT; record++)
				memmove(expected + record * bytes, expected + record * bytes + shift, bytes);
			kernel->copy(target, bytes, target + shift, bytes, bytes, COUNT);
			assert_memory_equal(target, expected, sizeof(target));
		}
	}
}

/* The last implementation works on every CPU. */
TEST(the_last_one_works_everywhere)
{
	const struct record_kernel *last = NULL;

	for (const struct record_kernel *kernel = record_kernels; kernel->name; kernel++)
		last = kernel;
	assert_non_null(last);
	assert_true(last->supported());
}

int main(void)
{
	for (size_t i = 0; i < sizeof(source); i++)
		source[i] = (uint8_t)(i * 167 + i / 251);
	return run_cases();
}
