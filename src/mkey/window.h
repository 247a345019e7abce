/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory windows: checks in addition to those of a UMR (mlx5-formats 4.12; ibv_bind_mw(3); IBTA 10.6.7). */
#ifndef SOFTHCA_MKEY_WINDOW_H
#define SOFTHCA_MKEY_WINDOW_H

#include "mkey/walk.h"

/**
 * Checks the unpublished window mapping @next and ties it to its region. Returns 0, or -EACCES with @why. Opcodes decide
 * whether the QP may bind at all (format/wqe_opcodes.def).
 */
int window_check(const struct walk_access *access, struct mapping *next, struct refusal *why);

/** Adds @change to the region's count of windows: 1 when @map is published, -1 when it is retired. */
void window_count(struct hca *hca, const struct mapping *map, int change);

#endif
