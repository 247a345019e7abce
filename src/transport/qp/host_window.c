/* SPDX-License-Identifier: BSD-2-Clause */
/* Windows of hosts. */
#include "transport/qp/host_window.h"

#include <stdlib.h>
#include <string.h>

#include "core/epoch.h"
#include "core/thread_memory.h"
#include "observe/counters.h"
#include "transport/qp/qp.h"
#include "wire/link.h"
#include "wire/routes.h"
#include "wire/run.h"
#include "wire/waiting.h"

/* Values chosen for speed. */
enum {
	/*
	 * bytes of a socket's buffer that a packet uses besides its payload: bookkeeping of the kernel, and space that a
	 * network card leaves unused
	 */
	WINDOW_PACKET_ROOM = 2048,
	/*
	 * bytes in flight to a host at most, with that room: more than the window of a QP in packets of 1024 bytes
	 */
	WINDOW_MOST_ROOM = 2u << 20,
	/* bytes by which that limit grows when all of it has arrived */
	WINDOW_GROWTH = 64u << 10,
	/* ns: losses within that time count as one, since data in flight together is lost together */
	WINDOW_ONE_LOSS_NS = 10000000,
	/* packets that a QP may send before the next waiting one has its turn */
	WINDOW_TURN = 32,
	/* windows, a power of two; the last is shared by all hosts without a window of their own */
	WINDOW_HOSTS = 256,
	/* processes of other hosts that have a share of a window */
	WINDOW_PROCESSES = 1024,
};

/* Eight packets of any length. */
#define LEAST_ROOM (8u * (WINDOW_PACKET_ROOM + LIMIT_MAX_MTU))
#define MS UINT64_C(1000000)

struct host_window {
	struct host_windows *all;
	uint32_t used; /* atomic; enum window_use */
	union ibv_gid host;
	uint64_t under_way; /* atomic; lower half: bytes, upper: generation */
	uint32_t size;      /* atomic; bytes */
	uint64_t cut_ns;    /* atomic; time of the last reduction */
	uint32_t returns;   /* atomic; count of returned shares */
	struct link_queue queue;
	bool waiting;         /* atomic; `queue` may have entries */
	pthread_mutex_t lock; /* protects the timer */
	struct timer timer;
	bool timer_armed;
	uint32_t returns_seen; /* `returns` at the last timeout */
};

/* Counters of a process, or of several with equal hashes of host and upper bits of the QP number. */
struct peer_process {
	uint32_t received; /* atomic; packets from it */
	uint32_t lost;     /* atomic; times that requesters lost packets to it */
};

struct host_windows {
	struct registry *registry;
	uint32_t most_room; /* atomic; largest size of a window */
	uint32_t buffer;    /* atomic; socket buffer from which most_room follows */
	struct host_window window[WINDOW_HOSTS];
	struct peer_process process[WINDOW_PROCESSES];
};

struct host_windows *host_windows_new(struct registry *registry)
{
	struct host_windows *all = calloc(1, sizeof(*all));

	if (!all)
		return NULL;
	all->registry = registry;
	all->most_room = WINDOW_MOST_ROOM;
	return all;
}

static uint32_t window_hash(const union ibv_gid *gid, uint32_t number)
{
	uint64_t words[2], mixed;

	memcpy(words, gid->raw, sizeof(words));
	mixed = (words[0] ^ (words[1] << 7 | words[1] >> 57) ^ number) * UINT64_C(0x9e3779b97f4a7c15);
	return (uint32_t)(mixed >> 40);
}

/* ---- the table ------------------------------------------------------------------------------------------------- */

enum window_use {
	WINDOW_FREE,
	WINDOW_TAKEN, /* a thread is initialising it */
	WINDOW_READY,
};

static void window_timed_out(struct timer *timer);

static void window_prepare(struct host_window *window)
{
	pthread_mutex_init(&window->lock, NULL);
	window->size = __atomic_load_n(&window->all->most_room, __ATOMIC_RELAXED);
	timer_init(&window->timer, window_timed_out);
}

/* Assigns @window to @host. Returns false if another host has it. */
static bool window_claim(struct host_windows *all, struct host_window *window, const union ibv_gid *host)
{
	uint32_t used = WINDOW_FREE;

	if (__atomic_compare_exchange_n(&window->used, &used, WINDOW_TAKEN, false, __ATOMIC_ACQUIRE,
					__ATOMIC_ACQUIRE)) {
		if (host)
			window->host = *host;
		window->all = all;
		window_prepare(window);
		__atomic_store_n(&window->used, WINDOW_READY, __ATOMIC_RELEASE);
		return true;
	}
	while (used == WINDOW_TAKEN)
		used = __atomic_load_n(&window->used, __ATOMIC_ACQUIRE);
	return !host || !memcmp(&window->host, host, sizeof(*host));
}

