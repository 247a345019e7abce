/* SPDX-License-Identifier: BSD-2-Clause */
/* Waiting and sleeping, see wait.h. */
#include "rsocket/wait.h"

#include <errno.h>
#include <signal.h>

#include "core/cancellation.h"
#include "rsocket/datagram.h"
#include "rsocket/table.h"

uint32_t sleep_begin(struct rsocket *rs, struct pollfd *descriptors)
{
	uint32_t count = 0;

	/* The channel may contain further requests, which would end every sleep. */
	if (!rs->datagram && rs->stream.state == STREAM_LISTENING && rs->stream.request)
		return 0;
	rs->sleepers++;
	if (rs->datagram)
		return datagram_descriptors(rs, descriptors);
	descriptors[count++] = (struct pollfd){.fd = rs->fd, .events = POLLIN};
	if (rs->stream.completions)
		descriptors[count++] = (struct pollfd){.fd = rs->stream.completions->fd, .events = POLLIN};
	return count;
}

void sleep_end(struct rsocket *rs, const struct pollfd *descriptors, uint32_t count)
{
	bool notified = count > 1 && descriptors[1].revents;

	if (!count)
		return;
	rs->sleepers--;
	if (notified && rs->datagram)
		datagram_notified(rs);
	else if (notified && rs->stream.completions)
		stream_notified(rs);
	/* The consumed notification may have woken other threads, which find nothing. */
	if (notified)
		rsocket_wake(rs);
	if (!rs->wake_pending || rs->sleepers)
		return;
	rs->wake_pending = false;
	if (rs->datagram)
		datagram_woken(rs);
	pthread_cond_broadcast(&rs->wake_done);
}

void rsocket_advance(struct rsocket *rs)
{
	if (rs->datagram) {
		datagram_advance(rs);
		return;
	}
	if (rs->stream.cq)
		stream_advance(rs);
	/* The event that wakes other threads stays until they have returned. */
	if (!rs->wake_pending)
		stream_take_events(rs);
}

bool rsocket_arm(struct rsocket *rs)
{
	if (rs->datagram)
		return datagram_arm(rs);
	return rs->stream.cq && stream_arm(rs);
}

/*
 * Returns true if interrupted calls continue (signal(7)): read(2) does for handlers with SA_RESTART, poll(2) never
 * does. It is unknown which handler ran, so all must have the flag.
 */
static bool signals_restart(void)
{
	struct sigaction action;
	int signal;

	for (signal = 1; signal < NSIG; signal++)
		if (!sigaction(signal, NULL, &action) && action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN &&
		    !(action.sa_flags & SA_RESTART))
			return false;
	return true;
}

struct sleep {
	struct rsocket *rs;
	const struct wait_limits *limits;
	uint32_t count;
};

/* The next call finds the same state. */
static void sleep_cancelled(void *argument)
{
	const struct sleep *sleep = argument;
	const struct pollfd nothing[SLEEP_DESCRIPTORS] = {{.revents = 0}};
	struct rsocket *rs = sleep->rs;

	pthread_mutex_lock(&rs->lock);
	sleep_end(rs, nothing, sleep->count);
	if (sleep->limits->closing) {
		rs->closed = true;
		rsocket_wake(rs);
	}
	pthread_mutex_unlock(&rs->lock);
	rsocket_put(rs);
}

static int rsocket_sleep(struct rsocket *rs, const struct wait_limits *limits)
{
	struct pollfd descriptors[SLEEP_DESCRIPTORS];
	struct sleep sleep = {.rs = rs, .limits = limits, .count = sleep_begin(rs, descriptors)};
	struct timespec limit = {0};
	uint64_t deadline = limits->deadline_ns;
	uint64_t now = deadline ? rsocket_now_ns() : 0, left = deadline > now ? deadline - now : 0;
	int error;

	limit.tv_sec = (time_t)(left / SECOND_NS);
	limit.tv_nsec = (long)(left % SECOND_NS);
	pthread_mutex_unlock(&rs->lock);
	pthread_cleanup_push(sleep_cancelled, &sleep);
	if (limits->may_be_cancelled)
		cancellation_restore(limits->may_be_cancelled);
	error = ppoll(descriptors, sleep.count, deadline ? &limit : NULL, NULL) < 0 ? -errno : 0;
	cancellation_disable();
	pthread_cleanup_pop(0);
	if (error)
		descriptors[1].revents = 0;
	pthread_mutex_lock(&rs->lock);
	sleep_end(rs, descriptors, sleep.count);
	return error == -EINTR && signals_restart() ? 0 : error;
}

/* Polls first, because a reply may come sooner than a sleep would end. */
static bool rsocket_spin(struct rsocket *rs, bool (*done)(struct rsocket *rs))
{
	uint64_t end = rs->settings.polling_us ? rsocket_now_ns() + rs->settings.polling_us * 1000ull : 0;

	while (end && rsocket_now_ns() < end) {
		rsocket_advance(rs);
		if (done(rs))
			return true;
	}
	return false;
}

int rsocket_wait_until(struct rsocket *rs, const struct wait_limits *limits, bool (*done)(struct rsocket *rs))
{
	int error;

	for (;;) {
		if (rs->stream.cq)
			stream_advance(rs);
		if (done(rs))
			return 0;
		rsocket_advance(rs);
		if (done(rs))
			return 0;
		if (limits->dont_wait)
			return -EAGAIN;
		if (rs->closed)
			return -EBADF;
		if (limits->deadline_ns && rsocket_now_ns() >= limits->deadline_ns)
			return -ETIMEDOUT;
		if (rsocket_spin(rs, done))
			return 0;
		/* Others are still waking up, and may consume arrivals for this thread. */
		if (rs->wake_pending) {
			pthread_cond_wait(&rs->wake_done, &rs->lock);
			continue;
		}
		if (rsocket_arm(rs))
			continue;
		error = rsocket_sleep(rs, limits);
		if (error)
			return error;
	}
}
