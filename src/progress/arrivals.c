/* SPDX-License-Identifier: BSD-2-Clause */
/* Descriptors that wake the device thread, see arrivals.h. */
#include "progress/arrivals.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/cancellation.h"
#include "core/descriptor.h"
#include "core/epoch.h"
#include "core/tunables.h"
#include "hca/hca.h"

static struct {
	pthread_mutex_t lock;       /* for `running`, `runner` and `removals` */
	pthread_cond_t ready_done;  /* a ready function has returned */
	struct watched_fd *running; /* its ready function runs, on the thread `runner` */
	pthread_t runner;
	uint32_t removals;  /* descriptors removed so far; results from before a removal may be obsolete */
	bool no_pwait2;     /* used by the thread only: the kernel refuses epoll_pwait2(2) */
	bool wakes;         /* used by the thread only: it currently sleeps on arrivals, too */
	bool intact;        /* used by the thread only: result of the last check of all descriptors */
	uint64_t intact_ns; /* time of that check */
	/* atomic; -1: none */
	int epoll;        /* the thread sleeps on it; includes `of_arrivals` */
	int of_arrivals;  /* also an epoll descriptor; a substitute sleeps on it */
	int wake;         /* eventfd */
	uint32_t drained; /* atomic; number of the descriptors of arrivals with a drain function */
} descriptors = {.lock = PTHREAD_MUTEX_INITIALIZER,
		 .ready_done = PTHREAD_COND_INITIALIZER,
		 .epoll = -1,
		 .of_arrivals = -1,
		 .wake = -1};

static void arrivals_ready(struct watched_fd *watched, uint32_t events);

/* On the device thread: it has called progress_wake(), and has neither polled nor slept since. */
static __thread bool woken_by_itself __attribute__((tls_model("initial-exec")));

/* Entry in `epoll` for `of_arrivals`. */
static struct watched_fd arrivals = {.ready = arrivals_ready};

static int descriptor_now(const int *fd)
{
	return __atomic_load_n(fd, __ATOMIC_ACQUIRE);
}

/* ---- opening --------------------------------------------------------------------------------------------------- */

static void descriptors_close(void)
{
	int *all[] = {&descriptors.epoll, &descriptors.of_arrivals, &descriptors.wake};

	for (size_t i = 0; i < 3; i++) {
		int fd = __atomic_exchange_n(all[i], -1, __ATOMIC_ACQ_REL);

		if (fd >= 0)
			descriptor_close(fd);
	}
}

int arrivals_open(void)
{
	struct epoll_event wake = {.events = EPOLLIN}, arrival = {.events = EPOLLIN, .data.ptr = &arrivals};

	if (descriptors.epoll >= 0)
		return 0;
	descriptors.wakes = true;
	__atomic_store_n(&descriptors.epoll, descriptor_keep(epoll_create1(EPOLL_CLOEXEC)), __ATOMIC_RELEASE);
	__atomic_store_n(&descriptors.of_arrivals, descriptor_keep(epoll_create1(EPOLL_CLOEXEC)), __ATOMIC_RELEASE);
	__atomic_store_n(&descriptors.wake, descriptor_keep(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), __ATOMIC_RELEASE);
	if (descriptors.epoll >= 0 && descriptors.of_arrivals >= 0 && descriptors.wake >= 0 &&
	    !epoll_ctl(descriptors.epoll, EPOLL_CTL_ADD, descriptors.wake, &wake) &&
	    !epoll_ctl(descriptors.epoll, EPOLL_CTL_ADD, descriptors.of_arrivals, &arrival))
		return 0;
	descriptors_close();
	return -EAGAIN;
}

void progress_wake(void)
{
	WITHOUT_CANCELLATION;
	int wake = descriptor_now(&descriptors.wake);

	if (progress_on_thread())
		woken_by_itself = true;
	else if (wake >= 0 && descriptor_check(wake))
		eventfd_write(wake, 1);
}

/* ---- watching -------------------------------------------------------------------------------------------------- */

static int epoll_change(int epoll, int operation, int fd, struct watched_fd *watched, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = watched};

	if (!descriptor_check(epoll) || !descriptor_check(fd))
		return -EBADF;
	return epoll_ctl(epoll, operation, fd, &event) ? -errno : 0;
}

