/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pair 1. */
#include "transport/gsi/gsi.h"

#include <endian.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/cancellation.h"
#include "core/epoch.h"
#include "core/limits.h"
#include "core/thread_memory.h"
#include "explain/limit.h"
#include "hca/hca.h"
#include "observe/counters.h"
#include "progress/progress.h"
#include "transport/qp/drop.h"
#include "wire/link.h"
#include "wire/routes.h"
#include "wire/run.h"

/* Values chosen for speed. */
enum {
	/* datagrams of the connection manager that one poll sends before other work continues */
	GSI_AT_ONCE = 16,
	/* ns between two checks for a listener, which take a few system calls each */
	GSI_LOOK_NS = 10000000,
	/* ns until a link that had no room for a datagram is tried again */
	GSI_ROOM_NS = 1000000,
	/* requests from other hosts that may wait for a listener; limited because any host can send them */
	GSI_ARRIVALS = 64,
	/* ns to wait for another thread that sends: longer than any needs on a processor */
	SEND_WAIT_NS = 500000000,
	/* checks for its end before the first sleep; sending takes some 10 us */
	SEND_WAIT_YIELDS = 64,
	/* ns between the others */
	SEND_WAIT_NAP_NS = 100000,
};

/* Rounds of gsi_push(); the device thread sends the rest. */
#define MOST_PUSHES 1000

struct entry {
	struct entry *next;
	struct hca *hca;
	struct packet_path path;
	bool arrived; /* received from another host; waits for its listener */
	uint64_t due_ns;
	uint64_t grace_ns; /* end of the grace period */
	uint8_t mad[MAD_BYTES];
};

struct list {
	struct entry *first, **last;
};

struct gsi {
	struct hca *hca; /* first device: timer, random numbers, arriving packets */
	pthread_mutex_t lock;
	struct list ready;   /* in order of sending */
	struct list waiting; /* until due_ns; few, hence unsorted */
	uint32_t count;      /* entries in both lists */
	uint32_t arrivals;   /* entries with `arrived` set */
	uint32_t due;        /* atomic; entries in `ready` */
	uint32_t sending;    /* atomic; one thread at a time sends, to keep the order */
	uint32_t generation; /* progress_generation() when the poller was added */
	uint32_t psn;
	struct timer timer; /* fires when the next entry in `waiting` is due */
	uint64_t timer_ns;  /* deadline of the timer, or 0 */
	struct poller poller;
};

struct gsi *gsi_new(struct hca *first)
{
	struct gsi *gsi = calloc(1, sizeof(*gsi));

	if (!gsi)
		return NULL;
	gsi->hca = first;
	pthread_mutex_init(&gsi->lock, NULL);
	return gsi;
}

/* ---- the queue: the lock is held ------------------------------------------------------------------------------- */

static void entries_append(struct list *list, struct entry *entry)
{
	if (!list->first)
		list->last = &list->first;
	entry->next = NULL;
	*list->last = entry;
	list->last = &entry->next;
}

static struct entry *entries_take(struct list *list)
{
	struct entry *entry = list->first;

	if (!entry)
		return NULL;
	list->first = entry->next;
	if (!list->first)
		list->last = &list->first;
	return entry;
}

static void entry_make_ready(struct gsi *gsi, struct entry *entry)
{
	entries_append(&gsi->ready, entry);
	__atomic_store_n(&gsi->due, gsi->due + 1, __ATOMIC_SEQ_CST);
}

static void gsi_arm(struct gsi *gsi, uint64_t due_ns)
{
	if (gsi->timer_ns && gsi->timer_ns <= due_ns)
		return;
	gsi->timer_ns = timer_arm(&gsi->hca->timers, &gsi->timer, due_ns) ? 0 : due_ns;
}

static void entry_make_wait(struct gsi *gsi, struct entry *entry, uint64_t due_ns)
{
	entry->due_ns = due_ns;
	entries_append(&gsi->waiting, entry);
	gsi_arm(gsi, due_ns);
}

