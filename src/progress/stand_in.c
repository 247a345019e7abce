/* SPDX-License-Identifier: BSD-2-Clause */
/* Standing in for the device thread, see stand_in.h. */
#include "progress/stand_in.h"

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
#include "progress/progress.h"
#include "progress/progress_parts.h"

enum { NOTICES = 16 }; /* taken at once */

static struct {
	uint32_t present;       /* atomic; 1: a thread stands in */
	uint32_t beats;         /* atomic */
	uint32_t resigned;      /* atomic; 1: the last one did not leave with an event, or others wait */
	uint32_t others;        /* atomic; threads that wait beside it, or although they may not stand in */
	uint32_t elsewhere;     /* atomic; queues whose events were there when the program came for them */
	uint64_t not_before_ns; /* atomic; CLOCK_MONOTONIC: nobody stands in */
	bool refused;           /* atomic; the kernel does not do what it takes */
	/* Of the one that stands in. */
	struct event_queue *queue;
	aio_context_t context;
	int wake;          /* eventfd; -1: not made yet */
	bool watched;      /* the kernel has been asked to add 1 to it; others add EVENT_QUEUE_CALL */
	uint32_t requests; /* so asked, whose notices were not taken */
	bool undrained;
} stand_in = {.wake = -1};

struct stand_in_state stand_in_state(void)
{
	return (struct stand_in_state){
		.beats = __atomic_load_n(&stand_in.beats, __ATOMIC_RELAXED),
		.present = __atomic_load_n(&stand_in.present, __ATOMIC_RELAXED),
		.resigned = __atomic_load_n(&stand_in.resigned, __ATOMIC_ACQUIRE) ||
			    __atomic_load_n(&stand_in.elsewhere, __ATOMIC_RELAXED),
	};
}

/* ---- what the kernel does ---------------------------------------------------------------------------------------- */

static bool prepare(void)
{
	if (stand_in.wake >= 0)
		return true;
	stand_in.wake = descriptor_keep(eventfd(0, EFD_CLOEXEC));
	if (stand_in.wake >= 0 && !syscall(SYS_io_setup, 1, &stand_in.context)) {
		__atomic_store_n(&event_queue_call, stand_in.wake, __ATOMIC_RELAXED);
		return true;
	}
	if (stand_in.wake >= 0)
		descriptor_close(stand_in.wake);
	stand_in.wake = -1;
	return false;
}

/* Takes the notices of the requests that are done. False: the kernel gives none. */
static bool take_notices(void)
{
	struct timespec at_once = {0};
	struct io_event events[NOTICES];
	long count;

	do {
		count = syscall(SYS_io_getevents, stand_in.context, 0, NOTICES, events, &at_once);
		if (count > 0)
			stand_in.requests -= (uint32_t)count;
	} while (count == NOTICES || (count < 0 && errno == EINTR));
	stand_in.watched = count >= 0 && stand_in.requests > 0;
	return count >= 0;
}

/* The next arrival wakes, as does one that is there. */
static bool submit(void)
{
	struct iocb request = {
		.aio_lio_opcode = IOCB_CMD_POLL,
		.aio_fildes = (uint32_t)progress_arrivals(),
		.aio_buf = POLLIN,
		.aio_flags = IOCB_FLAG_RESFD,
		.aio_resfd = (uint32_t)stand_in.wake,
	};
	struct iocb *requests = &request;

	if (!descriptor_check(stand_in.wake) || !descriptor_check(progress_arrivals())) {
		errno = EBADF;
		return false;
	}
	stand_in.watched = syscall(SYS_io_submit, stand_in.context, 1, &requests) == 1;
	stand_in.requests += stand_in.watched;
	return stand_in.watched;
}

/* Notices are taken when the kernel has no room for more: that a request is done is known without them. */
static bool watch(void)
{
	if (stand_in.watched || submit())
		return true;
	return errno == EAGAIN && take_notices() && (stand_in.watched || submit());
}

/* ---- handling what arrives --------------------------------------------------------------------------------------- */

/* Another thread polls, and has perhaps lost its processor in the middle. */
static void let_poll(void)
{
	const struct timespec time = {.tv_nsec = TUNABLE_POLL_LOOK_NS / 2};

	nanosleep(&time, NULL);
}

/* Until there is an event for this thread, or nothing is left. */
static void poll_for_event(struct event_queue *queue)
{
	for (int i = 0; i < TUNABLE_STAND_IN_ROUNDS && !event_queue_has(queue); i++) {
		if (!progress_poll_all())
			break;
		counter_add(first_device(), COUNTER_PROGRAM_PACKETS, 1);
		stand_in.undrained = true;
	}
}

/* @woken: something may have arrived. Afterwards arrivals wake, unless there is an event. False: it has to look again. */
static bool look(struct event_queue *queue, bool woken)
{
	WITHOUT_CANCELLATION;
	bool rests = true;

	if (!progress_begin_polling_soon()) {
		let_poll();
		return false;
	}
	event_queue_look(queue, true);
	if (woken)
		poll_for_event(queue);
	if (!event_queue_has(queue)) {
		if (stand_in.undrained || woken)
			progress_drain();
		stand_in.undrained = false;
		progress_arm_all(true);
		rests = progress_rest(true);
	}
	event_queue_look(queue, false);
	progress_end_polling();
	__atomic_store_n(&stand_in.beats, stand_in.beats + 1, __ATOMIC_RELAXED);
	return rests;
}