int arrivals_watch(struct watched_fd *watched, uint32_t events, bool of_arrivals)
{
	bool drained = of_arrivals && watched->drain;
	int epoll = descriptor_now(of_arrivals ? &descriptors.of_arrivals : &descriptors.epoll), error;

	if (of_arrivals)
		watched->drained = drained;
	__atomic_add_fetch(&descriptors.drained, drained, __ATOMIC_RELAXED);
	/* Orders earlier stores to @watched before ready_call(). */
	pthread_mutex_lock(&descriptors.lock);
	error = epoll_change(epoll, EPOLL_CTL_ADD, watched->fd, !of_arrivals || drained ? watched : NULL, events);
	pthread_mutex_unlock(&descriptors.lock);
	if (error)
		__atomic_sub_fetch(&descriptors.drained, drained, __ATOMIC_RELAXED);
	return error;
}

int progress_rewatch(struct watched_fd *watched, uint32_t events)
{
	return epoll_change(descriptor_now(&descriptors.epoll), EPOLL_CTL_MOD, watched->fd, watched, events);
}

int progress_rewatch_arrivals(struct watched_fd *watched, uint32_t events)
{
	return epoll_change(descriptor_now(&descriptors.of_arrivals), EPOLL_CTL_MOD, watched->fd,
			    watched->drain ? watched : NULL, events);
}

void progress_unwatch(struct watched_fd *watched)
{
	WITHOUT_CANCELLATION;

	if (!epoll_change(descriptor_now(&descriptors.of_arrivals), EPOLL_CTL_DEL, watched->fd, NULL, 0) &&
	    watched->drained)
		__atomic_sub_fetch(&descriptors.drained, 1, __ATOMIC_RELAXED);
	epoll_change(descriptor_now(&descriptors.epoll), EPOLL_CTL_DEL, watched->fd, NULL, 0);
	pthread_mutex_lock(&descriptors.lock);
	descriptors.removals++;
	while (descriptors.running == watched && !pthread_equal(pthread_self(), descriptors.runner))
		pthread_cond_wait(&descriptors.ready_done, &descriptors.lock);
	pthread_mutex_unlock(&descriptors.lock);
}

/* ---- arrivals -------------------------------------------------------------------------------------------------- */

int progress_arrivals(void)
{
	return descriptor_now(&descriptors.of_arrivals);
}

/* Removed descriptors are not found any more; those found stay valid until the section ends. */
void progress_drain(void)
{
	struct epoll_event events[EPOLL_EVENTS];
	int count, epoll = descriptor_now(&descriptors.of_arrivals);

	if (!__atomic_load_n(&descriptors.drained, __ATOMIC_RELAXED) || !descriptor_check(epoll))
		return;
	epoch_enter();
	count = epoll_wait(epoll, events, EPOLL_EVENTS, 0);
	for (int i = 0; i < count; i++) {
		struct watched_fd *watched = events[i].data.ptr;

		if (watched)
			watched->drain(watched);
	}
	epoch_leave();
}

static void arrivals_ready(struct watched_fd *watched, uint32_t events)
{
	(void)watched;
	(void)events;
	progress_drain();
}

void arrivals_set_wake(bool wake)
{
	struct epoll_event event = {.events = wake ? EPOLLIN : 0, .data.ptr = &arrivals};

	if (descriptors.wakes == wake)
		return;
	descriptors.wakes = wake;
	epoll_ctl(descriptors.epoll, EPOLL_CTL_MOD, descriptors.of_arrivals, &event);
}

/* ---- sleeping -------------------------------------------------------------------------------------------------- */

/*
 * Calls `ready` of @watched, unless a descriptor, possibly the same one, was removed after this one was found ready.
 * Those not called will be found ready again.
 */
static bool ready_call(struct watched_fd *watched, uint32_t events, uint32_t removals)
{
	pthread_mutex_lock(&descriptors.lock);
	if (descriptors.removals != removals) {
		pthread_mutex_unlock(&descriptors.lock);
		return false;
	}
	descriptors.running = watched;
	descriptors.runner = pthread_self();
	pthread_mutex_unlock(&descriptors.lock);
	watched->ready(watched, events);
	pthread_mutex_lock(&descriptors.lock);
	descriptors.running = NULL;
	pthread_cond_broadcast(&descriptors.ready_done);
	pthread_mutex_unlock(&descriptors.lock);
	return true;
}

static uint32_t removals_now(void)
{
	uint32_t removals;

	pthread_mutex_lock(&descriptors.lock);
	removals = descriptors.removals;
	pthread_mutex_unlock(&descriptors.lock);
	return removals;
}

/*
 * Before Linux 5.11, and in older sandboxes, there is only epoll_wait(2), which counts milliseconds. ppoll(2) counts
 * nanoseconds, and sees an epoll descriptor as readable when one of its descriptors is ready.
 */
