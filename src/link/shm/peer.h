/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared by the files of the shm link: a connection as the link sees it, and how processes wake each other (DESIGN.md).
 *
 * A file uses only files after it in this list: shm.c, send.c, receive.c, grants.c, drain.c, wake.c, direct.c, end.c,
 * peer.c, ring.c, lines.c.
 *
 * No locks. There is one poller at a time (progress/progress.h). A struct shm_peer may be read inside an epoch section,
 * like the struct host_peer that owns it. Any thread may call a function that is not a callback, unless noted.
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

/* Requests that may be direct accesses, and for which the program does not wait (direct.c). */
struct shm_stream {
	uint64_t began_ns, latest_ns; /* CLOCK_MONOTONIC; began_ns 0: the program waited for the latest one */
	uint64_t enough_ns;           /* duration from which the ring is used; 0: not set yet */
	uint32_t tail;                /* slot of `out` at the latest one */
	uint32_t activity;            /* peer_activity() at the latest one */
	uint32_t waits;               /* consecutive ones for which the program waited */
	bool by_ring;                 /* not directly, but by the ring */
};

struct shm_peer {
	struct host_peer *host;
	struct shm_producer out; /* the ring that this process fills */
	struct shm_consumer in;  /* the ring that the other process fills */
	struct shm_state *own;
	const struct shm_state *other;
	/* For the poller: the slot of the next record, and the sequence that it will have (shm_await()). */
	const struct shm_slot *next;
	uint32_t next_sequence;
	uint32_t broken; /* atomic; 1: the other side broke the format and is ignored */
	uint32_t taken;  /* atomic; records that the poller has finished */
	/*
	 * For the poller, see shm_nudge(): polls since the last record or check, and the head and tail at that check.
	 */
	uint32_t polls, seen_head, seen_tail;
	uint32_t handled; /* for the poller: the value last stored in shm_ring.handled */
	uint64_t stuck;   /* atomic; the other side's head when a sender first found no room, and the time then */
	uint64_t drop_explained_ns; /* atomic; CLOCK_MONOTONIC */
	/* For the poller: the other side's head when waiters last retried, and the number yet to retry. */
	uint32_t tried_head, to_try;
	struct link_queue waiting; /* QPs that wait for room in `out` */
	bool has_barrier;          /* membarrier(2) works; state.barrier says so while this process seldom sleeps */
	uint32_t order;            /* target of the atomic exchange that serves as barrier */
	/* For direct.c: */
	bool grants;              /* for the poller: make grants for the requests of this batch */
	struct shm_grant refused; /* for the poller: the last grant not made because of the kind of its memory */
	bool tried_direct;        /* atomic; a thread has tried to open the memory of the other side */
	uint32_t can_direct;      /* atomic; 1: that memory is open */
	uint32_t accesses;        /* atomic; 1: a thread is accessing it */
	uint64_t ticket;          /* for that thread: number of the last access */
	struct shm_stream stream; /* for that thread */
};

struct shm_poller {
	struct poller poller;      /* set up with the first connection */
	uint32_t generation;       /* progress_generation() when the poller was added */
	uint32_t armed;            /* atomic */
	uint32_t attends;          /* atomic; the program polls continuously */
	struct host_peer *leaving; /* atomic; its process has gone, shm_peer_gone() reads its ring to the end */
};

extern struct shm_poller shm_poller;

/* ---- peer.c ----------------------------------------------------------------------------------------------- */

/** Returns the link's struct shm_peer of @host, or NULL. Inside an epoch section. */
static inline struct shm_peer *shm_of(const struct host_peer *host)
{
	return host ? __atomic_load_n(&host->shm, __ATOMIC_ACQUIRE) : NULL;
}

/** Ends the connection to @peer, after the caller has explained the fault. Any lock may be held. */
void shm_break(struct shm_peer *peer);
/**
 * Revokes all grants of @peer. Called also at the end of a connection: a later revocation does not find it, and the
 * other side may not have noticed its end. No grant is made after that.
 */
void shm_grants_revoke(struct shm_peer *peer);
/** Returns the place of a grant in @ring, which both sides compute the same way. */
struct shm_grant *shm_grant_place(struct shm_ring *ring, uint32_t destination, uint32_t rkey);
/**
 * Returns true if the process at the other side exists, so that its process ID has not been reused: a process closes
 * its sockets before it loses its ID. A system call that does not block.
 */
bool shm_is_still_there(const struct shm_peer *peer);

/** Makes the record at peer->in the next one to wait for. Called before the first poll, then by the poller only. */
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
/** Takes a batch of the records of @host. Returns true if there were any. In an epoch section; one thread at a time. */
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

/** Publishes how this process can be woken. */
void shm_wake_prepare(struct shm_peer *peer);
/** poller.arm: called before each sleep, because a process is woken only once per sleep. */
void shm_arm(struct poller *poller, bool armed);
/** Marks this process as waiting for room in the ring that it fills. */
void shm_starve(struct shm_peer *peer);

/**
 * Wakes the other side if its program counts as polling, yet neither takes records nor sends any (DESIGN.md). Called by
 * the poller after each poll that finds nothing.
 */
void shm_nudge(struct shm_peer *peer);
/**
 * Counts a poll that found nothing. Returns true if shm_nudge(), which does not count polls itself, is due. For the
 * poller only.
 */
static inline bool shm_nudge_is_due(struct shm_peer *peer)
{
	return __builtin_expect(
		shm_tail(&peer->out).slot != peer->seen_head && ++peer->polls >= TUNABLE_SHM_NUDGE_PATIENCE, 0);
}

/** Wakes the other side whatever its state says. */
void shm_wake_anyway(struct shm_peer *peer);
void shm_wake_slow(struct shm_peer *peer);
void shm_order(struct shm_peer *peer);

/** Wakes the other side if necessary, after a record was published or, with @room, room was returned. */
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
 * Opens the memory of the other side if that would lead to grants; tries only once. May be called under a QP's lock; in
 * an epoch section.
 */
void shm_direct_try(struct shm_peer *peer);
/** link.access of the shm link. */
bool shm_direct_access(const struct link_access *access);

#endif