/* ---- standing in ------------------------------------------------------------------------------------------------- */

/* The device thread is to look after arrivals at once. */
static void resign(void)
{
	__atomic_store_n(&stand_in.resigned, 1, __ATOMIC_RELEASE);
	__atomic_store_n(&stand_in.not_before_ns, clock_now_ns() + TUNABLE_STAND_IN_AGAIN_NS, __ATOMIC_RELAXED);
	progress_wake();
}

static bool begin(struct event_queue *queue)
{
	WITHOUT_CANCELLATION;

	if (__atomic_load_n(&stand_in.refused, __ATOMIC_RELAXED) ||
	    __atomic_load_n(&stand_in.others, __ATOMIC_SEQ_CST) ||
	    __atomic_load_n(&stand_in.elsewhere, __ATOMIC_RELAXED) ||
	    clock_now_ns() < __atomic_load_n(&stand_in.not_before_ns, __ATOMIC_RELAXED) ||
	    __atomic_exchange_n(&stand_in.present, 1, __ATOMIC_SEQ_CST))
		return false;
	if (!prepare())
		__atomic_store_n(&stand_in.refused, true, __ATOMIC_RELAXED);
	else if (event_queue_await(queue)) {
		stand_in.queue = queue;
		__atomic_store_n(&stand_in.resigned, 0, __ATOMIC_RELEASE);
		return true;
	}
	__atomic_store_n(&stand_in.present, 0, __ATOMIC_SEQ_CST);
	return false;
}

static void leave(void)
{
	WITHOUT_CANCELLATION;

	event_queue_leave(stand_in.queue);
	__atomic_store_n(&stand_in.present, 0, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&stand_in.others, __ATOMIC_SEQ_CST))
		resign();
}

/* What read(2) was about to return may be lost (core/event_queue.h): the kernel is asked what it did. */
static void leave_cancelled(void *argument)
{
	WITHOUT_CANCELLATION;

	(void)argument;
	take_notices();
	leave();
}

/* Returns 0, -EAGAIN: the device thread is to do it, or what read(2) has. */
static int wait_standing_in(struct event_queue *queue, int *type, void **object)
{
	uint64_t calls;

	for (int vain = 0; vain < TUNABLE_STAND_IN_VAIN; vain++) {
		bool rests = look(queue, vain > 0);

		if (!event_queue_take_awaited(queue, type, object))
			return 0;
		if (!rests)
			continue;
		if (!watch()) {
			__atomic_store_n(&stand_in.refused, true, __ATOMIC_RELAXED);
			break;
		}
		if (read(stand_in.wake, &calls, sizeof(calls)) < 0)
			return -errno;
		if (calls % EVENT_QUEUE_CALL)
			stand_in.watched = false;
	}
	resign();
	return -EAGAIN;
}

static int stand_in_take(struct event_queue *queue, int *type, void **object)
{
	int error;

	pthread_cleanup_push(leave_cancelled, NULL);
	error = wait_standing_in(queue, type, object);
	pthread_cleanup_pop(0);
	leave();
	return error;
}

/* ---- beside it --------------------------------------------------------------------------------------------------- */

static void one_less(void *argument)
{
	(void)argument;
	__atomic_sub_fetch(&stand_in.others, 1, __ATOMIC_SEQ_CST);
}

static int take_beside(struct event_queue *queue, int *type, void **object)
{
	int error;

	__atomic_add_fetch(&stand_in.others, 1, __ATOMIC_SEQ_CST);
	pthread_cleanup_push(one_less, NULL);
	error = event_queue_take(queue, type, object);
	pthread_cleanup_pop(1);
	return error;
}

/* Whether the program comes for the events of @queue when it likes, or waits for them here. */
static void note_style(struct event_queue *queue, bool elsewhere)
{
	if (__atomic_exchange_n(&queue->elsewhere, elsewhere, __ATOMIC_RELAXED) != elsewhere)
		__atomic_add_fetch(&stand_in.elsewhere, elsewhere ? 1 : -1, __ATOMIC_RELAXED);
}

void stand_in_forget(struct event_queue *queue)
{
	note_style(queue, false);
}

static bool blocks(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && !(flags & O_NONBLOCK);
}

int stand_in_take_event(struct event_queue *queue, int *type, void **object)
{
	int error;

	if (!progress_has_pollers())
		return event_queue_take(queue, type, object);
	if (event_queue_has(queue) || !blocks(queue->fd)) {
		note_style(queue, true);
		return event_queue_take(queue, type, object);
	}
	note_style(queue, false);
	error = begin(queue) ? stand_in_take(queue, type, object) : -EAGAIN;
	return error == -EAGAIN ? take_beside(queue, type, object) : error;
}

void stand_in_after_fork(void)
{
	if (stand_in.wake >= 0)
		descriptor_close(stand_in.wake);
	stand_in.wake = -1;
	event_queue_call = -1;
	stand_in.context = 0;
	stand_in.present = 0;
	stand_in.others = 0;
	stand_in.watched = stand_in.undrained = false;
	stand_in.requests = 0;
	stand_in.refused = true;
}
