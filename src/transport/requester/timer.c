/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The requester's timer: unacknowledged packets, and RNR waits.
 *
 * On a busy machine a thread of the peer, or of this process, may have had no processor. So before a retry is counted,
 * all arrivals are handled, the link is queried about the packets if it can tell, and a timer that expired late does
 * not count (transport/DESIGN.md). PEER_SILENCE limits all this; for a peer on this host that has ended,
 * LIMIT_PEER_ENDED_MS.
 */
#include "observe/counters.h"
#include "progress/progress.h"
#include "transport/qp/record.h"
#include "transport/requester/requester.h"
#include "wire/routes.h"

/* Values chosen for speed. */
enum {
	/*
	 * doublings of the acknowledgement timer, which may expire after one to four times its value (IBTA 9.7.6.1.3):
	 * later times are used only if earlier ones do not help. NAKs use retries as well, but do not lengthen it.
	 */
	RETRY_DOUBLINGS = 2,
	/* ns by which a timer is late if its thread had no processor */
	RETRY_LATE_NS = 10000000,
};

#define SECOND_NS UINT64_C(1000000000)

static uint64_t interval_ns(const struct hca_qp *qp)
{
	return UINT64_C(4096) << qp->attr.timeout << qp->requester.timeouts;
}

/* Leaves the timer unarmed if no thread can be created. */
static void requester_arm(struct hca_qp *qp, uint64_t deadline_ns)
{
	qp->requester.timer_armed = !timer_arm(&qp->hca->timers, &qp->requester.timer, deadline_ns);
}

void requester_watch(struct hca_qp *qp)
{
	struct requester *requester = &qp->requester;
	const struct link *link;
	uint32_t number;
	uint64_t now_ns;

	if (requester->timer_armed || requester->first == requester->last || requester->state == REQUESTER_FLUSH)
		return;
	if (!qp->transport->reliable) {
		if (link_waits(&requester->waiter))
			requester_arm(qp, clock_now_ns() + LIMIT_UNRELIABLE_WAIT_MS * UINT64_C(1000000));
		return;
	}
	if (!qp->attr.timeout)
		return;
	now_ns = clock_now_ns();
	if (requester->peer_signs != requester->peer_signs_seen || !requester->silent_since_ns) {
		requester->silent_since_ns = now_ns;
		requester->timeouts = 0;
	}
	requester->peer_signs_seen = requester->peer_signs;
	host_window_watch(qp);
	link = requester_peer(qp, &number);
	if (link && link->mark)
		requester->mark = link->mark(number);
	requester_arm(qp, now_ns + interval_ns(qp));
	/* Without a timer a lost acknowledgement would go unnoticed. */
	if (!requester->timer_armed) {
		struct refusal why = {RULE_TIMER_NO_THREAD, {qp->attr.timeout}};

		requester_fail_front(qp, MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR, &why);
	}
}

/* Returns the arrived packets of the oldest entry. */
static uint32_t unacknowledged_offset(const struct hca_qp *qp)
{
	struct requester *requester = (struct requester *)&qp->requester;
	const struct inflight *entry = inflight_at(requester, requester->first);
	int32_t offset = psn_distance(psn_add(requester->acknowledged, 1), entry->psn);

	return offset > 0 && (uint32_t)offset < entry->packets ? (uint32_t)offset : 0;
}

/* Returns true if requests are in flight that the peer must acknowledge or answer. */
static bool requester_awaits_peer(const struct hca_qp *qp)
{
	const struct requester *requester = &qp->requester;

	return qp->transport->reliable && requester->first != requester->last && requester->state != REQUESTER_FLUSH &&
	       requester->state != REQUESTER_IDLE && !(qp->dci && qp->dci->flushing);
}

/* Returns true if requests are in flight and the peer gave no sign since the timer was armed. */
static bool requester_is_silent(const struct hca_qp *qp)
{
	return requester_awaits_peer(qp) && qp->requester.peer_signs == qp->requester.peer_signs_seen;
}