static int wait_without_pwait2(const struct timespec *left, struct epoll_event *events)
{
	struct pollfd readable = {.fd = descriptors.epoll, .events = POLLIN};

	if (ppoll(&readable, 1, left, NULL) <= 0)
		return 0;
	return epoll_wait(descriptors.epoll, events, EPOLL_EVENTS, 0);
}

/* glibc has epoll_pwait2(2) from 2.35 on, musl does not. */
static int wait_with_pwait2(const struct timespec *left, struct epoll_event *events)
{
#ifdef SYS_epoll_pwait2
	return (int)syscall(SYS_epoll_pwait2, descriptors.epoll, events, EPOLL_EVENTS, left, NULL, (size_t)0);
#else
	(void)left;
	(void)events;
	errno = ENOSYS;
	return -1;
#endif
}

static int wait_once(uint64_t until_ns, struct epoll_event *events)
{
	uint64_t now_ns = clock_now_ns();
	struct timespec duration = {0}, *left = until_ns == FOR_EVER ? NULL : &duration;
	int count;

	if (until_ns > now_ns && left) {
		duration.tv_sec = (time_t)((until_ns - now_ns) / 1000000000u);
		duration.tv_nsec = (long)((until_ns - now_ns) % 1000000000u);
	}
	if (descriptors.no_pwait2)
		return wait_without_pwait2(left, events);
	count = wait_with_pwait2(left, events);
	if (count < 0 && errno != EINTR) {
		descriptors.no_pwait2 = true;
		return wait_without_pwait2(left, events);
	}
	return count;
}

/* Returns false if the program has closed one of the thread's descriptors. */
static bool has_descriptors(void)
{
	return descriptor_check(descriptors.epoll) && descriptor_check(descriptors.of_arrivals) &&
	       descriptor_check(descriptors.wake);
}

/* Checks periodically, because nothing wakes this thread if another one closes the descriptors. */
static int wait_for_descriptors(uint64_t until_ns, struct epoll_event *events)
{
	uint64_t look_ns;
	int count;

	do {
		look_ns = clock_now_ns() + TUNABLE_DESCRIPTOR_LOOK_NS;
		count = wait_once(until_ns < look_ns ? until_ns : look_ns, events);
	} while (!count && look_ns < until_ns && has_descriptors());
	return count;
}

/*
 * As has_descriptors(), before each sleep: always checks the descriptor on which the thread sleeps, and the others only
 * now and then, because each check is a system call. wait_for_descriptors() checks them as well.
 */
static bool descriptors_are_intact(void)
{
	uint64_t now_ns = clock_now_ns();

	if (descriptors.intact && now_ns - descriptors.intact_ns < TUNABLE_DESCRIPTOR_NAP_NS)
		return descriptor_check(descriptors.epoll);
	descriptors.intact = has_descriptors();
	descriptors.intact_ns = now_ns;
	return descriptors.intact;
}

void arrivals_begin_poll(void)
{
	woken_by_itself = false;
}

void arrivals_wait(struct ready_descriptors *ready, uint64_t until_ns)
{
	const struct timespec nap = {.tv_nsec = TUNABLE_DESCRIPTOR_NAP_NS};

	ready->removals = removals_now();
	ready->closed = !descriptors_are_intact();
	ready->count = 0;
	ready->by_itself = woken_by_itself;
	woken_by_itself = false;
	if (ready->closed)
		nanosleep(&nap, NULL);
	else
		ready->count = wait_for_descriptors(ready->by_itself ? 0 : until_ns, ready->event);
}

enum woken arrivals_handle(const struct ready_descriptors *ready)
{
	enum woken woken = ready->count > 0 || ready->by_itself ? WOKEN : NOT_WOKEN;
	eventfd_t ignored;

	if (ready->closed)
		return WOKEN_BY_ARRIVAL;
	for (int i = 0; i < ready->count; i++) {
		struct watched_fd *watched = ready->event[i].data.ptr;

		if (watched == &arrivals)
			woken = WOKEN_BY_ARRIVAL;
		if (!watched) {
			if (descriptor_is_ours(descriptors.wake))
				eventfd_read(descriptors.wake, &ignored);
			continue;
		}
		if (!ready_call(watched, ready->event[i].events, ready->removals))
			break;
	}
	return woken;
}

/* ---- fork ------------------------------------------------------------------------------------------------------ */

void arrivals_before_fork(void)
{
	pthread_mutex_lock(&descriptors.lock);
}

void arrivals_after_fork(bool child)
{
	if (child) {
		descriptors_close();
		descriptors.drained = 0;
		descriptors.running = NULL;
		pthread_cond_init(&descriptors.ready_done, NULL);
	}
	pthread_mutex_unlock(&descriptors.lock);
}
