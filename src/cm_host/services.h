/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Host resources of the connection manager: an identity, and ports on which it listens. A port is a number in a port
 * space (enum rdma_port_space). All processes of a host share one table of ports: the names of UNIX sockets in the
 * kernel (link/host/host.h). Ports of the connecting side are not in it, because only one process uses them.
 *
 * Datagrams are sent with gsi_send() (transport/gsi/gsi.h) and received through struct management (wire/mad.h).
 *
 * Any thread may call. Each call makes some system calls, none of which blocks; no lock that struct management takes
 * may be held. Claims are not counted: a process with several ids at one port claims it once. A forked child has no
 * claims.
 */
#ifndef SOFTHCA_CM_HOST_SERVICES_H
#define SOFTHCA_CM_HOST_SERVICES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct hca;

/**
 * Sets *@slot to the upper 14 bits of all communication ids of this process. @slot << MAD_COUNTER_BITS plus a number
 * that is unique in the process is an id that no other process of the host has. The first call claims it; a forked
 * child claims another one. Returns 0, -ENOSPC or -ENOMEM.
 */
int hca_manager_slot(struct hca *hca, uint32_t *slot);

/**
 * Claims @port of port space @space for this process. Returns 0; -EADDRINUSE if any process, of any user, has it
 * already; or another negative errno, such as -EMFILE.
 */
int hca_port_claim(struct hca *hca, uint16_t space, uint16_t port);
/** As hca_port_claim(), for any free port from ip_local_port_range (ip(7)). Returns -EADDRNOTAVAIL if all are taken. */
int hca_port_claim_any(struct hca *hca, uint16_t space, uint16_t *port);
/**
 * Announces to other processes that @port, which was claimed, is bound to all addresses of the host
 * (rdma_bind_addr(3)).
 */
void hca_port_mark(uint16_t space, uint16_t port);
/** Returns true if the process that has @port has announced that. */
bool hca_port_is_marked(uint16_t space, uint16_t port);
/**
 * Directs requests for @port, which was claimed, to this process: from its own QPs, other processes and other hosts.
 * Returns 0, -ENOENT if it was not claimed, or another negative errno if no request can arrive.
 */
int hca_port_listen(struct hca *hca, uint16_t space, uint16_t port);
/** Releases @port, which may be listening. Does nothing if it was not claimed. */
void hca_port_release(struct hca *hca, uint16_t space, uint16_t port);
/** Returns the process that listens on @port, or 0 if there is none or it cannot be determined. For explanations. */
pid_t hca_port_owner(uint16_t space, uint16_t port);

#endif
