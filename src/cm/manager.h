/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Internals of the communication manager. One lock is enough, because connections are rare and a step takes a
 * microsecond; and code that accesses several ids (a stale connection) needs no lock order. Messages are sent after it
 * is released, so it is not held while a link works.
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

/* Messages of one step: at most a REJ of a request and a DREQ of the connection that conflicts with it. */
enum { CM_OUTBOX = 2 };

struct cm_outbox {
	uint32_t count;
	struct {
		struct packet_path path;
		uint8_t mad[CM_MAD_BYTES];
	} mads[CM_OUTBOX];
};

/* A request in its grace time, without a listener. The manager owns it; its timer ends it. */
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
	struct cm_outbox *outbox; /* of the thread that holds the lock */
	bool left;                /* cm_leave_next() has been called */
	int slot;                 /* negative: not claimed */
	uint32_t counter;         /* of the next communication id */
	uint32_t held_count;
	struct cm_held *held;
	struct cm_id *ids;
	struct cm_id *idle_ids;  /* those that cm_leave_next() has made IDLE */
	struct cm_id *listeners; /* in order of listening */
	struct cm_table table;
	struct timer_wheel wheel;
	uint64_t wakes_at_ns; /* time requested by wake_at(); UINT64_MAX: nothing is due */
};

struct cm_id {
	struct cm *cm;
	void *owner;
	enum cm_state state;
	struct cm_id *next, **link;                   /* cm.ids or cm.idle_ids */
	struct cm_id *next_listener, **listener_link; /* link NULL: does not listen */
	struct cm_entry local, remote_id, remote_qpn; /* remote_id also serves a SIDR_REQ */
	struct cm_parameters known;
	bool active;           /* sent the REQ or SIDR_REQ */
	bool disconnected;     /* the event was raised */
	bool offers_alternate; /* the REQ names an alternate path */
	uint64_t transaction_id;
	/* Sent until it is answered; later the RTU or DREP, to be repeated if it was lost. */
	struct cm_message sent;
	uint32_t sends, retries;
	uint64_t wait_ns;
	struct timer timer;
};

#define CM_MS UINT64_C(1000000)

/* ---- manager.c --------------------------------------------------------------------------------------------------- */

/** Takes the lock. @outbox collects messages until cm_end(). */
void cm_begin(struct cm *cm, struct cm_outbox *outbox);
/** Releases the lock and sends the messages in @outbox. */
void cm_end(struct cm *cm, struct cm_outbox *outbox);

/** Adds @message to the outbox. */
void cm_post(struct cm *cm, const struct packet_path *path, const struct cm_message *message);
void cm_arm(struct cm *cm, struct timer *timer, uint64_t after_ns);

/** Returns the path for an answer to a message from @path. */
struct packet_path cm_way_back(const struct packet_path *path);

/* ---- id.c -------------------------------------------------------------------------------------------------------- */

/** Makes an IDLE id. Returns NULL without memory. */
struct cm_id *cm_id_make(struct cm *cm, void *owner);
void cm_id_free(struct cm_id *id);
/** Moves @id to @list, of cm.ids or cm.idle_ids. */
void cm_id_move(struct cm_id *id, struct cm_id **list);
/** Returns true if @id is IDLE and its manager has not left. */
bool cm_id_is_free(const struct cm_id *id);
/** Returns -EINVAL and explains that the state of @id does not allow @call. */
int cm_wrong_state(const struct cm_id *id, const char *call);
/** Begins a transaction of the active side, with all repetitions. */
void cm_begin_active(struct cm_id *id);
/** Gives @id a new communication id and enters it in the table. Returns 0 or a negative errno. */
int cm_id_name(struct cm_id *id);

/** Informs the peer of @id before it is freed, and makes it IDLE. */
void cm_part(struct cm_id *id);
/** Sets the state and disarms the timer. */
void cm_set_state(struct cm_id *id, enum cm_state state);
/** Returns @id to IDLE; no message finds it any more. */
void cm_to_idle(struct cm_id *id);
/** Moves @id to TIMEWAIT: its QP may get a new connection with the peer's, but messages still find @id. */
void cm_to_timewait(struct cm_id *id);

