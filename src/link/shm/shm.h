/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The shm link: runs of packets through a pair of rings in memory that two processes of a host share, one ring for each
 * direction.
 */
#ifndef SOFTHCA_LINK_SHM_SHM_H
#define SOFTHCA_LINK_SHM_SHM_H

struct host_carrier;
struct link;

/** Grants of this process, for those who take them back (hca/grants.h). */
extern const struct grants shm_grants;

/** QPs of other processes of this host. */
const struct link *link_shm(void);

/** What connections are to the link (link/host/host.h). */
extern const struct host_carrier shm_carrier;

#endif
