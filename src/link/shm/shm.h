/* SPDX-License-Identifier: BSD-2-Clause */
/* The shm link: carries runs of packets between two processes of a host through a pair of rings in shared memory. */
#ifndef SOFTHCA_LINK_SHM_SHM_H
#define SOFTHCA_LINK_SHM_SHM_H

struct host_carrier;
struct link;

/** Grants of this process, to be revoked through hca/grants.h. */
extern const struct grants shm_grants;

/** Returns the link to QPs of other processes of this host. */
const struct link *link_shm(void);

/** Callbacks for connections (link/host/host.h). */
extern const struct host_carrier shm_carrier;

#endif
