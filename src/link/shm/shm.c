/* SPDX-License-Identifier: BSD-2-Clause */
/* The shm link, and the beginning and end of its connections. */
#include "link/shm/shm.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "core/epoch.h"
#include "core/tunables.h"
#include "core/thread_memory.h"
#include "hca/hca.h"
#include "link/shm/peer.h"

/* Values chosen for speed. */
enum {
	/* polls for remaining data from a process that has ended */
	SHM_LAST_POLLS = 100000u,
};

static size_t rings_memory_size(void)
{
	return 2 * sizeof(struct shm_ring);
}

const struct link *link_shm(void)
{
	static const struct link shm = {
		.name = "shm",
		.paired = true,
		.whole = TUNABLE_SHM_LONG_FROM,
		.most = SHM_MOST_PAYLOAD,
		.send = shm_send,
		.mark = shm_mark,
		.pending = shm_pending,
		.access = shm_direct_access,
	};

	return &shm;
}

/* Once in a process. The lock of the host table is held. */
static int shm_poller_start(void)
{
	uint32_t generation = progress_generation();
	int error;

	if (shm_poller.generation == generation)
		return 0;
	shm_poller.poller = (struct poller){
		.repeats = true, .poll = shm_poll, .idle = shm_idle, .arm = shm_arm, .attend = shm_attend};
	shm_poller.armed = 1;
	shm_poller.attends = 0;
	shm_poller.leaving = NULL;
	error = progress_add(&shm_poller.poller);
	if (!error)
		shm_poller.generation = generation;
	return error;
}

static int shm_peer_begin(struct host_peer *host)
{
	struct shm_ring *rings = (struct shm_ring *)host->memory;
	struct shm_peer *peer = aligned_alloc(_Alignof(struct shm_peer), sizeof(*peer));
	int error;

	if (!peer)
		return -ENOMEM;
	memset(peer, 0, sizeof(*peer));
	peer->host = host;
	peer->out.ring = &rings[!host->created];
	peer->in.ring = &rings[host->created];
	peer->own = &peer->out.ring->state;
	peer->other = &peer->in.ring->state;
	shm_await(peer);
	shm_wake_prepare(peer);
	shm_grants_prepare(peer);
	error = shm_poller_start();
	if (error) {
		free(peer);
		return error;
	}
	__atomic_store_n(&host->shm, peer, __ATOMIC_RELEASE);
	/* Set last, when the poller can find the connection. */
	__atomic_store_n(&peer->own->sleeps, 1, __ATOMIC_SEQ_CST);
	return 0;
}

/* The other side writes its process ID when it begins the connection. */
static bool shm_peer_was_accepted(const struct host_peer *host)
{
	return __atomic_load_n(&host->shm->other->process, __ATOMIC_ACQUIRE);
}

static void shm_count_released(struct host_peer *host)
{
	__atomic_add_fetch(&host->shm->own->services_released, 1, __ATOMIC_SEQ_CST);
}

static uint32_t shm_services_released(const struct host_peer *host)
{
	return __atomic_load_n(&host->shm->other->services_released, __ATOMIC_SEQ_CST);
}

/* Handles the remaining records of a process that has ended. */
static void ring_take_rest(const struct shm_peer *peer)
{
	uint32_t begin = __atomic_load_n(&peer->taken, __ATOMIC_ACQUIRE);

	for (uint32_t tries = 0; tries < SHM_LAST_POLLS; tries++) {
		struct shm_consumer in = {.ring = peer->in.ring,
					  .at.slot = __atomic_load_n(&peer->taken, __ATOMIC_ACQUIRE)};

		/* A peer that continues to write has not really ended. */
		if (!shm_ready(&in) || in.at.slot - begin > SHM_SLOTS ||
		    __atomic_load_n(&peer->broken, __ATOMIC_RELAXED))
			return;
		/* Another thread may be polling. */
		if (!progress_poll())
			sched_yield();
	}
}

static void shm_peer_gone(struct host_peer *host)
{
	THREAD_VARIABLE(struct run, run);

	shm_grants_revoke(host->shm);
	__atomic_store_n(&shm_poller.leaving, host, __ATOMIC_RELEASE);
	ring_take_rest(host->shm);
	__atomic_store_n(&shm_poller.leaving, NULL, __ATOMIC_RELEASE);
	/* Packets of QPs that wait for room are lost from now on. */
	epoch_enter();
	run_begin(run);
	link_close(&host->shm->waiting, run);
	deliver_rest(run);
	epoch_leave();
	delivery->peer_ended();
}

static void shm_peer_end(struct host_peer *host)
{
	if (!host->shm)
		return;
	link_abandon(&host->shm->waiting);
	free(host->shm);
	host->shm = NULL;
}

const struct host_carrier shm_carrier = {.memory_size = rings_memory_size,
					 .begin = shm_peer_begin,
					 .was_accepted = shm_peer_was_accepted,
					 .service_released = shm_count_released,
					 .services_released = shm_services_released,
					 .gone = shm_peer_gone,
					 .end = shm_peer_end,
					 .forward = shm_forward,
					 .forward_to = shm_forward_to};
