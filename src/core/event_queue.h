/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Events behind a descriptor: the completion channel (ibv_create_comp_channel(3)) and the asynchronous events
 * of a context (ibv_get_async_event(3)). The descriptor is a semaphore eventfd: readable as long as an event
 * waits, one read takes one event, O_NONBLOCK set by the program (fcntl) is respected.
 *
 * A source is embedded in the object that raises events and lists each object at most once; `pending` counts.
 * So the device raises an event without allocating. The queue's lock is a leaf, but for what the owner's
 * `taken` takes. Owner: the driver object (channel, context) owns the queue; the raising object owns its
 * sources and must detach them with event_source_purge() before it goes.
 *
 * A thread may also wait for the next event in another way than by reading the descriptor (progress/substitute_poller.h): it awaits the
 * queue, and sleeps on a descriptor of its own, event_queue_call, which is written to as well when an event is raised. What it
 * raises itself while it looks, it takes without any system call: it has the token in its hand.
 *
 * In a child of fork(2) a queue has a descriptor of its own, by the number that the program knows: the parent's counts what the
 * parent's threads take.
 *
 * A relay is a queue without a descriptor: what is raised in it is handed to a function at once, and never listed.
 */
#ifndef SOFTHCA_CORE_EVENT_QUEUE_H
#define SOFTHCA_CORE_EVENT_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/lock.h"

/* A type that is no enum ibv_event_type: an armed CQ has completed something. */
enum { EVENT_COMPLETION = -1 };

struct event_source {
	struct event_source *next; /* in the queue's FIFO, NULL-terminated */
	uint32_t pending;          /* events not yet taken; 0: not listed */
	int type;                  /* enum ibv_event_type for asynchronous events, or the owner's own */
	void *object;              /* the driver's object (struct user_cq *, user_qp *, …) */
};

struct event_queue {
	int fd;  /* that the program sees, and may close */
	int own; /* a duplicate that it does not know: events are written to this one */
	struct queue_lock lock;
	struct event_source *first;
	struct event_source **last;
	uint32_t stale;          /* purged events that a thread, having read the descriptor, is still on its way to */
	bool awaited;            /* a thread sleeps on event_queue_call */
	bool taken_without_wait; /* atomic; progress/substitute_poller.c */
	/*
	 * Told of each event taken, under the lock: so once event_source_purge() returned, the owner has
	 * counted all events of the source that the program has got. Set by the owner after init; may be
	 * NULL.
	 */
	void (*taken)(int type, void *object);
	/* Of a relay, else NULL. The queue's lock is not held, but those of whoever raises are. */
	void (*relay)(struct event_queue *queue, const struct event_source *source);
};

/** Creates the queue and its descriptor (close-on-exec, blocking). Returns 0 or -errno. */
int event_queue_init(struct event_queue *queue);

/** Makes the queue a relay to @relay, which may be called by any thread, and by several at once. */
void event_queue_init_relay(struct event_queue *queue,
			    void (*relay)(struct event_queue *queue, const struct event_source *source));

/** Closes the descriptor. No source may be listed any more. */
void event_queue_destroy(struct event_queue *queue);

/** Raises one event of @source. Any thread; no lock of the caller's is touched. Writes to the eventfd. */
void event_queue_raise(struct event_queue *queue, struct event_source *source);

/** The same if no event of @source waits, else nothing. Returns whether it was raised. Not of a relay. */
bool event_queue_raise_once(struct event_queue *queue, struct event_source *source);

/**
 * Takes the oldest event (sources that wait take turns): blocks in read(2) as the descriptor's flags say.
 * Returns 0 and fills @type and @object, or -errno of the read (-EAGAIN, -EINTR, …).
 */
int event_queue_take(struct event_queue *queue, int *type, void **object);

/* The descriptor of the thread that awaits a queue, an eventfd, -1: none. There is one such thread at a time. Atomic. */
extern int event_queue_call;
/*
 * So much is added there for each event: a remainder is what others have added. 2^44 events fit in between two reads of the thread,
 * which it makes only when it finds none.
 */
#define EVENT_QUEUE_CALL (UINT64_C(1) << 20)

/** True if an event waits, or a token that is worth nothing any more. Any thread. */
bool event_queue_has(struct event_queue *queue);
/** The calling thread awaits @queue from now on. False: an event is there, it does not. One thread at a time. */
bool event_queue_await(struct event_queue *queue);
/**
 * Begin and end a period in which this thread polls for events of @queue, which it awaits: the first event that it raises
 * there itself needs no token.
 */
void event_queue_begin_poll(struct event_queue *queue);
void event_queue_end_poll(void);
/** Takes an event of @queue, which this thread awaits, if there is one: 0, or -EAGAIN. */
int event_queue_take_awaited(struct event_queue *queue, int *type, void **object);
/** It does not await @queue any more. */
void event_queue_leave(struct event_queue *queue);

/** Removes all events of @source that were not taken yet. Returns their number. */
uint32_t event_source_purge(struct event_queue *queue, struct event_source *source);

/** In a forked child, which has one thread: gives all queues descriptors of their own. One that cannot be made is the parent's. */
void event_queues_after_fork(void);

/**
 * Takes one token of the semaphore eventfd @fd: blocks as its flags say. @own: a duplicate that is kept. Returns 0 or -errno of the
 * read. A cancellation point, which takes nothing then: C libraries (glibc before 2.41) cancel a thread also between what the kernel did for it and the return of read(2).
 */
int event_token_take(int fd, int own);

/** Takes one token of the semaphore eventfd @fd, unless that would block, whatever O_NONBLOCK says. False: there is none. */
bool event_token_take_back(int fd);

/** Whether @fd is one of eventfd(2). Without /proc false. */
bool is_eventfd(int fd);

#endif
