/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names on a host (a network namespace), and the connections between its processes; see DESIGN.md.
 *
 * The upper bits of a QP number are a slot, which belongs to one process; the lower HOST_SLOT_BITS are an index in it.
 * Two processes that communicate have a connection: a SOCK_SEQPACKET socket, and memory of the shm link
 * (link/shm/shm.h).
 *
 * Lock: that of the table, for changes. While it is held, the locks of progress.h and those of host_carrier->begin()
 * may be taken. Lookups take no lock but must run in an epoch section. A struct host_peer lives until an epoch after
 * its removal. Any thread may call.
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
	pid_t pid; /* SO_PEERCRED; 0: in a PID namespace that is not visible here */
	/* Not 0, never reused in this process: the `process` of struct packet_path. */
	uint32_t serial;
	bool created;       /* this process connected: it fills the first half of the memory and reads the second */
	uint32_t gone;      /* atomic; 1: the socket was hung up */
	uint8_t *memory;    /* host_carrier->memory_size() bytes, shared; a file that cannot shrink */
	int process_memory; /* /proc/PID/mem of the other side, or -1; host_open_memory() */
	struct watched_fd socket;
	uint64_t lived_ns; /* atomic; CLOCK_MONOTONIC when host_peer_lives() last looked and found it alive */
	struct shm_peer *shm;
	struct host_peer *next;           /* atomic; host_next() */
	struct host_requested *requested; /* services requested there; under the lock of the table */
};

struct packet_path;
struct mad_address;

/* Callbacks of the shm link. */
struct host_carrier {
	/* Returns the bytes of memory of a connection. */
	size_t (*memory_size)(void);
	/*
	 * Begins a connection. @peer->memory is mapped; if this side created it, it is all zero and not passed yet.
	 * Sets @peer->shm, and adds the poller for the first connection. Returns 0, or a negative errno to abandon the
	 * connection. The lock of the host table is held, and perhaps a QP's lock: must not call functions of this
	 * header.
	 */
	int (*begin)(struct host_peer *peer);
	/* Returns true if the other side has accepted a connection that this side created. */
	bool (*was_accepted)(const struct host_peer *peer);
	/*
	 * service_released() counts, in the memory, a service that this side has released; services_released() returns
	 * what the other side has counted. Under the lock of the table.
	 */
	void (*service_released)(struct host_peer *peer);
	uint32_t (*services_released)(const struct host_peer *peer);
	/*
	 * Ends the use of a connection after the other side has gone: fails the QPs that wait for room (link_resume()).
	 * @peer->gone is set, and lookups no longer find it. Messages sent before can still be handled. On the device
	 * thread, no lock held, outside epoch sections.
	 */
	void (*gone)(struct host_peer *peer);
	/* Frees @peer->shm: one epoch after the removal, in a forked child, or when the connection is abandoned. */
	void (*end)(struct host_peer *peer);
	/*
	 * Forwards a frame from another host to the process that has QP @qpn: @bytes from BTH to the end of the
	 * payload, without ICRC, which was checked. If that is not possible, the frame is lost and counted.
	 */
	void (*forward)(uint32_t qpn, const struct packet_path *path, const uint8_t *bytes, size_t length);
	/* As forward(), to @peer whatever the QP number. Inside an epoch section. */
	void (*forward_to)(struct host_peer *peer, const struct packet_path *path, const uint8_t *bytes, size_t length);
};

/* Set before a slot is claimed (process/devices.c). */
extern const struct host_carrier *host_carrier;

/**
 * Claims a slot and sets *@first to its first QP number, of 1 << HOST_SLOT_BITS. The first slot is not used, so numbers
 * below 1024 have no owner; nor is the last, because 0xffffff is the number of all multicast packets. Returns 0, or
 * -ENOSPC if all slots are taken or this process has as many as LIMIT_MAX_QP allows. QPs of a slot for which no socket
 * can be opened reach only this process, which is explained.
 */
int host_claim_slot(uint32_t *first);

/**
 * Sets *@slot to the slot of all communication IDs of this process (wire/mad.h), claimed if the process has none; it
 * stays the same until a fork. Returns 0, or an error as host_claim_slot().
 */
int host_process_slot(uint32_t *slot);

/** Returns true if @qpn is in a slot of this process. */
bool host_owns(uint32_t qpn);

/**
 * Makes this process accept connections, because a QP may receive packets from other processes. Starts the device
 * thread. Does nothing if called before, or without a slot. May be called under a QP's lock.
 */
