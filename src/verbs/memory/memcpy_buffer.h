/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * 64 bytes that every copy work request names besides source and destination (mlx5-formats 1.14). Nothing reads them,
 * so a protection domain needs one buffer.
 *
 * Owned by the plain PD (user_pd.memcpy_buffer, under its lock) and allocated with the first QP that can copy. Parent
 * domains use that of their underlying PD. Any thread.
 */
#ifndef SOFTHCA_VERBS_MEMORY_MEMCPY_BUFFER_H
#define SOFTHCA_VERBS_MEMORY_MEMCPY_BUFFER_H

#include "verbs/object/objects.h"

struct memcpy_buffer {
	_Alignas(64) uint8_t bytes[64];
	uint32_t lkey;
	struct mkey *key;
};

/** Stores the buffer of @pd in @out, valid as long as @pd. Returns 0 or -ENOMEM. */
int memcpy_buffer_get(struct user_pd *pd, const struct memcpy_buffer **out);

/** Frees the buffer of @pd, if any; its key would keep the device's PD in use. All QPs of @pd are destroyed. */
void memcpy_buffer_free(struct user_pd *pd);

#endif
