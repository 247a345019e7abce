/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The window of a host: what all queue pairs of this process together have under way to it.
 *
 * All packets for a host meet in one socket there, however many queue pairs send them, and what that socket has no room for is
 * lost. So what is under way is bounded for the host, beside the window that each requester has: in bytes of that socket's
 * buffer, where a small packet costs as much as a large one. A requester takes its share before it sends, and gives it back
 * as acknowledgements and responses come (of a READ the share is that of the response, which comes to a socket of the same
 * size). Without room it waits (wire/waiting.h), first come, first served. When packets were lost the window becomes half as
 * large, once for all that were lost together, and grows again with what arrives.
 *
 * Requests of UC and UD take no share: nobody says when they arrived.
 *
 * What nobody gives back (a QP without a timeout whose packets were lost) is forgotten when those who wait have seen nothing
 * come back for LIMIT_HOST_WINDOW_MS: nobody waits for ever.
 *
 * There is a window for each of the first 255 hosts; others share one. It is never freed. A struct window_share is
 * under its QP's lock. Lock of a window: of its timer, a leaf but for timers.lock.
 */
#ifndef SOFTHCA_TRANSPORT_QP_HOST_WINDOW_H
#define SOFTHCA_TRANSPORT_QP_HOST_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

struct hca_qp;
struct host_window;
struct packet;
struct peer_process;
struct run;

/* What a requester has of a window. */
struct window_share {
	struct host_window *window; /* NULL: it never sent to one */
	uint32_t generation;        /* of the window's, for which it counts */
	uint32_t packets, bytes;
	uint32_t turn; /* packets that it may send before others that wait */
	bool waited;   /* it was told to wait: when it waits no more it has its turn */
	/* What its process was known to do when the QP sent last; see host_window_excuses(). */
	struct peer_process *process;
	uint32_t received, lost;
	uint64_t excused_ns; /* when it was excused first since it got on; 0: not yet */
};

/**
 * Takes the share of @packet, that @qp is about to send. False: there is no room, and @qp waits; host_window_resume()
 * schedules it. The lock of @qp is held.
 */
bool host_window_take(struct hca_qp *qp, const struct packet *packet);

/** No more than @packets of what @qp has taken are under way. Its lock is held. */
void host_window_settle(struct hca_qp *qp, uint32_t packets);

/** Payload bytes, in packets of @mtu, that fill the window of where @qp sent last. Its lock is held. */
uint64_t host_window_payload(const struct hca_qp *qp, uint32_t mtu);

/** Packets of @qp were lost: the window becomes smaller. Its lock is held. */
void host_window_lost(struct hca_qp *qp);

/** A packet came for @qp from its peer. Its lock is held. */
void host_window_received(struct hca_qp *qp);
/** From now on host_window_excuses() counts. The lock of @qp is held. */
void host_window_watch(struct hca_qp *qp);
/**
 * True if what @qp has just lost since host_window_watch() was lost with packets of other QPs to the same process, while
 * packets of that process came: the fault of what is sent at once, and no sign that the peer is gone. For as long as
 * the setting PEER_SILENCE says at most, since host_window_progressed(). Begins anew. The lock of @qp is held.
 */
bool host_window_excuses(struct hca_qp *qp);
/** The peer of @qp has acknowledged something. Its lock is held. */
static inline void host_window_progressed(struct window_share *share)
{
	share->excused_ns = 0;
}

extern uint32_t host_windows_due;

/** True if QPs wait for room that there is. Any thread. */
static inline bool host_window_has_room(void)
{
	return __atomic_load_n(&host_windows_due, __ATOMIC_RELAXED);
}

/** Schedules those that wait for room that there is in @run. No lock held; inside an epoch section. */
void host_window_resume(struct run *run);

/** How large a window may become: half of @bytes of receive buffer, as the kernel counts them. */
void host_window_set_most(uint32_t bytes);

/** In a forked child: nothing is under way. */
void host_window_after_fork(void);

#endif
