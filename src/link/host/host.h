/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names on a host, and the connections between its processes.
 *
 * A host is a network namespace. A QP number is unique per user of a host, and unique per host unless a user has taken
 * names of slots that are not theirs. Its upper bits are the number of a slot, which belongs to one process. The
 * process proves this by listening on an abstract UNIX socket named after the slot (names.h). The lower HOST_SLOT_BITS
 * are an index in the slot. A process that outgrows its slot claims another. Names vanish with their process, so a
 * crash leaves nothing to clean up.
 *
 * Two processes that communicate have a connection: a SOCK_SEQPACKET socket. Its end shows that the other process has
 * gone. In its first message the connecting process passes a memfd. Its memory belongs to the shm link
 * (link/shm/shm.h). The connecting process can send at once; the other process receives the data when its device thread
 * accepts the connection. Later messages have no content; they wake the other side. (An eventfd would not do: its owner
 * could make the process that writes to it block.) Both sides refuse processes of other users (SO_PEERCRED), and check
 * everything that comes from the other end.
 *
 * Lock: that of the table, for changes. While it is held, the locks of progress.h and those of the shm link's
 * host_carrier->begin() may be taken. Lookups take no lock but must run in an epoch section. A struct host_peer lives
 * until an epoch after its removal.
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
	pid_t pid; /* as in SO_PEERCRED; 0: in a PID namespace that is not visible here */
	/* Serial number, not 0, never reused in this process: the `process` of struct packet_path. */
	uint32_t serial;
	bool created; /* this process made the connection: it fills the first half of the memory and reads the second */
	uint32_t gone;      /* atomic; 1: the socket was hung up */
	uint8_t *memory;    /* host_carrier->memory_size() bytes, shared; a file that cannot shrink */
	int process_memory; /* /proc/PID/mem of the other side, or -1; host_open_memory() */
	struct watched_fd socket;
	struct shm_peer *shm;             /* the link's state of the connection */
	struct host_peer *next;           /* atomic; host_next() */
	struct host_requested *requested; /* services requested there; under the lock of the table */
};

struct packet_path;
struct mad_address;

/* Callbacks of the shm link, which uses the connections. */
struct host_carrier {
	/* Returns the bytes of memory of a connection. */
	size_t (*memory_size)(void);
	/*
	 * Begins a connection. @peer->memory is mapped; if this side created it, it is all zero, and has not been
	 * passed to the other side yet. Sets @peer->shm, and adds the poller for the first connection. Returns 0 or a
	 * negative errno, after which the connection is abandoned. The lock of the host table is held, and perhaps a
	 * QP's lock: begin() must not call functions of this header.
	 */
	int (*begin)(struct host_peer *peer);
	/*
	 * Ends the use of a connection after the other side has gone: fails the QPs that wait for room (see
	 * link_resume). @peer->gone is set, and lookups no longer find it. Its memory still exists, so messages that
	 * the other side sent before it ended can be handled. Runs on the device thread, with no lock held, outside
	 * epoch sections.
	 */
	void (*gone)(struct host_peer *peer);
	/*
	 * Frees @peer->shm. Called one epoch after the removal, in a forked child, or when the connection is abandoned.
	 */
	void (*end)(struct host_peer *peer);
	/*
	 * Forwards a frame from another host to the process of this host that has QP @qpn: @bytes from BTH to the end
	 * of the payload, without ICRC, which was checked. A frame that cannot be forwarded is lost and counted.
	 */
	void (*forward)(uint32_t qpn, const struct packet_path *path, const uint8_t *bytes, size_t length);
	/* As forward(), to process @peer whatever the QP number. Inside an epoch section. */
	void (*forward_to)(struct host_peer *peer, const struct packet_path *path, const uint8_t *bytes, size_t length);
};

/* Set before a slot is claimed (process/devices.c). */
extern const struct host_carrier *host_carrier;

/**
 * Claims a slot and sets *@first to its first QP number, of 1 << HOST_SLOT_BITS. The first slot of a host is not used,
 * so numbers below 1024 have no owner; nor is the last, because 0xffffff is the number of all multicast packets.
 * Returns 0, or -ENOSPC if all slots are taken or this process has as many as LIMIT_MAX_QP allows. If no socket can be
 * opened, other processes cannot find the slot: its QPs reach those of this process only, which is explained. Any
 * thread; called rarely.
 */
int host_claim_slot(uint32_t *first);

/**
 * Sets *@slot to the slot from which all communication IDs of this process come (wire/mad.h). Claims one if the process
 * has none; it stays the same until a fork. Returns 0, or an error as host_claim_slot(). Any thread.
 */
int host_process_slot(uint32_t *slot);

/** Returns true if QP number @qpn is in a slot of this process. Any thread. */
bool host_owns(uint32_t qpn);

