/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two hosts with a communication manager each, in simulated time. What they send lies in a queue until the test takes,
 * delivers or drops it; what their handlers are told lies in another. One thread.
 */
#ifndef SOFTHCA_TESTS_UNIT_CM_WORLD_H
#define SOFTHCA_TESTS_UNIT_CM_WORLD_H

#include "cm/cm.h"

enum { HOSTS = 2, A = 0, B = 1, MOST_SENT = 64, MOST_EVENTS = 64 };

/* What the tests connect to (RDMA_PS_TCP, RDMA_PS_UDP), and numbers that they use. */
#define SERVICE UINT64_C(0x01061c06)
#define SIDR_SERVICE UINT64_C(0x01111c06)
enum { QPN_A = 0x0a0b0c, QPN_B = 0x1a1b1c, SLOT_A = 5, SLOT_B = 9 };
#define GUID_A UINT64_C(0xa0a1a2a3a4a5a6a7)
#define GUID_B UINT64_C(0xb0b1b2b3b4b5b6b7)

struct sent {
	int from;
	struct packet_path path;
	uint8_t mad[CM_MAD_BYTES];
	struct cm_message message;
};

struct told {
	void *owner;
	enum cm_event_kind kind;
	int status;
	bool has_message;
	struct cm_message message;
	struct cm_id *child; /* of CM_EVENT_REQUEST */
};

struct host {
	struct cm *cm;
	union ibv_gid gid;
	uint64_t wakes_at_ns;
	/* What its listeners say; of each request with another owner than `not_mine`, if that is not NULL. */
	enum cm_verdict verdict;
	uint16_t reason;
	void *not_mine;
};

struct world {
	uint64_t now_ns, random;
	struct host hosts[HOSTS];
	struct sent sent[MOST_SENT];
	uint32_t sent_count;
	struct told told[MOST_EVENTS];
	uint32_t told_count;
	uint32_t slots_claimed;
	bool no_slot; /* there is none left */
};

extern struct world world;

/** cmocka's set-up and tear-down. The tear-down fails if the test left something in a queue. */
int world_open(void **state);
int world_close(void **state);
/** As world_open(), with another configuration; the fields that are 0 are as usual. */
void world_begin(const struct cm_config *with);

/** The first message in the queue, which is of @kind; it is in the queue no more. Valid until the next is taken. */
const struct sent *take_sent(enum cm_message_kind kind);
/** Takes it and delivers it. */
void pass(enum cm_message_kind kind);
/** Takes it and delivers it twice. */
void pass_twice(enum cm_message_kind kind);
void world_deliver(const struct sent *sent);
/** Delivers @message from @from to the other host, as if its manager had sent it. */
void inject(int from, const struct cm_message *message);
void nothing_sent(void);

/** The first event in the queue, which is of @kind for @owner with @status. Valid until the next is taken. */
const struct told *take_event(void *owner, enum cm_event_kind kind, int status);
void nothing_told(void);

/** Lets time pass; timers fire when they are due. */
void pass_ms(uint64_t ms);
/** Nothing is sent for all but the last of @ms milliseconds, then @kind is; it is taken. */
const struct sent *sent_after_ms(uint64_t ms, enum cm_message_kind kind);

/** A path from @from to the other host. */
struct packet_path path_from(int from);
/** A REQ as a program would ask for it, without private data. */
struct cm_request a_request(int from);
struct cm_reply a_reply(int from);

/* The owners of ids, as the tests call them. */
extern char client[], server[], listener[];

/** An id of @host with @owner. */
struct cm_id *make(int host, void *owner);
/** An id of B that listens on SERVICE. */
struct cm_id *make_listener(void);

/* A connection from A to B in some state; a fresh world. */
struct connection {
	struct cm_id *listener, *client, *server;
};

/** The client has sent its REQ, which is in the queue. */
struct connection requested(void);
/** The server has it. */
struct connection received(void);
/** The server has accepted; its REP is in the queue. */
struct connection replied(void);
/** The client has the REP. */
struct connection answered(void);
/** Both are ESTABLISHED. */
struct connection established(void);
/** Destroys what is left of it, and takes what that sends. */
void forget(struct connection *connection);

#endif
