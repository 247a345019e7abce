/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Several hosts on one machine: declarations for `softhca hosts`, its hosts and `softhca on`.
 *
 * `softhca hosts` enters a network namespace of its own (and a user namespace if it is not root), which holds a bridge.
 * Each host is a child process in further namespaces: network, mount, UTS, IPC and, if /proc can be mounted, PID. The
 * child is the init process of its host: it starts the program of the host, serves `softhca on` at a UNIX socket, and
 * reaps children. Only processes of root keep privileges across exec.
 *
 * The directory of the run, which SOFTHCA_HOSTS names, contains the file that each host gets as /etc/hosts and one
 * socket per host, h1, h2, …. `softhca hosts` removes it.
 *
 * Each process has one thread.
 */
#ifndef SOFTHCA_TOOL_HOSTS_H
#define SOFTHCA_TOOL_HOSTS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/settings.h"

enum {
	HOSTS_MOST = 64,
	HOSTS_NAME_BYTES = 8, /* "h64" */
};

/** The directory of the run; the number of this host, from 1; their count. */
#define HOSTS_VARIABLE "SOFTHCA_HOSTS"
#define HOSTS_NUMBER_VARIABLE "SOFTHCA_HOST"
#define HOSTS_COUNT_VARIABLE "SOFTHCA_HOST_COUNT"

/** A run of `softhca hosts`; constant once the hosts are started. */
struct hosts_run {
	const struct settings *settings;
	char **program; /* program and arguments, run on each host; ends with NULL */
	char directory[PATH_MAX / 2];
	uint32_t count;
	uint32_t mtu;        /* of the interfaces, bytes */
	bool shell;          /* @program is a shell on the first host; the other hosts have none */
	bool presence;       /* make device files, as `softhca run` does */
	bool pid_namespaces; /* each host has one */
};

/** Pipes and sockets between `softhca hosts` and one of its hosts, as the child receives them. */
struct hosts_ends {
	int start;      /* a byte arrives when the network exists */
	int orders;     /* a datagram from `softhca hosts` is a signal number for the program */
	int status;     /* the child writes the wait status of its program, an int */
	int listener;   /* the socket of the host, see hosts_listen() */
	int out, error; /* of the program; -1: inherited */
};

/** Writes the name of host @number to @name. */
void hosts_name(uint32_t number, char name[HOSTS_NAME_BYTES]);

/** Writes the path of the socket of the host called @name to @path. Returns false if it does not fit. */
bool hosts_socket_path(const char *directory, const char *name, char *path, size_t size);

/* ---- network (hosts_network.c) ------------------------------------------------------------------------------------ */

/**
 * Enters a user namespace, if that is needed, and a network and a mount namespace. Exits with a message if the kernel refuses.
 */
void hosts_enter_namespaces(void);

/** Returns true if a process may mount /proc in its own PID namespace here. */
bool hosts_can_mount_proc(void);

/** Makes the bridge. Exits with a message if it cannot. */
void hosts_make_bridge(const struct hosts_run *run);

/**
 * Makes the interface eth0 of host @number, in the network namespace of process @pid, on the bridge. Exits with a
 * message if it cannot.
 */
void hosts_add_interface(const struct hosts_run *run, uint32_t number, pid_t pid);

/**
 * Brings up lo and eth0 with the addresses of host @number. Called in the network namespace of the host. Exits with a
 * message if it cannot.
 */
void hosts_set_addresses(uint32_t number);

/** Writes the file that hosts get as /etc/hosts. Exits with a message if it cannot. */
void hosts_write_names(const struct hosts_run *run);

/* ---- a host (hosts_init.c) ---------------------------------------------------------------------------------------- */

/** Forks a child in the namespaces of a new host. Returns 0 in the child; in the caller its PID, or -1 with errno. */
pid_t hosts_clone(const struct hosts_run *run);

/**
 * Turns the calling process, of hosts_clone(), into the init process of host @number. It exits, with all processes of
 * the host, when the other end of @ends->orders is closed.
 */
_Noreturn void hosts_init_main(const struct hosts_run *run, uint32_t number, const struct hosts_ends *ends);

/* ---- `softhca on` (hosts_remote.c) -------------------------------------------------------------------------------- */

/** Opens the socket at which host @number serves `softhca on`. Returns it, or -1 with errno. */
int hosts_listen(const struct hosts_run *run, uint32_t number);

/** A command of `softhca on` on this host. */
struct hosts_command {
	pid_t pid; /* process, and number of its process group */
	int socket;
	int received; /* end of file once the child has received the request; -1 after that */
};

/**
 * Accepts the requester that waits at the socket @listener and forks a child that receives its request and becomes the
 * command. Returns true and fills @command, or returns false if no requester was waiting or no child could be made.
 */
bool hosts_serve(int listener, struct hosts_command *command);

/** Returns the descriptor of @command to poll; its events are for hosts_serve_signal(). */
int hosts_serve_descriptor(const struct hosts_command *command);

/**
 * Handles input from the requester of @command: sends a signal number to the process group, and kills the group at the
 * end of the connection. Returns false once the connection has ended.
 */
bool hosts_serve_signal(struct hosts_command *command);

/** Closes the descriptors of @command. */
void hosts_serve_close(struct hosts_command *command);

/** Sends the wait status of @command to its requester and closes its descriptors. */
void hosts_serve_status(struct hosts_command *command, int status);

#endif
