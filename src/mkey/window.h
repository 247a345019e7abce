/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory windows: what a bind must satisfy beyond a UMR (mlx5-formats 4.12; ibv_bind_mw(3); IBTA 10.6.7). */
#ifndef SOFTHCA_MKEY_WINDOW_H
#define SOFTHCA_MKEY_WINDOW_H

#include "mkey/walk.h"

/**
 * Checks the window mapping @next that a bind or an invalidation is about to publish, and ties it to its region.
 * Returns 0, or -EACCES with @why filled. That the QP may bind at all, the table of opcodes has decided
 * (format/wqe_opcodes.def).
 */
int window_check(const struct walk_access *access, struct mapping *next, struct refusal *why);

/** Counts the window mapping @map at its region (@change 1: it is published, -1: it no longer is). */
void window_count(struct hca *hca, const struct mapping *map, int change);

#endif
