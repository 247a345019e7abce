/* SPDX-License-Identifier: BSD-2-Clause */
/* The manager: its lock, sending after unlocking, its timers; see cm.h and manager.h. */
#include "cm/manager.h"

#include <stdlib.h>
#include <string.h>

#include "cm/timeouts.h"
#include "core/limits.h"

enum {
	/* ms between sends of a request that the peer's host refuses */
	CM_REFUSED_AGAIN_MS = 10,
};

/*
 * Linux's default, for answers to unknown senders: the hop limit of a received message says nothing about the way back.
 */
enum { HOP_LIMIT = 64 };

struct cm *cm_create(const struct cm_config *config)
{
	struct cm *cm = calloc(1, sizeof(*cm));

	if (!cm)
		return NULL;
	cm->config = *config;
	cm->slot = -1;
	cm->wakes_at_ns = UINT64_MAX;
	if (cm_table_init(&cm->table, config->functions->random(config->context))) {
		free(cm);
		return NULL;
	}
	cm->counter = (uint32_t)config->functions->random(config->context);
	queue_lock_init(&cm->lock, LOCK_LEVEL_CM, false);
	return cm;
}

static void cm_free_held(struct cm *cm)
{
	while (cm->held)
		cm_held_free(cm->held);
}

void cm_free(struct cm *cm)
{
	cm_free_held(cm);
	queue_lock_destroy(&cm->lock);
	cm_table_free(&cm->table);
	free(cm);
}

void cm_begin(struct cm *cm, struct cm_outbox *outbox)
{
	outbox->count = 0;
	queue_lock(&cm->lock);
	cm->outbox = outbox;
}

void cm_end(struct cm *cm, struct cm_outbox *outbox)
{
	cm->outbox = NULL;
	queue_unlock(&cm->lock);
	for (uint32_t i = 0; i < outbox->count; i++)
		cm->config.functions->send(cm->config.context, &outbox->mads[i].path, outbox->mads[i].mad);
}

void cm_post(struct cm *cm, const struct packet_path *path, const struct cm_message *message)
{
	struct cm_outbox *outbox = cm->outbox;

	/* No step sends more messages; one more would be lost, as on a wire. */
	if (outbox->count == CM_OUTBOX)
		return;
	outbox->mads[outbox->count].path = *path;
	cm_pack(message, outbox->mads[outbox->count].mad);
	outbox->count++;
}

void cm_arm(struct cm *cm, struct timer *timer, uint64_t after_ns)
{
	wheel_remove(timer);
	timer->deadline_ns = cm->config.functions->now_ns(cm->config.context) + after_ns;
	wheel_add(&cm->wheel, timer);
	if (timer->deadline_ns >= cm->wakes_at_ns)
		return;
	cm->wakes_at_ns = timer->deadline_ns;
	cm->config.functions->wake_at(cm->config.context, cm->wakes_at_ns);
}

/* Returns true if a timer was due; then call again. */
static bool cm_run_timer(struct cm *cm)
{
	const struct cm_functions *functions = cm->config.functions;
	struct timer *timer = wheel_take_due(&cm->wheel, functions->now_ns(cm->config.context));

	if (timer) {
		timer->function(timer);
		return true;
	}
	cm->wakes_at_ns = wheel_next_ns(&cm->wheel);
	if (cm->wakes_at_ns != UINT64_MAX)
		functions->wake_at(cm->config.context, cm->wakes_at_ns);
	return false;
}

void cm_run_timers(struct cm *cm)
{
	struct cm_outbox outbox;
	bool more;

	do {
		cm_begin(cm, &outbox);
		more = cm_run_timer(cm);
		cm_end(cm, &outbox);
	} while (more);
}

struct packet_path cm_way_back(const struct packet_path *path)
{
	struct packet_path back = *path;

	back.source = path->destination;
	back.destination = path->source;
	back.hop_limit = HOP_LIMIT;
	back.udp_source_port = 0;
	return back;
}

/*
 * ---- end of managers and peers --------------------------------------------------------------------------------------
 */

void cm_after_fork(struct cm *cm)
{
	cm->left = true;
	cm_free_held(cm);
	for (struct cm_id *id = cm->ids; id; id = id->next)
		cm_to_idle(id);
}

