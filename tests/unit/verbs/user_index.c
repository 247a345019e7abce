/* SPDX-License-Identifier: BSD-2-Clause */
/* User indices: unique, dense, and found until they are removed. */
#include "test_case.h"

#include "verbs/object/objects.h"

enum { COUNT = 5000 }; /* more than four leaves */

static struct user_index_table table;
static struct user_qp *const qps = (struct user_qp *)0x100000; /* never dereferenced */

TEST(dense_and_found)
{
	uint32_t index;

	user_index_init(&table);
	assert_null(user_index_find(&table, 0));
	assert_null(user_index_find(&table, 0xffffff));
	for (uint32_t i = 0; i < COUNT; i++) {
		assert_int_equal(user_index_add(&table, qps + i, &index), 0);
		assert_int_equal(index, i);
	}
	for (uint32_t i = 0; i < COUNT; i++)
		assert_ptr_equal(user_index_find(&table, i), qps + i);
	assert_null(user_index_find(&table, COUNT));
	user_index_destroy(&table);
}

TEST(freed_indices_come_back_lowest_first)
{
	static const uint32_t freed[] = {4000, 1024, 3, 1023, 2048};
	static const uint32_t expected[] = {3, 1023, 1024, 2048, 4000, COUNT};
	uint32_t index;

	user_index_init(&table);
	for (uint32_t i = 0; i < COUNT; i++)
		assert_int_equal(user_index_add(&table, qps + i, &index), 0);
	for (int i = 0; i < 5; i++) {
		user_index_remove(&table, freed[i]);
		assert_null(user_index_find(&table, freed[i]));
	}
	for (int i = 0; i < 6; i++) {
		assert_int_equal(user_index_add(&table, qps + COUNT + i, &index), 0);
		assert_int_equal(index, expected[i]);
		assert_ptr_equal(user_index_find(&table, index), qps + COUNT + i);
	}
	user_index_destroy(&table);
}

/* A completion of an SRQ finds an SRQ, one of a QP finds a QP, never the other kind. */
TEST(srqs_among_qps)
{
	struct user_srq *const srqs = (struct user_srq *)0x900000; /* never dereferenced */
	uint32_t index;

	user_index_init(&table);
	for (uint32_t i = 0; i < COUNT; i++) {
		if (i % 3)
			assert_int_equal(user_index_add(&table, qps + i, &index), 0);
		else
			assert_int_equal(user_index_add_srq(&table, srqs + i, &index), 0);
		assert_int_equal(index, i);
	}
	for (uint32_t i = 0; i < COUNT; i++) {
		assert_ptr_equal(user_index_find(&table, i), i % 3 ? qps + i : NULL);
		assert_ptr_equal(user_index_find_srq(&table, i), i % 3 ? NULL : srqs + i);
	}
	user_index_remove(&table, 3);
	assert_null(user_index_find_srq(&table, 3));
	assert_int_equal(user_index_add(&table, qps + 3, &index), 0);
	assert_int_equal(index, 3);
	assert_ptr_equal(user_index_find(&table, 3), qps + 3);
	assert_null(user_index_find_srq(&table, 3));
	user_index_destroy(&table);
}