/* Moves entries due by @now_ns to the ready list. */
static void make_due(struct gsi *gsi, uint64_t now_ns)
{
	struct list waiting = gsi->waiting;
	struct entry *entry;

	gsi->waiting = (struct list){0};
	while ((entry = entries_take(&waiting))) {
		if (entry->due_ns <= now_ns)
			entry_make_ready(gsi, entry);
		else
			entry_make_wait(gsi, entry, entry->due_ns);
	}
}

static void timer_due(struct timer *timer)
{
	struct gsi *gsi = (struct gsi *)((char *)timer - offsetof(struct gsi, timer));

	pthread_mutex_lock(&gsi->lock);
	gsi->timer_ns = 0;
	make_due(gsi, clock_now_ns());
	pthread_mutex_unlock(&gsi->lock);
	gsi_wake(gsi);
}

static void entry_finish(struct gsi *gsi, struct entry *entry)
{
	pthread_mutex_lock(&gsi->lock);
	gsi->count--;
	gsi->arrivals -= entry->arrived;
	pthread_mutex_unlock(&gsi->lock);
	free(entry);
}

static void entry_retry(struct gsi *gsi, struct entry *entry, uint64_t due_ns)
{
	pthread_mutex_lock(&gsi->lock);
	entry_make_wait(gsi, entry, due_ns);
	pthread_mutex_unlock(&gsi->lock);
}

/* ---- sending: the poller ---------------------------------------------------------------------------------------- */

static void gsi_build(struct gsi *gsi, struct packet *packet, struct entry *entry, const struct link *link)
{
	memset(packet, 0, offsetof(struct packet, own_path));
	packet->transport = IBV_QPT_UD;
	packet->message = MESSAGE_SEND;
	packet->place = PLACE_ONLY;
	packet->destination_qpn = packet->source_qpn = GSI_QPN;
	packet->qkey = GSI_QKEY;
	packet->psn = __atomic_fetch_add(&gsi->psn, 1, __ATOMIC_RELAXED) & PSN_MASK;
	packet->count = 1;
	packet->mtu = MAD_BYTES;
	packet->link = link;
	packet->own_path = entry->path;
	packet->path = &packet->own_path;
	stream_begin(&packet->payload, NULL, 0);
	stream_add_memory(&packet->payload, entry->mad, MAD_BYTES);
}

/* Returns false without room. */
static bool send_over(struct gsi *gsi, struct entry *entry, const struct link *link, struct run *run)
{
	gsi_build(gsi, run_slot(run), entry, link);
	if (link_send(entry->hca, run) == LINK_BUSY)
		return false;
	counter_add(entry->hca, COUNTER_CM_MADS_SENT, 1);
	deliver_queued(run);
	return true;
}

static void entry_lose(struct gsi *gsi, struct entry *entry, enum mad_loss why)
{
	if (management)
		management->lost(entry->hca, &entry->path, entry->mad, why);
	entry_finish(gsi, entry);
}

static bool is_request(const struct entry *entry)
{
	return mad_address(entry->mad).addressee == MAD_FOR_SERVICE;
}

static void send_entry(struct gsi *gsi, struct entry *entry, struct run *run)
{
	const struct link *links[ROUTES_OF_MAD];
	uint64_t now_ns = clock_now_ns();
	int count;

	/* Answers may come from other processes. */
	routes->accept();
	count = routes->to_manager(entry->hca, &entry->path.destination, entry->mad, links);
	if (count == -ENOENT && is_request(entry) && now_ns < entry->grace_ns) {
		entry_retry(gsi, entry, now_ns + GSI_LOOK_NS);
	} else if (count == -ENOENT || count == -ENETUNREACH) {
		entry_lose(gsi, entry, count == -ENOENT ? MAD_NO_RECIPIENT : MAD_UNREACHABLE);
	} else if (count > 0 && !send_over(gsi, entry, links[0], run)) {
		entry_retry(gsi, entry, now_ns + GSI_ROOM_NS);
	} else {
		for (int i = 1; i < count; i++)
			send_over(gsi, entry, links[i], run);
		entry_finish(gsi, entry);
	}
}

