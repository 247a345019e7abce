/* SPDX-License-Identifier: BSD-2-Clause */
/* core/id_table: which numbers are allocated, when they are reused, and what they refer to. */
#include "test_case.h"

#include "core/id_table.h"

/* Objects of the numbers: any even address. */
static uint64_t objects[16];

static struct id_table *new_table(uint32_t first, uint32_t limit)
{
	struct id_table *table = malloc(sizeof(*table));

	id_table_init(table, first, limit);
	return table;
}

static void free_table(struct id_table *table)
{
	for (size_t i = 0; i < sizeof(table->leaf) / sizeof(table->leaf[0]); i++)
		free(table->leaf[i]);
	pthread_mutex_destroy(&table->lock);
	free(table);
}

static uint32_t take(struct id_table *table)
{
	uint32_t index = UINT32_MAX;

	assert_int_equal(id_table_alloc(table, &index), 0);
	return index;
}

static void expect_full(struct id_table *table)
{
	uint32_t index = 77;

	assert_int_equal(id_table_alloc(table, &index), -ENOMEM);
	assert_int_equal(index, 77);
}

TEST(numbers_in_order)
{
	/* Across the boundary between two leaves. */
	struct id_table *table = new_table(ID_LEAF_SIZE - 5, ID_LEAF_SIZE + 5);

	for (uint32_t i = 0; i < 10; i++)
		assert_int_equal(take(table), ID_LEAF_SIZE - 5 + i);
	expect_full(table);
	free_table(table);
}

/* Visits every entry once: from some number to the end of the range, then from its beginning to that number. */
TEST(beginning_anywhere)
{
	for (uint32_t begin = ID_LEAF_SIZE - 5; begin < ID_LEAF_SIZE + 5; begin++) {
		struct id_table *table = new_table(ID_LEAF_SIZE - 5, ID_LEAF_SIZE + 5);

		id_table_begin_at(table, begin);
		for (uint32_t i = 0; i < 10; i++)
			assert_int_equal(take(table), ID_LEAF_SIZE - 5 + (begin - (ID_LEAF_SIZE - 5) + i) % 10);
		expect_full(table);
		free_table(table);
	}
}

TEST(lookups_of_a_number)
{
	struct id_table *table = new_table(16, 1000);
	uint32_t index = take(table), other = take(table);

	assert_null(id_table_find(table, index));
	assert_true(id_table_is_reserved(table, index));
	assert_false(id_table_was_used(table, 900));
	assert_false(id_table_was_used(table, 1 << 24));
	id_table_publish(table, index, &objects[1]);
	id_table_publish(table, other, &objects[2]);
	assert_ptr_equal(id_table_find(table, index), &objects[1]);
	assert_ptr_equal(id_table_find(table, other), &objects[2]);
	assert_false(id_table_is_reserved(table, index));
	assert_false(id_table_was_used(table, index));
	id_table_unpublish(table, index);
	assert_null(id_table_find(table, index));
	assert_ptr_equal(id_table_find(table, other), &objects[2]);
	assert_true(id_table_is_reserved(table, index));
	id_table_release(table, index);
	assert_null(id_table_find(table, index));
	assert_false(id_table_is_reserved(table, index));
	assert_true(id_table_was_used(table, index));
	/* After another number is freed, it is a link in the list of free numbers: not a pointer either. */
	id_table_unpublish(table, other);
	id_table_release(table, other);
	assert_null(id_table_find(table, index));
	assert_null(id_table_find(table, other));
	assert_false(id_table_is_reserved(table, index));
	free_table(table);
}

TEST(numbers_that_were_never_given)
{
	static const uint32_t never[] = {
		0, 1, 15, 17, 4096, 0xffffff, 0x1000000, 0x1000010, 0xffffffff, 0x80000010, 1u << ID_BITS | 16};
	struct id_table *table = new_table(16, 1u << ID_BITS);
	uint32_t index = take(table);

	id_table_publish(table, index, &objects[0]);
	for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++) {
		assert_null(id_table_find(table, never[i]));
		assert_false(id_table_is_reserved(table, never[i]));
	}
	free_table(table);
}

