/* SPDX-License-Identifier: BSD-2-Clause */
/* hca/dm: allocation, exhaustion, alignment, use after fork. */
#include "test_case.h"

#include <sys/wait.h>

#include "hca/dm.h"

static int pool_setup(void **state)
{
	struct dm_pool *pool = malloc(sizeof(*pool));

	dm_pool_init(pool);
	*state = pool;
	return 0;
}

static int pool_teardown(void **state)
{
	dm_pool_destroy(*state);
	free(*state);
	return 0;
}

static void *take(struct dm_pool *pool, size_t length, uint32_t log_align)
{
	void *addr;

	assert_int_equal(dm_pool_alloc(pool, length, log_align, &addr), 0);
	return addr;
}

TEST(refuses_impossible_values)
{
	void *addr;

	assert_int_equal(dm_pool_alloc(*state, 0, 0, &addr), -EINVAL);
	assert_int_equal(dm_pool_alloc(*state, 4, 18, &addr), -EINVAL);
	assert_int_equal(dm_pool_alloc(*state, 4, 32, &addr), -EINVAL);
	assert_int_equal(dm_pool_alloc(*state, 4, UINT32_MAX, &addr), -EINVAL);
	assert_int_equal(dm_pool_alloc(*state, LIMIT_MAX_DM_SIZE + 1, 0, &addr), -ENOMEM);
	assert_int_equal(dm_pool_alloc(*state, SIZE_MAX, 0, &addr), -ENOMEM);
	assert_int_equal(dm_pool_available(*state), LIMIT_MAX_DM_SIZE);
}

TEST(whole_memory_can_be_one_allocation)
{
	uint8_t *all = take(*state, LIMIT_MAX_DM_SIZE, 17);
	void *addr;

	assert_int_equal((uintptr_t)all % LIMIT_MAX_DM_SIZE, 0);
	memset(all, 0xff, LIMIT_MAX_DM_SIZE);
	assert_int_equal(dm_pool_available(*state), 0);
	assert_int_equal(dm_pool_alloc(*state, 1, 0, &addr), -ENOMEM);
	dm_pool_free(*state, all, LIMIT_MAX_DM_SIZE);
	/* Memory that is allocated again is zeroed. */
	all = take(*state, LIMIT_MAX_DM_SIZE, 0);
	for (size_t i = 0; i < LIMIT_MAX_DM_SIZE; i++)
		assert_int_equal(all[i], 0);
}

TEST(allocations_are_apart_and_aligned)
{
	static const uint32_t aligns[] = {0, 3, 6, 12, 8, 16, 0};
	uint8_t *part[7];

	for (size_t i = 0; i < 7; i++) {
		part[i] = take(*state, 100, aligns[i]);
		assert_int_equal((uintptr_t)part[i] % (UINT64_C(1) << aligns[i]), 0);
		memset(part[i], (int)i + 1, 100);
	}
	for (size_t i = 0; i < 7; i++)
		for (size_t k = 0; k < 100; k++)
			assert_int_equal(part[i][k], i + 1);
	assert_int_equal(dm_pool_available(*state), LIMIT_MAX_DM_SIZE - 7 * 128);
}

/* The number of free bytes is not enough: they must be contiguous. */
TEST(fragments_are_not_joined)
{
	uint8_t *part[4];
	void *addr;

	for (size_t i = 0; i < 4; i++)
		part[i] = take(*state, LIMIT_MAX_DM_SIZE / 4, 0);
	dm_pool_free(*state, part[0], LIMIT_MAX_DM_SIZE / 4);
	dm_pool_free(*state, part[2], LIMIT_MAX_DM_SIZE / 4);
	assert_int_equal(dm_pool_alloc(*state, LIMIT_MAX_DM_SIZE / 2, 0, &addr), -ENOMEM);
	dm_pool_free(*state, part[1], LIMIT_MAX_DM_SIZE / 4);
	assert_ptr_equal(take(*state, LIMIT_MAX_DM_SIZE / 4 * 3, 0), part[0]);
}

static int child_allocates(struct dm_pool *pool)
{
	void *addr;

	alarm(10);
	return dm_pool_alloc(pool, LIMIT_MAX_DM_SIZE / 10, 0, &addr) ? 1 : 0;
}

/* Five children of one parent, as in the Python suite of rdma-core; here they are forked while the lock is held. */
TEST(children_allocate_the_same_as_their_parent)
{
	struct dm_pool *pool = *state;
	pid_t child[5];
	int status;

	take(pool, 64, 0);
	pool->owner = getpid(); /* a thread of this process is inside dm_pool_alloc() */
	for (int i = 0; i < 5; i++) {
		child[i] = fork();
		if (child[i] == 0)
			_exit(child_allocates(pool));
	}
	for (int i = 0; i < 5; i++) {
		assert_int_equal(waitpid(child[i], &status, 0), child[i]);
		assert_int_equal(status, 0);
	}
	pool->owner = 0;
	assert_int_equal(dm_pool_available(pool), LIMIT_MAX_DM_SIZE - 64);
}

int main(void)
{
	return run_cases(.setup = pool_setup, .teardown = pool_teardown);
}
