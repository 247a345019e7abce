/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Warns of threads that sleep on a completion channel although a CQ has completions that no event will report. Arming a
 * CQ raises an event for earlier completions, except for those that its last event reported (hca_cq_request()). A
 * program that leaves such completions in the CQ sleeps until another one arrives.
 */
#include <fcntl.h>
#include <unistd.h>

#include "hca/hca.h"
#include "lint/state.h"

/* A thread that slept so long, without a time limit, will not poll by itself. */
enum { INDEX_MASK = 0xffffff, SLEEP_NS = 500000000 };

/* Removes @cq from the list of CQs armed with old completions. The lock is held. */
static void stale_forget(struct user_cq *cq)
{
	struct user_cq **link = &lint.stale;

	while (*link && *link != cq)
		link = &(*link)->lint_stale_next;
	if (*link)
		__atomic_store_n(link, cq->lint_stale_next, __ATOMIC_RELAXED);
}

/* Records that @cq, armed by this thread, reports no completions before index @end. The lock is held. */
static void stale_note(struct user_cq *cq, uint32_t end)
{
	cq->lint_stale_end = end;
	cq->lint_armer = gettid();
	cq->lint_stale_next = lint.stale;
	__atomic_store_n(&lint.stale, cq, __ATOMIC_RELAXED);
}

void lint_cq_armed(struct user_cq *cq)
{
	uint32_t consumer = __atomic_load_n(&cq->consumer_index, __ATOMIC_RELAXED);
	struct hca_cq_state state;
	uint32_t count;

	hca_cq_query(cq->device, &state);
	count = (state.producer - consumer) & INDEX_MASK;
	queue_lock(&lint.lock);
	stale_forget(cq);
	/* Arming for solicited completions ignores others on purpose. */
	if (state.armed && !state.armed_solicited && !state.event_waits && !cq->exported && count)
		stale_note(cq, consumer + count);
	queue_unlock(&lint.lock);
	if (__atomic_load_n(&lint.stale, __ATOMIC_RELAXED))
		timer_arm(&first_device()->timers, &lint.sleep_timer, clock_now_ns() + SLEEP_NS);
}

void lint_cq_event_taken(struct user_cq *cq)
{
	queue_lock(&lint.lock);
	stale_forget(cq);
	queue_unlock(&lint.lock);
}

void lint_cq_destroyed(struct user_cq *cq)
{
	lint_cq_event_taken(cq);
}

/*
 * Counts the completions in @cq if the thread that armed it also polled it last: otherwise another thread may be about
 * to poll. Ignores CQs whose channel has others, for which the thread may wait. The lock is held.
 */
static uint32_t stale_count(const struct user_cq *cq)
{
	int32_t count = (int32_t)(cq->lint_stale_end - __atomic_load_n(&cq->consumer_index, __ATOMIC_RELAXED));

	return count > 0 && cq->lint_armer == cq->lint_poller && !cq->lint_slept && cq->base.channel &&
			       __atomic_load_n(&cq->base.channel->refcnt, __ATOMIC_RELAXED) == 1
		       ? (uint32_t)count
		       : 0;
}

static void stale_warn(struct user_cq *cq, uint32_t count, const char *call)
{
	cq->lint_slept = true;
	lint_warn_call(hca_of_context(cq->base.context), call, RULE_SLEEPS_ON_COMPLETIONS,
		       FIGURES(cq->base.handle, count));
}

static bool channel_blocks(struct user_comp_channel *channel)
{
	int flags = fcntl(channel->base.fd, F_GETFL);

	return flags >= 0 && !(flags & O_NONBLOCK) && !event_queue_has(&channel->events);
}

void lint_channel_waiting(struct user_comp_channel *channel)
{
	if (!__atomic_load_n(&lint.stale, __ATOMIC_RELAXED) || !channel_blocks(channel))
		return;
	queue_lock(&lint.lock);
	for (struct user_cq *cq = lint.stale; cq; cq = cq->lint_stale_next) {
		uint32_t count = cq->base.channel == &channel->base ? stale_count(cq) : 0;

		if (count && cq->lint_armer == gettid())
			stale_warn(cq, count, "ibv_get_cq_event");
	}
	queue_unlock(&lint.lock);
}

/* Programs that use poll(2) or epoll_wait(2) do not call the library. An event would have woken them. */
static void look_for_sleepers(struct timer *timer)
{
	(void)timer;
	queue_lock(&lint.lock);
	for (struct user_cq *cq = lint.stale; cq; cq = cq->lint_stale_next) {
		uint32_t count = stale_count(cq);

		if (count && lint_thread_waits(cq->lint_armer, cq->base.channel->fd))
			stale_warn(cq, count, "ibv_req_notify_cq");
	}
	queue_unlock(&lint.lock);
}

void lint_sleeps_start(void)
{
	timer_init(&lint.sleep_timer, look_for_sleepers);
}
