/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The other ends of connections, for warnings about misuse (src/lint/): where they are, and which attributes other
 * processes of the host show (link/shm/end.h).
 */
#ifndef SOFTHCA_PROCESS_ENDS_H
#define SOFTHCA_PROCESS_ENDS_H

#include <infiniband/verbs.h>

#include "link/shm/end.h"

struct hca;

/** Returns true if packets of @hca to @gid leave the host. Any thread. */
bool end_is_on_other_host(const struct hca *hca, const union ibv_gid *gid);

/**
 * Shows @attr to the process of this host that has queue pair attr->peer at @gid; does nothing if that is this process, or not
 * reached through shared memory. Connects to the process if necessary. Any thread; no lock of a link is held.
 */
void end_show(const struct hca *hca, const union ibv_gid *gid, const struct shm_end_attr *attr);

/** Removes what end_show() has shown of queue pair @qpn. Any thread. */
void end_hide(uint32_t qpn);

/** As shm_end_find(), for all processes that this one is connected to. Any thread, with any lock of the driver held. */
bool end_find(uint32_t qpn, uint32_t peer, struct shm_end_attr *attr);

#endif
