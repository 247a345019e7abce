/* SPDX-License-Identifier: BSD-2-Clause */
/* The network between communication managers, see cm_net.h. */
#include "cm_net.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cm/manager.h"

enum { MOST_PENDING = 4096, MOST_LOST = 4096 };

struct net net;

/* A message in flight, or an action of a program: a heap by time. */
struct pending {
	uint64_t at_ns, order;
	bool is_mad;
	struct packet_path path;
	uint8_t mad[CM_MAD_BYTES];
	struct later later;
};

static struct pending *heap[MOST_PENDING];
static uint32_t pending_count;
static uint64_t next_order, the_seed;
static uint32_t lost_for[MOST_LOST], lost_count;
static struct cm_functions functions;

void must(bool condition, const char *file, int line, const char *text)
{
	if (condition)
		return;
	fprintf(stderr, "%s:%d: %s\nrun again with: --seed %" PRIu64 "\n", file, line, text, the_seed);
	abort();
}

/* ---- randomness -------------------------------------------------------------------------------------------------------- */

uint64_t net_draw(void)
{
	return choose_bits(&net.random);
}

uint32_t net_below(uint32_t limit)
{
	return (uint32_t)(net_draw() % limit);
}

/* ---- the heap ---------------------------------------------------------------------------------------------------------- */

static bool is_before(const struct pending *a, const struct pending *b)
{
	return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

static void swap(uint32_t a, uint32_t b)
{
	struct pending *kept = heap[a];

	heap[a] = heap[b];
	heap[b] = kept;
}

static struct pending *push(uint64_t at_ns)
{
	struct pending *pending = calloc(1, sizeof(*pending));
	uint32_t i = pending_count++;

	MUST(pending && pending_count < MOST_PENDING);
	pending->at_ns = at_ns;
	pending->order = next_order++;
	heap[i] = pending;
	for (; i && is_before(heap[i], heap[(i - 1) / 2]); i = (i - 1) / 2)
		swap(i, (i - 1) / 2);
	return pending;
}

static struct pending *pop(void)
{
	struct pending *first = heap[0];

	heap[0] = heap[--pending_count];
	for (uint32_t i = 0, child; (child = 2 * i + 1) < pending_count; i = child) {
		if (child + 1 < pending_count && is_before(heap[child + 1], heap[child]))
			child++;
		if (!is_before(heap[child], heap[i]))
			break;
		swap(child, i);
	}
	return first;
}

void net_later(uint32_t ms, void (*action)(uint32_t end), uint32_t end)
{
	struct pending *pending = push(net.now_ns + net_below(ms + 1) * MS + net_below(1000000));

	pending->later = (struct later){action, end};
}

/* ---- calls of the managers --------------------------------------------------------------------------------------------- */

/* Records the loss of a message that is sent once, without waiting for an answer. */
static void note_loss(const uint8_t *mad)
{
	struct cm_message message;
	uint32_t comm_id = 0;

	cm_unpack(mad, &message);
	if (message.kind == CM_REJ)
		comm_id = message.rej.remote_comm_id;
	else if (message.kind == CM_DREQ)
		comm_id = message.dreq.remote_comm_id;
	if (comm_id && lost_count < MOST_LOST)
		lost_for[lost_count++] = comm_id;
	net.lost++;
}

bool net_lost_for(uint32_t comm_id)
{
	for (uint32_t i = 0; i < lost_count; i++)
		if (lost_for[i] == comm_id)
			return true;
	return false;
}

static void send_mad(void *context, const struct packet_path *path, const uint8_t mad[CM_MAD_BYTES])
{
	struct host *host = context;
	uint32_t copies = 1;

	MUST(!host->in_handler);
	MUST(!memcmp(&path->source, &host->gid, sizeof(host->gid)));
	MUST(cm_mad_kind(mad) != CM_NO_MESSAGE);
	net.sent++;
	if (net_below(1000) < net.weather.loss) {
		note_loss(mad);
		copies = 0;
	} else if (net_below(1000) < net.weather.twice) {
		copies = 2;
	}
	for (; copies; copies--) {
		struct pending *pending = push(net.now_ns + 1000 + net_below(net.weather.delay_ms * 1000 + 1) * 1000);

		pending->is_mad = true;
		pending->path = *path;
		memcpy(pending->mad, mad, CM_MAD_BYTES);
	}
}

static void wake_at(void *context, uint64_t deadline_ns)
{
	struct host *host = context;

	host->wakes_at_ns = deadline_ns;
}

static uint64_t now_ns(void *context)
{
	(void)context;
	return net.now_ns;
}

static uint64_t draw(void *context)
{
	(void)context;
	return net_draw();
}

static int claim_slot(void *context)
{
	return (int)((struct host *)context - net.hosts) + 1;
}

/* ---- the network ------------------------------------------------------------------------------------------------------- */

void net_begin(uint64_t seed, const struct cm_functions *program)
{
	the_seed = seed;
	net = (struct net){.now_ns = 1000 * MS, .random = {seed}};
	next_order = lost_count = 0;
	functions = *program;
	functions.send = send_mad;
	functions.wake_at = wake_at;
	functions.now_ns = now_ns;
	functions.random = draw;
	functions.claim_slot = claim_slot;
	for (uint32_t i = 0; i < HOSTS; i++) {
		struct host *host = &net.hosts[i];
		struct cm_config config = {.functions = &functions,
					   .context = host,
					   .ca_guid = i + 1,
					   .ack_delay = 16,
					   .response_timeout = 20,
					   .retries = 15,
					   .packet_lifetime = 16,
					   .grace_ms = net_below(2) * 50};

		host->gid.raw[15] = (uint8_t)(i + 1);
		host->wakes_at_ns = UINT64_MAX;
		host->cm = cm_create(&config);
		MUST(host->cm);
	}
}

void net_end(void)
{
	while (pending_count)
		free(pop());
	for (uint32_t i = 0; i < HOSTS; i++) {
		struct cm *cm = net.hosts[i].cm;

		MUST(!cm->ids && !cm->listeners && !cm->held && !cm->held_count && !cm->table.count);
		cm_free(cm);
	}
}

static struct host *next_to_wake(void)
{
	struct host *next = &net.hosts[0];

	for (uint32_t i = 1; i < HOSTS; i++)
		if (net.hosts[i].wakes_at_ns < next->wakes_at_ns)
			next = &net.hosts[i];
	return next;
}

static void do_pending(void)
{
	struct pending *pending = pop();

	net.now_ns = pending->at_ns;
	if (pending->is_mad) {
		for (uint32_t i = 0; i < HOSTS; i++)
			if (!memcmp(&net.hosts[i].gid, &pending->path.destination, sizeof(union ibv_gid)))
				cm_receive(net.hosts[i].cm, &pending->path, pending->mad, false);
	} else {
		pending->later.action(pending->later.end);
	}
	free(pending);
}

bool net_run_until(uint64_t ns)
{
	for (;;) {
		struct host *host = next_to_wake();
		uint64_t at_ns = pending_count ? heap[0]->at_ns : UINT64_MAX;

		if (at_ns == UINT64_MAX && host->wakes_at_ns == UINT64_MAX)
			return true;
		if (at_ns > ns && host->wakes_at_ns > ns)
			return false;
		if (at_ns < host->wakes_at_ns) {
			do_pending();
			continue;
		}
		if (host->wakes_at_ns > net.now_ns)
			net.now_ns = host->wakes_at_ns;
		host->wakes_at_ns = UINT64_MAX;
		cm_run_timers(host->cm);
	}
}