static struct host_window *window_of(struct host_windows *all, const union ibv_gid *host)
{
	uint32_t at = window_hash(host, 0);

	for (uint32_t i = 0; i < WINDOW_HOSTS - 1; i++) {
		struct host_window *window = &all->window[(at + i) % (WINDOW_HOSTS - 1)];

		if (window_claim(all, window, host))
			return window;
	}
	window_claim(all, &all->window[WINDOW_HOSTS - 1], NULL);
	return &all->window[WINDOW_HOSTS - 1];
}

/* ---- room ------------------------------------------------------------------------------------------------------ */

static uint32_t window_bytes(uint64_t under_way)
{
	return (uint32_t)under_way;
}

static uint32_t window_generation(uint64_t under_way)
{
	return (uint32_t)(under_way >> 32);
}

static uint32_t window_size(const struct host_window *window)
{
	uint32_t size = __atomic_load_n(&window->size, __ATOMIC_RELAXED);
	uint32_t most = __atomic_load_n(&window->all->most_room, __ATOMIC_RELAXED);

	return size < most ? size : most;
}

static bool window_is_full(const struct host_window *window)
{
	return window_bytes(__atomic_load_n(&window->under_way, __ATOMIC_SEQ_CST)) >= window_size(window);
}

static void window_note_room(struct host_window *window)
{
	if (__atomic_load_n(&window->waiting, __ATOMIC_SEQ_CST) && !window_is_full(window))
		__atomic_store_n(&window->all->registry->window_has_room, true, __ATOMIC_RELEASE);
}

static void window_grow(struct host_window *window, uint32_t bytes)
{
	uint32_t size = window_size(window), most = __atomic_load_n(&window->all->most_room, __ATOMIC_RELAXED);
	uint64_t more = (uint64_t)size + (uint64_t)bytes * WINDOW_GROWTH / size;

	if (size != most)
		__atomic_store_n(&window->size, (uint32_t)(more < most ? more : most), __ATOMIC_RELAXED);
}

static void window_give_back(struct host_window *window, uint32_t bytes, uint32_t generation)
{
	uint64_t before = __atomic_load_n(&window->under_way, __ATOMIC_RELAXED);

	do {
		/* The share was dropped meanwhile. */
		if (window_generation(before) != generation || window_bytes(before) < bytes)
			return;
	} while (!__atomic_compare_exchange_n(&window->under_way, &before, before - bytes, true, __ATOMIC_SEQ_CST,
					      __ATOMIC_RELAXED));
	__atomic_add_fetch(&window->returns, 1, __ATOMIC_RELAXED);
	window_note_room(window);
}

/*
 * Takes room. While other QPs wait, a QP sends only in its turn; otherwise those that get acknowledgements would take
 * all room.
 */
static bool window_take(struct host_window *window, struct window_share *share, uint32_t packets, uint32_t bytes)
{
	uint64_t before = __atomic_load_n(&window->under_way, __ATOMIC_SEQ_CST);

	if (!share->turn && __atomic_load_n(&window->waiting, __ATOMIC_SEQ_CST) && link_has_waiters(&window->queue))
		return false;
	do {
		if (window_bytes(before) >= window_size(window))
			return false;
	} while (!__atomic_compare_exchange_n(&window->under_way, &before, before + bytes, true, __ATOMIC_SEQ_CST,
					      __ATOMIC_SEQ_CST));
	if (share->generation != window_generation(before))
		share->packets = share->bytes = 0;
	share->generation = window_generation(before);
	share->turn -= share->turn < packets ? share->turn : packets;
	share->packets += packets;
	share->bytes += bytes;
	return true;
}

/* ---- QPs that wait --------------------------------------------------------------------------------------------- */

/* The lock is held. */
static void window_arm(struct host_window *window)
{
	if (window->timer_armed)
		return;
	window->returns_seen = __atomic_load_n(&window->returns, __ATOMIC_RELAXED);
	window->timer_armed = !timer_arm(&window->all->registry->devices->timers, &window->timer,
					 clock_now_ns() + LIMIT_HOST_WINDOW_MS * MS);
}

