/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the connection manager needs of the host: an identity, and ports on which it listens. A port is a number in a
 * port space (enum rdma_port_space); those of all processes of a host are in one table, which is the kernel's
 * (link/host/host.h). Ports that only one process needs to know, of the side that connects, are not in it.
 *
 * Datagrams are sent with gsi_send() (transport/gsi.h) and arrive by struct management (wire/mad.h).
 *
 * Any thread. Some system calls each, none of which blocks; no lock that struct management takes may be held. Claims
 * are not counted: a process with several ids at one port claims it once. In a forked child none is left.
 */
#ifndef SOFTHCA_CM_HOST_SERVICES_H
#define SOFTHCA_CM_HOST_SERVICES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct hca;

/**
 * The upper 14 bits of all communication ids of this process: @slot << MAD_COUNTER_BITS and a number that is unique in
 * the process make one that no other process of the host has. Claimed by the first call; another one in a forked child.
 * Returns 0, or -ENOSPC, -ENOMEM.
 */
int hca_manager_slot(struct hca *hca, uint32_t *slot);

/**
 * Makes @port of port space @space this process's. Returns 0; -EADDRINUSE: a process has it, this one or another of any
 * user; or a negative errno, such as -EMFILE.
 */
int hca_port_claim(struct hca *hca, uint16_t space, uint16_t port);
/** The same of any port that is free, from ip_local_port_range (ip(7)): -EADDRNOTAVAIL: there is none. */
int hca_port_claim_any(struct hca *hca, uint16_t space, uint16_t *port);
/** Tells other processes that @port, which was claimed, is at all addresses of the host (rdma_bind_addr(3)). */
void hca_port_mark(uint16_t space, uint16_t port);
/** True if the process that has @port has told so. */
bool hca_port_is_marked(uint16_t space, uint16_t port);
/**
 * From now on requests for @port, which was claimed, are this process's: from its own QPs, other processes and other
 * hosts. Returns 0, -ENOENT: it was not claimed; or another negative errno: nobody can come.
 */
int hca_port_listen(struct hca *hca, uint16_t space, uint16_t port);
/** Gives @port up, which may listen. Nothing if it was not claimed. */
void hca_port_release(struct hca *hca, uint16_t space, uint16_t port);
/** The process that listens on @port; 0: none, or it cannot be seen. For explanations. */
pid_t hca_port_owner(uint16_t space, uint16_t port);

#endif
