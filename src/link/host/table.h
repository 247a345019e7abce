/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared by the files of link/host (host.h): the table of slots and of connections.
 *
 * The lock covers all of the table; `peers`, `peer` and `state` are also read without it. Any descriptor is open only
 * while the lock is held or the table has it, so a forked child, which inherits the held lock, can close all of them.
 * Callers of the functions below hold the lock, except for host_slot_name() and host_is_own_user().
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
	bool spare; /* no queue pair uses its numbers yet */
};

/* A service of the connection manager that this process has. Its door listens only if `listens` is set. */
struct own_service {
	struct host_door door; /* first member */
	struct own_service *next;
	uint64_t service;
	int mark; /* bound to the name that means "at all addresses"; -1: none */
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
	uint32_t accepts; /* atomic; 1: host_accept() was called with a socket to accept from */
};

extern struct host_table host_table;

/* A service requested from a peer. Connecting finds its owner, until that is certain. */
struct host_requested {
	struct host_requested *next;
	uint64_t service;
	/*
	 * host_carrier->services_released() before the latest time that connecting to the service led to this peer. If
	 * `certain`, the service still belongs to the peer while that number is the same.
	 */
	uint32_t released;
	bool certain;
};

/* The slots before the last one, which have reserve names only (DESIGN.md). */
#define HOST_RESERVE_SLOTS 2048
#define HOST_FIRST_RESERVE (HOST_SLOTS - 1 - HOST_RESERVE_SLOTS)

static inline uint32_t host_slot_of(uint32_t qpn)
{
	return qpn >> HOST_SLOT_BITS;
}

/** Returns the plain name of slot @number. */
struct host_name host_slot_name(uint32_t number);
/**
 * Returns a socket connected to the process that has @slot, -ECONNREFUSED if there is none, or another negative errno.
 * For a reserve slot, prefers a process of this user.
 */
int host_slot_connect(uint64_t slot);

/** Begins to accept at @door. Returns 0 or a negative errno. */
int host_door_watch(struct host_door *door);
/** Accepts the connections that wait at @door. */
void host_door_take(const struct host_door *door);

/**
 * Returns the peer that @connect(@number) connects to, made if there is none. @connect returns a socket, -ECONNREFUSED
 * if that process does not exist, or another negative errno. Returns NULL with errno ENOENT if it does not exist or
 * belongs to another user (explained), or another errno. Sets *@pid to the process, or 0 if unknown.
 */
struct host_peer *host_connect_to(int (*connect)(uint64_t number), uint64_t number, pid_t *pid);

/**
 * Returns false if the other process has ended, even if the device thread has not noticed it. An end may be seen
 * PEER_ALIVE_NS late. Any thread, also without the lock.
 */
bool host_peer_lives(struct host_peer *peer);

/** Returns true if process @pid has as many living connections with this one as a process needs. */
bool host_has_all_connections(pid_t pid);

/** Updates SO_PEERCRED of the listening sockets after a change of user. */
void host_follow_user(void);

/** Leaves all services. In a forked child. */
void host_leave_services(void);

/** Accepts the connections that wait at slots of this process. Those that have sent a hello become peers. */
void host_take_connections(void);
/** Closes connections that have not sent a hello. In a forked child. */
void host_forget_strangers(void);

/**
 * Makes a peer from the connected @socket and @memory, a checked memfd, and adds it to the table; with @created, passes
 * the memory to the other side. Takes ownership of both descriptors, also on failure, when it returns NULL with errno.
 */
struct host_peer *host_peer_add(int socket, pid_t pid, bool created, int memory);

/**
 * Returns true if the process at the other end of @socket, which may not be accepted yet, belongs to the present user
 * of this process. Otherwise, or if the user is unknown, explains it. Sets *@pid to the other process, or 0 if it is
 * not visible.
 */
bool host_same_user(int socket, pid_t *pid);
/** As host_same_user(), but explains nothing. Fills @other as far as known. Any thread. */
bool host_is_own_user(int socket, struct ucred *other);

#endif
