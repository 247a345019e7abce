/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The object of a descriptor of rsocket(7): a stream over an RC connection, or datagrams over UD
 * (rsocket/datagram.h).
 *
 * The descriptor is a real one: that of the event channel for a stream, a UDP socket for datagrams (rdma-cm 5).
 * rsocket/table.h maps it to the object.
 *
 * Ownership: the table has one reference, and each call on the descriptor has one while it lasts. The last one frees
 * the object.
 *
 * Locks: `lock` covers all of an rsocket. Calls hold it, except while they sleep (rsocket/wait.h). It is taken before
 * all locks of rdma_cm IDs and verbs objects. No thread holds two of them. The library has no thread: arrivals are
 * handled in the calls of the program, as in the real library except for its service threads.
 */
#ifndef SOFTHCA_RSOCKET_OBJECTS_H
#define SOFTHCA_RSOCKET_OBJECTS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <rdma/rdma_cma.h>

#include "rsocket/stream.h"

struct datagram;

/* Settings that the program can change before the connection is made. A child inherits those of its listener. */
struct rsocket_settings {
	uint32_t send_entries, receive_entries;   /* RDMA_SQSIZE, RDMA_RQSIZE */
	uint32_t inline_bytes;                    /* RDMA_INLINE */
	uint32_t iomap_entries;                   /* RDMA_IOMAPSIZE: buffers that the peer may map for this end */
	uint32_t send_bytes, receive_bytes;       /* SO_SNDBUF, SO_RCVBUF */
	uint32_t polling_us;                      /* time for which a call polls before it sleeps */
	uint32_t wake_up_ms;                      /* the longest sleep of rpoll() */
	bool keep_alive, inline_urgent, no_delay; /* stored, without effect (rsocket(7)) */
	bool reuse_address, own_family_only;
	struct linger linger;
};

struct rsocket {
	int fd;
	int family; /* AF_INET, AF_INET6 */
	pthread_mutex_t lock;
	uint32_t references; /* under the lock of the table */
	uint32_t process;    /* progress_generation() of the process that made it */
	bool nonblocking;    /* O_NONBLOCK as set by the program; the descriptor itself never blocks */
	bool closed;         /* rclose() has begun: calls that sleep return */
	int error;           /* SO_ERROR: a positive errno value, reported once */
	struct rsocket_settings settings;

	/* For sleeping (rsocket/wait.h): */
	pthread_cond_t wake_done; /* signalled when `wake_pending` becomes false */
	uint32_t sleepers;
	bool wake_pending;

	struct stream stream;      /* for SOCK_STREAM */
	struct datagram *datagram; /* for SOCK_DGRAM; otherwise NULL */
};

/** Reads /etc/rdma/rsocket, where an administrator may set other defaults (rsocket(7)). Any thread. */
void rsocket_defaults(struct rsocket_settings *settings);

/** Returns a new rsocket with one reference, without a descriptor, and not in the table, or NULL with errno. */
struct rsocket *rsocket_new(int family, const struct rsocket_settings *settings);

/** Frees an rsocket without references and everything that it owns. Sends no message to its peer. (rsocket/object.c) */
void rsocket_free(struct rsocket *rs);

#endif
