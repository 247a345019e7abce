/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Event queues with a descriptor: completion channels (ibv_create_comp_channel(3)) and the asynchronous events of a
 * context (ibv_get_async_event(3)). The descriptor is a semaphore eventfd: it is readable while an event is pending,
 * one read takes one event, and O_NONBLOCK set by the program (fcntl) is respected.
 *
 * A source is embedded in the object that raises events. An object is listed at most once; `pending` counts its events,
 * so the device raises an event without allocating. The queue's lock is a leaf, except for locks that the owner's
 * `taken` takes. The driver object (channel, context) owns the queue; the raising object owns its sources and must
 * detach them with event_source_purge() before it is freed.
 *
 * A thread may also wait for the next event without reading the descriptor (progress/substitute_poller.h): it awaits
 * the queue and sleeps on its own descriptor, event_queue_call, to which raising an event also writes. If the thread
 * itself raises an event while it polls, no system call is needed, because it holds the token.
 *
 * In a child of fork(2) a queue has its own descriptor under the number that the program knows, because the parent's
 * descriptor counts the parent's events.
 *
 * A relay is a queue without a descriptor: a raised event is passed to a function at once and never listed.
 */
#ifndef SOFTHCA_CORE_EVENT_QUEUE_H
#define SOFTHCA_CORE_EVENT_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/lock.h"

/* Type of the event of an armed CQ that has completed something; not an enum ibv_event_type. */
enum { EVENT_COMPLETION = -1 };

struct event_source {
	struct event_source *next; /* in the queue's FIFO, NULL-terminated */
	uint32_t pending;          /* events not yet taken; 0: not listed */
	int type;                  /* enum ibv_event_type for asynchronous events, or a type of the owner */
	void *object;              /* the driver's object (struct user_cq *, user_qp *, …) */
};

struct event_queue {
	int fd;  /* visible to the program, which may close it */
	int own; /* hidden duplicate to which events are written */
	struct queue_lock lock;
	struct event_source *first;
	struct event_source **last;
	uint32_t stale; /* purged events for which a thread has read the descriptor but not yet taken the event */
	bool awaited;   /* a thread sleeps on event_queue_call */
	bool taken_without_wait; /* atomic; progress/substitute_poller.c */
	/*
	 * Called for each event taken, under the lock: once event_source_purge() has returned, the owner has counted
	 * all events of the source that the program has received. Set by the owner after init; may be NULL.
	 */
	void (*taken)(int type, void *object);
	/*
	 * Function of a relay, otherwise NULL. Called without the queue's lock, but with the locks of the raising
	 * thread.
	 */
	void (*relay)(struct event_queue *queue, const struct event_source *source);
};

/** Creates the queue and its descriptor (close-on-exec, blocking). Returns 0 or -errno. */
int event_queue_init(struct event_queue *queue);

/** Makes the queue a relay to @relay, which may be called by any thread, and by several at once. */
void event_queue_init_relay(struct event_queue *queue,
			    void (*relay)(struct event_queue *queue, const struct event_source *source));

/** Closes the descriptor. No source may be listed. */
void event_queue_destroy(struct event_queue *queue);

/** Raises one event of @source. Writes to the eventfd. Any thread may call, with any lock held. */
void event_queue_raise(struct event_queue *queue, struct event_source *source);

/** Raises an event of @source unless one is pending. Returns true if it was raised. Not for a relay. */
bool event_queue_raise_once(struct event_queue *queue, struct event_source *source);

/**
 * Takes the oldest event (pending sources take turns); blocks in read(2) according to the descriptor's flags. Returns 0
 * and fills @type and @object, or -errno of the read (-EAGAIN, -EINTR, …).
 */
int event_queue_take(struct event_queue *queue, int *type, void **object);

/* Eventfd of the thread that awaits a queue; -1: none. At most one thread awaits at a time. Atomic. */
extern int event_queue_call;
/*
 * Added to that eventfd for each event; the remainder after division by it comes from other writers. 2^44 events fit
 * between two reads of the thread, which reads only when it finds no event.
 */
#define EVENT_QUEUE_CALL (UINT64_C(1) << 20)

/** Returns true if an event, or a stale token, is pending. Any thread may call. */
bool event_queue_has(struct event_queue *queue);
/**
 * Makes the calling thread await @queue. Returns false, without awaiting, if an event is pending. One thread at a time.
 */
bool event_queue_await(struct event_queue *queue);
/**
 * Begin and end a period in which this thread polls for events of @queue, which it awaits: the first event that it raises
 * there itself needs no token.
 */
void event_queue_begin_poll(struct event_queue *queue);
void event_queue_end_poll(void);
/** Takes an event of @queue, which this thread awaits. Returns 0, or -EAGAIN if there is none. */
int event_queue_take_awaited(struct event_queue *queue, int *type, void **object);
/** Ends the waiting of this thread for @queue. */
void event_queue_leave(struct event_queue *queue);

/** Removes all events of @source that were not taken yet. Returns their number. */
uint32_t event_source_purge(struct event_queue *queue, struct event_source *source);

/**
 * Gives all queues their own descriptors, in a forked child with one thread. A queue for which that fails keeps the
 * parent's descriptor.
 */
void event_queues_after_fork(void);

/**
 * Takes one token of the semaphore eventfd @fd; blocks according to its flags. @own: a hidden duplicate of it. Returns
 * 0 or -errno of the read. Is a cancellation point that loses no token: C libraries (glibc before 2.41) may cancel a
 * thread between the completion of read(2) in the kernel and its return.
 */
int event_token_take(int fd, int own);

/**
 * Takes one token of the semaphore eventfd @fd without blocking, regardless of O_NONBLOCK. Returns false if there is
 * none.
 */
bool event_token_take_back(int fd);

/** Returns true if @fd is an eventfd(2); false without /proc. */
bool is_eventfd(int fd);

#endif
