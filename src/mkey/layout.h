/* SPDX-License-Identifier: BSD-2-Clause */
/* Translation entries of a UMR WQE into the layout of a mapping (mlx5-formats 1.9 and 1.10). */
#ifndef SOFTHCA_MKEY_LAYOUT_H
#define SOFTHCA_MKEY_LAYOUT_H

#include "mkey/walk.h"

/**
 * Replaces the layout of @next (unpublished, capacity for @bytes / 16 entries) by what @entries describe.
 * @number: the key, for explanations. Returns 0, or -EACCES with @why filled.
 */
int layout_parse(struct mapping *next, uint32_t number, const uint8_t *entries, uint32_t bytes, struct refusal *why);

/**
 * Replaces the entries from number @offset on and keeps the others. There must be room for @offset + @bytes / 16. The
 * layout must be a list, or none, without gaps in front of an entry; else -EACCES with @why.
 */
int layout_replace(struct mapping *next, uint32_t number, uint32_t offset, const uint8_t *entries, uint32_t bytes,
		   struct refusal *why);

#endif