/*
 * Returns true if the link can tell that nothing was lost: the packets wait for room, or for the peer, which is alive.
 * A peer that makes progress is not silent.
 */
static bool is_pending(struct hca_qp *qp, uint64_t now_ns)
{
	struct requester *requester = &qp->requester;
	const struct link *link;
	uint64_t progress;
	uint32_t number;
	bool pending;

	link = requester_peer(qp, &number);
	/* A QP that waits for a host's window may wait for the share of lost packets. */
	if (!link || !link->pending)
		return link_waits(&requester->waiter) && !(link && link->shares);
	pending = link->pending(number, requester->mark, &progress);
	if (pending && progress != requester->peer_progress)
		requester->silent_since_ns = now_ns;
	requester->peer_progress = progress;
	return pending;
}

static bool silence_is_too_long(const struct hca_qp *qp, uint64_t now_ns)
{
	return now_ns - qp->requester.silent_since_ns >= qp->hca->settings.peer_silence * SECOND_NS;
}

/* Returns the time of all retries by timeout and retry_cnt: programs use these to allow more time. */
static uint64_t retries_ns(const struct hca_qp *qp)
{
	return (UINT64_C(4096) << qp->attr.timeout) * (1 + (uint64_t)qp->attr.retry_cnt);
}

static bool retries_would_be_used_up(const struct hca_qp *qp, uint64_t now_ns)
{
	return now_ns - qp->requester.silent_since_ns >= retries_ns(qp);
}

/*
 * Returns the time after which requests to an ended process fail. On an adapter they fail when the retries are used up;
 * by then a program whose peer ended as planned has ended too, or destroyed its queue pair.
 */
static uint64_t ended_ns(const struct hca_qp *qp)
{
	uint64_t most_ns = LIMIT_PEER_ENDED_MS * UINT64_C(1000000);

	return qp->attr.timeout && retries_ns(qp) < most_ns ? retries_ns(qp) : most_ns;
}

static void give_up_on_silent(struct hca_qp *qp, uint64_t now_ns)
{
	struct refusal why;
	uint32_t number;

	requester_peer(qp, &number);
	why = (struct refusal){RULE_PEER_SILENT,
			       {number, (now_ns - qp->requester.silent_since_ns) / SECOND_NS,
				(uint64_t)routes->process_of(number)}};
	counter_add(qp->hca, COUNTER_RETRIES_EXHAUSTED, 1);
	requester_fail_front(qp, MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR, &why);
}

static void requester_retransmit(struct hca_qp *qp, bool counts)
{
	struct requester *requester = &qp->requester;

	counter_add(qp->hca, counts ? COUNTER_ACK_TIMEOUTS : COUNTER_ACK_TIMEOUTS_EXCUSED, 1);
	if (timeline_is_on())
		record_timeout(qp, psn_add(requester->acknowledged, 1));
	if (!qp->dci)
		qp_route_again(qp);
	requester_go_back(qp, requester->first, unacknowledged_offset(qp));
	requester_narrow_window(qp);
	requester_settle(qp);
	if (!counts)
		return;
	if (!requester_may_retry(qp))
		requester_give_up(qp);
	else if (requester->timeouts < RETRY_DOUBLINGS)
		requester->timeouts++;
}

/*
 * Returns true if the timeout has a local cause: this process, so perhaps also the peer's, did not run in time; or the
 * requester waits for its turn. Only for links that cannot tell.
 */
static bool is_excused(const struct hca_qp *qp, uint64_t now_ns)
{
	uint64_t late_ns = now_ns - qp->requester.timer.deadline_ns;
	uint32_t number;
	const struct link *link = requester_peer(qp, &number);

	if (!link || link->pending || link_is_immediate(qp->hca, link))
		return false;
	if (link_waits(&qp->requester.waiter) && !qp->requester.share.packets)
		return true;
	if (late_ns > RETRY_LATE_NS && late_ns > interval_ns(qp) / 2)
		return true;
	return link->has_backlog && link->has_backlog();
}

