/* SPDX-License-Identifier: BSD-2-Clause */
/* verbs/handles: numbers, kinds, references. */
#include "test_case.h"

#include "verbs/object/handles.h"

static struct handle_table *table;

static int setup(void **state)
{
	(void)state;
	table = handle_table_new();
	return table ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	handle_table_put(table);
	return 0;
}

static uint32_t add(enum handle_kind kind, size_t length)
{
	const struct handle_entry entry = {.kind = kind, .length = length};
	uint32_t handle;

	assert_int_equal(handle_add(table, &entry, &handle), 0);
	return handle;
}

/* Numbers begin at 0, are dense, and each refers to its own entry, also after the table has grown. */
TEST(numbers_are_dense)
{
	struct handle_entry entry;

	for (uint32_t i = 0; i < 1000; i++)
		assert_int_equal(add(HANDLE_MR, i), i);
	for (uint32_t i = 0; i < 1000; i++) {
		assert_true(handle_find(table, HANDLE_MR, i, &entry));
		assert_int_equal(entry.length, i);
	}
	assert_int_equal(handle_remove(table, HANDLE_MR, 500, &entry), 0);
	assert_int_equal(entry.length, 500);
	assert_int_equal(add(HANDLE_PD, 1), 500);
}

TEST(kinds_are_distinguished)
{
	uint32_t handle = add(HANDLE_PD, 0);

	assert_true(handle_find(table, HANDLE_PD, handle, NULL));
	assert_false(handle_find(table, HANDLE_MR, handle, NULL));
	assert_false(handle_find(table, HANDLE_PD, handle + 1, NULL));
	assert_false(handle_find(table, HANDLE_PD, 1u << 20, NULL));
	assert_false(handle_find(table, HANDLE_PD, UINT32_MAX, NULL));
	assert_int_equal(handle_remove(table, HANDLE_DM, handle, NULL), -EINVAL);
	assert_int_equal(handle_get(table, handle), -EINVAL);
	assert_int_equal(handle_remove(table, HANDLE_PD, handle, NULL), 0);
	assert_int_equal(handle_remove(table, HANDLE_PD, handle, NULL), -EINVAL);
}

TEST(referenced_memory_stays)
{
	uint32_t handle = add(HANDLE_DM, 64);
	struct handle_entry entry;

	assert_int_equal(handle_get(table, handle), 0);
	assert_int_equal(handle_get(table, handle), 0);
	assert_int_equal(handle_remove(table, HANDLE_DM, handle, &entry), -EBUSY);
	assert_int_equal(entry.references, 2);
	handle_put(table, handle);
	handle_put(table, handle);
	assert_int_equal(handle_remove(table, HANDLE_DM, handle, NULL), 0);
}

TEST(an_update_is_found)
{
	uint32_t handle = add(HANDLE_MR, 1);
	struct handle_entry entry = {.kind = HANDLE_MR, .length = 2};

	handle_update(table, handle, &entry);
	entry.length = 0;
	assert_true(handle_find(table, HANDLE_MR, handle, &entry));
	assert_int_equal(entry.length, 2);
	/* A removed handle stays removed. */
	assert_int_equal(handle_remove(table, HANDLE_MR, handle, NULL), 0);
	handle_update(table, handle, &entry);
	assert_false(handle_find(table, HANDLE_MR, handle, NULL));
}

int main(void)
{
	return run_cases(.setup = setup, .teardown = teardown);
}
