/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared by the files of link/host (host.h): the table of slots and of connections.
 *
 * The table belongs to the process, as QP numbers do. Its lock covers all of it; `peers`, `peer` and `state` are also
 * read without the lock. A socket, a connection or a descriptor of a memory is open only while the lock is held or the
 * table has it, so a forked child, which inherits the held lock, can close all of them.
 */
#ifndef SOFTHCA_LINK_HOST_TABLE_H
#define SOFTHCA_LINK_HOST_TABLE_H

#include <pthread.h>
#include <sys/socket.h>

#include "link/host/host.h"
#include "link/host/names.h"

enum host_slot_state {
	SLOT_FOREIGN,
	SLOT_OWN,
	SLOT_FORMER, /* of the parent process: QPs from before the fork still have its numbers */
};

/* A socket that listens at a name of this process. */
struct host_door {
	struct watched_fd listening; /* first member; fd -1: no socket could be opened */
	bool watched;
};

struct own_slot {
	struct host_door door; /* first member */
	struct own_slot *next;
	uint32_t number;
	bool spare; /* no queue pair uses a number of it yet */
};

/*
 * A service of the connection manager that this process has. Its door is bound, and listens only if `listens` is set.
 */
struct own_service {
	struct host_door door; /* first member */
	struct own_service *next;
	uint64_t service;
	int mark; /* socket bound to the name that means "at all addresses"; -1: none */
	bool listens;
	bool ending; /* being released; only a forked child still finds it, and closes it */
};

struct host_table {
	pthread_mutex_t lock;
	struct host_peer *peers;            /* atomic */
	struct host_peer *peer[HOST_SLOTS]; /* atomic; the known owner of each slot */
	uint8_t state[HOST_SLOTS];          /* atomic; enum host_slot_state */
	uint8_t was_known[HOST_SLOTS];      /* atomic; 1: `peer` has had an entry */
	struct own_slot *own;
	uint32_t own_count;
	struct own_service *services;
	uid_t user;       /* effective user of this process at the last host_follow_user() */
	uint32_t serial;  /* serial number of the newest connection */
	uint32_t accepts; /* atomic; 1: host_accept() was called and there is a socket to accept from */
};

extern struct host_table host_table;

/* A service that this process requested from a peer before it knew which slot the peer has. */
struct host_requested {
	struct host_requested *next;
	uint64_t service;
};

/*
 * The slots before the last one have reserve names only (link/host/names.h). A process takes one of them if the plain
 * names are taken. Numbers of these slots therefore never coincide with those of a slot with a plain name.
 */
#define HOST_RESERVE_SLOTS 2048
#define HOST_FIRST_RESERVE (HOST_SLOTS - 1 - HOST_RESERVE_SLOTS)

static inline uint32_t host_slot_of(uint32_t qpn)
{
	return qpn >> HOST_SLOT_BITS;
}

/** Returns the plain name of slot @number. */
struct host_name host_slot_name(uint32_t number);
/**
 * Returns a socket connected to the process that has slot @slot, -ECONNREFUSED if no process has it, or another
 * negative errno. For a reserve slot, prefers a process of this user. The caller holds the lock.
 */
int host_slot_connect(uint64_t slot);

/** Begins to accept at @door. Returns 0 or a negative errno. The caller holds the lock. */
int host_door_watch(struct host_door *door);
/** Accepts the connections that wait at @door. The caller holds the lock. */
void host_door_take(const struct host_door *door);

/**
 * Returns the peer that @connect(@number) connects to, made if there is none yet. @connect returns a socket,
 * -ECONNREFUSED if that process does not exist, or another negative errno. Returns NULL with errno ENOENT if it does
 * not exist or belongs to another user (explained); other errors mean that the peer could not be made. Sets *@pid to
 * the process, or 0 if it is not known. The caller holds the lock.
 */
struct host_peer *host_connect_to(int (*connect)(uint64_t number), uint64_t number, pid_t *pid);

/**
 * Returns true if process @pid has as many living connections with this one as a process needs. The caller holds the
 * lock.
 */
bool host_has_all_connections(pid_t pid);

/**
 * Updates the user recorded in the listening sockets if the user of this process has changed. Other processes that
 * cannot see this process in /proc read it from there (SO_PEERCRED). The caller holds the lock.
 */
void host_follow_user(void);

/** Leaves all services. In a forked child; the caller holds the lock. */
void host_leave_services(void);

/**
 * Accepts the connections that wait at slots of this process. Those that have sent a hello become peers. The caller
 * holds the lock. Any thread.
 */
void host_take_connections(void);
/** Closes connections that have not sent a hello. In a forked child. */
void host_forget_strangers(void);

/**
 * Makes a peer from the connected @socket and from @memory, a checked memfd, and adds it to the table; with @created,
 * passes the memory to the other side. Takes ownership of both descriptors, also on failure. Returns NULL with errno on
 * failure. The caller holds the lock.
 */
struct host_peer *host_peer_add(int socket, pid_t pid, bool created, int memory);

/**
 * Returns true if the process at the other end of @socket belongs to the present user of this process. The socket may
 * be in a listener's backlog, not accepted yet. Otherwise, or if the user is unknown, returns false and explains it.
 * Sets *@pid to the other process, or 0 if it is not visible. The caller holds the lock.
 */
bool host_same_user(int socket, pid_t *pid);
/** As host_same_user(), but explains nothing and needs no lock. Fills @other as far as it is known. Any thread. */
bool host_is_own_user(int socket, struct ucred *other);

#endif