bool requester_peer_has_ended(const struct hca_qp *qp)
{
	uint32_t peer;
	const struct link *link = requester_peer(qp, &peer);

	if (link == routes->shm())
		return !routes->owns(peer) && !routes->is_known(peer) && routes->was_known(peer);
	return qp->requester.sees_peer && routes->is_vacant(qp->attr.dest_qp_num);
}

/* Returns true if requests are in flight to an ended process, as detected by the shm link. */
static bool requester_is_lost(const struct hca_qp *qp)
{
	uint32_t peer;

	return requester_awaits_peer(qp) && requester_peer(qp, &peer) == routes->shm() && requester_peer_has_ended(qp);
}

void requester_notice_end(struct hca_qp *qp)
{
	struct requester *requester = &qp->requester;
	uint64_t now_ns = clock_now_ns(), deadline_ns;

	queue_lock(&qp->lock);
	/* If another thread delivers, its timer will end the requests. */
	if (requester_is_lost(qp) && !requester->delivering) {
		if (!requester->silent_since_ns)
			requester->silent_since_ns = now_ns;
		requester->peer_signs_seen = requester->peer_signs;
		requester->rnr_wait = false;
		deadline_ns = requester->silent_since_ns + ended_ns(qp);
		requester_arm(qp, deadline_ns > now_ns ? deadline_ns : now_ns);
		if (!requester->timer_armed)
			requester_give_up(qp);
	}
	queue_unlock(&qp->lock);
}

/*
 * Handles a timeout without a sign of the peer. @looked: all arrivals were handled. The timer is armed after the
 * requester has run.
 */
static void timed_out(struct hca_qp *qp, bool pending, bool looked, uint64_t now_ns)
{
	bool patient = !silence_is_too_long(qp, now_ns), ended = requester_peer_has_ended(qp);

	if (ended && now_ns - qp->requester.silent_since_ns >= ended_ns(qp))
		requester_give_up(qp);
	else if (ended)
		counter_add(qp->hca, COUNTER_ACK_TIMEOUTS_EXCUSED, 1);
	else if (patient && (pending || !looked))
		counter_add(qp->hca, COUNTER_ACK_TIMEOUTS_EXCUSED, 1);
	else if (!pending || !qp->hca->settings.peer_silence)
		requester_retransmit(qp, !patient || !is_excused(qp, now_ns));
	else if (retries_would_be_used_up(qp, now_ns))
		give_up_on_silent(qp, now_ns);
}

/* Returns true if the expired timer was neither disarmed nor armed again. The lock is held. */
static bool timer_is_due(const struct hca_qp *qp, uint64_t now_ns)
{
	return qp->requester.timer_armed && now_ns >= qp->requester.timer.deadline_ns;
}

/*
 * Handles silence. Queries the link before arrivals are handled, so that if the peer has read the packets, its answer
 * is among them.
 */
static void examine_silence(struct hca_qp *qp, uint64_t now_ns)
{
	bool pending, looked;

	queue_lock(&qp->lock);
	pending = is_pending(qp, now_ns);
	queue_unlock(&qp->lock);
	looked = progress_look();
	queue_lock(&qp->lock);
	if (timer_is_due(qp, now_ns)) {
		qp->requester.timer_armed = false;
		if (requester_is_silent(qp))
			timed_out(qp, pending, looked, now_ns);
	}
	queue_unlock(&qp->lock);
}

/* Returns true if the timer expired because of silence and is still armed. */
static bool run_out(struct hca_qp *qp, uint64_t now_ns)
{
	struct requester *requester = &qp->requester;
	bool silent = false;

	queue_lock(&qp->lock);
	if (timer_is_due(qp, now_ns)) {
		silent = !requester->rnr_wait && requester_is_silent(qp);
		requester->timer_armed = silent;
		requester->rnr_wait = false;
		if (requester->first == requester->last)
			requester->silent_since_ns = 0;
	}
	queue_unlock(&qp->lock);
	return silent;
}

void requester_timer_expired(struct hca_qp *qp)
{
	uint64_t now_ns = clock_now_ns();

	if (run_out(qp, now_ns))
		examine_silence(qp, now_ns);
}
