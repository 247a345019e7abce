/* SPDX-License-Identifier: BSD-2-Clause */
/* Ids: creation, lookup, release and states. See cm.h and manager.h. */
#include "cm/manager.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cm/timeouts.h"
#include "observe/counters.h"

#define ID_OF(entry, member) ((struct cm_id *)((char *)(entry)-offsetof(struct cm_id, member)))

/* A communication id is the slot of its process and a counter, so it is unique on its host. */
enum { COUNTER_BITS = 18, COUNTERS = 1 << COUNTER_BITS, SLOTS = 1 << (32 - COUNTER_BITS) };

/*
 * ---- creation and release -------------------------------------------------------------------------------------------
 */

static void cm_id_enter_list(struct cm_id *id, struct cm_id **list)
{
	id->next = *list;
	id->link = list;
	if (id->next)
		id->next->link = &id->next;
	*list = id;
}

static void cm_id_leave_list(struct cm_id *id)
{
	*id->link = id->next;
	if (id->next)
		id->next->link = id->link;
}

struct cm_id *cm_id_make(struct cm *cm, void *owner)
{
	struct cm_id *id = calloc(1, sizeof(*id));

	if (!id)
		return NULL;
	id->cm = cm;
	id->owner = owner;
	timer_init(&id->timer, cm_id_due);
	cm_id_enter_list(id, &cm->ids);
	return id;
}

void cm_id_move(struct cm_id *id, struct cm_id **list)
{
	cm_id_leave_list(id);
	cm_id_enter_list(id, list);
}

void cm_id_free(struct cm_id *id)
{
	cm_to_idle(id);
	cm_id_leave_list(id);
	free(id);
}

int cm_id_create(struct cm *cm, void *owner, struct cm_id **id)
{
	struct cm_outbox outbox;

	cm_begin(cm, &outbox);
	*id = cm_id_make(cm, owner);
	cm_end(cm, &outbox);
	return *id ? 0 : -ENOMEM;
}

void cm_id_destroy(struct cm_id *id)
{
	struct cm *cm = id->cm;
	struct cm_outbox outbox;

	cm_begin(cm, &outbox);
	cm_part(id);
	cm_id_free(id);
	cm_end(cm, &outbox);
}

void cm_id_set_owner(struct cm_id *id, void *owner)
{
	struct cm_outbox outbox;

	cm_begin(id->cm, &outbox);
	id->owner = owner;
	cm_end(id->cm, &outbox);
}

void cm_part(struct cm_id *id)
{
	const struct cm_private nothing = {.data = NULL};
	uint64_t ca_guid = htobe64(id->cm->config.ca_guid);

	switch (id->state) {
	case CM_STATE_REQ_SENT:
	case CM_STATE_MRA_REQ_RCVD:
		/* The peer may not have answered, so the CA GUID identifies the id (IBTA 12.6.7, reason 4). */
		cm_post_rej(id, CM_REJECT_TIMEOUT, (struct cm_private){&ca_guid, sizeof(ca_guid)}, nothing);
		break;
	case CM_STATE_REQ_RCVD:
	case CM_STATE_MRA_REQ_SENT:
	case CM_STATE_REP_SENT:
	case CM_STATE_MRA_REP_RCVD:
	case CM_STATE_REP_RCVD:
	case CM_STATE_MRA_REP_SENT:
		cm_post_rej(id, CM_REJECT_CONSUMER, nothing, nothing);
		break;
	case CM_STATE_ESTABLISHED:
		cm_begin_release(id, nothing);
		break;
	case CM_STATE_DREQ_RCVD: {
		struct cm_message drep = cm_answer(id, CM_DREP);

		cm_send_once(id, &drep);
		break;
	}
	case CM_STATE_SIDR_REQ_RCVD:
		cm_post_sidr_rep(id, &(const struct cm_sidr_reply){.status = CM_SIDR_REJECTED});
		break;
	case CM_STATE_IDLE:
	case CM_STATE_LISTEN:
	case CM_STATE_DREQ_SENT:
	case CM_STATE_TIMEWAIT:
	case CM_STATE_SIDR_REQ_SENT:
	case CM_STATES:
		break;
	}
	cm_to_idle(id);
}

/*
 * ---- numbers and lookup ---------------------------------------------------------------------------------------------
 */

static int cm_claim_slot(struct cm *cm)
{
	if (cm->slot < 0)
		cm->slot = cm->config.functions->claim_slot(cm->config.context);
	if (cm->slot >= SLOTS)
		cm->slot = -ENOSPC;
	return cm->slot;
}

int cm_id_name(struct cm_id *id)
{
	struct cm *cm = id->cm;
	int slot = cm_claim_slot(cm);

	if (slot < 0)
		return slot;
	for (uint32_t tries = 0; tries < COUNTERS; tries++) {
		uint32_t number = (uint32_t)slot << COUNTER_BITS | (cm->counter++ & (COUNTERS - 1));
		struct cm_key key = {.kind = CM_KEY_LOCAL, .number = number};

		/* 0 means an unknown id. */
		if (!number || cm_table_find(&cm->table, &key))
			continue;
		cm_table_remove(&cm->table, &id->local);
		cm_table_enter(&cm->table, &id->local, &key);
		id->known.local_comm_id = number;
		return 0;
	}
	return -ENOMEM;
}

