/* SPDX-License-Identifier: BSD-2-Clause */
/* Sleeping and waking, see peer.h. */
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/epoch.h"
#include "core/tunables.h"
#include "hca/hca.h"
#include "link/shm/peer.h"

/*
 * Executes a barrier on all processors that run a process which has called shm_wake_prepare(). Returns false where the
 * kernel does not support it.
 */
static bool processes_barrier(void)
{
	return !syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
}

void shm_wake_prepare(struct shm_peer *peer)
{
	peer->has_barrier =
		!syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) && processes_barrier();
	__atomic_store_n(&peer->own->barrier, peer->has_barrier, __ATOMIC_RELEASE);
}

void shm_order(struct shm_peer *peer)
{
	__atomic_exchange_n(&peer->order, 1, __ATOMIC_SEQ_CST);
	order_after_exchange();
}

void shm_wake_slow(struct shm_peer *peer)
{
	struct shm_state *other = (struct shm_state *)peer->other;

	/* One wake-up is enough: a process that goes to sleep again sets the flag again. */
	if (!__atomic_exchange_n(&other->sleeps, 0, __ATOMIC_SEQ_CST))
		return;
	shm_wake_anyway(peer);
	/* The other process is asleep, so its program does not poll. */
	if (!__atomic_load_n(&peer->tried_direct, __ATOMIC_RELAXED))
		shm_direct_try(peer);
}

/*
 * Marks this process as sleeping. Returns true if a barrier on all processors is needed: it makes records visible that
 * the other side published without one; from then on that side executes its own with every record. If the device thread
 * marks this process as polling at the same time, either it clears `sleeps` and checks the rings itself, or its update
 * of `barrier` is seen here.
 */
static bool peer_mark_asleep(struct shm_peer *peer)
{
	if (__atomic_load_n(&peer->own->sleeps, __ATOMIC_RELAXED))
		return false;
	__atomic_exchange_n(&peer->own->sleeps, 1, __ATOMIC_SEQ_CST);
	order_after_exchange();
	if (!__atomic_load_n(&peer->own->barrier, __ATOMIC_RELAXED))
		return false;
	__atomic_store_n(&peer->own->barrier, 0, __ATOMIC_RELAXED);
	return true;
}

static void peer_mark_polling(struct shm_peer *peer)
{
	if (__atomic_load_n(&peer->own->barrier, __ATOMIC_RELAXED) != peer->has_barrier) {
		__atomic_exchange_n(&peer->own->barrier, peer->has_barrier, __ATOMIC_SEQ_CST);
		order_after_exchange();
	}
	if (__atomic_load_n(&peer->own->sleeps, __ATOMIC_RELAXED))
		__atomic_store_n(&peer->own->sleeps, 0, __ATOMIC_SEQ_CST);
}

void shm_arm(struct poller *poller, bool armed)
{
	struct shm_poller *shm = (struct shm_poller *)poller;
	bool barrier = false;

	__atomic_store_n(&shm->armed, armed, __ATOMIC_RELAXED);
	epoch_enter();
	for (struct host_peer *host = host_peers(); host; host = host_next(host)) {
		if (armed)
			barrier |= peer_mark_asleep(shm_of(host));
		else
			peer_mark_polling(shm_of(host));
	}
	epoch_leave();
	if (barrier)
		processes_barrier();
}

void shm_wake_anyway(struct shm_peer *peer)
{
	host_wake(peer->host);
	counter_add(first_device(), COUNTER_SHM_WAKEUPS_SENT, 1);
}

void shm_nudge(struct shm_peer *peer)
{
	uint32_t tail = shm_tail(&peer->out).slot, head;
	bool stands;

	if (tail == peer->seen_head || ++peer->polls < TUNABLE_SHM_NUDGE_PATIENCE)
		return;
	head = shm_unpack(__atomic_load_n(&peer->out.ring->head, __ATOMIC_RELAXED)).slot;
	stands = head == peer->seen_head && head != peer->seen_tail;
	peer->polls = 0;
	peer->seen_head = head;
	peer->seen_tail = tail;
	if (stands)
		shm_wake_anyway(peer);
}

/*
 * The other side checks this flag after freeing room, and this side checks for room again after this call (shm_send()).
 * So the store must be visible first.
 */
void shm_starve(struct shm_peer *peer)
{
	if (__atomic_load_n(&peer->own->starved, __ATOMIC_RELAXED))
		return;
	__atomic_store_n(&peer->own->starved, 1, __ATOMIC_SEQ_CST);
	/* A program that polls sees the room itself. */
	if (__atomic_load_n(&peer->own->sleeps, __ATOMIC_SEQ_CST))
		processes_barrier();
}
