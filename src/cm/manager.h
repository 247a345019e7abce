/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside the communication manager: the manager, its ids, and what its files share. Everything is under the manager's
 * lock, from cm_begin() to cm_end(): connections are made rarely and a step takes a microsecond, and what looks at two
 * ids (a connection that is stale) or at all of them needs no order among locks. What is to be sent in between is
 * collected and leaves behind cm_end(), so no lock of the manager is held while a link works.
 */
#ifndef SOFTHCA_CM_MANAGER_H
#define SOFTHCA_CM_MANAGER_H

#include <endian.h>
#include <stdbool.h>
#include <stdint.h>

#include "cm/cm.h"
#include "cm/table.h"
#include "core/limits.h"
#include "core/lock.h"
#include "core/timer_wheel.h"
#include "explain/limit.h"

/* What one step sends at most: a REJ of a request, and a DREQ of the connection that stands in its way. */
enum { CM_OUTBOX = 2 };

struct cm_outbox {
	uint32_t count;
	struct {
		struct packet_path path;
		uint8_t mad[CM_MAD_BYTES];
	} mads[CM_OUTBOX];
};

/* A request that nobody listens for, during its grace. The manager owns it; its timer ends it. */
struct cm_held {
	struct timer timer;
	struct cm *cm;
	struct cm_held *next, **link;
	struct packet_path path;
	struct cm_message message;
};

struct cm {
	struct cm_config config;
	struct queue_lock lock;
	struct cm_outbox *outbox; /* of the thread that has the lock */
	bool left;                /* cm_leave() */
	int slot;                 /* negative: not claimed */
	uint32_t counter;         /* of the next communication id */
	uint32_t held_count;
	struct cm_held *held;
	struct cm_id *ids;       /* all of them */
	struct cm_id *listeners; /* in the order of listening */
	struct cm_table table;
	struct timer_wheel wheel;
	uint64_t wakes_at_ns; /* that wake_at() was asked for; UINT64_MAX: nothing is due */
};

struct cm_id {
	struct cm *cm;
	void *owner;
	enum cm_state state;
	struct cm_id *next, **link;                   /* of all ids */
	struct cm_id *next_listener, **listener_link; /* link NULL: does not listen */
	struct cm_entry local, remote_id, remote_qpn; /* remote_id is also that of a SIDR_REQ */
	struct cm_parameters known;
	bool active;           /* sent the REQ, or SIDR_REQ */
	bool disconnected;     /* CM_EVENT_DISCONNECTED was raised */
	bool offers_alternate; /* the REQ names an alternate path */
	uint64_t transaction_id;
	/* The message that is sent until it is answered; later the RTU or DREP, in case that was lost. */
	struct cm_message sent;
	uint32_t sends, retries;
	uint64_t wait_ns;
	struct timer timer;
};

#define CM_MS UINT64_C(1000000)

/* ---- manager.c --------------------------------------------------------------------------------------------------- */

/** Takes the lock; @outbox collects until cm_end(). */
void cm_begin(struct cm *cm, struct cm_outbox *outbox);
/** Gives the lock back and sends what was collected. */
void cm_end(struct cm *cm, struct cm_outbox *outbox);

/** Sends @message on @path when the lock is free. */
void cm_post(struct cm *cm, const struct packet_path *path, const struct cm_message *message);
void cm_arm(struct cm *cm, struct timer *timer, uint64_t after_ns);

/** Where an answer to what came on @path goes. */
struct packet_path cm_way_back(const struct packet_path *path);

/* ---- id.c -------------------------------------------------------------------------------------------------------- */

/** An IDLE id in the list. NULL: no memory. */
struct cm_id *cm_id_make(struct cm *cm, void *owner);
void cm_id_free(struct cm_id *id);
/** True if @id may begin something: it is IDLE, and its manager has not left. */
bool cm_id_is_free(const struct cm_id *id);
/** -EINVAL, explained: @call is not for the state of @id. */
int cm_wrong_state(const struct cm_id *id, const char *call);
/** What every request begins with: it is the active side's, with all of its repeats and a new transaction. */
void cm_begin_active(struct cm_id *id);
/** Gives @id a new communication id and enters it. Returns 0 or a negative errno. */
int cm_id_name(struct cm_id *id);

/** Sends what its peer should know when @id goes; @id is IDLE then. */
void cm_part(struct cm_id *id);
/** Into @state, with no timer. */
void cm_set_state(struct cm_id *id, enum cm_state state);
/** Back to IDLE: no message finds it any more. */
void cm_to_idle(struct cm_id *id);
/** Into TIMEWAIT: its QP may have a new connection with the peer's, but messages of the old one still find it. */
void cm_to_timewait(struct cm_id *id);