static void gsi_give(struct hca *hca, const struct packet_path *path, const uint8_t mad[MAD_BYTES], bool waited)
{
	counter_add(hca, COUNTER_CM_MADS_RECEIVED, 1);
	management->receive(hca, path, mad, waited);
}

/*
 * Delivers a request from another host to a listener that has appeared, refuses it after its grace period, or keeps
 * waiting.
 */
static void look_for_listener(struct gsi *gsi, struct entry *entry)
{
	uint64_t now_ns = clock_now_ns();
	bool own = routes->listens(mad_address(entry->mad).service);

	if (!own && routes->hand_on(&entry->path, entry->mad)) {
		entry_finish(gsi, entry);
	} else if (own || now_ns >= entry->grace_ns) {
		gsi_give(entry->hca, &entry->path, entry->mad, true);
		entry_finish(gsi, entry);
	} else {
		entry_retry(gsi, entry, now_ns + GSI_LOOK_NS);
	}
}

static struct entry *entry_take_ready(struct gsi *gsi)
{
	struct entry *entry;

	pthread_mutex_lock(&gsi->lock);
	entry = entries_take(&gsi->ready);
	if (entry)
		__atomic_store_n(&gsi->due, gsi->due - 1, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&gsi->lock);
	return entry;
}

static struct gsi *gsi_of_poller(struct poller *poller)
{
	return (struct gsi *)((char *)poller - offsetof(struct gsi, poller));
}

static bool gsi_poll(struct poller *poller, struct run *run)
{
	struct gsi *gsi = gsi_of_poller(poller);
	struct entry *entry;
	int i;

	if (!__atomic_load_n(&gsi->due, __ATOMIC_ACQUIRE) || __atomic_exchange_n(&gsi->sending, 1, __ATOMIC_SEQ_CST))
		return false;
	for (i = 0; i < GSI_AT_ONCE && (entry = entry_take_ready(gsi)); i++) {
		if (entry->arrived)
			look_for_listener(gsi, entry);
		else
			send_entry(gsi, entry, run);
	}
	__atomic_store_n(&gsi->sending, 0, __ATOMIC_SEQ_CST);
	return i > 0;
}

static bool gsi_is_idle(struct poller *poller)
{
	return !__atomic_load_n(&gsi_of_poller(poller)->due, __ATOMIC_ACQUIRE);
}

/* Implements poller.arm. Queueing an entry wakes the device thread. */
static void arm_poller(struct poller *poller, bool armed)
{
	(void)poller;
	(void)armed;
}

/* ---- queueing --------------------------------------------------------------------------------------------------- */

/* Adds the poller, once per process. Returns false without a device thread. The lock is held. */
static bool gsi_begin(struct gsi *gsi)
{
	uint32_t generation = progress_generation();

	if (gsi->generation == generation)
		return true;
	gsi->poller = (struct poller){.poll = gsi_poll, .idle = gsi_is_idle, .arm = arm_poller};
	timer_init(&gsi->timer, timer_due);
	gsi->timer_ns = 0;
	gsi->psn = (uint32_t)hca_random(gsi->hca) & PSN_MASK;
	if (progress_add(&gsi->poller))
		return false;
	gsi->generation = generation;
	return true;
}

static struct entry *entry_new(struct hca *hca, const struct packet_path *path, const uint8_t mad[MAD_BYTES])
{
	struct entry *entry = malloc(sizeof(*entry));

	if (!entry)
		return NULL;
	*entry = (struct entry){
		.hca = hca, .path = *path, .grace_ns = clock_now_ns() + hca->settings.cm_grace_ms * UINT64_C(1000000)};
	memcpy(entry->mad, mad, MAD_BYTES);
	return entry;
}