/** Enters the peer's identity, to detect repeated REQs and reuse of its QP. */
void cm_enter_remote(struct cm_id *id);
/** Returns the id under this key of the peer at @gid, or NULL. */
struct cm_id *cm_find_remote(struct cm *cm, enum cm_key_kind kind, uint32_t number, uint64_t guid,
			     const union ibv_gid *gid);
/** Returns the id with @local, whose peer's id is @remote (0 if not known yet), or NULL. */
struct cm_id *cm_find_local(struct cm *cm, uint32_t local, uint32_t remote);
struct cm_key cm_sidr_key(uint32_t request_id, const union ibv_gid *gid);

void cm_raise(struct cm_id *id, enum cm_event_kind kind, int status, const struct cm_message *message,
	      const struct packet_path *path);
/** Raises CM_EVENT_DISCONNECTED, once per id. */
void cm_raise_disconnected(struct cm_id *id, int status, const struct cm_message *message,
			   const struct packet_path *path);

/* ---- messages.c: making and sending ------------------------------------------------------------------------------ */

/** Sends id->sent, and repeats it after @wait_ms until the state of @id changes. */
void cm_send_until_answered(struct cm_id *id, uint64_t wait_ms);
/** Returns an answer with the ids and transaction of @id, otherwise zero. */
struct cm_message cm_answer(const struct cm_id *id, enum cm_message_kind kind);
/** Sends a message without repetition. */
void cm_send_once(struct cm_id *id, const struct cm_message *message);
void cm_send_mra(struct cm_id *id);
/** Rejects the message that @id has received and not answered. */
void cm_post_rej(struct cm_id *id, uint16_t reason, struct cm_private info, struct cm_private private_data);
/** Rejects @request with @reason, without an id. */
void cm_refuse(struct cm *cm, const struct packet_path *path, const struct cm_message *request, uint16_t reason);
void cm_begin_release(struct cm_id *id, struct cm_private private_data);
void cm_post_sidr_rep(struct cm_id *id, const struct cm_sidr_reply *reply);
/** Copies @from into a zeroed field of @size bytes. Returns false if it does not fit. */
bool cm_put_private(uint8_t *field, size_t size, struct cm_private from);

/* ---- receive.c --------------------------------------------------------------------------------------------------- */

/** Performs the state transition of @id for @message, which came on @path from its peer. */
void cm_step(struct cm_id *id, const struct packet_path *path, const struct cm_message *message);

/* ---- requests.c -------------------------------------------------------------------------------------------------- */

/** Handles a REQ or SIDR_REQ. @grace: it may wait for a listener. */
void cm_take_request(struct cm *cm, const struct packet_path *path, const struct cm_message *message, bool grace);
/**
 * Returns true if another connection exists with the QP @qpn of the CA @guid at the sender of @message, a REQ or REP
 * (IBTA 12.9). Then @message was rejected, and the other connection is released if it is established.
 */
bool cm_is_stale(struct cm *cm, const struct packet_path *path, const struct cm_message *message, uint32_t qpn,
		 uint64_t guid);
/** Retries the requests that wait for @service_id at once. */
void cm_look_again(struct cm *cm, uint64_t service_id);
void cm_held_free(struct cm_held *held);

/* ---- due.c ------------------------------------------------------------------------------------------------------- */

void cm_id_due(struct timer *timer);

/* ---- explanations ------------------------------------------------------------------------------------------------ */

enum { CM_EXPLAINED = LIMIT_EXPLAINED_DROPS };

/** Explains an event that others can cause. */
static inline void cm_explain(struct cm *cm, enum explain_rule rule, const uint64_t *figures, size_t count)
{
	const struct explain_subject subject = {0};

	if (cm->config.hca)
		explain_limited(cm->config.hca, &subject, CM_EXPLAINED, rule, figures, count);
}

#define CM_GID_HIGH(gid) be64toh((gid).global.subnet_prefix)
#define CM_GID_LOW(gid) be64toh((gid).global.interface_id)

/* The only partition of RoCE. */
enum { CM_DEFAULT_PKEY = 0xffff };

/** Return 64 random bits for @id, and a starting PSN. The lock is held. */
static inline uint64_t cm_draw(const struct cm_id *id)
{
	return id->cm->config.functions->random(id->cm->config.context);
}

static inline uint32_t cm_draw_psn(const struct cm_id *id)
{
	return (uint32_t)cm_draw(id) & 0xffffff;
}

#endif
