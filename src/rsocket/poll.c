/* SPDX-License-Identifier: BSD-2-Clause */
/* rpoll() and rselect() for rsockets and ordinary descriptors (rsocket(7)). */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>

#include "abi/rdmacm_entry_points.h"
#include "core/cancellation.h"
#include "progress/progress.h"
#include "rsocket/datagram.h"
#include "rsocket/table.h"
#include "rsocket/wait.h"

/* Entries that need no memory. */
enum { ON_STACK = 32 };

struct polled {
	struct rsocket *rs; /* with a reference; NULL: an ordinary descriptor */
	uint32_t first;     /* index of its descriptors for poll(2) */
	uint32_t count;
};

struct polling {
	struct pollfd *fds; /* the caller's array */
	nfds_t count;
	struct polled *polled;
	struct pollfd *pollfds;
	uint32_t pollfd_count;
	uint32_t wake_up_ms;         /* minimum of the rsockets; 0: no rsocket */
	const int *may_be_cancelled; /* for cancellation_restore() */
};

/* Returns events as poll(2) for the ends of a socket. */
static short stream_ready(struct rsocket *rs)
{
	const struct stream *stream = &rs->stream;
	short ready = 0;

	switch (stream->state) {
	case STREAM_LISTENING:
		return stream->request ? POLLIN : 0;
	case STREAM_REFUSED:
		return POLLIN | POLLOUT | POLLERR | POLLHUP;
	case STREAM_CONNECTED:
	case STREAM_ACCEPTING:
		if (stream_has_data(rs) || !stream->readable)
			ready |= POLLIN | (stream->readable ? 0 : POLLRDHUP);
		if (stream_can_send(rs) || !stream->writable)
			ready |= POLLOUT;
		return ready;
	case STREAM_DISCONNECTED:
		/* Report data first, as a socket does: some programs take POLLHUP for a failure. */
		return POLLIN | POLLOUT | POLLRDHUP | (stream_has_data(rs) ? 0 : POLLHUP);
	case STREAM_BROKEN:
		return POLLIN | POLLOUT | POLLRDHUP | POLLHUP | POLLERR;
	case STREAM_CONNECTING:
		return 0;
	default:
		return POLLOUT | POLLHUP;
	}
}

/* Returns requested events and those that are always reported. The caller holds the lock. */
static short rsocket_ready(struct rsocket *rs, short events)
{
	short all;

	if (rs->closed)
		return POLLNVAL;
	rsocket_advance(rs);
	all = rs->datagram ? datagram_ready(rs) : stream_ready(rs);
	if (all & POLLIN)
		all |= POLLRDNORM;
	if (all & POLLOUT)
		all |= POLLWRNORM;
	return (short)(all & (events | POLLERR | POLLHUP | POLLNVAL));
}

/* Counts the ready entries. */
static int polling_check(struct polling *polling)
{
	int found = 0;
	nfds_t index;

	for (index = 0; index < polling->count; index++) {
		struct pollfd *fd = &polling->fds[index];
		struct rsocket *rs = polling->polled[index].rs;

		fd->revents = 0;
		if (!rs && fd->fd >= 0 && poll(fd, 1, 0) < 0)
			fd->revents = 0;
		if (rs) {
			pthread_mutex_lock(&rs->lock);
			fd->revents = rsocket_ready(rs, fd->events);
			pthread_mutex_unlock(&rs->lock);
		}
		found += !!fd->revents;
	}
	return found;
}

/* Registers as a sleeper with each rsocket and checks again: any later event ends the sleep. */
static int polling_sleep_begin(struct polling *polling)
{
	uint32_t next = 0;
	int found = 0;
	nfds_t index;

	for (index = 0; index < polling->count; index++) {
		struct polled *polled = &polling->polled[index];
		struct pollfd *fd = &polling->fds[index];

		polled->first = next;
		polled->count = 1;
		polling->pollfds[next] = *fd;
		if (polled->rs) {
			pthread_mutex_lock(&polled->rs->lock);
			rsocket_arm(polled->rs);
			fd->revents = rsocket_ready(polled->rs, fd->events);
			/*
			 * While other sleepers are still waking up, poll(2) returns at once. Threads that waited for
			 * them here might wait for one another.
			 */
			polled->count = sleep_begin(polled->rs, &polling->pollfds[next]);
			pthread_mutex_unlock(&polled->rs->lock);
			found += !!fd->revents;
		}
		next += polled->count;
	}
	polling->pollfd_count = next;
	return found;
}

static void polling_sleep_end(struct polling *polling)
{
	nfds_t index;

	for (index = 0; index < polling->count; index++) {
		struct polled *polled = &polling->polled[index];

		if (!polled->rs)
			continue;
		pthread_mutex_lock(&polled->rs->lock);
		sleep_end(polled->rs, &polling->pollfds[polled->first], polled->count);
		pthread_mutex_unlock(&polled->rs->lock);
	}
}

/* Clears results, which poll(2) may not have written. */
static void polling_clear(struct polling *polling)
{
	uint32_t index;

	for (index = 0; index < polling->pollfd_count; index++)
		polling->pollfds[index].revents = 0;
}

static void polling_end(struct polling *polling)
{
	nfds_t index;

	for (index = 0; polling->wake_up_ms && index < polling->count; index++)
		if (polling->polled[index].rs)
			rsocket_put(polling->polled[index].rs);
	if (polling->count > ON_STACK) {
		free(polling->polled);
		free(polling->pollfds);
	}
}

static void polling_cancelled(void *polling)
{
	polling_clear(polling);
	polling_sleep_end(polling);
	polling_end(polling);
}