/* Queues @entry. If the queue is full, frees it and returns false. */
static bool entry_queue(struct gsi *gsi, struct entry *entry)
{
	bool room;

	pthread_mutex_lock(&gsi->lock);
	room = gsi->count < LIMIT_CM_QUEUE && (!entry->arrived || gsi->arrivals < GSI_ARRIVALS) && gsi_begin(gsi);
	if (room) {
		gsi->count++;
		gsi->arrivals += entry->arrived;
		if (entry->arrived)
			entry_make_wait(gsi, entry, clock_now_ns() + GSI_LOOK_NS);
		else
			entry_make_ready(gsi, entry);
	}
	pthread_mutex_unlock(&gsi->lock);
	if (!room)
		free(entry);
	return room;
}

void gsi_send(struct hca *hca, const struct packet_path *path, const uint8_t mad[MAD_BYTES])
{
	struct gsi *gsi = hca->registry->gsi;
	struct entry *entry = entry_new(hca, path, mad);

	if (entry && entry_queue(gsi, entry))
		return;
	counter_add(hca, COUNTER_CM_MADS_DROPPED, 1);
	EXPLAIN_LIMITED(hca, (&(const struct explain_subject){0}), LIMIT_EXPLAINED_DROPS, RULE_MAD_QUEUE_FULL,
			__atomic_load_n(&gsi->count, __ATOMIC_RELAXED), LIMIT_CM_QUEUE);
}

void gsi_wake(const struct gsi *gsi)
{
	if (__atomic_load_n(&gsi->due, __ATOMIC_SEQ_CST))
		progress_wake();
}

/* Waits until no other thread is sending what it has taken from the queue. */
static void gsi_wait_sent(const struct gsi *gsi)
{
	WITHOUT_CANCELLATION;
	const struct timespec nap = {.tv_nsec = SEND_WAIT_NAP_NS};

	for (int i = 0; i < SEND_WAIT_NS / SEND_WAIT_NAP_NS && __atomic_load_n(&gsi->sending, __ATOMIC_ACQUIRE); i++) {
		if (i < SEND_WAIT_YIELDS)
			sched_yield();
		else
			nanosleep(&nap, NULL);
	}
}

void gsi_push(struct gsi *gsi)
{
	THREAD_VARIABLE(struct run, run);

	/* A thread that finds `sending` set leaves its entry to this one: the order makes sure that it is seen here. */
	for (int i = 0; i < MOST_PUSHES && __atomic_load_n(&gsi->due, __ATOMIC_SEQ_CST); i++) {
		epoch_enter();
		run_begin(run);
		if (!gsi_poll(&gsi->poller, run))
			sched_yield();
		deliver_rest(run);
		epoch_leave();
	}
	gsi_wait_sent(gsi);
	gsi_wake(gsi);
}

void gsi_flush(struct gsi *gsi)
{
	struct entry *entry;
	THREAD_VARIABLE(struct run, run);

	pthread_mutex_lock(&gsi->lock);
	make_due(gsi, UINT64_MAX);
	pthread_mutex_unlock(&gsi->lock);
	epoch_enter();
	run_begin(run);
	while ((entry = entry_take_ready(gsi))) {
		entry->grace_ns = 0;
		if (entry->arrived)
			entry_finish(gsi, entry);
		else
			send_entry(gsi, entry, run);
	}
	deliver_rest(run);
	epoch_leave();
	gsi_wait_sent(gsi);
}

/* ---- receiving -------------------------------------------------------------------------------------------------- */

static void mad_drop(struct hca *hca, const struct packet *packet, enum explain_rule rule, const uint64_t *figures,
		     size_t count)
{
	const struct explain_subject subject = {.qpn = GSI_QPN};

	counter_add(hca, COUNTER_CM_MADS_DROPPED, 1);
	packet_explain_drop(hca, packet, &subject, rule, figures, count);
}

/*
 * Checks the Q_Key first (IBTA 10.2.5, C10-15); the P_Key was checked with the headers. Returns false if the packet was
 * dropped.
 */
