/* SPDX-License-Identifier: BSD-2-Clause */
/* The substitute poller. */
#include "progress/substitute_poller.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/cancellation.h"
#include "core/descriptor.h"
#include "core/tunables.h"
#include "observe/counters.h"
#include "hca/hca.h"
#include "progress/arrivals.h"
#include "progress/pollers.h"
#include "progress/progress.h"

/* Values chosen for speed. */
enum {
	/* consecutive polls of a substitute before it sleeps again */
	SUBSTITUTE_ROUNDS = 16,
	/* consecutive wake-ups without an event for it, after which it leaves arrivals to the device thread */
	SUBSTITUTE_VAIN = 8,
	/* ns without a substitute after that, or after several threads have waited at once */
	SUBSTITUTE_AGAIN_NS = 10000000,
};

enum { NOTICES = 16 }; /* taken at a time */

static struct {
	uint32_t present;  /* atomic; 1: a thread substitutes */
	uint32_t beats;    /* atomic */
	uint32_t resigned; /* atomic; 1: the last substitute left without an event, or other threads wait */
	/* atomic; threads that wait besides the substitute, or although substituting is not possible */
	uint32_t others;
	uint32_t queues_taken_without_wait; /* atomic; queues from which the program takes events without waiting */
	uint64_t not_before_ns;             /* atomic; CLOCK_MONOTONIC; no thread substitutes before it */
	bool refused;                       /* atomic; the kernel refuses a required system call */
	/* From here on: owned by the substitute. */
	struct event_queue *queue;
	aio_context_t context;
	int wake;          /* eventfd; -1: not made yet */
	bool watched;      /* the kernel adds 1 to `wake` on arrivals; others add EVENT_QUEUE_CALL */
	uint32_t requests; /* requests whose notices were not taken */
	bool undrained;
} substitute = {.wake = -1};

struct substitute_state substitute_state(void)
{
	return (struct substitute_state){
		.beats = __atomic_load_n(&substitute.beats, __ATOMIC_RELAXED),
		.present = __atomic_load_n(&substitute.present, __ATOMIC_RELAXED),
		.resigned = __atomic_load_n(&substitute.resigned, __ATOMIC_ACQUIRE) ||
			    __atomic_load_n(&substitute.queues_taken_without_wait, __ATOMIC_RELAXED),
	};
}

/*
 * ---- system calls ---------------------------------------------------------------------------------------------------
 */

static bool substitute_prepare(void)
{
	if (substitute.wake >= 0)
		return true;
	substitute.wake = descriptor_keep(eventfd(0, EFD_CLOEXEC));
	if (substitute.wake >= 0 && !syscall(SYS_io_setup, 1, &substitute.context)) {
		__atomic_store_n(&event_queue_call, substitute.wake, __ATOMIC_RELAXED);
		return true;
	}
	if (substitute.wake >= 0)
		descriptor_close(substitute.wake);
	substitute.wake = -1;
	return false;
}

/* Takes the notices of completed requests. Returns false if the kernel has none. */
static bool substitute_take_notices(void)
{
	struct timespec at_once = {0};
	struct io_event events[NOTICES];
	long count;

	do {
		count = syscall(SYS_io_getevents, substitute.context, 0, NOTICES, events, &at_once);
		if (count > 0)
			substitute.requests -= (uint32_t)count;
	} while (count == NOTICES || (count < 0 && errno == EINTR));
	substitute.watched = count >= 0 && substitute.requests > 0;
	return count >= 0;
}

/* Requests a wake-up for the next arrival, or a pending one. */
static bool substitute_submit(void)
{
	struct iocb request = {
		.aio_lio_opcode = IOCB_CMD_POLL,
		.aio_fildes = (uint32_t)progress_arrivals(),
		.aio_buf = POLLIN,
		.aio_flags = IOCB_FLAG_RESFD,
		.aio_resfd = (uint32_t)substitute.wake,
	};
	struct iocb *requests = &request;

	if (!descriptor_check(substitute.wake) || !descriptor_check(progress_arrivals())) {
		errno = EBADF;
		return false;
	}
	substitute.watched = syscall(SYS_io_submit, substitute.context, 1, &requests) == 1;
	substitute.requests += substitute.watched;
	return substitute.watched;
}

/* Takes notices only when the kernel is full: completed requests are visible without them. */
static bool substitute_watch(void)
{
	if (substitute.watched || substitute_submit())
		return true;
	return errno == EAGAIN && substitute_take_notices() && (substitute.watched || substitute_submit());
}

/*
 * ---- handling of arrivals -------------------------------------------------------------------------------------------
 */

/* Lets another thread, which may have lost its processor, finish a poll. */
static void let_other_poll(void)
{
	const struct timespec time = {.tv_nsec = TUNABLE_POLL_LOOK_NS / 2};

	nanosleep(&time, NULL);
}

static void poll_for_event(struct event_queue *queue)
{
	for (int i = 0; i < SUBSTITUTE_ROUNDS && !event_queue_has(queue); i++) {
		if (!progress_poll_all())
			break;
		counter_add(first_device(), COUNTER_PROGRAM_PACKETS, 1);
		substitute.undrained = true;
	}
}

/*
 * Handles arrivals if @woken. Afterwards arrivals wake this thread, unless it has an event. Returns false if it must be
 * called again.
 */