static void wait_for_room(struct host_window *window, struct hca_qp *qp)
{
	link_enqueue(&window->queue, &qp->requester.waiter, &qp->sender, true);
	qp->requester.share.waited = true;
	__atomic_store_n(&window->waiting, true, __ATOMIC_SEQ_CST);
	pthread_mutex_lock(&window->lock);
	window_arm(window);
	pthread_mutex_unlock(&window->lock);
}

/*
 * Resumes as many waiting QPs as there may be room for, or all if nothing is in flight whose return resumes the rest.
 * QPs that begin to wait meanwhile are not resumed.
 */
static void resume_window(struct host_window *window, struct run *run)
{
	uint32_t under_way = window_bytes(__atomic_load_n(&window->under_way, __ATOMIC_SEQ_CST));
	uint32_t size = window_size(window);

	if (under_way >= size)
		return;
	__atomic_store_n(&window->waiting, false, __ATOMIC_SEQ_CST);
	link_resume(&window->queue, under_way ? (size - under_way) / WINDOW_PACKET_ROOM + 1 : UINT32_MAX, run);
	if (link_has_waiters(&window->queue))
		__atomic_store_n(&window->waiting, true, __ATOMIC_SEQ_CST);
}

void host_window_resume(struct host_windows *all, struct run *run)
{
	if (!__atomic_exchange_n(&all->registry->window_has_room, false, __ATOMIC_SEQ_CST))
		return;
	for (uint32_t i = 0; i < WINDOW_HOSTS; i++)
		if (__atomic_load_n(&all->window[i].waiting, __ATOMIC_RELAXED))
			resume_window(&all->window[i], run);
}

/* Drops all shares, since none was returned for long. */
static void window_presume_lost(struct host_window *window)
{
	uint64_t before = __atomic_load_n(&window->under_way, __ATOMIC_RELAXED);

	while (!__atomic_compare_exchange_n(&window->under_way, &before,
					    (uint64_t)(window_generation(before) + 1) << 32, true, __ATOMIC_SEQ_CST,
					    __ATOMIC_RELAXED))
		;
}

static void window_timed_out(struct timer *timer)
{
	struct host_window *window = (struct host_window *)((char *)timer - offsetof(struct host_window, timer));
	bool waits = link_has_waiters(&window->queue);
	THREAD_VARIABLE(struct run, run);

	pthread_mutex_lock(&window->lock);
	window->timer_armed = false;
	if (waits && __atomic_load_n(&window->returns, __ATOMIC_RELAXED) == window->returns_seen)
		window_presume_lost(window);
	if (waits)
		window_arm(window);
	pthread_mutex_unlock(&window->lock);
	epoch_enter();
	run_begin(run);
	window_note_room(window);
	host_window_resume(window->all, run);
	deliver_rest(run);
	epoch_leave();
}

/* ---- what requesters call -------------------------------------------------------------------------------------- */

static struct window_share *share_of(struct hca_qp *qp)
{
	return &qp->requester.share;
}

/* Finds the window for @packet, to be sent next. Only a DCI changes the host, with nothing in flight. */
static void share_find_window(struct host_windows *all, struct window_share *share, const struct packet *packet)
{
	const union ibv_gid *host = &packet->path->destination;
	struct host_window *window = share->window;

	share->process = &all->process[window_hash(host, packet->destination_qpn >> HOST_SLOT_BITS) % WINDOW_PROCESSES];
	if (window && !memcmp(&window->host, host, sizeof(*host)))
		return;
	share->window = window_of(all, host);
	if (window == share->window)
		return;
	if (window)
		window_give_back(window, share->bytes, share->generation);
	share->packets = share->bytes = 0;
}

static uint32_t packet_cost(const struct packet *packet)
{
	uint64_t bytes = packet->message == MESSAGE_READ_REQUEST ? packet->dma_length : packet->payload.length;

	bytes += (uint64_t)packet->count * WINDOW_PACKET_ROOM;
	return bytes < UINT32_MAX / 4 ? (uint32_t)bytes : UINT32_MAX / 4;
}

static void see_buffer(struct host_windows *all, const struct link *link)
{
	uint32_t bytes = link ? __atomic_load_n(&link->host_buffer, __ATOMIC_RELAXED) : 0;

	if (__builtin_expect(!bytes || bytes == __atomic_load_n(&all->buffer, __ATOMIC_RELAXED), 1))
		return;
	__atomic_store_n(&all->buffer, bytes, __ATOMIC_RELAXED);
	host_window_set_most(all, bytes);
}

