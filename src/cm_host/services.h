/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Host resources of the connection manager: an identity, and the ports on which it listens, in one table per host
 * (link/host/DESIGN.md, "Services"). Ports of the connecting side are not in it, because only one process uses them.
 *
 * Any thread. Each call makes some system calls, none of which blocks; no lock that struct management takes may be
 * held. Claims are not counted: a process with several ids at one port claims it once. A forked child has no claims.
 */
#ifndef SOFTHCA_CM_HOST_SERVICES_H
#define SOFTHCA_CM_HOST_SERVICES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct hca;

/**
 * Sets *@slot to the upper 14 bits of all communication ids of this process; the other MAD_COUNTER_BITS need only be
 * unique in the process. The first call claims it; a forked child claims another. Returns 0, -ENOSPC or -ENOMEM.
 */
int hca_manager_slot(struct hca *hca, uint32_t *slot);

/**
 * Claims @port of port space @space. Returns 0; -EADDRINUSE if any process, of any user, has it; or another negative
 * errno.
 */
int hca_port_claim(struct hca *hca, uint16_t space, uint16_t port);
/**
 * Reads ip_local_port_range (ip(7)) of the network namespace, or assumes Linux's default. A change may be seen
 * PORT_RANGE_NS late.
 */
void hca_port_range(uint32_t *first, uint32_t *last);
/** Announces that @port, which was claimed, is bound to all addresses of the host (rdma_bind_addr(3)). */
void hca_port_mark(uint16_t space, uint16_t port);
/** Returns true if the process that has @port has announced that. */
bool hca_port_is_marked(uint16_t space, uint16_t port);
/**
 * Directs requests for @port, from its own QPs, other processes and other hosts, to this process. Returns 0, -ENOENT if
 * it was not claimed, or another negative errno.
 */
int hca_port_listen(struct hca *hca, uint16_t space, uint16_t port);
/** Releases @port if it was claimed; it may be listening. */
void hca_port_release(struct hca *hca, uint16_t space, uint16_t port);
/** Returns the process that listens on @port, or 0 if none is known. For explanations. */
pid_t hca_port_owner(uint16_t space, uint16_t port);

#endif