/* The last numbers: 24 bits. */
TEST(last_numbers)
{
	struct id_table *table = new_table((1u << ID_BITS) - 3, 1u << ID_BITS);

	for (uint32_t i = 0; i < 3; i++)
		id_table_publish(table, take(table), &objects[i]);
	expect_full(table);
	assert_ptr_equal(id_table_find(table, 0xffffff), &objects[2]);
	assert_null(id_table_find(table, 0x1000000));
	/* One number is freed, one is allocated. */
	id_table_unpublish(table, 0xffffff);
	id_table_release(table, 0xffffff);
	assert_int_equal(take(table), 0xffffff);
	expect_full(table);
	free_table(table);
}

/* A full table reuses freed numbers, the longest free one first. */
TEST(first_back_first_out)
{
	static const uint32_t order[] = {7, 3, 9, 1, 8};
	struct id_table *table = new_table(1, 11);

	for (uint32_t i = 1; i <= 10; i++)
		assert_int_equal(take(table), i);
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 5; i++)
			id_table_release(table, order[i]);
		for (int i = 0; i < 5; i++)
			assert_int_equal(take(table), order[i]);
		expect_full(table);
	}
	free_table(table);
}

/*
 * While unused numbers are left, a freed number is not reused until many others have been freed, so a stale number
 * refers to nothing.
 */
TEST(stale_numbers_stay_stale)
{
	struct id_table *table = new_table(16, 1u << ID_BITS);
	uint32_t first = take(table), pause = 0;

	id_table_release(table, first);
	/* Create and destroy, repeatedly. */
	for (uint32_t index = take(table); index != first; index = take(table)) {
		id_table_release(table, index);
		assert_true(++pause < 1u << 20);
	}
	assert_true(pause >= 1000);
	/* The table does not grow without bound: freed numbers are reused. */
	for (uint32_t i = 0; i < 3 * ID_LEAF_SIZE; i++) {
		uint32_t index = take(table);

		assert_true(index < 16 + 2 * ID_LEAF_SIZE);
		id_table_release(table, index);
	}
	free_table(table);
}

/* Against an array: no number is allocated twice, none is lost, and each refers to its own object. */
TEST(at_random)
{
	enum { LIMIT = 300, STEPS = 100000 };
	static void *held[LIMIT];
	struct id_table *table = new_table(10, LIMIT);
	uint64_t random = 1;
	uint32_t count = 0;

	memset(held, 0, sizeof(held));
	for (int step = 0; step < STEPS; step++) {
		uint32_t index;

		random = random * 6364136223846793005 + 1442695040888963407;
		/* Nearly full at times, nearly empty at others. */
		if (random >> 40 & (step % 4096 < 2048 ? 3 : 1)) {
			int error = id_table_alloc(table, &index);

			assert_int_equal(error == 0, count < LIMIT - 10);
			if (error)
				continue;
			assert_in_range(index, 10, LIMIT - 1);
			assert_null(held[index]);
			assert_null(id_table_find(table, index));
			held[index] = &objects[random >> 50 & 15];
			id_table_publish(table, index, held[index]);
			count++;
			continue;
		}
		index = 10 + (uint32_t)(random >> 33) % (LIMIT - 10);
		assert_ptr_equal(id_table_find(table, index), held[index]);
		if (!held[index])
			continue;
		id_table_unpublish(table, index);
		id_table_release(table, index);
		held[index] = NULL;
		count--;
	}
	free_table(table);
}

/* ---- ranges from a source ---------------------------------------------------------------------------------------- */