static bool substitute_look(struct event_queue *queue, bool woken)
{
	WITHOUT_CANCELLATION;
	bool rests = true;

	if (!progress_begin_polling_soon()) {
		let_other_poll();
		return false;
	}
	event_queue_begin_poll(queue);
	if (woken)
		poll_for_event(queue);
	if (!event_queue_has(queue)) {
		if (substitute.undrained || woken)
			progress_drain();
		substitute.undrained = false;
		progress_arm_all(true);
		rests = progress_rest(true);
	}
	event_queue_end_poll();
	progress_end_polling();
	__atomic_store_n(&substitute.beats, substitute.beats + 1, __ATOMIC_RELAXED);
	return rests;
}

/*
 * ---- substituting ---------------------------------------------------------------------------------------------------
 */

/* Returns arrivals to the device thread at once. */
static void substitute_resign(void)
{
	__atomic_store_n(&substitute.resigned, 1, __ATOMIC_RELEASE);
	__atomic_store_n(&substitute.not_before_ns, clock_now_ns() + SUBSTITUTE_AGAIN_NS, __ATOMIC_RELAXED);
	progress_wake();
}

static bool substitute_begin(struct event_queue *queue)
{
	WITHOUT_CANCELLATION;

	if (__atomic_load_n(&substitute.refused, __ATOMIC_RELAXED) ||
	    __atomic_load_n(&substitute.others, __ATOMIC_SEQ_CST) ||
	    __atomic_load_n(&substitute.queues_taken_without_wait, __ATOMIC_RELAXED) ||
	    clock_now_ns() < __atomic_load_n(&substitute.not_before_ns, __ATOMIC_RELAXED) ||
	    __atomic_exchange_n(&substitute.present, 1, __ATOMIC_SEQ_CST))
		return false;
	if (!substitute_prepare())
		__atomic_store_n(&substitute.refused, true, __ATOMIC_RELAXED);
	else if (event_queue_await(queue)) {
		substitute.queue = queue;
		__atomic_store_n(&substitute.resigned, 0, __ATOMIC_RELEASE);
		return true;
	}
	__atomic_store_n(&substitute.present, 0, __ATOMIC_SEQ_CST);
	return false;
}

static void substitute_leave(void)
{
	WITHOUT_CANCELLATION;

	event_queue_leave(substitute.queue);
	__atomic_store_n(&substitute.present, 0, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&substitute.others, __ATOMIC_SEQ_CST))
		substitute_resign();
}

/*
 * Asks the kernel for completed requests, because a cancelled read(2) may have consumed a result (core/event_queue.h).
 */
static void substitute_leave_cancelled(void *argument)
{
	WITHOUT_CANCELLATION;

	(void)argument;
	substitute_take_notices();
	substitute_leave();
}

/* Returns 0, -EAGAIN if the device thread must take over, or the error of read(2). */
static int substitute_wait(struct event_queue *queue, int *type, void **object)
{
	uint64_t calls;

	for (int vain = 0; vain < SUBSTITUTE_VAIN; vain++) {
		bool rests = substitute_look(queue, vain > 0);

		if (!event_queue_take_awaited(queue, type, object))
			return 0;
		if (!rests)
			continue;
		if (!substitute_watch()) {
			__atomic_store_n(&substitute.refused, true, __ATOMIC_RELAXED);
			break;
		}
		if (read(substitute.wake, &calls, sizeof(calls)) < 0)
			return -errno;
		if (calls % EVENT_QUEUE_CALL)
			substitute.watched = false;
	}
	substitute_resign();
	return -EAGAIN;
}

static int substitute_take(struct event_queue *queue, int *type, void **object)
{
	int error;

	pthread_cleanup_push(substitute_leave_cancelled, NULL);
	error = substitute_wait(queue, type, object);
	pthread_cleanup_pop(0);
	substitute_leave();
	return error;
}

/*
 * ---- other waiting threads ------------------------------------------------------------------------------------------
 */

static void waiter_leave(void *argument)
{
	(void)argument;
	__atomic_sub_fetch(&substitute.others, 1, __ATOMIC_SEQ_CST);
}

static int waiter_take(struct event_queue *queue, int *type, void **object)
{
	int error;

	__atomic_add_fetch(&substitute.others, 1, __ATOMIC_SEQ_CST);
	pthread_cleanup_push(waiter_leave, NULL);
	error = event_queue_take(queue, type, object);
	pthread_cleanup_pop(1);
	return error;
}

static void queue_note_style(struct event_queue *queue, bool without_wait)
{
	if (__atomic_exchange_n(&queue->taken_without_wait, without_wait, __ATOMIC_RELAXED) != without_wait)
		__atomic_add_fetch(&substitute.queues_taken_without_wait, without_wait ? 1 : -1, __ATOMIC_RELAXED);
}

void substitute_poller_forget(struct event_queue *queue)
{
	queue_note_style(queue, false);
}

static bool descriptor_blocks(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && !(flags & O_NONBLOCK);
}

int substitute_poller_take_event(struct event_queue *queue, int *type, void **object)
{
	int error;

	if (!progress_has_pollers())
		return event_queue_take(queue, type, object);
	if (event_queue_has(queue) || !descriptor_blocks(queue->fd)) {
		queue_note_style(queue, true);
		return event_queue_take(queue, type, object);
	}
	queue_note_style(queue, false);
	error = substitute_begin(queue) ? substitute_take(queue, type, object) : -EAGAIN;
	return error == -EAGAIN ? waiter_take(queue, type, object) : error;
}

void substitute_poller_after_fork(void)
{
	if (substitute.wake >= 0)
		descriptor_close(substitute.wake);
	substitute.wake = -1;
	event_queue_call = -1;
	substitute.context = 0;
	substitute.present = 0;
	substitute.others = 0;
	substitute.watched = substitute.undrained = false;
	substitute.requests = 0;
	substitute.refused = true;
}
