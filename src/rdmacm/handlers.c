/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Callbacks of the communication manager (cm/cm.h), on any thread, under its lock. They only queue events;
 * rdma_get_cm_event(3) does the rest (rdmacm/deliver.c).
 */
#include <errno.h>
#include <stdlib.h>

#include "cm/hello.h"
#include "core/cancellation.h"
#include "core/limits.h"
#include "explain/limit.h"
#include "rdmacm/channel.h"
#include "rdmacm/deliver.h"
#include "rdmacm/devices.h"
#include "rdmacm/manager.h"
#include "rdmacm/sockaddr.h"

/* Explanations per second about requests of peers. */
enum { MOST_EXPLAINED = 8 };

static void request_explain(const struct user_cm_id *id, enum explain_rule rule, const uint64_t *figures, size_t count)
{
	const struct explain_subject subject = {.call = "rdma_listen"};

	explain_limited(hca_of_id(id), &subject, MOST_EXPLAINED, rule, figures, count);
}

/* Returns IBV_QPT_DRIVER, which no ID has, for unknown types. */
static enum ibv_qp_type message_qp_type(const struct cm_message *message)
{
	if (message->kind == CM_SIDR_REQ)
		return IBV_QPT_UD;
	switch (message->req.transport_service) {
	case CM_TRANSPORT_RC:
		return IBV_QPT_RC;
	case CM_TRANSPORT_UC:
		return IBV_QPT_UC;
	case CM_TRANSPORT_EXTENDED:
		return message->req.extended_transport == CM_EXTENDED_XRC ? IBV_QPT_XRC_RECV : IBV_QPT_DRIVER;
	default:
		return IBV_QPT_DRIVER;
	}
}

static bool listener_listens_at(const struct user_cm_id *listener, const struct sockaddr *destination)
{
	const struct sockaddr *own = (const struct sockaddr *)&listener->port.source;

	if (listener->port.own_family_only && own->sa_family != destination->sa_family)
		return false;
	return address_is_wild(own) || address_equal(own, destination);
}

/* Decides without regard to the backlog. */
static enum cm_verdict listener_judge(const struct user_cm_id *listener, const struct cm_message *message)
{
	struct cm_hello_addresses addresses;
	const struct sockaddr *source = (const struct sockaddr *)&addresses.source;
	const struct sockaddr *destination = (const struct sockaddr *)&addresses.destination;
	enum cm_hello hello = request_addresses(message, &addresses);

	if (hello == CM_HELLO_VERSION) {
		request_explain(listener, RULE_RDMACM_HELLO_VERSION, FIGURES(listener->port.number));
		return CM_REJECT;
	}
	if (message_qp_type(message) != listener->base.qp_type) {
		request_explain(listener, RULE_RDMACM_REQUEST_TYPE,
				FIGURES(message_qp_type(message), listener->port.number, listener->base.qp_type));
		return CM_REJECT;
	}
	/* Native addressing: the request is for any listener with its service ID. */
	if (hello == CM_HELLO_NONE && listener->base.ps == RDMA_PS_IB)
		return CM_TAKE;
	if (hello == CM_HELLO_NONE) {
		request_explain(listener, RULE_RDMACM_REQUEST_NO_HEADER, FIGURES(listener->port.number));
		return CM_REJECT;
	}
	if (address_is_multicast(source) || (address_is_wild(source) && !address_is_loopback(source))) {
		request_explain(listener, RULE_RDMACM_REQUEST_SOURCE, FIGURES(listener->port.number));
		return CM_REJECT;
	}
	if (!listener_listens_at(listener, destination)) {
		request_explain(listener, RULE_RDMACM_REQUEST_ADDRESS,
				FIGURES(listener->port.number, be64toh(address_gid(destination).global.subnet_prefix),
					be64toh(address_gid(destination).global.interface_id)));
		return CM_NOT_MINE;
	}
	return CM_TAKE;
}

static struct user_cm_event *event_copy(struct user_cm_id *id, const struct cm_event *event)
{
	struct user_cm_event *queued = event_new(id, RDMA_CM_EVENT_CONNECT_REQUEST, event->status);

	if (!queued)
		return NULL;
	queued->deliver = deliver_from_manager;
	queued->kind = event->kind;
	if (event->message) {
		queued->message = *event->message;
		queued->has_message = true;
	}
	if (event->path)
		queued->path = *event->path;
	return queued;
}

enum cm_verdict handle_request(void *argument, struct cm_id *child, const struct cm_event *event, void **owner,
			       uint16_t *reason)
{
	WITHOUT_CANCELLATION;
	struct user_cm_id *listener = argument;
	enum cm_verdict verdict = CM_DROP;
	struct user_cm_event *queued;
	uint32_t waiting, most;

	(void)owner;
	(void)reason;
	verdict = listener_judge(listener, event->message);
	if (verdict != CM_TAKE)
		return verdict;
	queued = event_copy(listener, event);
	if (!queued) {
		request_explain(listener, RULE_RDMACM_REQUEST_NO_MEMORY, FIGURES(listener->port.number));
		return CM_DROP;
	}
	queued->child = child;
	events_lock();
	waiting = listener->waiting;
	most = listener->backlog;
	verdict = CM_NOT_MINE;
	if (listener->state == ID_LISTEN && !listener->channel->destroyed)
		verdict = waiting < most ? CM_TAKE : CM_DROP;
	if (verdict == CM_TAKE) {
		listener->waiting++;
		event_put_locked(queued);
	}
	events_unlock();
	if (verdict == CM_DROP)
		request_explain(listener, RULE_RDMACM_BACKLOG, FIGURES(waiting, listener->port.number));
	if (verdict != CM_TAKE)
		free(queued);
	return verdict;
}

/*
 * Messages reach an ID only in CONNECT, and the end of TIMEWAIT only after the end of the connection (rdma-cm 2.1). The
 * caller holds the lock of events.
 */
static bool event_concerns_id(struct user_cm_id *id, const struct cm_event *event)
{
	if (!id->channel || id->channel->destroyed || id->failed)
		return false;
	if (event->kind == CM_EVENT_TIMEWAIT_EXIT)
		return id->state == ID_DISCONNECT;
	/* A request that ends before the program's reply raises no event: rdma_accept(3) then fails. */
	if (id->state != ID_CONNECT || !id->connecting)
		return false;
	if (event->kind == CM_EVENT_DISCONNECTED)
		__atomic_store_n(&id->state, ID_DISCONNECT, __ATOMIC_RELEASE);
	return true;
}

void handle_event(void *owner, const struct cm_event *event)
{
	WITHOUT_CANCELLATION;
	struct user_cm_id *id = owner;
	struct user_cm_event *queued;
	bool wanted;

	if (!id)
		return;
	queued = event_copy(id, event);
	events_lock();
	wanted = event_concerns_id(id, event);
	if (wanted && queued)
		event_put_locked(queued);
	events_unlock();
	if (!wanted)
		free(queued);
	else if (!queued)
		EXPLAIN_LIMITED(hca_of_id(id), (&(const struct explain_subject){.call = "rdma_get_cm_event"}),
				MOST_EXPLAINED, RULE_RDMACM_EVENT_NO_MEMORY,
				address_port((const struct sockaddr *)&id->path.source),
				address_port((const struct sockaddr *)&id->path.destination));
}
