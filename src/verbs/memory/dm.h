/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions shared by the files of device memory: ibv_alloc_dm(3), ibv_import_dm(3), ibv_reg_dm_mr(3). Any thread. */
#ifndef SOFTHCA_VERBS_MEMORY_DM_H
#define SOFTHCA_VERBS_MEMORY_DM_H

#include "verbs/object/objects.h"

/**
 * Creates a driver object of device memory, which the caller frees with free(3). Returns NULL with errno set without
 * memory.
 */
struct ibv_dm *dm_new(struct ibv_context *context, void *addr, size_t length, uint32_t handle);

/** Returns true if offset and length of an access are multiples of 1 << LIMIT_DM_ALIGN_LOG. */
bool dm_aligned(uint64_t offset, uint64_t length);

/** Returns true if [@offset, +@length) lies within @dm. */
bool dm_contains(const struct user_dm *dm, uint64_t offset, uint64_t length);

#endif