/* First numbers of ranges of 10 numbers each. */
static const uint32_t ranges[] = {50, 20, 4090};
static size_t asked;
static uint32_t owned_from; /* index of the first range that belongs to this process */

static int next_range(uint32_t *first, uint32_t *limit)
{
	if (asked == sizeof(ranges) / sizeof(ranges[0]))
		return -ENOSPC;
	*first = ranges[asked++];
	*limit = *first + 10;
	return 0;
}

static bool is_owned(uint32_t index)
{
	for (size_t i = owned_from; i < asked; i++)
		if (index - ranges[i] < 10)
			return true;
	return false;
}

static const struct id_source source = {.more = next_range, .owns = is_owned};

static struct id_table *new_table_from_source(uint32_t rest)
{
	struct id_table *table = malloc(sizeof(*table));

	asked = owned_from = 0;
	id_table_init_from(table, &source, rest);
	return table;
}

TEST(one_range_after_the_other)
{
	struct id_table *table = new_table_from_source(100);

	/* No range is requested before it is needed. */
	assert_int_equal(asked, 0);
	assert_false(id_table_is_reserved(table, 50));
	for (size_t range = 0; range < 3; range++)
		for (uint32_t i = 0; i < 10; i++) {
			uint32_t index = take(table);

			assert_int_equal(index, ranges[range] + i);
			assert_int_equal(asked, range + 1);
			assert_true(id_table_is_reserved(table, index));
			assert_false(i < 9 && id_table_is_reserved(table, index + 1));
		}
	expect_full(table);
	/* Freed numbers of all ranges are still available, the longest free one first. */
	id_table_release(table, 4095);
	id_table_release(table, 25);
	assert_int_equal(take(table), 4095);
	assert_int_equal(take(table), 25);
	expect_full(table);
	free_table(table);
}

/* No range is requested while enough freed numbers are left. */
TEST(resting_before_more)
{
	struct id_table *table = new_table_from_source(4);

	for (uint32_t i = 0; i < 10; i++)
		take(table);
	for (uint32_t i = 0; i < 4; i++)
		id_table_release(table, 53 - i);
	assert_int_equal(take(table), 53);
	assert_int_equal(asked, 1);
	/* Three are left, which is too few. */
	assert_int_equal(take(table), 20);
	assert_int_equal(asked, 2);
	id_table_release(table, 59);
	assert_int_equal(take(table), 52);
	free_table(table);
}

TEST(ranges_of_the_parent)
{
	struct id_table *table = new_table_from_source(1);
	uint32_t published = take(table), free = take(table), reserved = take(table);

	id_table_publish(table, published, &objects[3]);
	id_table_release(table, free);
	id_table_after_fork(table);
	owned_from = 1;
	/* Old numbers are still published, and can be freed. */
	assert_ptr_equal(id_table_find(table, published), &objects[3]);
	assert_true(id_table_is_reserved(table, reserved));
	assert_null(id_table_find(table, free));
	assert_int_equal(take(table), 20);
	id_table_unpublish(table, published);
	id_table_release(table, published);
	id_table_release(table, reserved);
	assert_false(id_table_is_reserved(table, reserved));
	assert_null(id_table_find(table, published));
	/* But they are not allocated again. */
	for (uint32_t i = 1; i < 10; i++)
		assert_int_equal(take(table), 20 + i);
	id_table_release(table, 22);
	assert_int_equal(take(table), 22);
	for (uint32_t i = 0; i < 10; i++)
		assert_int_equal(take(table), 4090 + i);
	expect_full(table);
	free_table(table);
}

/* A table without a source continues unchanged. */
TEST(a_child_and_numbers_of_its_own)
{
	struct id_table *table = new_table(5, 8);

	assert_int_equal(take(table), 5);
	id_table_after_fork(table);
	assert_int_equal(take(table), 6);
	id_table_release(table, 5);
	assert_int_equal(take(table), 7);
	assert_int_equal(take(table), 5);
	free_table(table);
}