/**
 * Makes this process accept connections, because a QP may receive packets from other processes. Starts the device
 * thread. Does nothing if it was called before, or if this process has no slot. Any thread; may be called under a QP's
 * lock.
 */
void host_accept(void);

/**
 * Returns the connection to the process that has the slot of @qpn, made if there is none. Returns NULL with errno
 * ENOENT if no process has the slot, or one of another user (explained); any other errno (explained) is a failure to
 * connect, possibly a temporary one. For a slot of this process, returns a connection to itself. Inside an epoch
 * section; any thread; may be called under a QP's lock.
 */
struct host_peer *host_peer_of(uint32_t qpn);

/**
 * As host_peer_of(), but only if the slot is known to belong to a connected process. Cheap enough to be called for
 * every packet sent. NULL does not mean that no connection exists: a process has many slots, and the slots of a
 * process that connected to this one are unknown until host_peer_of() finds them.
 */
struct host_peer *host_peer_known(uint32_t qpn);

/** Returns true if host_peer_of() has ever found the slot of @qpn, whose owner may have ended since. Any thread. */
bool host_peer_was_known(uint32_t qpn);

/**
 * As host_peer_of(), for datagrams of the connection manager. If the process that is known to have the slot has ended,
 * and its end has not been handled yet, returns the process that has the slot now. One system call more.
 */
struct host_peer *host_living_peer_of(uint32_t qpn);

/**
 * Returns true if the connection with serial number @connection leads to the process that has the slot of @qpn: two
 * processes that connect to each other at the same time have two connections. Processes without visible IDs count as
 * one. Sets *@process to the process at its other end, or 0 if that is not known. Inside an epoch section; any thread;
 * may be called under a QP's lock.
 */
bool host_connection_leads_to(uint32_t connection, uint32_t qpn, pid_t *process);

/**
 * Returns true if no process of this host has the slot of @qpn, that is, the process that had it has ended. Returns
 * false if the answer is not known. The answer may be TUNABLE_HOST_QUESTION_NS old. A few system calls, none of which
 * blocks; any thread; may be called under a QP's lock.
 */
bool host_slot_is_vacant(uint32_t qpn);

/*
 * Services of the connection manager (wire/mad.h, mad_service_has_name()). The process that has a service is bound to
 * the abstract UNIX socket of its name. So no two processes of a host have the same service, and a service becomes free
 * when its process ends, however it ends. Connecting to that socket makes a connection to the process, as connecting to
 * a slot does. Services claimed with @alone have no socket: other processes cannot reach them (SOFTHCA_LINK=local).
 *
 * For all of these: any thread; some system calls, none of which blocks; no lock of progress.h held.
 */

/** Claims @service. Returns 0, -EADDRINUSE if a process has it, possibly this one, or another negative errno. */
int host_service_claim(uint64_t service, bool alone);
/**
 * Marks @service, which this process has, as bound to all addresses of the host, visibly for other processes, until it
 * is released. If no descriptor is available, the mark is omitted.
 */
void host_service_mark(uint64_t service);
/** Returns true if the process that has @service, this one or another, has marked it. */
bool host_service_is_marked(uint64_t service);
/** Returns true if no process has @service, or its owner does not listen. */
bool host_service_is_vacant(uint64_t service);
/**
 * Makes @service visible to other processes. Returns 0, -ENOENT if this process does not have it, or another negative
 * errno.
 */
int host_service_listen(uint64_t service);
/** Releases @service. Its connections stay. Does nothing if this process does not have it. */
void host_service_release(uint64_t service);
/** Returns true if this process listens at @service. */
bool host_service_listens(uint64_t service);
/**
 * Returns the process that listens at @service, possibly this one, or 0 if none does or it is not visible. For
 * explanations.
 */
pid_t host_service_owner(uint64_t service);
/**
 * Returns the connection to the process that listens at @service, made if there is none. NULL with errno as
 * host_peer_of(). Not for services of this process. Inside an epoch section; not under a QP's lock.
 */
struct host_peer *host_peer_of_service(uint64_t service);
/**
 * Returns the connection for a datagram of the connection manager that is not for all processes: by service or slot.
 */
struct host_peer *host_peer_for(const struct mad_address *address);

/** Returns the first connection, for the poller. Inside an epoch section. */
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
 * Opens the memory of the other side for reading and writing, as @peer->process_memory, which is closed with the
 * connection. The descriptor refers to the process that has that ID now. It never reaches another process that gets the
 * ID later, or another program that the process executes. Returns true on success. Inside an epoch section; any thread;
 * may be called under a QP's lock.
 */
bool host_open_memory(struct host_peer *peer);

/** Before a fork: takes the lock, so that every open descriptor is recorded in the table. */
void host_before_fork(void);
/** In the child: closes what was inherited and forgets all slots and peers. Calls host_carrier->end() for each peer. */
void host_after_fork(bool child);

#endif
