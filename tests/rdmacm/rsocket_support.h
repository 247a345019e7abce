/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the tests of rsocket(7): two ends in one process at 127.0.0.1. All fail the test on an error. */
#ifndef SOFTHCA_TESTS_RDMACM_RSOCKET_SUPPORT_H
#define SOFTHCA_TESTS_RDMACM_RSOCKET_SUPPORT_H

#include "support.h"

#include <fcntl.h>
#include <poll.h>
#include <rdma/rsocket.h>

/* Limit of each wait in these tests. */
#define LIMIT_MS 10000

/** Expects the call, which counts bytes, to return -1 with errno @expected. */
#define assert_bytes_errno(call, expected) assert_result(#call, (errno = 0, (int)(call)), expected)

struct rpair {
	int listener, client, server;
};

/** Returns a stream that listens at any port of 127.0.0.1. */
int new_rlistener(int backlog);
uint16_t rport_of(int socket);

void set_nonblocking(int socket, bool on);

/** Returns the result of rpoll() for @socket within @milliseconds; 0: no event. */
short rready(int socket, short events, int milliseconds);

/** Starts a non-blocking rconnect() to @port. */
int begin_rconnect(uint16_t port);

/** Makes two connected ends, both blocking, from @listener with its options, or from a new one (-1), which rend() closes. */
void rbegin(struct rpair *pair, int listener);
void rend(struct rpair *pair);

/** Fill @memory with bytes that depend only on their place in the stream, and check them. */
void fill_stream(void *memory, size_t bytes, size_t place);
bool is_of_stream(const void *memory, size_t bytes, size_t place);

#endif
