/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Attributes of connected queue pairs that two processes with warnings (src/lint/) show to each other in the memory of
 * their connection. Only warnings may depend on them: another queue pair may take the place of one. Any thread; inside
 * an epoch section.
 */
#ifndef SOFTHCA_LINK_SHM_END_H
#define SOFTHCA_LINK_SHM_END_H

#include <stdbool.h>
#include <stdint.h>

struct host_peer;

/* Marks attributes that were set. */
#define SHM_END_SET UINT32_C(0x80000000)

struct shm_end_attr {
	uint32_t qpn, peer;      /* peer 0: none */
	uint32_t sq_psn, rq_psn; /* 24 bits, with SHM_END_SET */
	uint32_t sgid_index;     /* with SHM_END_SET */
	uint32_t roce_version;   /* of that GID */
	uint32_t grants;         /* max_dest_rd_atomic */
};

/* An entry in the memory of a connection. */
struct shm_end {
	uint32_t sequence; /* atomic; odd while the entry is being written */
	struct shm_end_attr attr;
};

/** Shows @attr to the process of @host. */
void shm_end_show(const struct host_peer *host, const struct shm_end_attr *attr);

/** Removes what is shown of queue pair @qpn to the process of @host. */
void shm_end_hide(const struct host_peer *host, uint32_t qpn);

/** Copies to @attr what the process of @host shows of queue pair @qpn connected to @peer, or returns false. */
bool shm_end_find(const struct host_peer *host, uint32_t qpn, uint32_t peer, struct shm_end_attr *attr);

#endif
