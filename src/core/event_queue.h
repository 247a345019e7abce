/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Event queues with a descriptor: completion channels (ibv_create_comp_channel(3)) and asynchronous events of a context
 * (ibv_get_async_event(3)). The descriptor is a semaphore eventfd: one read takes one event, and the program may set
 * O_NONBLOCK.
 *
 * A source is embedded in the object that raises events, and listed at most once: `pending` counts its events, so
 * raising one allocates nothing. The queue's lock is a leaf, except for locks that `taken` takes. The driver object
 * (channel, context) owns the queue; the raising object owns its sources and must detach them with event_source_purge()
 * before it is freed.
 *
 * A thread may also await an event without reading the descriptor (progress/substitute_poller.h): it sleeps on
 * event_queue_call.
 *
 * A relay is a queue without a descriptor: raised events are passed to a function at once.
 */
#ifndef SOFTHCA_CORE_EVENT_QUEUE_H
#define SOFTHCA_CORE_EVENT_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/lock.h"

/* Type of the event of an armed CQ; not an enum ibv_event_type. */
enum { EVENT_COMPLETION = -1 };

struct event_source {
	struct event_source *next; /* in the queue's FIFO */
	uint32_t pending;          /* events not yet taken; 0: not listed */
	int type;                  /* enum ibv_event_type, or a type of the owner */
	void *object;              /* the driver's object (struct user_cq *, …) */
};

struct event_queue {
	int fd;  /* visible to the program, which may close it */
	int own; /* hidden duplicate, to which events are written */
	struct queue_lock lock;
	struct event_source *first;
	struct event_source **last;
	uint32_t stale;          /* purged events whose token a thread has read and not yet spent */
	bool awaited;            /* a thread sleeps on event_queue_call */
	bool taken_without_wait; /* atomic; progress/substitute_poller.c */
	/*
	 * Called for each event taken, under the lock, so that after event_source_purge() the owner has counted all
	 * events of the source that the program has received. Set by the owner after init; may be NULL.
	 */
	void (*taken)(int type, void *object);
	/* Function of a relay, or NULL. Called without the queue's lock, but with the locks of the raising thread. */
	void (*relay)(struct event_queue *queue, const struct event_source *source);
};

/** Creates the descriptor (close-on-exec, blocking). Returns 0 or -errno. */
int event_queue_init(struct event_queue *queue);

/** Makes the queue a relay to @relay, which several threads may call at once. */
void event_queue_init_relay(struct event_queue *queue,
			    void (*relay)(struct event_queue *queue, const struct event_source *source));

/** No source may be listed. */
void event_queue_destroy(struct event_queue *queue);

/** Raises one event of @source. Any thread may call, with any lock held. */
void event_queue_raise(struct event_queue *queue, struct event_source *source);

/** Raises an event of @source, or returns false if one is pending. Not for a relay. */
bool event_queue_raise_once(struct event_queue *queue, struct event_source *source);

/**
 * Takes the oldest event (pending sources take turns); blocks according to the descriptor's flags. Returns 0 or -errno
 * of read(2) (-EAGAIN, -EINTR, …).
 */
int event_queue_take(struct event_queue *queue, int *type, void **object);

/* Eventfd of the thread, at most one, that awaits a queue; -1: none. Atomic. */
extern int event_queue_call;
/*
 * Added to it for each event; the remainder modulo it comes from other writers. 2^44 events fit between two reads of
 * the thread.
 */
#define EVENT_QUEUE_CALL (UINT64_C(1) << 20)

/** Returns true if an event or a stale token is pending. Any thread may call. */
bool event_queue_has(struct event_queue *queue);
/** Makes the calling thread await @queue, or returns false if an event is pending. One thread at a time. */
bool event_queue_await(struct event_queue *queue);
/**
 * Begin and end a period in which this thread polls for events of @queue, which it awaits: the first one that it raises
 * itself needs no system call, because the thread holds its token.
 */
void event_queue_begin_poll(struct event_queue *queue);
void event_queue_end_poll(void);
/** Takes an event of @queue, which this thread awaits. Returns 0 or -EAGAIN. */
int event_queue_take_awaited(struct event_queue *queue, int *type, void **object);
void event_queue_leave(struct event_queue *queue);

/** Removes the events of @source that were not taken yet. Returns their number. */
uint32_t event_source_purge(struct event_queue *queue, struct event_source *source);

/**
 * Gives all queues their own descriptors, if possible, in a forked child with one thread: those of the parent count the
 * parent's events.
 */
void event_queues_after_fork(void);

/**
 * Takes one token of the semaphore eventfd @fd; blocks according to its flags. @own: a hidden duplicate. Returns 0 or
 * -errno of the read. A cancellation point that loses no token, although C libraries (glibc before 2.41) may cancel a
 * thread between the completion of read(2) in the kernel and its return.
 */
int event_token_take(int fd, int own);

/**
 * Takes one token of the semaphore eventfd @fd without blocking, regardless of O_NONBLOCK. Returns false without one.
 */
bool event_token_take_back(int fd);

/** Returns true if @fd is an eventfd(2); false without /proc. */
bool is_eventfd(int fd);

#endif
