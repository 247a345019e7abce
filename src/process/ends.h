/* SPDX-License-Identifier: BSD-2-Clause */
/* The other ends of connections, for warnings about misuse (src/lint/, link/shm/end.h). Any thread. */
#ifndef SOFTHCA_PROCESS_ENDS_H
#define SOFTHCA_PROCESS_ENDS_H

#include <infiniband/verbs.h>

#include "link/shm/end.h"

struct hca;

/** Returns true if packets of @hca to @gid leave the host. */
bool end_is_on_other_host(const struct hca *hca, const union ibv_gid *gid);

/**
 * Shows @attr to the process of this host that has queue pair attr->peer at @gid; does nothing if that is this process,
 * or not reached through shared memory. Connects if necessary. No lock of a link is held.
 */
void end_show(const struct hca *hca, const union ibv_gid *gid, const struct shm_end_attr *attr);

/** Removes what end_show() showed of queue pair @qpn. */
void end_hide(uint32_t qpn);

/** As shm_end_find(), for all connected processes. Any lock of the driver may be held. */
bool end_find(uint32_t qpn, uint32_t peer, struct shm_end_attr *attr);

#endif