static int polling_sleep(struct polling *polling, uint64_t deadline)
{
	uint64_t now = rsocket_now_ns(), limit = now + polling->wake_up_ms * MILLISECOND_NS;
	struct timespec time;
	int result;

	if (deadline && deadline < limit)
		limit = deadline;
	limit = limit > now ? limit - now : 0;
	time.tv_sec = (time_t)(limit / SECOND_NS);
	time.tv_nsec = (long)(limit % SECOND_NS);
	/* A cancellation point, like poll(2). */
	pthread_cleanup_push(polling_cancelled, polling);
	cancellation_restore(polling->may_be_cancelled);
	result = ppoll(polling->pollfds, polling->pollfd_count, &time, NULL);
	result = result < 0 ? -errno : 0;
	cancellation_disable();
	pthread_cleanup_pop(0);
	if (result)
		polling_clear(polling);
	return result;
}

static int polling_run(struct polling *polling, uint64_t deadline, bool dont_wait)
{
	uint64_t look_until = 0;
	nfds_t index;
	int found, error;

	for (index = 0; index < polling->count; index++)
		if (polling->polled[index].rs && polling->polled[index].rs->settings.polling_us)
			look_until = rsocket_now_ns() + polling->polled[index].rs->settings.polling_us * 1000ull;
	for (;;) {
		do
			found = polling_check(polling);
		while (!found && !dont_wait && rsocket_now_ns() < look_until);
		if (found || dont_wait || (deadline && rsocket_now_ns() >= deadline))
			return found;
		found = polling_sleep_begin(polling);
		error = found ? 0 : polling_sleep(polling, deadline);
		if (found)
			polling_clear(polling);
		polling_sleep_end(polling);
		if (found)
			return polling_check(polling);
		if (error)
			return error;
		/* Other threads may have to check the same event. */
		sched_yield();
	}
}

static struct rsocket *table_find_own(int fd)
{
	struct rsocket *rs = table_find(fd);

	if (rs && rs->process != progress_generation()) {
		rsocket_put(rs);
		rs = NULL;
	}
	return rs;
}

int softhca_rpoll(struct pollfd *fds, nfds_t nfds, int timeout)
{
	CANCELLATION_POINT;
	struct polled few[ON_STACK];
	struct pollfd few_pollfds[ON_STACK * SLEEP_DESCRIPTORS];
	struct polling polling = {.fds = fds,
				  .count = nfds,
				  .polled = few,
				  .pollfds = few_pollfds,
				  .may_be_cancelled = &cancellation_before};
	uint64_t deadline = timeout > 0 ? rsocket_now_ns() + (uint64_t)timeout * MILLISECOND_NS : 0;
	nfds_t index;
	int result;

	if (nfds > ON_STACK) {
		polling.polled = calloc(nfds, sizeof(*polling.polled));
		polling.pollfds = calloc(nfds * SLEEP_DESCRIPTORS, sizeof(*polling.pollfds));
	}
	result = polling.polled && polling.pollfds ? 0 : -ENOMEM;
	for (index = 0; !result && index < nfds; index++) {
		struct rsocket *rs = table_find_own(fds[index].fd);

		polling.polled[index].rs = rs;
		if (rs && (!polling.wake_up_ms || rs->settings.wake_up_ms < polling.wake_up_ms))
			polling.wake_up_ms = rs->settings.wake_up_ms;
	}
	if (!result && polling.wake_up_ms)
		result = polling_run(&polling, deadline, !timeout);
	polling_end(&polling);
	if (!result && !polling.wake_up_ms) {
		/* No rsocket has to be released. */
		cancellation_restore(&cancellation_before);
		return poll(fds, nfds, timeout);
	}
	if (result >= 0)
		return result;
	errno = -result;
	return -1;
}

static void pollfd_add(struct pollfd *fd, fd_set *set, int number, short events)
{
	if (set && FD_ISSET(number, set)) {
		fd->fd = number;
		fd->events |= events;
	}
}

static int fd_set_update(const struct pollfd *fd, fd_set *set, short events)
{
	if (!set || !FD_ISSET(fd->fd, set))
		return 0;
	if (fd->revents & events)
		return 1;
	FD_CLR(fd->fd, set);
	return 0;
}

int softhca_rselect(int nfds, fd_set *readfds, fd_set *writefds, fd_set *exceptfds, struct timeval *timeout)
{
	struct pollfd fds[FD_SETSIZE];
	nfds_t count = 0, index;
	int number, milliseconds = -1, found, result = 0;

	if (nfds < 0 || nfds > FD_SETSIZE || (timeout && (timeout->tv_sec < 0 || timeout->tv_usec < 0))) {
		errno = EINVAL;
		return -1;
	}
	/* Round up, so as not to return early. */
	if (timeout)
		milliseconds = timeout->tv_sec > 1000000
				       ? 1000000000
				       : (int)(timeout->tv_sec * 1000 + (timeout->tv_usec + 999) / 1000);
	for (number = 0; number < nfds; number++) {
		fds[count] = (struct pollfd){.fd = -1};
		pollfd_add(&fds[count], readfds, number, POLLIN);
		pollfd_add(&fds[count], writefds, number, POLLOUT);
		pollfd_add(&fds[count], exceptfds, number, POLLPRI);
		count += fds[count].fd >= 0;
	}
	found = softhca_rpoll(fds, count, milliseconds);
	if (found < 0)
		return -1;
	for (index = 0; index < count; index++)
		if (fds[index].revents & POLLNVAL) {
			errno = EBADF;
			return -1;
		}
	/* As in select(2). */
	for (index = 0; index < count; index++) {
		result += fd_set_update(&fds[index], readfds, POLLIN | POLLHUP | POLLERR);
		result += fd_set_update(&fds[index], writefds, POLLOUT | POLLERR);
		result += fd_set_update(&fds[index], exceptfds, POLLPRI);
	}
	return result;
}
