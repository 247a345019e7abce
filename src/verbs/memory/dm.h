/* SPDX-License-Identifier: BSD-2-Clause */
/* Device memory of the driver. Any thread. */
#ifndef SOFTHCA_VERBS_MEMORY_DM_H
#define SOFTHCA_VERBS_MEMORY_DM_H

#include "verbs/object/objects.h"

/** Creates a driver object, which the caller frees with free(3). NULL with errno set without memory. */
struct ibv_dm *dm_new(struct ibv_context *context, void *addr, size_t length, uint32_t handle);

/** Returns true if both are multiples of 1 << LIMIT_DM_ALIGN_LOG. */
bool dm_aligned(uint64_t offset, uint64_t length);

bool dm_contains(const struct user_dm *dm, uint64_t offset, uint64_t length);

#endif
