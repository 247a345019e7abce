/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two hosts with one communication manager each, in simulated time. The messages that they send are queued until the
 * test takes, delivers or drops them; the events of their handlers are in a second queue. One thread.
 */
#ifndef SOFTHCA_TESTS_UNIT_CM_WORLD_H
#define SOFTHCA_TESTS_UNIT_CM_WORLD_H

#include "cm/cm.h"

enum { HOSTS = 2, A = 0, B = 1, MOST_SENT = 64, MOST_EVENTS = 64 };

/* Services that the tests connect to (RDMA_PS_TCP, RDMA_PS_UDP), and numbers that they use. */
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
	struct cm_id *child; /* for CM_EVENT_REQUEST */
};

struct host {
	struct cm *cm;
	union ibv_gid gid;
	uint64_t wakes_at_ns;
	/* Verdict of its listeners, on each request with an owner other than `not_mine`, unless that is NULL. */
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
	bool no_slot; /* no slot is left */
};

extern struct world world;

/** cmocka's setup and teardown. The teardown fails if the test left an entry in a queue. */
int world_open(void **state);
int world_close(void **state);
/** As world_open(), with another configuration; fields that are 0 keep their usual values. */
void world_begin(const struct cm_config *with);

/** Removes the first message from the queue and returns it; it must be of @kind. Valid until the next one is taken. */
const struct sent *take_sent(enum cm_message_kind kind);
/** Takes the first message and delivers it. */
void pass(enum cm_message_kind kind);
/** Takes the first message and delivers it twice. */
void pass_twice(enum cm_message_kind kind);
void world_deliver(const struct sent *sent);
/** Delivers @message from @from to the other host, as if the manager of @from had sent it. */
void inject(int from, const struct cm_message *message);
void nothing_sent(void);

/**
 * Removes the first event from the queue and returns it; it must be of @kind, for @owner, with @status. Valid until the
 * next one is taken.
 */
const struct told *take_event(void *owner, enum cm_event_kind kind, int status);
void nothing_told(void);

/** Advances the time; timers fire when they are due. */
void pass_ms(uint64_t ms);
/** Expects no message until the last of @ms milliseconds, and then one of @kind, which it takes. */
const struct sent *sent_after_ms(uint64_t ms, enum cm_message_kind kind);

/** Returns a path from @from to the other host. */
struct packet_path path_from(int from);
/** Returns a REQ as a program would request it, without private data. */
struct cm_request a_request(int from);
struct cm_reply a_reply(int from);

/* Owners of ids in the tests. */
extern char client[], server[], listener[];

/** Makes an id of @host with @owner. */
struct cm_id *make(int host, void *owner);
/** Makes an id of B that listens on SERVICE. */
struct cm_id *make_listener(void);

/*
 * A connection from A to B. Each of the following functions makes one in a new world, in the state that its comment
 * states.
 */
struct connection {
	struct cm_id *listener, *client, *server;
};

/** The client has sent its REQ, which is in the queue. */
struct connection requested(void);
/** The server has received the REQ. */
struct connection received(void);
/** The server has accepted; its REP is in the queue. */
struct connection replied(void);
/** The client has received the REP. */
struct connection answered(void);
/** Both are ESTABLISHED. */
struct connection established(void);
/** Destroys the remaining ids, and takes the messages which that sends. */
void forget(struct connection *connection);

#endif