bool cm_leave_next(struct cm *cm)
{
	struct cm_outbox outbox;
	struct cm_id *id;

	cm_begin(cm, &outbox);
	cm->left = true;
	cm_free_held(cm);
	id = cm->ids;
	if (id) {
		cm_part(id);
		cm_id_move(id, &cm->idle_ids);
	}
	cm_end(cm, &outbox);
	return id != NULL;
}

/* Passes an empty REJ to the id, because handlers rely on a message. */
static void as_if_rejected(struct cm_id *id, uint16_t reason)
{
	const struct cm_message rej = {.kind = CM_REJ, .rej.reason = reason};
	struct packet_path path = cm_way_back(&id->known.path);

	cm_step(id, &path, &rej);
}

static void as_if_not_resolved(struct cm_id *id, enum cm_sidr_status status)
{
	const struct cm_message sidr_rep = {.kind = CM_SIDR_REP, .sidr_rep.status = status};
	struct packet_path path = cm_way_back(&id->known.path);

	cm_step(id, &path, &sidr_rep);
}

static void id_peer_ended(struct cm_id *id)
{
	switch (id->state) {
	case CM_STATE_ESTABLISHED:
	case CM_STATE_DREQ_SENT:
	case CM_STATE_DREQ_RCVD:
		cm_to_timewait(id);
		cm_raise_disconnected(id, 0, NULL, NULL);
		break;
	case CM_STATE_SIDR_REQ_SENT:
		as_if_not_resolved(id, CM_SIDR_REJECTED);
		break;
	case CM_STATE_SIDR_REQ_RCVD:
		cm_to_idle(id);
		break;
	default:
		as_if_rejected(id, CM_REJECT_CONSUMER);
		break;
	}
}

/* Sends the request again without extending its timeout. */
static void id_send_again(struct cm_id *id)
{
	switch (id->state) {
	case CM_STATE_REQ_SENT:
	case CM_STATE_MRA_REQ_RCVD:
	case CM_STATE_SIDR_REQ_SENT:
		cm_post(id->cm, &id->known.path, &id->sent);
		break;
	default:
		break;
	}
}

static void id_apply_fate(struct cm_id *id, enum cm_peer_fate fate)
{
	switch (fate) {
	case CM_PEER_LIVES:
		break;
	case CM_PEER_ENDED:
		id_peer_ended(id);
		break;
	case CM_PEER_REPLACED:
		id_send_again(id);
		break;
	}
}

void cm_peer_ended(struct cm *cm, enum cm_peer_fate (*fate)(void *argument, const struct cm_peer *peer), void *argument)
{
	struct cm_outbox outbox;

	cm_begin(cm, &outbox);
	for (struct cm_id *id = cm->ids; id; id = id->next) {
		struct cm_peer peer = {.path = &id->known.path,
				       .service_id = id->active ? id->known.service_id : 0,
				       .comm_id = id->known.remote_comm_id};

		if (id->state != CM_STATE_IDLE && id->state != CM_STATE_LISTEN)
			id_apply_fate(id, fate(argument, &peer));
	}
	cm_end(cm, &outbox);
}

/* Repeats a request soon: a process that accepts it may be about to start, once the port's previous owner has ended. */
static bool id_send_again_soon(struct cm_id *id)
{
	uint32_t most = id->cm->config.grace_ms / CM_REFUSED_AGAIN_MS;

	if (id->sends > most || id->sends > id->retries)
		return false;
	cm_arm(id->cm, &id->timer, CM_REFUSED_AGAIN_MS * CM_MS);
	return true;
}

void cm_host_refuses(struct cm *cm, const union ibv_gid *gid)
{
	struct cm_outbox outbox;

	cm_begin(cm, &outbox);
	for (struct cm_id *id = cm->ids; id; id = id->next) {
		if (memcmp(&id->known.path.destination, gid, sizeof(*gid)) != 0 ||
		    (id->state != CM_STATE_REQ_SENT && id->state != CM_STATE_SIDR_REQ_SENT) || id_send_again_soon(id))
			continue;
		if (id->state == CM_STATE_REQ_SENT)
			as_if_rejected(id, CM_REJECT_SERVICE_ID);
		else
			as_if_not_resolved(id, CM_SIDR_UNSUPPORTED);
	}
	cm_end(cm, &outbox);
}
