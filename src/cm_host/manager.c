/* SPDX-License-Identifier: BSD-2-Clause */
/* See manager.h. */
#include "cm_host/manager.h"

#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>

#include "core/cancellation.h"
#include "core/limits.h"
#include "core/timer.h"
#include "hca/hca.h"
#include "hca/gid.h"
#include "cm_host/handed.h"
#include "link/host/host.h"
#include "cm_host/services.h"
#include "transport/gsi/gsi.h"
#include "wire/mad.h"
#include "wire/routes.h"

struct manager {
	struct hca *hca;      /* first device */
	pthread_mutex_t lock; /* for creating `cm` */
	struct cm *cm;        /* atomic */
	struct cm *inherited; /* manager of the parent of a forked process, to which inherited ids refer */
	struct cm_functions functions;
	struct timer timer; /* timer of `hca` */
	bool leaves;        /* manager_leave() is registered with exit(3), also in children of fork(2) */
};

struct manager *manager_new(struct hca *first)
{
	struct manager *manager = calloc(1, sizeof(*manager));

	if (!manager)
		return NULL;
	manager->hca = first;
	pthread_mutex_init(&manager->lock, NULL);
	return manager;
}

/* Returns NULL before the first call of hca_manager(). */
static struct cm *cm_of_manager(const struct manager *manager)
{
	return __atomic_load_n(&manager->cm, __ATOMIC_ACQUIRE);
}

/* ---- functions that the manager calls --------------------------------------------------------------------------- */

/* Returns any device that has the source of @path, because their packets do not differ. */
static struct hca *device_of_path(const struct packet_path *path)
{
	size_t index;

	for (index = 0; index < the_registry.count; index++) {
		struct hca *hca = &the_registry.devices[index];

		if (gid_find(hca->gids, hca->gid_count, &path->source, path->type) >= 0)
			return hca;
	}
	return first_device();
}

static void manager_send_mad(void *context, const struct packet_path *path, const uint8_t mad[CM_MAD_BYTES])
{
	(void)context;
	gsi_send(device_of_path(path), path, mad);
}

static void manager_run_timers(struct timer *timer)
{
	cm_run_timers(cm_of_manager((struct manager *)((char *)timer - offsetof(struct manager, timer))));
	hca_manager_wake();
}

static void manager_wake_at(void *context, uint64_t deadline_ns)
{
	struct manager *manager = context;

	timer_arm(&manager->hca->timers, &manager->timer, deadline_ns);
}

static uint64_t manager_now_ns(void *context)
{
	(void)context;
	return clock_now_ns();
}

static uint64_t manager_random(void *context)
{
	const struct manager *manager = context;

	return hca_random(manager->hca);
}

static int manager_claim_slot(void *context)
{
	const struct manager *manager = context;
	uint32_t slot;
	int error = hca_manager_slot(manager->hca, &slot);

	return error ? error : (int)slot;
}

/* ---- calls into the manager ------------------------------------------------------------------------------------- */

static struct packet_path path_way_back(const struct packet_path *path)
{
	struct packet_path back = *path;

	back.source = path->destination;
	back.destination = path->source;
	return back;
}

/* The process with the RoCE port answers for its host, even without connections of its own. */
static void manager_receive(struct hca *hca, const struct packet_path *path, const uint8_t mad[MAD_BYTES], bool waited)
{
	struct packet_path back = path_way_back(path);
	struct cm *cm = cm_of_manager(hca->registry->manager);
	uint8_t answer[CM_MAD_BYTES];

	if (cm)
		cm_receive(cm, path, mad, waited);
	else if (cm_answer_unclaimed(mad, answer))
		gsi_send(hca, &back, answer);
	hca_manager_wake();
}

static bool is_near(const struct cm_peer *peer)
{
	return routes->is_near(first_device(), &peer->path->destination);
}

/* Compares connections, since another process may have the peer's slot by now. */
static enum cm_peer_fate is_of_process(void *argument, const struct cm_peer *peer)
{
	const uint32_t *process = argument;

	return peer->path->process == *process ? CM_PEER_ENDED : CM_PEER_LIVES;
}

static enum cm_peer_fate has_id(void *argument, const struct cm_peer *peer)
{
	const uint64_t *id = argument;

	return peer->comm_id == *id && is_near(peer) ? CM_PEER_ENDED : CM_PEER_LIVES;
}

static void manager_process_ended(uint32_t process)
{
	struct cm *cm = cm_of_manager(the_registry.manager);

	handed_process_ended(the_registry.handed, process);
	if (cm)
		cm_peer_ended(cm, is_of_process, &process);
	hca_manager_wake();
}

/*
 * Answers an undeliverable datagram as the manager at its destination would. If it needs no answer, it is for an id of
 * a process that has ended; only the id shows the slot, because that process may not have received any message.
 */
