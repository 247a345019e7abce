/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The window of a host limits the data that all queue pairs of this process together have in flight to it.
 *
 * All packets for a host arrive at one socket there, and are lost if its buffer is full. Hence this bound besides each
 * requester's window. Its unit is bytes of that buffer, in which a small packet takes as much as a large one. A
 * requester takes its share before it sends, and returns it as acknowledgements and responses arrive. The share of a
 * READ is its response's. A requester without room waits (wire/waiting.h), in order of arrival. The window is halved
 * once for losses that occur together, and grows with each arrival.
 *
 * UC and UD requests take no share, since nothing reports their arrival.
 *
 * All shares are dropped if none was returned for LIMIT_HOST_WINDOW_MS while QPs wait, since some never are, as after
 * losses of a QP without a timeout.
 *
 * Each of the first 255 hosts has a window; the others share one. Windows are never freed. The lock of a QP covers its
 * struct window_share, and is held by callers that pass the QP or its share. The lock of a window covers its timer;
 * only timers.lock is taken under it.
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

/* A requester's share in a window. */
struct window_share {
	struct host_window *window; /* NULL until the requester has sent */
	uint32_t generation;        /* generation of the window in which the share was taken */
	uint32_t packets, bytes;
	uint32_t turn; /* packets that it may send before the waiting QPs */
	bool waited;   /* it gets a turn when it stops waiting */
	/* The peer's process, and its counters when the QP last sent; see host_window_excuses(). */
	struct peer_process *process;
	uint32_t received, lost;
	uint64_t excused_ns; /* time of the first excuse since the last progress; 0: none */
};

/**
 * Takes the share of @packet, to be sent next. Returns false if the window is full: then @qp waits until
 * host_window_resume() schedules it.
 */
bool host_window_take(struct hca_qp *qp, const struct packet *packet);

/** Frees the share of @qp, except for @packets packets. */
void host_window_settle(struct hca_qp *qp, uint32_t packets);

/** Returns the payload bytes, in packets of @mtu, that fill the window of the host to which @qp last sent. */
uint64_t host_window_payload(const struct hca_qp *qp, uint32_t mtu);

/** Reduces the window after a loss. */
void host_window_lost(struct hca_qp *qp);

/** Records that a packet arrived from the peer. */
void host_window_received(struct hca_qp *qp);
/** Starts the interval of host_window_excuses(). */
void host_window_watch(struct hca_qp *qp);
/**
 * Returns true if the losses of @qp since host_window_watch() coincide with those of other QPs to the same process,
 * while packets of that process arrived: congestion, not the end of the peer. PEER_SILENCE limits the total time
 * excused since host_window_progressed(). Starts a new interval.
 */
bool host_window_excuses(struct hca_qp *qp);
/** Records that the peer has acknowledged something. */
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

/** Sets the maximum size of windows to half of @bytes of receive buffer, as the kernel counts. */
void host_window_set_most(struct host_windows *all, uint32_t bytes);

/** Resets all windows, since a forked child has nothing in flight. */
void host_windows_forget(struct host_windows *all);

#endif
