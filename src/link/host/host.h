/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names on a host, and the connections between its processes.
 *
 * A QP number is unique per user of a host (a network namespace is a host), and unique per host unless a user has taken the names of
 * slots. Its upper bits are a slot that belongs to one process, which proves it by listening on an abstract UNIX socket with a name
 * of that slot (names.h); the lower HOST_SLOT_BITS are an index in the slot. A process that outgrows its slot claims another. Names
 * vanish with their process: a crash leaves nothing.
 *
 * Two processes that talk have a connection: a socket (SOCK_SEQPACKET), whose end tells that the other has gone, and over
 * which, as its first message, whoever connects passes a memfd. The memory belongs to the shm link (link/shm/shm.h). The
 * connection can be used as soon as it was asked for: the other end finds it when its device thread accepts. Later messages
 * say nothing; they wake the other side. (Not an eventfd: the other side could make it block whoever writes to it.)
 * Processes of other users are refused by both sides (SO_PEERCRED); everything that comes from the other end is checked.
 *
 * Lock: that of the table, taken to change it; below it are the locks of progress.h and of the shm link's
 * host_carrier->begin(). Those who look a peer up take none (epoch section). A struct host_peer lives until an epoch after it
 * was removed.
 */
#ifndef SOFTHCA_LINK_HOST_HOST_H
#define SOFTHCA_LINK_HOST_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "progress/progress.h"
#include "wire/routes.h"

struct shm_peer;

struct host_peer {
	pid_t pid; /* as SO_PEERCRED says; 0: in a PID namespace that this process cannot see */
	/* Not 0. No other connection of this process has it, or had it: the `process` of struct packet_path. */
	uint32_t serial;
	bool created; /* this process made the connection: it fills the first half of the memory and reads the second */
	uint32_t gone;      /* atomic; 1: the socket was hung up */
	uint8_t *memory;    /* host_carrier->memory_size() bytes, shared; a file that cannot shrink */
	int process_memory; /* /proc/PID/mem of the other side, or -1; host_open_memory() */
	struct watched_fd socket;
	struct shm_peer *shm;     /* what the shm link makes of it */
	struct host_peer *next;   /* atomic; host_next() */
	struct host_asked *asked; /* services that were asked for there; under the lock of the table */
};

struct packet_path;
struct mad_address;

/* What connections carry: the shm link, which fills this in. */
struct host_carrier {
	/* Bytes of the memory of a connection. */
	size_t (*memory_size)(void);
	/*
	 * A connection was made: @peer->memory is mapped (all zero if this side created it, and then the other side does not
	 * have it yet). Makes @peer->shm and the poller, if it is the first. Returns 0 or a negative errno; then the connection is
	 * given up. The lock of the host table is held, perhaps a QP's lock: call nothing of this header.
	 */
	int (*begin)(struct host_peer *peer);
	/*
	 * The other side has gone: fails what waits for it (see link_resume). @peer->gone is set, nobody finds it any more, its
	 * memory is still there: what the other side had sent before it ended can be taken out. On the device thread, no lock
	 * held, in no epoch section.
	 */
	void (*gone)(struct host_peer *peer);
	/* An epoch after it was removed, or in a forked child, or if the connection was given up: frees @peer->shm. */
	void (*end)(struct host_peer *peer);
	/*
	 * Hands a frame, that came from another host and is for QP @qpn of another process of this one, to that process: @bytes
	 * from BTH to the end of the payload, without ICRC, which was checked. What cannot be handed on is lost, and counted.
	 */
	void (*forward)(uint32_t qpn, const struct packet_path *path, const uint8_t *bytes, size_t length);
	/* The same of a frame that is for the process @peer whatever its number. Inside an epoch section. */
	void (*forward_to)(struct host_peer *peer, const struct packet_path *path, const uint8_t *bytes, size_t length);
};

/* Set before a slot is claimed (process/devices.c). */
extern const struct host_carrier *host_carrier;

/**
 * Claims a slot: @first is its first QP number, of 1 << HOST_SLOT_BITS. The first slot of a host is not 0: numbers below
 * 1024 belong to nobody; nor the last: 0xffffff is the number of all multicast packets. Returns 0, or -ENOSPC: all are
 * taken, or this process has as many as LIMIT_MAX_QP allows. Where no socket can be had the slot is nobody else's to find:
 * its QPs reach those of this process only, which is explained. Any thread; called rarely.
 */
int host_claim_slot(uint32_t *first);

/**
 * The slot that all communication ids of this process are in (wire/mad.h), claimed if it has none. The same until a fork.
 * Returns 0, or as host_claim_slot(). Any thread.
 */
int host_process_slot(uint32_t *slot);

/** True if QP number @qpn is in a slot of this process. Any thread. */
bool host_owns(uint32_t qpn);