void host_accept(void);

/**
 * Returns the connection to the process that has the slot of @qpn (possibly this one), made if there is none. Returns
 * NULL with errno ENOENT if no process has the slot, or one of another user (explained); any other errno (explained) is
 * a failure to connect, possibly temporary. Inside an epoch section, also under a QP's lock.
 */
struct host_peer *host_peer_of(uint32_t qpn);

/**
 * As host_peer_of(), but only if the slot is known to belong to a connected process, which host_peer_of() finds out.
 * Cheap enough for every packet.
 */
struct host_peer *host_peer_known(uint32_t qpn);

/** Returns true if host_peer_of() has ever found the slot of @qpn, in a process that accepted the connection. */
bool host_peer_was_known(uint32_t qpn);

/**
 * As host_peer_of(), for datagrams of the connection manager: if the process known to have the slot has ended, returns
 * its successor even before that end was handled. One system call more.
 */
struct host_peer *host_living_peer_of(uint32_t qpn);

/**
 * Returns true if connection @connection (serial number) leads to the process that has the slot of @qpn: two processes
 * may have two connections. Processes without visible IDs count as one. Sets *@process to the process at its other end,
 * or 0 if not known. Inside an epoch section, also under a QP's lock.
 */
bool host_connection_leads_to(uint32_t connection, uint32_t qpn, pid_t *process);

/**
 * Returns true if no process of this host has the slot of @qpn; false if that is not known. The answer may be
 * TUNABLE_HOST_QUESTION_NS old. A few system calls, none of which blocks; also under a QP's lock.
 */
bool host_slot_is_vacant(uint32_t qpn);

/*
 * Services of the connection manager (DESIGN.md; wire/mad.h, mad_service_has_name()). Services claimed with @alone have
 * no socket: other processes cannot reach them (SOFTHCA_LINK=local).
 *
 * For all of these: some system calls, none of which blocks; no lock of progress.h held.
 */

/** Claims @service. Returns 0, -EADDRINUSE if a process has it, possibly this one, or another negative errno. */
int host_service_claim(uint64_t service, bool alone);
/**
 * Marks @service, which this process has, as bound to all addresses of the host, until it is released. Without a free
 * descriptor, the mark is omitted.
 */
void host_service_mark(uint64_t service);
/** Returns true if the process that has @service has marked it. */
bool host_service_is_marked(uint64_t service);
/** Returns true if no process has @service, or its owner does not listen. */
bool host_service_is_vacant(uint64_t service);
/**
 * Makes @service visible to other processes. Returns 0, -ENOENT if this process does not have it, or another negative
 * errno.
 */
int host_service_listen(uint64_t service);
/** Releases @service if this process has it. Its connections stay. */
void host_service_release(uint64_t service);
/** Returns true if this process listens at @service. */
bool host_service_listens(uint64_t service);
/** Returns the process that listens at @service, or 0 if none is known. For explanations. */
pid_t host_service_owner(uint64_t service);
/**
 * Returns the connection to the process that listens at @service, made if there is none, or NULL with errno as
 * host_peer_of(). Not for services of this process. Inside an epoch section; not under a QP's lock.
 */
struct host_peer *host_peer_of_service(uint64_t service);
/**
 * Returns the connection for a datagram of the connection manager, by service or slot; not for one to all processes.
 */
struct host_peer *host_peer_for(const struct mad_address *address);

/** Returns the first connection. Inside an epoch section. */
struct host_peer *host_peers(void);
static inline struct host_peer *host_next(const struct host_peer *peer)
{
	return __atomic_load_n(&peer->next, __ATOMIC_ACQUIRE);
}

/**
 * Wakes the device thread of the other side, which then arms and polls (progress.h). A system call that never blocks.
 * Inside an epoch section, also under a QP's lock.
 */
void host_wake(struct host_peer *peer);

/**
 * Opens the memory of the other side for reading and writing, as @peer->process_memory, which is closed with the
 * connection and never leads to another process or program. Returns true on success. Inside an epoch section, also
 * under a QP's lock.
 */
bool host_open_memory(struct host_peer *peer);

/** Takes the lock, so that every open descriptor is recorded in the table. */
void host_before_fork(void);
/** In the child: closes what was inherited and forgets all slots and peers. Calls host_carrier->end() for each peer. */
void host_after_fork(bool child);

#endif
