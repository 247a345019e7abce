/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Abstract UNIX names of a host: binding, connecting, listing them. If another user has taken a plain name such as
 * softhca/1/slot/7, a process takes a reserve name: the plain name, a slash, and a random number (DESIGN.md).
 *
 * No locks; any thread. Reading /proc/net/unix takes about a microsecond per socket of the host.
 */
#ifndef SOFTHCA_LINK_HOST_NAMES_H
#define SOFTHCA_LINK_HOST_NAMES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "link/host/listing.h"

struct host_name {
	struct sockaddr_un address;
	socklen_t length; /* for bind(2) and connect(2) */
};

/** Returns the abstract name formatted by printf(3). */
__attribute__((format(printf, 1, 2))) struct host_name host_name(const char *format, ...);
/** Returns a number that other users cannot predict, as long as getrandom(2) works. */
uint64_t host_random(void);
/** Returns a new reserve name for the plain name @plain, given without its leading NUL. */
struct host_name host_name_reserve(const char *plain);

/** Returns a socket of @type bound to @name, -EADDRINUSE if another socket has the name, or another negative errno. */
int host_bind(const struct host_name *name, int type);
/**
 * Returns a socket of @type connected to @name, -ECONNREFUSED if no socket listens there, or another negative errno.
 * Never blocks.
 */
int host_connect(const struct host_name *name, int type);

/**
 * Returns a socket of @type connected to the first process of this user that listens at a reserve name of @plain, other
 * than @except (may be NULL), -ENOENT if no process does, or another negative errno.
 */
int host_reserve_connect(const char *plain, int type, const struct host_name *except);

#endif