struct cm_id *cm_find_local(struct cm *cm, uint32_t local, uint32_t remote)
{
	struct cm_key key = {.kind = CM_KEY_LOCAL, .number = local};
	struct cm_entry *entry = cm_table_find(&cm->table, &key);
	struct cm_id *id = entry ? ID_OF(entry, local) : NULL;

	return id && id->known.remote_comm_id == remote ? id : NULL;
}

/*
 * Returns the key of a peer. Any sender can claim any CA GUID; with the address, a host cannot name another host's
 * connections.
 */
static struct cm_key remote_key(enum cm_key_kind kind, uint32_t number, uint64_t guid, const union ibv_gid *gid)
{
	return (struct cm_key){
		.kind = kind, .number = number, .of = {gid->global.subnet_prefix, gid->global.interface_id, guid}};
}

struct cm_id *cm_find_remote(struct cm *cm, enum cm_key_kind kind, uint32_t number, uint64_t guid,
			     const union ibv_gid *gid)
{
	struct cm_key key = remote_key(kind, number, guid, gid);
	struct cm_entry *entry = cm_table_find(&cm->table, &key);

	if (!entry)
		return NULL;
	return kind == CM_KEY_REMOTE_QPN ? ID_OF(entry, remote_qpn) : ID_OF(entry, remote_id);
}

struct cm_key cm_sidr_key(uint32_t request_id, const union ibv_gid *gid)
{
	return remote_key(CM_KEY_REMOTE_SIDR, request_id, 0, gid);
}

void cm_enter_remote(struct cm_id *id)
{
	const struct cm_parameters *known = &id->known;
	const union ibv_gid *gid = &known->path.destination;
	struct cm_key key = remote_key(CM_KEY_REMOTE_ID, known->remote_comm_id, known->remote_ca_guid, gid);

	cm_table_enter(&id->cm->table, &id->remote_id, &key);
	key.kind = CM_KEY_REMOTE_QPN;
	key.number = known->remote_qpn;
	cm_table_enter(&id->cm->table, &id->remote_qpn, &key);
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

bool cm_id_is_free(const struct cm_id *id)
{
	return id->state == CM_STATE_IDLE && !id->cm->left;
}

int cm_wrong_state(const struct cm_id *id, const char *call)
{
	struct hca *hca = id->cm->config.hca;

	return hca ? -REFUSE(hca, call, EINVAL, RULE_CM_STATE, id->state, id->known.local_comm_id) : -EINVAL;
}

void cm_begin_active(struct cm_id *id)
{
	id->active = true;
	id->disconnected = false;
	id->retries = id->cm->config.retries;
	id->transaction_id = cm_draw(id);
	memset(&id->sent, 0, sizeof(id->sent));
}

/* ---- states ------------------------------------------------------------------------------------------------------ */

static void cm_count(const struct cm *cm, enum counter counter)
{
	if (cm->config.hca)
		counter_add(cm->config.hca, counter, 1);
}

void cm_set_state(struct cm_id *id, enum cm_state state)
{
	if (state == CM_STATE_ESTABLISHED && id->state != state)
		cm_count(id->cm, COUNTER_CM_ESTABLISHED);
	if (id->state == CM_STATE_ESTABLISHED && id->state != state)
		cm_count(id->cm, COUNTER_CM_RELEASED);
	id->state = state;
	wheel_remove(&id->timer);
}

static void stop_listening(struct cm_id *id)
{
	if (!id->listener_link)
		return;
	*id->listener_link = id->next_listener;
	if (id->next_listener)
		id->next_listener->listener_link = id->listener_link;
	id->listener_link = NULL;
}

void cm_to_idle(struct cm_id *id)
{
	struct cm_table *table = &id->cm->table;

	cm_set_state(id, CM_STATE_IDLE);
	stop_listening(id);
	cm_table_remove(table, &id->local);
	cm_table_remove(table, &id->remote_id);
	cm_table_remove(table, &id->remote_qpn);
}

void cm_to_timewait(struct cm_id *id)
{
	cm_set_state(id, CM_STATE_TIMEWAIT);
	/* A new connection of the same QP is not stale now; a late REQ of the old one still is. */
	cm_table_remove(&id->cm->table, &id->remote_qpn);
	cm_arm(id->cm, &id->timer, cm_code_ms(id->known.ack_timeout) * CM_MS);
}

enum cm_state cm_id_state(struct cm_id *id)
{
	struct cm_outbox outbox;
	enum cm_state state;

	cm_begin(id->cm, &outbox);
	state = id->state;
	cm_end(id->cm, &outbox);
	return state;
}

void cm_id_query(struct cm_id *id, struct cm_parameters *parameters)
{
	struct cm_outbox outbox;

	cm_begin(id->cm, &outbox);
	*parameters = id->known;
	parameters->state = id->state;
	cm_end(id->cm, &outbox);
}

/* ---- events ------------------------------------------------------------------------------------------------------ */

void cm_raise(struct cm_id *id, enum cm_event_kind kind, int status, const struct cm_message *message,
	      const struct packet_path *path)
{
	struct cm_event event = {.kind = kind, .status = status, .message = message, .path = path};

	id->cm->config.functions->event(id->owner, &event);
}

void cm_raise_disconnected(struct cm_id *id, int status, const struct cm_message *message,
			   const struct packet_path *path)
{
	if (id->disconnected)
		return;
	id->disconnected = true;
	cm_raise(id, CM_EVENT_DISCONNECTED, status, message, path);
}
