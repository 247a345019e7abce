/* SPDX-License-Identifier: BSD-2-Clause */
/* What the tests of rsocket(7) share: two ends in one process at 127.0.0.1. All fail the test if something is wrong. */
#ifndef SOFTHCA_TESTS_RDMACM_RSOCKET_SUPPORT_H
#define SOFTHCA_TESTS_RDMACM_RSOCKET_SUPPORT_H

#include "support.h"

#include <fcntl.h>
#include <poll.h>
#include <rdma/rsocket.h>

/* Nothing in these tests takes longer. */
#define LIMIT_MS 10000

/** The call, which counts bytes, returns -1 with errno @expected. */
#define assert_bytes_errno(call, expected) assert_result(#call, (errno = 0, (int)(call)), expected)

struct rpair {
	int listener, client, server;
};

/** A stream that listens at any port of 127.0.0.1; which. */
int new_rlistener(int backlog);
uint16_t rport_of(int socket);

void set_nonblocking(int socket, bool on);

/** What rpoll() says of @socket within @milliseconds; 0: nothing. */
short rready(int socket, short events, int milliseconds);

/** A non-blocking rconnect() to @port that has begun. */
int begin_rconnect(uint16_t port);

/** Two connected ends, both blocking; @listener with its options, or -1: a new one, which rend() closes. */
void rbegin(struct rpair *pair, int listener);
void rend(struct rpair *pair);

/** Fills @memory with bytes that depend on their place in the stream alone; whether it has them. */
void fill_stream(void *memory, size_t bytes, size_t place);
bool is_of_stream(const void *memory, size_t bytes, size_t place);

#endif
