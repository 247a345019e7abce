/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mkey/layout: parses translation entries of a WQE (mlx5-formats 1.9 and 1.10), valid and arbitrary ones. The mapping
 * has room for exactly as many entries as there are 16-byte units.
 */
#include "test_case.h"

#include "mkey/layout.h"

enum { NUMBER = 0x4200, UNIT = 16, MOST_UNITS = 64, ROUNDS = 200000 };

static uint8_t wire[MOST_UNITS * UNIT];
static struct mapping *map;
static struct refusal why;

static uint64_t be(const uint8_t *at, int bytes)
{
	uint64_t value = 0;

	for (int i = 0; i < bytes; i++)
		value = value << 8 | at[i];
	return value;
}

static void put(uint32_t unit, int offset, int bytes, uint64_t value)
{
	for (int i = 0; i < bytes; i++)
		wire[unit * UNIT + (uint32_t)offset + (uint32_t)i] = (uint8_t)(value >> 8 * (bytes - 1 - i));
}

static void put_list_entry(uint32_t unit, uint32_t bytes, uint32_t key, uint64_t address)
{
	put(unit, 0, 4, bytes);
	put(unit, 4, 4, key);
	put(unit, 8, 8, address);
}

static void put_repeat_header(uint32_t bytes, uint32_t repeat, uint32_t entries)
{
	memset(wire, 0, UNIT);
	put(0, 0, 4, bytes);
	put(0, 4, 4, 0x400);
	put(0, 8, 4, repeat);
	put(0, 14, 2, entries);
}

static void put_repeat_entry(uint32_t unit, uint32_t stride, uint32_t bytes, uint32_t key, uint64_t address)
{
	put(unit, 0, 2, stride);
	put(unit, 2, 2, bytes);
	put(unit, 4, 4, key);
	put(unit, 8, 8, address);
}

/* Parses @units into a mapping that has exactly that room. */
static int parse(uint32_t units)
{
	free(map);
	map = calloc(1, sizeof(*map) + units * sizeof(struct layout_entry));
	assert_non_null(map);
	return layout_parse(map, NUMBER, wire, units * UNIT, &why);
}

static void expect_entry(uint32_t i, uint64_t bytes, uint64_t before, uint32_t stride, uint32_t key, uint64_t address)
{
	assert_true(i < map->count);
	assert_int_equal(map->entries[i].bytes, bytes);
	assert_int_equal(map->entries[i].before, before);
	if (map->form == LAYOUT_REPEAT)
		assert_int_equal(map->entries[i].stride, stride);
	assert_int_equal(map->entries[i].key, key);
	assert_int_equal(map->entries[i].address, address);
	/* No particular region: serials are for windows. */
	assert_int_equal(map->entries[i].serial, 0);
}

static int setup(void **state)
{
	(void)state;
	memset(wire, 0, sizeof(wire));
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	free(map);
	map = NULL;
	return 0;
}

TEST(lists)
{
	put_list_entry(0, 100, 0x1000, 0xffffffffffffff00);
	put_list_entry(1, 0xffffffff, 0x2001, 0);
	put_list_entry(2, 1, 0x3002, 7);
	put_list_entry(3, 2, 0xffffffff, 9);
	assert_int_equal(parse(4), 0);
	assert_int_equal(map->form, LAYOUT_LIST);
	assert_int_equal(map->count, 4);
	expect_entry(0, 100, 0, 0, 0x1000, 0xffffffffffffff00);
	expect_entry(1, 0xffffffff, 100, 0, 0x2001, 0);
	expect_entry(2, 1, UINT64_C(0x100000063), 0, 0x3002, 7);
	expect_entry(3, 2, UINT64_C(0x100000064), 0, 0xffffffff, 9);
	/* The sum exceeds the width of a count. */
	assert_int_equal(mapping_translated(map), UINT64_C(0x100000066));
}

/* "Byte count 0 with mkey 0 = padding … never treat a zero pad as 2 GiB"; with a key it is 2 GiB (mlx5-formats 1.9). */
TEST(padding_and_two_gigabytes)
{
	put_list_entry(0, 8, 0x1000, 16);
	assert_int_equal(parse(4), 0);
	assert_int_equal(map->count, 1);
	assert_int_equal(mapping_translated(map), 8);
	put_list_entry(1, 0, 0x2000, 32);
	assert_int_equal(parse(4), 0);
	assert_int_equal(map->count, 2);
	expect_entry(1, UINT64_C(1) << 31, 8, 0, 0x2000, 32);
	assert_int_equal(mapping_translated(map), (UINT64_C(1) << 31) + 8);
	memset(wire, 0, sizeof(wire));
	assert_int_equal(parse(4), 0);
	assert_int_equal(mapping_translated(map), 0);
}

