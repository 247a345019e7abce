/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of the shm link share: a connection as the link sees it, and how processes wake each other.
 *
 * A file uses only files that stand below it:
 *
 *   shm.c     the link; connections begin and end
 *   send.c    converts runs to records
 *   receive.c the poller: converts records to packets
 *   grants.c  accesses that the other side may make without asking
 *   drain.c   waits until no access is in progress
 *   wake.c    sleeping and waking
 *   direct.c  READ and WRITE by grants
 *   peer.c    the state of connections and of the poller
 *   ring.c    the ring alone
 *   lines.c   writes many lines of it
 *
 * Locks: none. Senders reserve their places in a ring by an exchange; there is one poller at a time (progress/progress.h). What
 * a struct shm_peer says is found in an epoch section, as the struct host_peer that it belongs to.
 *
 * Waking. `sleeps` in the state of a process says that it is to be woken when there is a record for it, or room that it
 * waits for. A side that has published a record or given room back looks at it. These are a store and a load that the
 * processor may reorder, so one side needs a barrier: the one that goes to sleep, which is rare, runs one on all
 * processors of those concerned (membarrier(2)). From then on, until it polls all the time again, the other side pays for one with
 * every record, so that a process that sleeps after each message interrupts nobody; so it is where there is no membarrier(2).
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
	struct shm_producer out; /* of the ring that this process fills, with its state… */
	struct shm_consumer in;  /* …and of the one that the other fills, with the other's */
	struct shm_state *own;
	const struct shm_state *other;
	/* Of the poller: the slot of the next record, and the sequence that it has when it is there (shm_await). */
	const struct shm_slot *next;
	uint32_t next_sequence;
	uint32_t broken; /* atomic; 1: what the other side wrote makes no sense, it is not listened to */
	uint32_t taken;  /* atomic; records that the poller is done with */
	/* Of the poller, see shm_nudge(): polls since a record came or it last looked, and what it saw then. */
	uint32_t polls, seen_head, seen_tail;
	uint32_t handled;           /* of the poller: what it has said of that, shm_ring.handled */
	uint64_t stuck;             /* atomic; how far the other side was when somebody first found no room, and when */
	uint64_t drop_explained_ns; /* atomic; when a drop was explained last, CLOCK_MONOTONIC */
	/* Of the poller: how far the other side was when those who wait tried last, and how many have yet to try. */
	uint32_t tried_head, to_try;
	struct link_queue waiting; /* for room in the ring that this process fills */
	bool has_barrier; /* the kernel gives this process one for all processors; while it sleeps little, state.barrier says so */
	uint32_t order; /* what a barrier is made of where there is no other */
	/* Of direct.c: */
	bool grants;              /* of the poller: for what this batch brings grants are made */
	struct shm_grant refused; /* of the poller: the last grant that was not made because of its memory */
	bool tried_direct;        /* atomic; a thread has tried to open the memory of the other side… */
	uint32_t can_direct;      /* …atomic; 1: and it is open */
	uint32_t accesses;        /* atomic; 1: a thread is at it */
	uint64_t ticket;          /* of that thread: of the last access */
};

struct shm_poller {
	struct poller poller;      /* set up with the first connection */
	uint32_t generation;       /* of progress_generation() when it was added */
	uint32_t armed;            /* atomic */
	uint32_t attends;          /* atomic; the program polls all the time */
	struct host_peer *leaving; /* atomic; has gone, is looked after to its end by peer_gone() */
};

extern struct shm_poller shm_poller;

/* ---- peer.c ----------------------------------------------------------------------------------------------- */

/** The link's struct shm_peer of @host, or NULL. Inside an epoch section. */
static inline struct shm_peer *shm_of(const struct host_peer *host)
{
	return host ? __atomic_load_n(&host->shm, __ATOMIC_ACQUIRE) : NULL;
}

/** Ends the connection to @peer, after the caller has explained the fault. Any thread, any lock. */
void shm_break(struct shm_peer *peer);
/**
 * Revokes all grants of @peer. The end of a connection does this too: a later revocation does not find the connection, and the
 * other side may not have seen its end. No grant is made after that, since the peer is broken or gone. Any thread.
 */
void shm_grants_revoke(struct shm_peer *peer);
/** Returns the place of a grant in @ring, which both sides compute. */
struct shm_grant *shm_grant_place(struct shm_ring *ring, uint32_t destination, uint32_t rkey);
/**
 * Returns true if the process at the other side exists, so its process id has not been reused: a process closes its sockets
 * before it loses its id. Makes a system call that does not block. Any thread.
 */
bool shm_is_still_there(const struct shm_peer *peer);

/** The record at peer->in is the next one. Once before the first poll; then the poller's. */
static inline void shm_await(struct shm_peer *peer)
{
	peer->next = shm_next(&peer->in);
	peer->next_sequence = shm_sequence(peer->in.at.slot);
}

/** True if it is there: shm_ready(), for polls. The poller's. */
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
/** poller.idle: true if shm_poll() would find nothing. */
bool shm_idle(struct poller *poller);
/** Takes a batch of what one has sent. True if there was anything. In an epoch section; of the poller, or one at a time. */
bool shm_poll_peer(struct host_peer *host, struct run *run);

/* A path as it comes along with a record; network order where it has any. */
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

/** Says what this process can do for those that are to be woken. Any thread. */
void shm_wake_prepare(struct shm_peer *peer);
/** poller.arm: before each sleep, since a process that is woken is not to be woken again until it sleeps again. */
void shm_arm(struct poller *poller, bool armed);
/** This process waits for room in the ring that it fills. Any thread. */
void shm_starve(struct shm_peer *peer);

/**
 * Wakes the other side if it says that its program polls, and yet does not take what it was sent, and sends nothing either: a
 * program may poll now and spin on memory then. With every poll that finds nothing; the poller's.
 */
void shm_nudge(struct shm_peer *peer);
/** Counts a poll that finds nothing; true if shm_nudge() has to look, which counts no more then. The poller's. */
static inline bool shm_nudge_is_due(struct shm_peer *peer)
{
	return __builtin_expect(
		shm_tail(&peer->out).slot != peer->seen_head && ++peer->polls >= TUNABLE_SHM_NUDGE_PATIENCE, 0);
}

/** Wakes the other side whatever it says. Any thread. */
void shm_wake_anyway(struct shm_peer *peer);
void shm_wake_slow(struct shm_peer *peer);
void shm_order(struct shm_peer *peer);

/** After a record was published, or (@room) room given back: wakes the other side if it is to be woken. Any thread. */
static inline void shm_wake(struct shm_peer *peer, bool room)
{
	const struct shm_state *other = peer->other;

	/* The compiler keeps the order; the processor is kept to it by the sleeper's barrier. */
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

/** Tells the other side what it has to know before it sends anything. */
void shm_grants_prepare(struct shm_peer *peer);
/**
 * @packet, which delivery.take_whole() has just handled, came although the program makes no call: what it was allowed to do is
 * granted. The poller's.
 */
void shm_grant(struct shm_peer *peer, struct run *run, const struct packet *packet);
/** poller.attend */
void shm_attend(struct poller *poller, bool attends);
/** grants.drain */
void shm_drain(void);

/* ---- direct.c ---------------------------------------------------------------------------------------------------- */

/** If the other side makes grants, opens its memory, once. Any thread, perhaps with the lock of a QP; in an epoch section. */
void shm_direct_try(struct shm_peer *peer);
/** link.access of the shm link. */
bool shm_direct_access(const struct link_access *access);

#endif
