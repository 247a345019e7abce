/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names on a host, and the connections between its processes.
 *
 * A QP number is unique per host (per network namespace, which is a host): its upper bits are a slot that belongs to one
 * process, which proves it by listening on the abstract UNIX socket of that slot; the lower HOST_SLOT_BITS are an index in
 * the slot. A process that outgrows its slot claims another. Names vanish with their process: a crash leaves nothing.
 *
 * Two processes that talk have a connection: a stream socket, whose end tells that the other has gone, and over which, as
 * its first message, whoever connects passes a memfd and two eventfds. The memory belongs to the shm link (link/shm.h). The
 * connection can be used as soon as it was asked for: the other end finds it when its device thread accepts. Processes of
 * other users are refused by both sides (SO_PEERCRED); everything that comes from the other end is checked.
 *
 * Lock: that of the host table, taken to change it; host_peer_of() takes none (epoch section). A struct host_peer lives
 * until an epoch after it was removed.
 */
#ifndef SOFTHCA_LINK_HOST_H
#define SOFTHCA_LINK_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "hca/progress.h"

#define HOST_SLOT_BITS 10 /* QP numbers of a slot: 1024 */
#define HOST_SLOTS (1u << (24 - HOST_SLOT_BITS))

struct shm_peer;

struct host_peer {
	pid_t pid;    /* as SO_PEERCRED says; 0: in a PID namespace that this process cannot see */
	bool created; /* this process made the connection: it fills the first half of the memory and reads the second */
	uint32_t gone;             /* atomic; 1: the socket was hung up */
	uint8_t *memory;           /* shm_memory_size() bytes, shared */
	int wake_it;               /* eventfd that wakes the other side */
	struct watched_fd wake_me; /* eventfd by which it wakes this one */
	struct watched_fd socket;
	struct shm_peer *shm;   /* what the shm link makes of it */
	struct host_peer *next; /* in the list of all */
};

/**
 * Claims a slot: @first is its first QP number, of 1 << HOST_SLOT_BITS. The first slot of a host is not 0: numbers below
 * 1024 belong to nobody. Returns 0; or -ENOSPC: all are taken; or another negative errno: no sockets here, then @first is
 * a slot chosen at random, which nobody else will find. Any thread; called rarely.
 */
int host_claim_slot(uint32_t *first);

/** True if QP number @qpn is in a slot of this process. Any thread. */
bool host_owns(uint32_t qpn);

/**
 * The connection to the process that has the slot of @qpn, made if there is none. NULL: nobody has it, or of another user
 * (explained). Inside an epoch section; any thread; may be called under a QP's lock.
 */
struct host_peer *host_peer_of(uint32_t qpn);
/** The same, but only if there is one. Cheap: for each packet that is sent. */
struct host_peer *host_peer_known(uint32_t qpn);

/** All connections, for the poller: follow `next`. Inside an epoch section. */
struct host_peer *host_peers(void);

/** In a forked child: closes what was inherited; no slot is its own, no peer is known. */
void host_after_fork(void);

#endif
