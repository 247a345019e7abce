/* SPDX-License-Identifier: BSD-2-Clause */
/* See handed.h. */
#include "cm_host/handed.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/limits.h"
#include "hca/hca.h"
#include "format/cm_message.h"
#include "transport/gsi/gsi.h"
#include "wire/link.h"
#include "wire/mad.h"

#define BUCKETS 1024u

struct connection {
	struct connection *next;
	struct packet_path path; /* path of the peer's datagrams */
	uint32_t peer_id, peer_qpn;
	uint32_t own_id;  /* 0: only the peer's request has been forwarded */
	uint32_t process; /* the latest message was forwarded to it */
};

struct handed {
	struct hca *hca; /* first device */
	pthread_mutex_t lock;
	uint32_t count;
	struct connection *bucket[BUCKETS];
};

struct handed *handed_new(struct hca *first)
{
	struct handed *handed = calloc(1, sizeof(*handed));

	if (!handed)
		return NULL;
	handed->hca = first;
	pthread_mutex_init(&handed->lock, NULL);
	return handed;
}

void handed_free(struct handed *handed)
{
	handed_forget(handed);
	pthread_mutex_destroy(&handed->lock);
	free(handed);
}

/* ---- the table: the lock is held ------------------------------------------------------------------------------- */

static struct connection **connection_place(struct handed *handed, const struct packet_path *path, uint32_t peer_id)
{
	struct connection **at = &handed->bucket[peer_id % BUCKETS];

	while (*at &&
	       ((*at)->peer_id != peer_id || memcmp(&(*at)->path.source, &path->source, sizeof(path->source)) != 0))
		at = &(*at)->next;
	return at;
}

static void connection_remove(struct handed *handed, struct connection **at)
{
	struct connection *gone = *at;

	*at = gone->next;
	handed->count--;
	free(gone);
}

/*
 * Removes the oldest request in @bucket without an answer. Answers of this host do not pass here, so requests that were
 * rejected, or abandoned without a message, stay unanswered forever.
 */
static bool connection_remove_unanswered(struct handed *handed, struct connection **bucket)
{
	for (struct connection **at = bucket; *at; at = &(*at)->next) {
		if (!(*at)->own_id) {
			connection_remove(handed, at);
			return true;
		}
	}
	return false;
}

/* Returns the connection, new if necessary, or NULL without memory or room. */
static struct connection *connection_get(struct handed *handed, const struct packet_path *path, uint32_t peer_id)
{
	struct connection **at = connection_place(handed, path, peer_id), *connection = *at;

	if (connection)
		return connection;
	if (handed->count == LIMIT_CM_HANDED) {
		if (!connection_remove_unanswered(handed, &handed->bucket[peer_id % BUCKETS]))
			return NULL;
		at = connection_place(handed, path, peer_id);
	}
	connection = calloc(1, sizeof(*connection));
	if (!connection)
		return NULL;
	connection->peer_id = peer_id;
	connection->path = *path;
	*at = connection;
	handed->count++;
	return connection;
}

static void connection_note(struct handed *handed, const struct packet_path *path, uint32_t peer_id, uint32_t own_id,
			    uint32_t peer_qpn, uint32_t process)
{
	struct connection *connection = connection_get(handed, path, peer_id);

	if (!connection)
		return;
	/* A repeated REQ does not reset the record. */
	if (own_id || connection->peer_qpn != peer_qpn)
		connection->own_id = own_id;
	connection->peer_qpn = peer_qpn;
	connection->process = process;
}

static void connection_end(struct handed *handed, const struct packet_path *path, uint32_t peer_id)
{
	struct connection **at = connection_place(handed, path, peer_id);

	if (*at)
		connection_remove(handed, at);
}

static void connection_confirm(struct handed *handed, const struct packet_path *path, uint32_t peer_id, uint32_t own_id,
			       uint32_t process)
{
	struct connection *connection = *connection_place(handed, path, peer_id);

	if (!connection)
		return;
	connection->own_id = own_id;
	connection->process = process;
}

/* ---- forwarded messages ------------------------------------------------------------------------------------------ */

void handed_note(struct handed *handed, const struct packet_path *path, const uint8_t *mad, uint32_t process)
{
	struct cm_message message;

	if (cm_unpack(mad, &message) != CM_WELL_FORMED)
		return;
	pthread_mutex_lock(&handed->lock);
	switch (message.kind) {
	case CM_REQ:
		connection_note(handed, path, message.req.local_comm_id, 0, message.req.local_qpn, process);
		break;
	case CM_REP:
		connection_note(handed, path, message.rep.local_comm_id, message.rep.remote_comm_id,
				message.rep.local_qpn, process);
		break;
	case CM_RTU:
		connection_confirm(handed, path, message.rtu.local_comm_id, message.rtu.remote_comm_id, process);
		break;
	case CM_REJ:
		connection_end(handed, path, message.rej.local_comm_id);
		break;
	case CM_DREQ:
		connection_end(handed, path, message.dreq.local_comm_id);
		break;
	case CM_DREP:
		connection_end(handed, path, message.drep.local_comm_id);
		break;
	default:
		break;
	}
	pthread_mutex_unlock(&handed->lock);
}

/* ---- a process that has ended ---------------------------------------------------------------------------------- */

static void connection_send_dreq(struct hca *hca, const struct connection *connection)
{
	struct packet_path back = connection->path;
	struct cm_message message = {
		.kind = CM_DREQ,
		.transaction_id = hca_random(hca),
		.dreq = {.local_comm_id = connection->own_id,
			 .remote_comm_id = connection->peer_id,
			 .remote_qpn = connection->peer_qpn},
	};
	uint8_t mad[CM_MAD_BYTES];

	back.source = connection->path.destination;
	back.destination = connection->path.source;
	cm_pack(&message, mad);
	gsi_send(hca, &back, mad);
}

static struct connection *connections_take(struct handed *handed, uint32_t process)
{
	struct connection *taken = NULL, **at, *one;

	for (uint32_t i = 0; i < BUCKETS; i++) {
		for (at = &handed->bucket[i]; (one = *at);) {
			if (!one->own_id || one->process != process) {
				at = &one->next;
				continue;
			}
			*at = one->next;
			handed->count--;
			one->next = taken;
			taken = one;
		}
	}
	return taken;
}

void handed_process_ended(struct handed *handed, uint32_t process)
{
	struct connection *ended, *next;

	pthread_mutex_lock(&handed->lock);
	ended = connections_take(handed, process);
	pthread_mutex_unlock(&handed->lock);
	for (; ended; ended = next) {
		next = ended->next;
		connection_send_dreq(handed->hca, ended);
		free(ended);
	}
}

void handed_lock(struct handed *handed)
{
	pthread_mutex_lock(&handed->lock);
}

void handed_unlock(struct handed *handed)
{
	pthread_mutex_unlock(&handed->lock);
}

void handed_forget(struct handed *handed)
{
	for (uint32_t i = 0; i < BUCKETS; i++)
		while (handed->bucket[i])
			connection_remove(handed, &handed->bucket[i]);
}