bool host_window_take(struct hca_qp *qp, const struct packet *packet)
{
	struct host_windows *all = qp->hca->registry->host_windows;
	struct window_share *share = share_of(qp);

	if (packet->message == MESSAGE_DISCONNECT)
		return true;
	see_buffer(all, packet->link);
	share_find_window(all, share, packet);
	if (share->waited && !link_waits(&qp->requester.waiter)) {
		share->waited = false;
		share->turn = WINDOW_TURN;
	}
	if (window_take(share->window, share, packet->count, packet_cost(packet)))
		return true;
	counter_add(qp->hca, COUNTER_UDP_WINDOW_FULL, 1);
	wait_for_room(share->window, qp);
	/* Announces room freed before the QP began to wait, or that it leaves to others. */
	window_note_room(share->window);
	return false;
}

void host_window_settle(struct hca_qp *qp, uint32_t packets)
{
	struct window_share *share = share_of(qp);
	uint32_t bytes;

	if (packets >= share->packets)
		return;
	/* Assumes packets of equal length, as usual. */
	bytes = (uint32_t)((uint64_t)share->bytes * (share->packets - packets) / share->packets);
	share->packets = packets;
	share->bytes -= bytes;
	window_grow(share->window, bytes);
	window_give_back(share->window, bytes, share->generation);
}

uint64_t host_window_payload(const struct hca_qp *qp, uint32_t mtu)
{
	const struct host_windows *all = qp->hca->registry->host_windows;
	const struct host_window *window = qp->requester.share.window;
	uint32_t room = window ? window_size(window) : __atomic_load_n(&all->most_room, __ATOMIC_RELAXED);

	return (uint64_t)(room / (WINDOW_PACKET_ROOM + mtu)) * mtu;
}

void host_window_lost(struct hca_qp *qp)
{
	struct host_window *window = share_of(qp)->window;
	uint64_t now_ns = clock_now_ns(), before;
	uint32_t size;

	if (!window)
		return;
	before = __atomic_load_n(&window->cut_ns, __ATOMIC_RELAXED);
	if (now_ns - before < WINDOW_ONE_LOSS_NS ||
	    !__atomic_compare_exchange_n(&window->cut_ns, &before, now_ns, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return;
	size = window_size(window) / 2;
	__atomic_store_n(&window->size, size > LEAST_ROOM ? size : LEAST_ROOM, __ATOMIC_RELAXED);
}

/* ---- cause of a loss ------------------------------------------------------------------------------------------- */

void host_window_received(struct hca_qp *qp)
{
	struct peer_process *process = share_of(qp)->process;

	/* Concurrent increments may count as one: only a change matters. */
	if (process)
		__atomic_store_n(&process->received, process->received + 1, __ATOMIC_RELAXED);
}

void host_window_watch(struct hca_qp *qp)
{
	struct window_share *share = share_of(qp);

	if (!share->process)
		return;
	share->received = __atomic_load_n(&share->process->received, __ATOMIC_RELAXED);
	share->lost = __atomic_load_n(&share->process->lost, __ATOMIC_RELAXED);
}

bool host_window_excuses(struct hca_qp *qp)
{
	struct window_share *share = share_of(qp);
	uint32_t received = share->received, lost = share->lost;
	uint64_t now_ns;

	if (!share->process)
		return false;
	host_window_watch(qp);
	__atomic_add_fetch(&share->process->lost, 1, __ATOMIC_RELAXED);
	lost = share->lost - lost;
	received = share->received - received;
	/* The QP's own loss does not count. */
	share->lost++;
	if (!received || !lost)
		return false;
	now_ns = clock_now_ns();
	if (!share->excused_ns)
		share->excused_ns = now_ns;
	return now_ns - share->excused_ns < qp->hca->settings.peer_silence * 1000 * MS;
}

/* ---- size and fork --------------------------------------------------------------------------------------------- */

void host_window_set_most(struct host_windows *all, uint32_t bytes)
{
	bytes /= 2;
	if (bytes < LEAST_ROOM)
		bytes = LEAST_ROOM;
	__atomic_store_n(&all->most_room, bytes < WINDOW_MOST_ROOM ? bytes : WINDOW_MOST_ROOM, __ATOMIC_RELAXED);
}

void host_windows_forget(struct host_windows *all)
{
	for (struct host_window *window = all->window; window < all->window + WINDOW_HOSTS; window++)
		if (window->used) {
			window->used = WINDOW_READY;
			window->all = all;
			link_abandon(&window->queue);
			window->under_way = 0;
			window->waiting = false;
			window->timer_armed = false;
			window_prepare(window);
		}
	all->registry->window_has_room = false;
}
