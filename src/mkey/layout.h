/* SPDX-License-Identifier: BSD-2-Clause */
/* Parses the translation entries of a UMR WQE into the layout of a mapping (mlx5-formats 1.9 and 1.10). Any thread. */
#ifndef SOFTHCA_MKEY_LAYOUT_H
#define SOFTHCA_MKEY_LAYOUT_H

#include "mkey/walk.h"

/**
 * Replaces the layout of @next (unpublished, with room for @bytes / 16 entries) by the one that @entries describe. @number: key
 * number, for explanations. Returns 0, or -EACCES with @why filled.
 */
int layout_parse(struct mapping *next, uint32_t number, const uint8_t *entries, uint32_t bytes, struct refusal *why);

/**
 * Replaces the @bytes / 16 entries from number @offset on, and keeps the others. There must be room for @offset + @bytes / 16.
 * Returns 0, or -EACCES with @why unless the layout is a list without gaps between its entries, or there is none yet.
 */
int layout_replace(struct mapping *next, uint32_t number, uint32_t offset, const uint8_t *entries, uint32_t bytes,
		   struct refusal *why);

#endif