/* The example of mlx5dv_wr_mkey_configure(3). */
TEST(repeat_block)
{
	put_repeat_header(520, 2, 2);
	put_repeat_entry(1, 516, 512, 0x1000, 0x7000);
	put_repeat_entry(2, 8, 8, 0x2000, 0x9000);
	/* The rest is padding, whatever its content. */
	memset(wire + 3 * UNIT, 0xff, UNIT);
	assert_int_equal(parse(4), 0);
	assert_int_equal(map->form, LAYOUT_REPEAT);
	assert_int_equal(map->count, 2);
	assert_int_equal(map->repeat, 2);
	expect_entry(0, 512, 0, 516, 0x1000, 0x7000);
	expect_entry(1, 8, 512, 8, 0x2000, 0x9000);
	assert_int_equal(mapping_translated(map), 1040);
}

/* The sum in the header is written by the library; only the entries count, 16 bits each (mlx5-formats 6 no. 42). */
TEST(sum_that_does_not_agree)
{
	put_repeat_header(65536 + 20, 3, 2);
	put_repeat_entry(1, 20, (uint16_t)65536, 0x1000, 0);
	put_repeat_entry(2, 20, 20, 0x2000, 0);
	assert_int_equal(parse(4), 0);
	assert_int_equal(mapping_translated(map), 60);
}

TEST(more_entries_than_there_are)
{
	for (uint32_t units = 4; units <= 8; units += 4) {
		for (uint32_t entries = 0; entries < 20; entries++) {
			put_repeat_header(0, 1, entries);
			assert_int_equal(parse(units), entries < units ? 0 : -EACCES);
			if (entries < units) {
				assert_int_equal(map->count, entries);
				continue;
			}
			assert_int_equal(why.rule, RULE_UMR_REPEAT_ENTRIES);
			assert_int_equal(why.args[0], NUMBER);
			assert_int_equal(why.args[1], entries);
		}
	}
	put_repeat_header(0, 1, 0xffff);
	assert_int_equal(parse(4), -EACCES);
	assert_int_equal(parse(MOST_UNITS), -EACCES);
}

TEST(nothing_repeated)
{
	put_repeat_header(100, 0, 1);
	put_repeat_entry(1, 100, 100, 0x1000, 0);
	assert_int_equal(parse(4), 0);
	assert_int_equal(mapping_translated(map), 0);
	put_repeat_header(100, 0xffffffff, 0);
	assert_int_equal(parse(4), 0);
	assert_int_equal(mapping_translated(map), 0);
	/* The largest layout: 63 entries of 65535 bytes, 2^32 - 1 times. */
	put_repeat_header(0, 0xffffffff, MOST_UNITS - 1);
	for (uint32_t i = 1; i < MOST_UNITS; i++)
		put_repeat_entry(i, 0xffff, 0xffff, 0x1000, UINT64_MAX);
	assert_int_equal(parse(MOST_UNITS), 0);
	assert_int_equal(mapping_translated(map), UINT64_C(63) * 65535 * 0xffffffff);
}

/* Random bytes: the result is what the format sheet says, and never exceeds the room. */
TEST(any_bytes)
{
	uint64_t random = 42;

	for (int round = 0; round < ROUNDS; round++) {
		uint32_t units, count = 0, first = 0;
		uint64_t total = 0;
		int error;

		for (size_t i = 0; i < sizeof(wire); i += 8) {
			random = random * 6364136223846793005 + 1442695040888963407;
			/* Runs of zeros, which are frequent in real layouts. */
			memset(wire + i, 0, 8);
			if (random >> 60 > 4)
				memcpy(wire + i,
				       (uint8_t[]){random >> 56 & 1 ? 0 : (uint8_t)(random >> 32),
						   (uint8_t)(random >> 40), (uint8_t)(random >> 24),
						   (uint8_t)(random >> 48), (uint8_t)(random >> 17),
						   (uint8_t)(random >> 33), (uint8_t)(random >> 29),
						   (uint8_t)(random >> 44)},
				       8);
		}
		units = 4 + 4 * (uint32_t)(random >> 50) % MOST_UNITS;
		if (units > MOST_UNITS)
			units = MOST_UNITS;
		if (random >> 40 & 1) {
			put(0, 4, 4, 0x400);
			put(0, 14, 2, (random >> 20) % (units + 4));
			first = 1;
		}
		error = parse(units);
		if (be(wire + 4, 4) == 0x400)
			first = 1;
		if (first && be(wire + 14, 2) > units - 1) {
			assert_int_equal(error, -EACCES);
			continue;
		}
		assert_int_equal(error, 0);
		for (uint32_t i = first; i < (first ? 1 + be(wire + 14, 2) : units); i++) {
			const uint8_t *at = wire + i * UNIT;
			uint64_t bytes = first ? be(at + 2, 2) : be(at, 4);

			if (!first && !bytes && !be(at + 4, 4))
				continue;
			if (!first && !bytes)
				bytes = UINT64_C(1) << 31;
			expect_entry(count++, bytes, total, (uint32_t)be(at, 2), (uint32_t)be(at + 4, 4),
				     be(at + 8, 8));
			total += bytes;
		}
		assert_int_equal(map->count, count);
		assert_int_equal(mapping_translated(map), first ? total * be(wire + 8, 4) : total);
	}
}

int main(void)
{
	return run_cases(.setup = setup, .teardown = teardown);
}
