/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared by the files of the shm link: a connection as the link sees it, and how processes wake each other.
 *
 * A file uses only files below it in this list:
 *
 *   shm.c     the link; begins and ends connections
 *   send.c    converts runs to records
 *   receive.c the poller: converts records to packets
 *   grants.c  permits direct accesses by the other side
 *   drain.c   waits until no direct access is in progress
 *   wake.c    sleeping and waking
 *   direct.c  READ and WRITE by grants
 *   end.c     attributes of queue pairs, for warnings about misuse
 *   peer.c    the state of connections and of the poller
 *   ring.c    the ring alone
 *   lines.c   writes many lines of the ring
 *
 * Locks: none. Senders reserve their places in a ring by a compare-and-swap; there is one poller at a time
 * (progress/progress.h). A struct shm_peer may be read inside an epoch section, like the struct host_peer that owns it.
 *
 * Waking. `sleeps` in the state of a process says that it must be woken when there is a record for it, or room that it
 * waits for. After publishing a record or returning room, a process checks this flag of the other one. Each side has a
 * store followed by a load, which the processor may reorder, so one side needs a barrier. The sleeping side has it,
 * because going to sleep is rare: it runs a barrier on all processors of the processes concerned (membarrier(2)). From
 * then on, until that process polls continuously again, the other side executes a barrier with every record. So a
 * process that sleeps after each message interrupts other processors only once. Without membarrier(2), the senders
 * always execute the barrier.
 */
#ifndef SOFTHCA_LINK_SHM_PEER_H
#define SOFTHCA_LINK_SHM_PEER_H

#include "explain/explain.h"
#include "core/tunables.h"
#include "observe/counters.h"
#include "link/host/host.h"
#include "wire/link.h"
#include "link/shm/shm.h"
#include "link/shm/ring.h"

struct shm_peer {
	struct host_peer *host;
	struct shm_producer out; /* the ring that this process fills, with its own state */
	struct shm_consumer in;  /* the ring that the other process fills, with the other's state */
	struct shm_state *own;
	const struct shm_state *other;
	/*
	 * For the poller: the slot of the next record, and the sequence that it has when the record is there
	 * (shm_await).
	 */
	const struct shm_slot *next;
	uint32_t next_sequence;
	uint32_t broken; /* atomic; 1: the other side broke the format and is ignored */
	uint32_t taken;  /* atomic; records that the poller has finished */
	/*
	 * For the poller, see shm_nudge(): polls since the last record or check, and the head and tail at that check.
	 */
	uint32_t polls, seen_head, seen_tail;
	uint32_t handled; /* for the poller: the value last stored in shm_ring.handled */
	uint64_t stuck;   /* atomic; the other side's head when a sender first found no room, and the time when that
			   * was */
	uint64_t drop_explained_ns; /* atomic; time of the last explained drop, CLOCK_MONOTONIC */
	/* For the poller: the other side's head when waiters last retried, and the number that have yet to retry. */
	uint32_t tried_head, to_try;
	struct link_queue waiting; /* QPs that wait for room in the ring that this process fills */
	bool has_barrier; /* membarrier(2) works; while this process seldom sleeps, state.barrier tells the other
			   * side so */
	uint32_t order;   /* target of the atomic exchange that serves as barrier */
	/* For direct.c: */
	bool grants;              /* for the poller: make grants for the requests of this batch */
	struct shm_grant refused; /* for the poller: the last grant not made because of the kind of its memory */
	bool tried_direct;        /* atomic; a thread has tried to open the memory of the other side */
	uint32_t can_direct;      /* atomic; 1: that memory is open */
	uint32_t accesses;        /* atomic; 1: a thread is accessing it */
	uint64_t ticket;          /* for that thread: number of the last access */
};

struct shm_poller {
	struct poller poller;      /* set up with the first connection */
	uint32_t generation;       /* progress_generation() when the poller was added */
	uint32_t armed;            /* atomic */
	uint32_t attends;          /* atomic; the program polls continuously */
	struct host_peer *leaving; /* atomic; its process has gone, its ring is read to the end by shm_peer_gone() */
};

extern struct shm_poller shm_poller;

/* ---- peer.c ----------------------------------------------------------------------------------------------- */

/** Returns the link's struct shm_peer of @host, or NULL. Inside an epoch section. */
static inline struct shm_peer *shm_of(const struct host_peer *host)
{
	return host ? __atomic_load_n(&host->shm, __ATOMIC_ACQUIRE) : NULL;
}

/** Ends the connection to @peer, after the caller has explained the fault. Any thread, any lock. */
void shm_break(struct shm_peer *peer);
/**
 * Revokes all grants of @peer. The end of a connection does this as well, because a later revocation does not find the
 * connection, and the other side may not have noticed its end. No grant is made after that, since the peer is broken or
 * gone. Any thread.
 */
void shm_grants_revoke(struct shm_peer *peer);
/** Returns the place of a grant in @ring, which both sides compute the same way. */
struct shm_grant *shm_grant_place(struct shm_ring *ring, uint32_t destination, uint32_t rkey);
/**
 * Returns true if the process at the other side exists, so that its process ID has not been reused: a process closes
 * its sockets before it loses its ID. Makes a system call that does not block. Any thread.
 */