static void manager_mad_lost(struct hca *hca, const struct packet_path *path, const uint8_t mad[MAD_BYTES],
			     enum mad_loss why)
{
	const struct mad_address address = mad_address(mad);
	struct packet_path back = path_way_back(path);
	struct cm *cm = cm_of_manager(hca->registry->manager);
	uint8_t answer[CM_MAD_BYTES];
	uint64_t id;

	if (cm && why == MAD_UNREACHABLE && address.addressee == MAD_FOR_SERVICE) {
		cm_host_refuses(cm, &path->destination);
		return;
	}
	if (cm && cm_answer_unclaimed(mad, answer))
		cm_receive(cm, &back, answer, false);
	else if (cm && why == MAD_NO_RECIPIENT && cm_mad_addressee(mad, &id) == CM_TO_COMM_ID)
		cm_peer_ended(cm, has_id, &id);
	hca_manager_wake();
}

/*
 * Decides about a peer after a request for a service whose process has ended: the request may have gone to that process
 * or to its successor. The lock of the manager prevents that new ids begin to wait between check and verdict.
 */
static enum cm_peer_fate waits_for_service(void *argument, const struct cm_peer *peer)
{
	const uint64_t *service = argument;

	if (peer->comm_id || peer->service_id != *service || !is_near(peer))
		return CM_PEER_LIVES;
	return host_service_is_vacant(*service) ? CM_PEER_ENDED : CM_PEER_REPLACED;
}

static void manager_service_ended(uint64_t service)
{
	struct cm *cm = cm_of_manager(the_registry.manager);

	if (cm)
		cm_peer_ended(cm, waits_for_service, &service);
	hca_manager_wake();
}

const struct management process_management = {
	.receive = manager_receive,
	.lost = manager_mad_lost,
	.process_ended = manager_process_ended,
	.service_ended = manager_service_ended,
};

void hca_manager_push(void)
{
	/* Calls that fail may precede the creation of the devices. */
	if (the_registry.manager && cm_of_manager(the_registry.manager))
		gsi_push(the_registry.gsi);
}

void hca_manager_wake(void)
{
	gsi_wake(the_registry.gsi);
}

/* Notifies peers, as the kernel does when the program's file is closed. */
static void manager_leave(void)
{
	struct cm *cm = cm_of_manager(the_registry.manager);

	if (!cm)
		return;
	/* One after the other, because there may be more messages than the queue takes. */
	while (cm_leave_next(cm))
		gsi_push(the_registry.gsi);
	gsi_flush(the_registry.gsi);
}

/* The lock is held. */
static struct cm *manager_make(struct manager *manager, const struct manager_handlers *handlers)
{
	struct hca *hca = manager->hca;
	struct cm_config config = {
		.functions = &manager->functions,
		.context = manager,
		.hca = hca,
		.ca_guid = be64toh(hca_guid(hca)),
		.ack_delay = LIMIT_ACK_DELAY,
		.response_timeout = (uint8_t)hca->settings.cm_response_timeout,
		.retries = (uint8_t)hca->settings.cm_retries,
		.packet_lifetime = (uint8_t)hca->settings.cm_packet_lifetime,
		.grace_ms = hca->settings.cm_grace_ms,
	};

	manager->functions = (struct cm_functions){
		.send = manager_send_mad,
		.wake_at = manager_wake_at,
		.now_ns = manager_now_ns,
		.random = manager_random,
		.claim_slot = manager_claim_slot,
		.request = handlers->request,
		.event = handlers->event,
	};
	timer_init(&manager->timer, manager_run_timers);
	return cm_create(&config);
}

struct cm *hca_manager(const struct manager_handlers *handlers)
{
	WITHOUT_CANCELLATION;
	struct manager *manager = the_registry.manager;
	struct cm *cm = cm_of_manager(manager);

	if (cm)
		return cm;
	pthread_mutex_lock(&manager->lock);
	if (!manager->cm) {
		__atomic_store_n(&manager->cm, manager_make(manager, handlers), __ATOMIC_RELEASE);
		if (manager->cm && !manager->leaves)
			manager->leaves = !atexit(manager_leave);
	}
	cm = manager->cm;
	pthread_mutex_unlock(&manager->lock);
	return cm;
}

void manager_lock(struct manager *manager)
{
	pthread_mutex_lock(&manager->lock);
}

void manager_unlock(struct manager *manager)
{
	pthread_mutex_unlock(&manager->lock);
}

/* Inherited ids keep the old manager, which is inactive; the child makes its own. */
void manager_forget(struct manager *manager)
{
	if (!manager->cm)
		return;
	cm_after_fork(manager->cm);
	manager->inherited = manager->cm;
	manager->cm = NULL;
}
