/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of the host part (link/host/host.h) share: the table of slots and of connections.
 *
 * The table belongs to the process, as QP numbers do. Its lock covers all of it; `peers`, `peer` and `state` are read
 * without the lock, too. A socket, a descriptor of a memory or a connection is open only while the lock is held or the
 * table knows it: so a forked child, which takes the lock with it, can close all of them.
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
	SLOT_FORMER, /* of the process that this one was forked from: QPs of that time still have its numbers */
};

/* A socket that listens on a name of this process. */
struct host_door {
	struct watched_fd listening; /* the first; fd -1: no socket could be had */
	bool watched;
};

struct own_slot {
	struct host_door door; /* the first */
	struct own_slot *next;
	uint32_t number;
	bool spare; /* no numbers of it are given to queue pairs yet */
};

/* A service of the connection manager that is this process's; its door is bound and, only if it `listens`, listens. */
struct own_service {
	struct host_door door; /* the first */
	struct own_service *next;
	uint64_t service;
	int mark; /* the socket of the name that says "at all addresses"; -1: none */
	bool listens;
	bool ending; /* found by nobody but a forked child, which closes it */
};

struct host_table {
	pthread_mutex_t lock;
	struct host_peer *peers;            /* atomic */
	struct host_peer *peer[HOST_SLOTS]; /* atomic; who has a slot, if known */
	uint8_t state[HOST_SLOTS];          /* atomic; enum host_slot_state */
	struct own_slot *own;
	uint32_t own_count;
	struct own_service *services;
	uid_t user;       /* effective user of this process at the last host_follow_user() */
	uint32_t serial;  /* of the connection that was made last */
	uint32_t accepts; /* atomic; 1: host_accept() was called and there is something to accept with */
};

extern struct host_table host_table;

/* What this process asked a peer for before it knew a slot of it. */
struct host_asked {
	struct host_asked *next;
	uint64_t service;
};

/*
 * The last slots but one have reserve names only (link/host/names.h). A process takes one of them when plain names are taken, so a
 * number of theirs is never given by a plain name as well.
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
 * Returns a socket connected to the process that has slot @slot; -ECONNREFUSED: no process has it; or another negative errno. Of a
 * reserve slot: to a process of this user, if one has it. The lock is held.
 */
int host_slot_connect(uint64_t slot);

/** Begins to accept at @door. Returns 0 or a negative errno. The lock is held. */
int host_door_watch(struct host_door *door);
/** Takes the connections that wait at @door. The lock is held. */
void host_door_take(const struct host_door *door);

/**
 * Returns the peer whose process @connect(@number) connects to; makes the peer if there is none yet. @connect returns a socket,
 * -ECONNREFUSED if there is no such process, or another negative errno. NULL with errno: ENOENT: no such process, or one of
 * another user (explained); otherwise the peer could not be made. @pid: the process, 0 if it is not known. The lock is held.
 */
struct host_peer *host_connect_to(int (*connect)(uint64_t number), uint64_t number, pid_t *pid);

/** Returns true if process @pid has as many living connections with this one as a process needs. The lock is held. */
bool host_has_all_connections(pid_t pid);

/**
 * Makes the names of this process those of its present user, if that has changed: other processes see it by SO_PEERCRED where they
 * cannot see this process in /proc. The lock is held.
 */
void host_follow_user(void);

/** In a forked child: leaves all services. The lock is held. */
void host_leave_services(void);

/**
 * Takes the connections that wait at slots of this process. Those that have said hello become peers. The lock is held. Any
 * thread.
 */
void host_take_connections(void);
/** In a forked child: closes what has not said hello. */
void host_forget_strangers(void);

/**
 * Makes a peer of the connected @socket and of @memory, a checked memfd, and adds it to the table; with @created the other
 * side gets the memory. Takes both descriptors, also if it fails. Returns NULL with errno. The lock is held.
 */
struct host_peer *host_peer_add(int socket, pid_t pid, bool created, int memory);

/**
 * Returns true if the process at the other end of @socket is of the present user of this process. That process may be a listening
 * one that has not accepted yet. If not, or if that is not known, the refusal is explained. @pid: the other process; 0 if this
 * one cannot see it. The lock is held.
 */
bool host_same_user(int socket, pid_t *pid);
/** As host_same_user(), but explains nothing and needs no lock. @other: the other process, as far as it is known. Any thread. */
bool host_is_own_user(int socket, struct ucred *other);

#endif
