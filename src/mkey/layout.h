/* SPDX-License-Identifier: BSD-2-Clause */
/* Parses the translation entries of UMR WQEs (mlx5-formats 1.9 and 1.10). Any thread. */
#ifndef SOFTHCA_MKEY_LAYOUT_H
#define SOFTHCA_MKEY_LAYOUT_H

#include "mkey/walk.h"

/**
 * Sets the layout of @next (unpublished, with room for @bytes / 16 entries). @number: key number, for explanations.
 * Returns 0, or -EACCES with @why.
 */
int layout_parse(struct mapping *next, uint32_t number, const uint8_t *entries, uint32_t bytes, struct refusal *why);

/**
 * Replaces the @bytes / 16 entries from number @offset on, for which there must be room. Returns 0, or -EACCES with @why
 * unless the layout is a list without gaps, or there is none yet.
 */
int layout_replace(struct mapping *next, uint32_t number, uint32_t offset, const uint8_t *entries, uint32_t bytes,
		   struct refusal *why);

#endif
