/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the tests of librdmacm: ids on channels, two ends in one process. All fail the test on an error. */
#ifndef SOFTHCA_TESTS_RDMACM_SUPPORT_H
#define SOFTHCA_TESTS_RDMACM_SUPPORT_H

#include "test_case.h"

#include <netinet/in.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#define TIMEOUT_MS 2000

/* Expect the call to return 0, or -1 with errno @expected. */
#define assert_success(call) assert_result(#call, (call), 0)
#define assert_errno(call, expected) assert_result(#call, (errno = 0, (call)), expected)
void assert_result(const char *call, int result, int expected);

/** Return 127.0.0.1 with @port in host order, and the unspecified address. */
struct sockaddr *loopback(uint16_t port);
struct sockaddr *any_address(uint16_t port);

struct rdma_event_channel *new_channel(void);
struct rdma_cm_id *new_id(struct rdma_event_channel *channel, enum rdma_port_space space);

/** Returns true if an event arrives on @channel within @milliseconds. */
bool has_event(struct rdma_event_channel *channel, int milliseconds);

/** Returns the next event of @channel, not acknowledged; it must be of @type and arrive within ten seconds. */
struct rdma_cm_event *next_event(struct rdma_event_channel *channel, enum rdma_cm_event_type type);
/** As next_event(), and acknowledges the event. */
void expect_event(struct rdma_event_channel *channel, enum rdma_cm_event_type type);

/** Take an IDLE id to RESOLVED, or ROUTED, towards 127.0.0.1:@port. */
void resolve_address(struct rdma_cm_id *id, uint16_t port);
void resolve(struct rdma_cm_id *id, uint16_t port);

/** Returns a listener at any port of 127.0.0.1. */
struct rdma_cm_id *new_listener(struct rdma_event_channel *channel, enum rdma_port_space space);
uint16_t port_of(struct rdma_cm_id *id);

/** Creates a small QP with the library's CQs. */
void new_qp(struct rdma_cm_id *id);

/* Two ends of a connection with QPs, each on its own channel. */
struct ends {
	struct rdma_event_channel *client_channel, *server_channel;
	struct rdma_cm_id *client, *listener, *server;
};

/** Creates channels, a listener and a client in ROUTED with a QP. */
void begin(struct ends *ends, enum rdma_port_space space);
/** Calls rdma_connect() and rdma_accept() and waits until both ends are ESTABLISHED. */
void establish(struct ends *ends);
/** Destroys all objects that exist. */
void end(struct ends *ends);

#endif
