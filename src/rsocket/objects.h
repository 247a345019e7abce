/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The object of a descriptor of rsocket(7): a stream over an RC connection, or datagrams over UD (rsocket/datagram.h).
 *
 * The descriptor is that of the event channel for a stream, a UDP socket for datagrams (rdma-cm 5).
 *
 * Ownership: the table (rsocket/table.h) and each call in progress have a reference. The last one frees the object.
 *
 * Locks: `lock` covers all of an rsocket. Calls hold it, except while they sleep (rsocket/wait.h). It is taken before
 * locks of rdma_cm IDs and verbs objects; no thread holds two. The library has no thread: calls of the program handle
 * arrivals, as in the real library except for its service threads.
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

/* The program can change these before the connection is made. A child inherits them from its listener. */
struct rsocket_settings {
	uint32_t send_entries, receive_entries;   /* RDMA_SQSIZE, RDMA_RQSIZE */
	uint32_t inline_bytes;                    /* RDMA_INLINE */
	uint32_t iomap_entries;                   /* RDMA_IOMAPSIZE: buffers of this end that the peer may map */
	uint32_t send_bytes, receive_bytes;       /* SO_SNDBUF, SO_RCVBUF */
	uint32_t polling_us;                      /* time that a call polls before it sleeps */
	uint32_t wake_up_ms;                      /* longest sleep of rpoll() */
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
	bool nonblocking;    /* as set by the program; the descriptor itself never blocks */
	bool closed;         /* rclose() has begun: calls that sleep return */
	int error;           /* SO_ERROR: a positive errno value, reported once */
	struct rsocket_settings settings;

	/* For sleeping (rsocket/wait.h): */
	pthread_cond_t wake_done; /* `wake_pending` became false */
	uint32_t sleepers;
	bool wake_pending;

	struct stream stream;      /* for SOCK_STREAM */
	struct datagram *datagram; /* for SOCK_DGRAM; otherwise NULL */
};

/** Applies /etc/rdma/rsocket (rsocket(7)). Any thread. */
void rsocket_defaults(struct rsocket_settings *settings);

/** Returns a new rsocket with one reference and no descriptor, or NULL with errno. */
struct rsocket *rsocket_new(int family, const struct rsocket_settings *settings);

/** Frees an rsocket without references. Sends no message to its peer. (rsocket/object.c) */
void rsocket_free(struct rsocket *rs);

#endif
