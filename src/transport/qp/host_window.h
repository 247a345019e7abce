/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The window of a host: the limit for the data that all queue pairs of this process together have in flight to it.
 *
 * All packets for a host arrive at one socket there, whatever queue pair sends them, and are lost if the socket buffer
 * is full. Therefore there is a bound for the host besides the window of each requester. Its unit is bytes of that
 * buffer, in which a small packet takes as much as a large one. A requester takes its share before it sends, and
 * returns it as acknowledgements and responses arrive. The share of a READ is that of its response, which arrives at a
 * socket of the same size. A requester that finds no room waits (wire/waiting.h), in the order of arrival. When packets
 * are lost the window is halved, once for all losses that occur together, and grows again with each arrival.
 *
 * Requests of UC and UD take no share, since nothing reports their arrival.
 *
 * Shares may never be returned, for example by a QP without a timeout after its packets were lost. So all shares are
 * dropped if nothing has been returned for LIMIT_HOST_WINDOW_MS while QPs wait, and no QP waits forever.
 *
 * Each of the first 255 hosts has a window; all others share one. Windows are never freed. A struct window_share is
 * covered by the lock of its QP. The lock of a window covers its timer; only timers.lock is taken under it.
 */
#ifndef SOFTHCA_TRANSPORT_QP_HOST_WINDOW_H
#define SOFTHCA_TRANSPORT_QP_HOST_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "hca/hca.h"

struct hca_qp;
struct host_window;
struct host_windows;
struct packet;
struct peer_process;
struct run;

/** Makes the windows of a process, which live until it ends. Returns NULL without memory. */
struct host_windows *host_windows_new(struct registry *registry);

/* The share of a requester in a window. */
struct window_share {
	struct host_window *window; /* NULL until the requester has sent */
	uint32_t generation;        /* generation of the window in which the share was taken */
	uint32_t packets, bytes;
	uint32_t turn; /* packets that the QP may send before the waiting QPs */
	bool waited;   /* the QP has waited; it gets a turn when it stops waiting */
	/* The process of the peer, and its counters when the QP sent last; see host_window_excuses(). */
	struct peer_process *process;
	uint32_t received, lost;
	uint64_t excused_ns; /* time of the first excuse since the last progress; 0: none */
};

/**
 * Takes the share of @packet, which @qp is about to send. Returns false if the window is full: then @qp waits, and
 * host_window_resume() schedules it. The lock of @qp is held.
 */
bool host_window_take(struct hca_qp *qp, const struct packet *packet);

/** Frees the share of @qp, except for @packets packets. Its lock is held. */
void host_window_settle(struct hca_qp *qp, uint32_t packets);

/**
 * Returns the payload bytes, in packets of @mtu, that fill the window of the host to which @qp last sent. Its lock is
 * held.
 */
uint64_t host_window_payload(const struct hca_qp *qp, uint32_t mtu);

/** Makes the window smaller because packets of @qp were lost. Its lock is held. */
void host_window_lost(struct hca_qp *qp);

/** Records that a packet arrived for @qp from its peer. Its lock is held. */
void host_window_received(struct hca_qp *qp);
/** Starts the interval of host_window_excuses(). The lock of @qp is held. */
void host_window_watch(struct hca_qp *qp);
/**
 * Returns true if the packets that @qp lost since host_window_watch() were lost together with packets of other QPs to
 * the same process, while packets of that process arrived. Such losses are caused by congestion, not by the end of the
 * peer. The total time excused since host_window_progressed() is limited by the setting PEER_SILENCE. Starts a new
 * interval. The lock of @qp is held.
 */
bool host_window_excuses(struct hca_qp *qp);
/** Records that the peer has acknowledged something. The lock of the QP is held. */
static inline void host_window_progressed(struct window_share *share)
{
	share->excused_ns = 0;
}

/** Returns true if QPs wait although there is room. Any thread. */
static inline bool host_window_has_room(void)
{
	return __atomic_load_n(&the_registry.window_has_room, __ATOMIC_RELAXED);
}

/** Schedules waiting QPs in @run, as far as there is room. No lock held; inside an epoch section. */
void host_window_resume(struct host_windows *all, struct run *run);

/** Sets the maximum size of windows to half of @bytes of receive buffer, as the kernel counts them. */
void host_window_set_most(struct host_windows *all, uint32_t bytes);

/** Resets all windows in a forked child, which has nothing in flight. */
void host_windows_forget(struct host_windows *all);

#endif