/**
 * From now on this process accepts connections: a QP may get packets from others. Starts the device thread; costs nothing
 * when it was called before, or if this process has no slot. Any thread; may be called under a QP's lock.
 */
void host_accept(void);

/**
 * The connection to the process that has the slot of @qpn, made if there is none. NULL with errno: ENOENT, nobody has it, or
 * one of another user (explained); another one, it could not be made, which may pass (explained). Of slots of this process:
 * a connection to itself. Inside an epoch section; any thread; may be called under a QP's lock.
 */
struct host_peer *host_peer_of(uint32_t qpn);

/**
 * The same, but only if the slot is known to belong to somebody connected. Cheap: for each packet that is sent. NULL does
 * not mean that there is no connection: a process has many slots, and of who connected to this one none is known until
 * host_peer_of() asks.
 */
struct host_peer *host_peer_known(uint32_t qpn);

/**
 * As host_peer_of(), for datagrams of the connection manager: where the process that is known to have the slot has ended, and its end has
 * not been dealt with yet, the process that has the slot now. A system call more.
 */
struct host_peer *host_living_peer_of(uint32_t qpn);

/**
 * Returns true if the connection with the serial number @connection leads to the process that has the slot of @qpn: two processes that
 * connect to each other at the same time have two. Processes whose ids this one cannot see count as one. *@process: the process at its
 * other end, 0 if it is not known. Inside an epoch section; any thread; may be called under a QP's lock.
 */
bool host_connection_leads_to(uint32_t connection, uint32_t qpn, pid_t *process);

/**
 * Returns true if no process of this host has the slot of @qpn: the process that had it has ended. Returns false if the answer
 * is not known. The answer may be TUNABLE_HOST_QUESTION_NS old. A few system calls, none of which blocks; any thread; may be called
 * under a QP's lock.
 */
bool host_slot_is_vacant(uint32_t qpn);

/*
 * Services of the connection manager (wire/mad.h, mad_service_has_name()). Whoever has one is bound to the abstract UNIX socket
 * of its name: so no two processes of a host have the same, and it is free when its process has ended, however. A process that
 * connects to that socket has a connection to the other, as one to a slot is. Those that @alone says are of this process only
 * have no socket: no other process can reach them (SOFTHCA_LINK=local).
 *
 * All of these: any thread; some system calls, none of which blocks; no lock of progress.h held.
 */

/** Makes @service this process's. Returns 0; -EADDRINUSE: it is somebody's, perhaps of this process; or another negative errno. */
int host_service_claim(uint64_t service, bool alone);
/**
 * Tells other processes that @service, which is of this process, is at all addresses of the host, until it is given up.
 * Where that cannot be told, for want of descriptors, it is not.
 */
void host_service_mark(uint64_t service);
/** True if the process that has @service, this one or another, has told so. */
bool host_service_is_marked(uint64_t service);
/** True if nobody has @service, or who has it does not listen. */
bool host_service_is_vacant(uint64_t service);
/** From now on it is found. Returns 0; -ENOENT: it is not of this process; or another negative errno. */
int host_service_listen(uint64_t service);
/** Gives it up. Connections that were made by it stay. Nothing if it is not of this process. */
void host_service_release(uint64_t service);
/** True if this process listens at @service. */
bool host_service_listens(uint64_t service);
/**
 * The process that has @service, if it listens; 0: nobody listens, or it cannot be seen. It may be this one. For explanations.
 */
pid_t host_service_owner(uint64_t service);
/**
 * The connection to the process that listens at @service, made if there is none. NULL with errno as host_peer_of(). Not of
 * services of this process. Inside an epoch section; not under a QP's lock.
 */
struct host_peer *host_peer_of_service(uint64_t service);
/** The same for whom a datagram of the connection manager is for, unless it is for all: by service or slot. */
struct host_peer *host_peer_for(const struct mad_address *address);

/** All connections, for the poller. Inside an epoch section. */
struct host_peer *host_peers(void);
static inline struct host_peer *host_next(const struct host_peer *peer)
{
	return __atomic_load_n(&peer->next, __ATOMIC_ACQUIRE);
}

/**
 * Wakes the device thread of the other side, which then arms and polls (progress.h). A system call that never blocks.
 * Inside an epoch section; any thread; may be called under a QP's lock.
 */
void host_wake(struct host_peer *peer);

/**
 * Opens the memory of the other side for reading and writing, as @peer->process_memory, which is closed with the connection. It is
 * that of the process that has the id of the other side now, and stays it: of another process that gets the id later, or
 * another program that the process executes, nothing is reached. True if that is possible. Inside an epoch section; any thread;
 * may be called under a QP's lock.
 */
bool host_open_memory(struct host_peer *peer);

/** Before a fork: takes the lock, so that no descriptor is open that the table does not know. */
void host_before_fork(void);
/** In the child: closes what was inherited; no slot is its own, no peer is known. Calls host_carrier->end() of each. */
void host_after_fork(bool child);

#endif
