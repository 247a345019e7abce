/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Device memory (ibv_alloc_dm(3)), in blocks of 64 bytes like the MEMIC of an mlx5 adapter.
 *
 * After fork(2) the child owns a copy of the pool, and can take the lock even if a thread of the parent held it at that
 * time.
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
	pid_t owner;             /* atomic; process that holds the lock, or 0 */
	uint8_t *memory;         /* aligned to its size; NULL until the first allocation */
	uint8_t used[DM_BLOCKS]; /* 1 if allocated */
};

void dm_pool_init(struct dm_pool *pool);

void dm_pool_destroy(struct dm_pool *pool);

/**
 * Allocates @length zeroed bytes at a multiple of 1 << @log_align (and of 64). Returns 0, -EINVAL for length 0 or an
 * alignment beyond the memory's size, -ENOMEM.
 */
int dm_pool_alloc(struct dm_pool *pool, size_t length, uint32_t log_align, void **addr);

void dm_pool_free(struct dm_pool *pool, void *addr, size_t length);

size_t dm_pool_available(struct dm_pool *pool);

#endif
