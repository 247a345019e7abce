/* SPDX-License-Identifier: BSD-2-Clause */
/* Device memory: first fit over blocks. */
#include "hca/dm.h"

#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void dm_pool_init(struct dm_pool *pool)
{
	memset(pool, 0, sizeof(*pool));
}

void dm_pool_destroy(struct dm_pool *pool)
{
	free(pool->memory);
	pool->memory = NULL;
}

/*
 * Takes a lock that contains the process id of its holder. After a fork a thread of the parent may hold it, which does
 * not exist here, so the lock is taken over. At worst its unfinished work leaves blocks marked as used.
 */
static void pool_lock(struct dm_pool *pool)
{
	pid_t self = getpid(), holder = 0;

	while (!__atomic_compare_exchange_n(&pool->owner, &holder, self, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
		if (holder == self) {
			sched_yield();
			holder = 0;
		}
	}
}

static void pool_unlock(struct dm_pool *pool)
{
	__atomic_store_n(&pool->owner, 0, __ATOMIC_RELEASE);
}

static size_t block_count(size_t length)
{
	return length / DM_BLOCK + (length % DM_BLOCK != 0);
}

/* Returns the first multiple of @step with @count free blocks, or DM_BLOCKS. */
static size_t find_run(const struct dm_pool *pool, size_t count, size_t step)
{
	size_t first;

	for (first = 0; first < DM_BLOCKS && count <= DM_BLOCKS - first; first += step)
		if (!memchr(&pool->used[first], 1, count))
			return first;
	return DM_BLOCKS;
}

/* Allocates the memory, aligned to its size to serve every smaller alignment. */
static int provide_memory(struct dm_pool *pool)
{
	if (!pool->memory)
		pool->memory = aligned_alloc(LIMIT_MAX_DM_SIZE, LIMIT_MAX_DM_SIZE);
	return pool->memory ? 0 : -ENOMEM;
}

int dm_pool_alloc(struct dm_pool *pool, size_t length, uint32_t log_align, void **addr)
{
	size_t count = block_count(length), step, first = DM_BLOCKS;

	if (length == 0 || log_align >= 32 || (UINT64_C(1) << log_align) > LIMIT_MAX_DM_SIZE)
		return -EINVAL;
	step = block_count((size_t)1 << log_align);

	pool_lock(pool);
	if (provide_memory(pool) == 0)
		first = find_run(pool, count, step);
	if (first < DM_BLOCKS)
		memset(&pool->used[first], 1, count);
	pool_unlock(pool);
	if (first == DM_BLOCKS)
		return -ENOMEM;

	*addr = pool->memory + first * DM_BLOCK;
	memset(*addr, 0, count * DM_BLOCK);
	return 0;
}

void dm_pool_free(struct dm_pool *pool, void *addr, size_t length)
{
	size_t first = ((uint8_t *)addr - pool->memory) / DM_BLOCK;

	pool_lock(pool);
	memset(&pool->used[first], 0, block_count(length));
	pool_unlock(pool);
}

size_t dm_pool_available(struct dm_pool *pool)
{
	size_t block, available = 0;

	pool_lock(pool);
	for (block = 0; block < DM_BLOCKS; block++)
		available += pool->used[block] ? 0 : DM_BLOCK;
	pool_unlock(pool);
	return available;
}
