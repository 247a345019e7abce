/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs send queues: builds and sends packets, and delivers those for QPs of this process in between. */
#include <stddef.h>

#include "core/epoch.h"
#include "core/thread_memory.h"
#include "progress/progress.h"
#include "transport/fast_path/fast_path.h"
#include "transport/requester/send.h"
#include "transport/responder/answer.h"
#include "transport/responder/responder.h"
#include "transport/run/doorbell.h"
#include "transport/run/run.h"

/* As run_requester(), with the lock held, which this function releases. */
static __attribute__((noinline)) void run_locked(struct hca_qp *qp, struct run *run)
{
	struct requester *requester = &qp->requester;
	enum progress progress;
	enum path path;

	/* Its thread checks once more, under the lock, before it stops, and finds requests posted now. */
	if (unlikely(requester->running)) {
		queue_unlock(&qp->lock);
		return;
	}
	requester->running = true;
	/* A message of the program may answer one that was received but not acknowledged yet (acknowledge_first()). */
	if (unlikely(qp->unsent_answers))
		answer_send(qp, run);
	path = requester_path(qp);
	while ((progress = requester_next_packet(qp, run, path)) != PROGRESS_NONE) {
		if (progress == PROGRESS_MADE) {
			queue_unlock(&qp->lock);
			queue_lock(&qp->lock);
			path = requester_path(qp);
			continue;
		}
		requester_announce(qp, run);
		if (!requester_send_packet(qp, run))
			break;
		while (run_has_packets(run, qp->hca) && !run_drain_at_once(run, qp)) {
			requester->delivering = true;
			queue_unlock(&qp->lock);
			run_drain(run, qp);
			queue_lock(&qp->lock);
			requester->delivering = false;
			path = requester_path(qp);
			if (!run_take(run, qp))
				break;
		}
		if (!qp->transport->reliable)
			requester_complete_unreliable(qp);
	}
	run->more = false;
	if (run->flushes) {
		/* Requests that must wait for answers to these. */
		run->streams &= requester->send_entry == requester->last && !wqe_posted(requester, requester->next);
		run->flushes->flush(run);
		run->flushes = NULL;
	}
	requester->running = false;
	if (unlikely(requester->first != requester->last))
		requester_watch(qp);
	queue_unlock(&qp->lock);
}

void run_requester(struct hca_qp *qp, struct run *run)
{
	queue_lock(&qp->lock);
	run_locked(qp, run);
}

/* Starts the requests that the fast path left over. Releases the lock. Inside an epoch section. */
static __attribute__((noinline)) void doorbell_fall_back(struct hca_qp *qp)
{
	THREAD_VARIABLE(struct run, run);

	run_begin(run);
	run_locked(qp, run);
	if (unlikely(run_has_more(run)))
		run_finish(run);
}

static RARE enum fast_path fast_path_recorded(struct hca_qp *qp)
{
	return fast_path(qp, true);
}

void hca_qp_send_doorbell(struct hca_qp *qp)
{
	enum fast_path outcome;

	epoch_enter_with_lock(&qp->lock);
	epoch_note(qp->number);
	while (unlikely((outcome = timeline_is_on() ? fast_path_recorded(qp) : fast_path(qp, false)) ==
			FAST_PATH_YIELD)) {
		queue_unlock(&qp->lock);
		queue_lock(&qp->lock);
	}
	if (likely(outcome == FAST_PATH_DONE)) {
		queue_unlock(&qp->lock);
		epoch_leave();
		return;
	}
	doorbell_fall_back(qp);
	epoch_leave();
	progress_after_sending();
}

void hca_qp_recv_doorbell(struct hca_qp *qp)
{
	/*
	 * Pairs with qp_enter_error(): either the flush finds the new entry, or this call reads the new state. Errors
	 * are rare, so the processor barrier is there; here only the compiler must keep the order.
	 */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (__builtin_expect(!the_registry.has_barrier, 0) && !__libc_single_threaded) {
		__atomic_exchange_n(&qp->recv_barrier, 1, __ATOMIC_SEQ_CST);
		order_after_exchange();
	}
	if (!__atomic_load_n(&qp->flushes, __ATOMIC_RELAXED))
		return;
	queue_lock(&qp->lock);
	if (qp->state == IBV_QPS_ERR)
		responder_flush(qp);
	queue_unlock(&qp->lock);
}

void run_requester_timer(struct timer *timer)
{
	struct hca_qp *qp = (struct hca_qp *)((char *)timer - offsetof(struct hca_qp, requester.timer));
	THREAD_VARIABLE(struct run, run);

	epoch_enter();
	run_begin(run);
	requester_timer_expired(qp);
	run_requester(qp, run);
	run_finish(run);
	epoch_leave();
}