static bool is_datagram(struct hca *hca, const struct packet *packet)
{
	if (packet->transport != IBV_QPT_UD || packet->qkey != GSI_QKEY) {
		mad_drop(hca, packet, RULE_MAD_QKEY, FIGURES(packet->source_qpn, packet->qkey, GSI_QKEY));
		return false;
	}
	if (packet->message != MESSAGE_SEND || packet->payload.length != MAD_BYTES) {
		mad_drop(hca, packet, RULE_MAD_LENGTH, FIGURES(packet->source_qpn, packet->payload.length, MAD_BYTES));
		return false;
	}
	return true;
}

/*
 * Drops UDP packets with a source address of this host: any local process can send them, while softhca's use shared
 * memory. Returns true if dropped.
 */
static bool is_stranger(struct hca *hca, const struct packet *packet)
{
	const union ibv_gid *source = &packet->path->source;

	if (packet->link != routes->udp() || hca->settings.link == LINK_UDP || hca->link ||
	    !routes->is_near(hca, source))
		return false;
	mad_drop(hca, packet, RULE_MAD_STRANGER,
		 FIGURES(be64toh(source->global.subnet_prefix), be64toh(source->global.interface_id)));
	return true;
}

/*
 * Hands a MAD from another host to its process, or queues a request without a listener. Returns true if this process
 * does not get it now.
 */
static bool goes_elsewhere(struct gsi *gsi, const struct packet *packet, const uint8_t mad[MAD_BYTES],
			   const struct mad_address *address)
{
	struct entry *entry;

	if (packet->link != routes->udp() || packet->handed_on)
		return false;
	if (routes->hand_on(packet->path, mad)) {
		counter_add(gsi->hca, COUNTER_CM_MADS_HANDED_ON, 1);
		return true;
	}
	if (address->addressee != MAD_FOR_SERVICE || routes->listens(address->service))
		return false;
	entry = entry_new(gsi->hca, packet->path, mad);
	if (!entry)
		return true;
	entry->arrived = true;
	return entry_queue(gsi, entry);
}

/*
 * Drops MADs from this host with an id of another process. Returns true if dropped. Those from other hosts pass, since
 * the connection manager must answer some unknown ids (IBTA 12.9.8.3.1).
 */
static bool is_of_another(struct hca *hca, const struct packet *packet, const struct mad_address *address)
{
	if (packet->link != routes->shm() || address->addressee != MAD_FOR_ID || routes->owns(address->qpn))
		return false;
	mad_drop(hca, packet, RULE_MAD_ELSEWHERE, FIGURES(address->qpn >> HOST_SLOT_BITS));
	return true;
}

void gsi_receive(struct gsi *gsi, struct packet *packet)
{
	struct hca *hca = gsi->hca;
	struct mad_address address;
	uint8_t mad[MAD_BYTES];
	uint32_t word;

	if (!is_datagram(hca, packet))
		return;
	stream_read(&packet->payload, mad, MAD_BYTES);
	word = mad_word(mad);
	if (word != MAD_CM_WORD) {
		mad_drop(hca, packet, RULE_MAD_CLASS, FIGURES(packet->source_qpn, word, MAD_CM_WORD));
		return;
	}
	if (is_stranger(hca, packet))
		return;
	address = mad_address(mad);
	if (goes_elsewhere(gsi, packet, mad, &address) || is_of_another(hca, packet, &address))
		return;
	gsi_give(hca, packet->path, mad, false);
}

/* ---- fork ------------------------------------------------------------------------------------------------------- */

void gsi_lock(struct gsi *gsi)
{
	pthread_mutex_lock(&gsi->lock);
}

void gsi_unlock(struct gsi *gsi)
{
	pthread_mutex_unlock(&gsi->lock);
}

void gsi_forget(struct gsi *gsi)
{
	struct entry *entry;

	while ((entry = entries_take(&gsi->ready)))
		free(entry);
	while ((entry = entries_take(&gsi->waiting)))
		free(entry);
	gsi->count = gsi->arrivals = gsi->due = gsi->sending = 0;
	gsi->timer_ns = 0;
	gsi->generation = 0;
}
