/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Device memory (ibv_alloc_dm(3)): the adapter's own memory, LIMIT_MAX_DM_SIZE bytes per device, allocated in blocks of
 * 64 bytes like the MEMIC of an mlx5 adapter. hca_dm_alloc() and hca_dm_free() of process/commands.h are the commands.
 *
 * After fork(2) the child owns a copy of the pool: both processes keep their allocations, and neither sees later
 * allocations or writes of the other. A child can take the lock even if a thread of the parent held it during the fork.
 *
 * Owner: struct hca. Any thread may call.
 */
#ifndef SOFTHCA_HCA_DM_H
#define SOFTHCA_HCA_DM_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/limits.h"

#define DM_BLOCK 64u
#define DM_BLOCKS (LIMIT_MAX_DM_SIZE / DM_BLOCK)

struct dm_pool {
	pid_t owner;             /* atomic; the process that holds the lock, or 0 */
	uint8_t *memory;         /* LIMIT_MAX_DM_SIZE bytes, aligned to that; NULL until the first allocation */
	uint8_t used[DM_BLOCKS]; /* per block: 1 if allocated */
};

void dm_pool_init(struct dm_pool *pool);

/** Frees the memory, which must no longer be in use. */
void dm_pool_destroy(struct dm_pool *pool);

/**
 * Allocates @length bytes, zeroed, at a multiple of 1 << @log_align (and of 64). Returns 0 and fills @addr, -EINVAL for
 * length 0 or an alignment beyond the size of the memory, -ENOMEM if no sufficient run of blocks is free.
 */
int dm_pool_alloc(struct dm_pool *pool, size_t length, uint32_t log_align, void **addr);

/** Frees memory that dm_pool_alloc() returned for @length. */
void dm_pool_free(struct dm_pool *pool, void *addr, size_t length);

/** Returns the number of unallocated bytes, in all blocks together. */
size_t dm_pool_available(struct dm_pool *pool);

#endif
