/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The run loop of a thread: the packets it is handling and the QPs it still has to look after. Delivery is a loop and
 * not recursion: links that hand over by a call queue the packet here, and the outermost call of the thread (doorbell,
 * timer, later a poll or a socket) drains the queue with no QP's lock held. Small messages are delivered under the lock of
 * their sender, if that of the receiver is free: no thread that holds the lock of a QP waits for that of another.
 *
 * A struct run belongs to that outermost call, inside one epoch section. It is memory of the thread (core/thread_memory.h).
 */
#ifndef SOFTHCA_TRANSPORT_RUN_RUN_H
#define SOFTHCA_TRANSPORT_RUN_RUN_H

#include "hca/hca.h"
#include "transport/qp/host_window.h"
#include "wire/run.h"

struct hca_qp;
struct link_sender;

/** True if run_drain() has anything to do; frames that filters hold back count, too. */
static inline bool run_has_packets(const struct run *run, const struct hca *hca)
{
	return run->first != run->last || hca->filters;
}

/**
 * Handles queued packets and replies until none is left, or until the next is for @self: that one the caller handles
 * itself with run_take, under the lock that it takes again anyway. @self may be NULL. No QP's lock may be held.
 */
void run_drain(struct run *run, const struct hca_qp *self);

/** Handles the next packet, which must be for @self, whose lock is held. Returns false if there is none. */
bool run_take(struct run *run, struct hca_qp *self);

/**
 * Handles the queued packets under the lock of @self, as far as that keeps nobody waiting for long: small messages, to QPs
 * whose locks are free. Returns false if some are left for run_drain().
 */
bool run_drain_at_once(struct run *run, struct hca_qp *self);

/** True if run_finish() has anything to do. */
static inline bool run_has_more(const struct run *run)
{
	return run->scheduled || host_window_has_room();
}

/** Runs what was scheduled, until nothing is left. No lock held. */
void run_finish(struct run *run);

/** Starts what can be started of the send queue and delivers it, on this thread. No QP lock held; inside an epoch section.
 * If another thread runs this requester already, it is told to look again.
 */
void run_requester(struct hca_qp *qp, struct run *run);

/** Timer function of requester.timer. */
void run_requester_timer(struct timer *timer);

/** See struct delivery. */
void run_take_whole(struct run *run);
void run_let_go(struct run *run);

/** See struct link_sender. */
void qp_resume(struct link_sender *sender, bool requester, struct run *run);

/** What the transport does for links (wire/run.h), and with the run of a poll (progress_in_run). */
extern const struct delivery transport_delivery;
bool run_around(bool (*poll)(struct run *run));

#endif
