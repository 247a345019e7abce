/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The run loop of a thread; see transport/DESIGN.md. A struct run belongs to the outermost call of the thread
 * (doorbell, timer, poll), inside one epoch section. It is thread-local (core/thread_memory.h).
 */
#ifndef SOFTHCA_TRANSPORT_RUN_RUN_H
#define SOFTHCA_TRANSPORT_RUN_RUN_H

#include "hca/hca.h"
#include "transport/qp/host_window.h"
#include "wire/run.h"

struct hca_qp;
struct link_sender;

/** Returns true if run_drain() has anything to do, including frames held back by filters. */
static inline bool run_has_packets(const struct run *run, const struct hca *hca)
{
	return run->first != run->last || hca->filters;
}

/**
 * Handles queued packets and replies until none is left, or the next one is for @self: the caller handles that with
 * run_take(), as it takes the lock again anyway. @self may be NULL. No lock of a QP is held.
 */
void run_drain(struct run *run, const struct hca_qp *self);

/** Handles the next packet, which must be for @self. Returns false if there is none. The lock of @self is held. */
bool run_take(struct run *run, struct hca_qp *self);

/**
 * Handles queued packets under the lock of @self, as long as that delays others little: small messages to unlocked QPs.
 * Returns false if some are left for run_drain().
 */
bool run_drain_at_once(struct run *run, struct hca_qp *self);

static inline bool run_has_more(const struct run *run)
{
	return run->scheduled || host_window_has_room();
}

/** Runs the scheduled QPs. No lock held. */
void run_finish(struct run *run);

/**
 * Starts and delivers as many WQEs as possible on this thread. No lock of a QP held; inside an epoch section. A thread
 * that runs this requester already checks again.
 */
void run_requester(struct hca_qp *qp, struct run *run);

/** Timer function of requester.timer. */
void run_requester_timer(struct timer *timer);

/** See struct delivery. */
void run_take_whole(struct run *run);
void run_let_go(struct run *run);

/** See struct link_sender. */
void qp_resume(struct link_sender *sender, bool requester, struct run *run);

/** For links (wire/run.h), and the run around a poll (progress_in_run). */
extern const struct delivery transport_delivery;
bool run_around(bool (*poll)(struct run *run));

#endif
