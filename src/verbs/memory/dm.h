/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of device memory share: ibv_alloc_dm(3), ibv_import_dm(3), ibv_reg_dm_mr(3). */
#ifndef SOFTHCA_VERBS_MEMORY_DM_H
#define SOFTHCA_VERBS_MEMORY_DM_H

#include "verbs/object/objects.h"

/** A driver object of device memory; freed by the caller with free(3). NULL with errno set without memory. */
struct ibv_dm *dm_new(struct ibv_context *context, void *addr, size_t length, uint32_t handle);

/** True if offset and length of an access obey LIMIT_DM_ALIGN_LOG. */
bool dm_aligned(uint64_t offset, uint64_t length);

/** True if [@offset, +@length) lies inside of @dm. */
bool dm_contains(const struct user_dm *dm, uint64_t offset, uint64_t length);

#endif
