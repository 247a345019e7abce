/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a descriptor of rsocket(7) stands for: a stream over a connection of RC, or datagrams over UD (rsocket/datagram.h).
 *
 * The descriptor is a real one: of a stream the event channel's, of datagrams a UDP socket's (rdma-cm 5). rsocket/table.h
 * leads from it to the object.
 *
 * Ownership: the table has one reference, each call on the descriptor one more while it lasts; the last one frees.
 *
 * Locks: `lock` covers all of an rsocket. It is held by calls on it, but not while they sleep (rsocket/wait.h), and taken
 * before all locks of rdma_cm ids and verbs objects. No thread holds two of them. There is no thread of the library's: what
 * arrives is looked at in the calls of the program, as in the real library but for its service threads.
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

/* What the program can set before there is a connection. A child begins with those of its listener. */
struct rsocket_settings {
	uint32_t send_entries, receive_entries;   /* RDMA_SQSIZE, RDMA_RQSIZE */
	uint32_t inline_bytes;                    /* RDMA_INLINE */
	uint32_t iomap_entries;                   /* RDMA_IOMAPSIZE: buffers that the peer may map for us */
	uint32_t send_bytes, receive_bytes;       /* SO_SNDBUF, SO_RCVBUF */
	uint32_t polling_us;                      /* how long a call looks before it sleeps */
	uint32_t wake_up_ms;                      /* the longest sleep of rpoll() */
	bool keep_alive, inline_urgent, no_delay; /* remembered, without effect (rsocket(7)) */
	bool reuse_address, own_family_only;
	struct linger linger;
};

struct rsocket {
	int fd;
	int family; /* AF_INET, AF_INET6 */
	pthread_mutex_t lock;
	uint32_t references; /* under the lock of the table */
	uint32_t process;    /* progress_generation() of the process that made it */
	bool nonblocking;    /* O_NONBLOCK as the program set it; the descriptor itself never blocks */
	bool closed;         /* rclose() has begun: calls that sleep return */
	int error;           /* SO_ERROR: a positive errno value, reported once */
	struct rsocket_settings settings;

	/* Sleeping (rsocket/wait.h). */
	pthread_cond_t wake_done; /* `wake_pending` has become false */
	uint32_t sleepers;
	bool wake_pending;

	struct stream stream;      /* of SOCK_STREAM */
	struct datagram *datagram; /* of SOCK_DGRAM; else NULL */
};

/** Reads /etc/rdma/rsocket, where an administrator may say other defaults (rsocket(7)). Any thread. */
void rsocket_defaults(struct rsocket_settings *settings);

/** A new rsocket without descriptor and in no table, with one reference. NULL with errno. */
struct rsocket *rsocket_new(int family, const struct rsocket_settings *settings);

/** Frees one that nobody refers to, and what it has, without a word to its peer (rsocket/object.c). */
void rsocket_free(struct rsocket *rs);

#endif