bool shm_is_still_there(const struct shm_peer *peer);

/**
 * Makes the record at peer->in the next one to wait for. Called once before the first poll, then by the poller only.
 */
static inline void shm_await(struct shm_peer *peer)
{
	peer->next = shm_next(&peer->in);
	peer->next_sequence = shm_sequence(peer->in.at.slot);
}

/** Returns true if the next record is there. As shm_ready(), for the poller only. */
static inline bool shm_has_come(const struct shm_peer *peer)
{
	return __atomic_load_n(&peer->next->sequence, __ATOMIC_ACQUIRE) == peer->next_sequence;
}

/* ---- send.c, receive.c -------------------------------------------------------------------------------- */

enum link_result shm_send(struct hca *hca, struct run *run);
/** link.mark and link.pending of the shm link. Inside an epoch section. */
uint64_t shm_mark(uint32_t qpn);
bool shm_pending(uint32_t qpn, uint64_t mark, uint64_t *progress);
bool shm_poll(struct poller *poller, struct run *run);
/** poller.idle: returns true if shm_poll() would find nothing. */
bool shm_idle(struct poller *poller);
/**
 * Takes a batch of the records of @host. Returns true if there were any. In an epoch section; by the poller, or by one
 * thread at a time.
 */
bool shm_poll_peer(struct host_peer *host, struct run *run);

/* A path in a record; in network byte order where that matters. */
struct shm_path {
	uint8_t source[16], destination[16];
	uint32_t flow_label;
	uint16_t udp_source_port;
	uint8_t type, service_level, traffic_class, hop_limit;
	uint8_t reserved[22];
};

/** See struct host_carrier. */
void shm_forward(uint32_t qpn, const struct packet_path *path, const uint8_t *bytes, size_t length);
void shm_forward_to(struct host_peer *host, const struct packet_path *path, const uint8_t *bytes, size_t length);

/* ---- wake.c ----------------------------------------------------------------------------------------------- */

/** Publishes how this process can be woken. Any thread. */
void shm_wake_prepare(struct shm_peer *peer);
/** poller.arm: called before each sleep, because a process that was woken is not woken again until it sleeps again. */
void shm_arm(struct poller *poller, bool armed);
/** Marks this process as waiting for room in the ring that it fills. Any thread. */
void shm_starve(struct shm_peer *peer);

/**
 * Wakes the other side if its program counts as polling, yet neither takes records nor sends any: a program may poll
 * once and then spin on memory. Called by the poller after each poll that finds nothing.
 */
void shm_nudge(struct shm_peer *peer);
/**
 * Counts a poll that found nothing. Returns true if it is time for shm_nudge(), which does not count polls itself. For
 * the poller only.
 */
static inline bool shm_nudge_is_due(struct shm_peer *peer)
{
	return __builtin_expect(
		shm_tail(&peer->out).slot != peer->seen_head && ++peer->polls >= TUNABLE_SHM_NUDGE_PATIENCE, 0);
}

/** Wakes the other side whatever its state says. Any thread. */
void shm_wake_anyway(struct shm_peer *peer);
void shm_wake_slow(struct shm_peer *peer);
void shm_order(struct shm_peer *peer);

/**
 * Called after publishing a record or, with @room, returning room: wakes the other side if it must be woken. Any
 * thread.
 */
static inline void shm_wake(struct shm_peer *peer, bool room)
{
	const struct shm_state *other = peer->other;

	/* This fence orders the compiler; the sleeper's barrier orders the processor. */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (__builtin_expect(!__atomic_load_n(&other->barrier, __ATOMIC_RELAXED) ||
				     !__atomic_load_n(&peer->own->barrier, __ATOMIC_RELAXED),
			     0))
		shm_order(peer);
	if (__builtin_expect(__atomic_load_n(&other->sleeps, __ATOMIC_RELAXED), 0) &&
	    (!room || __atomic_load_n(&other->starved, __ATOMIC_RELAXED)))
		shm_wake_slow(peer);
}

/* ---- grants.c, drain.c ------------------------------------------------------------------------------------------- */

/** Publishes what the other side must have before it sends anything. */
void shm_grants_prepare(struct shm_peer *peer);
/**
 * Grants direct access for requests like @packet, which delivery.take_whole() has just handled while the program made
 * no call. For the poller only.
 */
void shm_grant(struct shm_peer *peer, struct run *run, const struct packet *packet);
/** poller.attend */
void shm_attend(struct poller *poller, bool attends);
/** grants.drain */
void shm_drain(void);

/* ---- direct.c ---------------------------------------------------------------------------------------------------- */

/**
 * Opens the memory of the other side if that would lead to grants; tries only once. Any thread, also with the lock of a
 * QP held; in an epoch section.
 */
void shm_direct_try(struct shm_peer *peer);
/** link.access of the shm link. */
bool shm_direct_access(const struct link_access *access);

#endif