/** Enters what the peer is known by: for a REQ that comes again, for a QP that it uses again. */
void cm_enter_remote(struct cm_id *id);
/** The id under @kind, @number, @guid of the peer at @gid; NULL: none. */
struct cm_id *cm_find_remote(struct cm *cm, enum cm_key_kind kind, uint32_t number, uint64_t guid,
			     const union ibv_gid *gid);
/** The id with communication id @local, whose peer's is @remote (0 where it is not known yet); NULL: none. */
struct cm_id *cm_find_local(struct cm *cm, uint32_t local, uint32_t remote);
struct cm_key cm_sidr_key(uint32_t request_id, const union ibv_gid *gid);

void cm_raise(struct cm_id *id, enum cm_event_kind kind, int status, const struct cm_message *message,
	      const struct packet_path *path);
/** CM_EVENT_DISCONNECTED, unless there was one. */
void cm_raise_disconnected(struct cm_id *id, int status, const struct cm_message *message,
			   const struct packet_path *path);

/* ---- messages.c: made and sent ----------------------------------------------------------------------------------- */

/** Sends id->sent, and again after @wait_ms as long as nothing else happens to @id. */
void cm_send_until_answered(struct cm_id *id, uint64_t wait_ms);
/** An answer with the ids and transaction of @id, zero but for that. */
struct cm_message cm_answer(const struct cm_id *id, enum cm_message_kind kind);
/** Sends a message that is not repeated. */
void cm_send_once(struct cm_id *id, const struct cm_message *message);
void cm_send_mra(struct cm_id *id);
/** A REJ of the message that @id's state waits for an answer to. */
void cm_post_rej(struct cm_id *id, uint16_t reason, struct cm_private info, struct cm_private private_data);
/** A REJ of @request with @reason where there is no id. */
void cm_refuse(struct cm *cm, const struct packet_path *path, const struct cm_message *request, uint16_t reason);
void cm_begin_release(struct cm_id *id, struct cm_private private_data);
void cm_post_sidr_rep(struct cm_id *id, const struct cm_sidr_reply *reply);
/** Copies @from into a field of @size bytes that is zero. False: it does not fit. */
bool cm_put_private(uint8_t *field, size_t size, struct cm_private from);

/* ---- receive.c --------------------------------------------------------------------------------------------------- */

/** The one switch: what @message, which came on @path from its peer, does to @id. */
void cm_step(struct cm_id *id, const struct packet_path *path, const struct cm_message *message);

/* ---- requests.c -------------------------------------------------------------------------------------------------- */

/** A REQ or SIDR_REQ has come. @grace: it may wait for a listener. */
void cm_take_request(struct cm *cm, const struct packet_path *path, const struct cm_message *message, bool grace);
/**
 * True if another connection with the QP @qpn of the CA @guid at the address that @message, a REQ or REP, came from is known
 * (IBTA 12.9): the message was rejected, and that connection is released if it is established.
 */
bool cm_is_stale(struct cm *cm, const struct packet_path *path, const struct cm_message *message, uint32_t qpn,
		 uint64_t guid);
/** Looks at the requests that wait for @service_id again, at once. */
void cm_look_again(struct cm *cm, uint64_t service_id);
void cm_held_free(struct cm_held *held);

/* ---- due.c ------------------------------------------------------------------------------------------------------- */

/** The time of an id's timer has come. */
void cm_id_due(struct timer *timer);

/* ---- explanations ------------------------------------------------------------------------------------------------ */

enum { CM_EXPLAINED = LIMIT_EXPLAINED_DROPS };

/* Explains what others cause. */
#define CM_EXPLAIN(cm, rule, ...)                                                                                      \
	((void)((cm)->config.hca && EXPLAIN_LIMITED((cm)->config.hca, (&(const struct explain_subject){.call = NULL}), \
						    CM_EXPLAINED, rule, __VA_ARGS__)))
/* Explains why a call of the program is refused; yields the errno value. */
#define CM_REFUSE(cm, call_name, errno_value, rule, ...)                                                               \
	((cm)->config.hca ? REFUSE((cm)->config.hca, call_name, errno_value, rule, __VA_ARGS__) : (errno_value))
/* The two figures of a GID. */
#define CM_GID_HIGH(gid) be64toh((gid).global.subnet_prefix)
#define CM_GID_LOW(gid) be64toh((gid).global.interface_id)

/* The default partition: RoCE has no other. */
enum { CM_DEFAULT_PKEY = 0xffff };

/** 64 random bits for @id; and a starting PSN. The lock is held. */
static inline uint64_t cm_draw(const struct cm_id *id)
{
	return id->cm->config.functions->random(id->cm->config.context);
}

static inline uint32_t cm_draw_psn(const struct cm_id *id)
{
	return (uint32_t)cm_draw(id) & 0xffffff;
}

#endif
