/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Several hosts on one machine.
 *
 * `softhca hosts` enters a network namespace (and a user namespace if it is not root), which holds a bridge. Each host
 * is a child process in further namespaces: network, mount, UTS, IPC and, if /proc can be mounted, PID. As init process
 * it starts the program of the host, serves `softhca on` at a UNIX socket, and reaps children. Only processes of root
 * keep privileges across exec.
 *
 * The directory of the run, which `softhca hosts` removes, contains the hosts' /etc/hosts and their sockets h1, h2, ….
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

/** Directory of the run; number of this host, from 1; number of hosts. */
#define HOSTS_VARIABLE "SOFTHCA_HOSTS"
#define HOSTS_NUMBER_VARIABLE "SOFTHCA_HOST"
#define HOSTS_COUNT_VARIABLE "SOFTHCA_HOST_COUNT"

/** Constant once the hosts are started. */
struct hosts_run {
	const struct settings *settings;
	char **program; /* and arguments, for each host; ends with NULL */
	char directory[PATH_MAX / 2];
	uint32_t count;
	uint32_t mtu;        /* of interfaces, in bytes */
	bool shell;          /* @program is a shell, on the first host only */
	bool presence;       /* make device files, as `softhca run` */
	bool pid_namespaces; /* each host has one */
};

/** A host's ends of its connections with `softhca hosts`. */
struct hosts_ends {
	int start;      /* a byte arrives when the network exists */
	int orders;     /* each datagram is a signal number for the program */
	int status;     /* the child writes the wait status of its program, an int */
	int listener;   /* the socket of the host, see hosts_listen() */
	int out, error; /* of the program; -1: inherited */
};

void hosts_name(uint32_t number, char name[HOSTS_NAME_BYTES]);

/** Writes the path of the socket of host @name. Returns false if it does not fit. */
bool hosts_socket_path(const char *directory, const char *name, char *path, size_t size);

/* ---- network (hosts_network.c) ------------------------------------------------------------------------------------ */

/**
 * Enters a network and a mount namespace, if necessary in a user namespace. Exits with a message if the kernel refuses.
 */
void hosts_enter_namespaces(void);

/** Returns true if processes may mount /proc in their own PID namespaces. */
bool hosts_can_mount_proc(void);

/** Exits with a message on failure. */
void hosts_make_bridge(const struct hosts_run *run);

/** Makes eth0 on the bridge, for host @number, process @pid. Exits with a message on failure. */
void hosts_add_interface(const struct hosts_run *run, uint32_t number, pid_t pid);

/** Brings up lo and eth0, in the namespace of host @number. Exits with a message on failure. */
void hosts_set_addresses(uint32_t number);

/** Writes the hosts' /etc/hosts. Exits with a message on failure. */
void hosts_write_names(const struct hosts_run *run);

/* ---- a host (hosts_init.c) ---------------------------------------------------------------------------------------- */

/** Forks a child in the namespaces of a new host. Returns as fork(2). */
pid_t hosts_clone(const struct hosts_run *run);

/**
 * The child of hosts_clone() becomes the init process of host @number. It exits, with all processes of the host, when
 * the other end of @ends->orders is closed.
 */
_Noreturn void hosts_init_main(const struct hosts_run *run, uint32_t number, const struct hosts_ends *ends);

/* ---- `softhca on` (hosts_remote.c) -------------------------------------------------------------------------------- */

/** Returns the socket for `softhca on`, or -1 with errno. */
int hosts_listen(const struct hosts_run *run, uint32_t number);

/** A command of `softhca on`. */
struct hosts_command {
	pid_t pid; /* also its process group */
	int socket;
	int received; /* end of file once the child has received the request; then -1 */
};

/**
 * Accepts a requester and forks a child that receives its request and becomes the command. Returns false if no
 * requester was waiting or no child could be made.
 */
bool hosts_serve(int listener, struct hosts_command *command);

/** Returns the descriptor to poll for hosts_serve_signal(). */
int hosts_serve_descriptor(const struct hosts_command *command);

/**
 * Passes a signal number from the requester to the process group; kills the group and returns false at the end of the
 * connection.
 */
bool hosts_serve_signal(struct hosts_command *command);

void hosts_serve_close(struct hosts_command *command);

/** Also closes the descriptors. */
void hosts_serve_status(struct hosts_command *command, int status);

#endif
