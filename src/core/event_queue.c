/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Event queues. Invariant: the value of the descriptor plus the tokens of threads that have read it and not yet taken
 * an event equals the number of listed events plus `stale`.
 */
#include "core/cancellation.h"
#include "core/descriptor.h"
#include "core/event_queue.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

int event_queue_call = -1;

static __thread struct event_queue *polled; /* queue for which this thread polls instead of sleeping */
static __thread bool in_hand;               /* this thread holds a token of that queue */

static void event_queue_prepare(struct event_queue *queue, int fd, int own)
{
	*queue = (struct event_queue){.fd = fd, .own = own};
	queue_lock_init(&queue->lock, LOCK_LEVEL_EVENTS, false);
	queue->last = &queue->first;
}

int event_queue_init(struct event_queue *queue)
{
	int fd = descriptor_show(eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC)), own = descriptor_keep_duplicate(fd), error;

	if (own < 0) {
		error = -errno;
		descriptor_close(fd);
		return error;
	}
	event_queue_prepare(queue, fd, own);
	return 0;
}

void event_queue_init_relay(struct event_queue *queue,
			    void (*relay)(struct event_queue *queue, const struct event_source *source))
{
	event_queue_prepare(queue, -1, -1);
	queue->relay = relay;
}

void event_queue_destroy(struct event_queue *queue)
{
	WITHOUT_CANCELLATION;

	descriptor_close(queue->fd);
	descriptor_close(queue->own);
	queue_lock_destroy(&queue->lock);
}

static void source_append(struct event_queue *queue, struct event_source *source)
{
	source->next = NULL;
	*queue->last = source;
	queue->last = &source->next;
}

static void source_unlink_at(struct event_queue *queue, struct event_source **link)
{
	struct event_source *source = *link;

	*link = source->next;
	if (queue->last == &source->next)
		queue->last = link;
}

/* Adds @value. Blocks only at a counter of 2^64 - 2. */
static void eventfd_add(int fd, uint64_t value)
{
	while (descriptor_check(fd) && write(fd, &value, sizeof(value)) < 0 && errno == EINTR)
		;
}

static void eventfd_add_token(int fd)
{
	eventfd_add(fd, 1);
}

/* The lock is held. */
static void source_list(struct event_queue *queue, struct event_source *source)
{
	int call;

	if (source->pending++ == 0)
		source_append(queue, source);
	if (polled == queue && !in_hand) {
		in_hand = true;
		return;
	}
	eventfd_add_token(queue->own);
	call = queue->awaited ? __atomic_load_n(&event_queue_call, __ATOMIC_RELAXED) : -1;
	if (call >= 0)
		eventfd_add(call, EVENT_QUEUE_CALL);
}

void event_queue_raise(struct event_queue *queue, struct event_source *source)
{
	WITHOUT_CANCELLATION;

	if (queue->relay)
		return queue->relay(queue, source);
	queue_lock(&queue->lock);
	source_list(queue, source);
	queue_unlock(&queue->lock);
}

bool event_queue_raise_once(struct event_queue *queue, struct event_source *source)
{
	WITHOUT_CANCELLATION;
	bool raised;

	queue_lock(&queue->lock);
	raised = !source->pending;
	if (raised)
		source_list(queue, source);
	queue_unlock(&queue->lock);
	return raised;
}

/* The lock is held. */
static void source_take_first(struct event_queue *queue, int *type, void **object)
{
	struct event_source *source = queue->first;

	source_unlink_at(queue, &queue->first);
	if (--source->pending)
		source_append(queue, source);
	*type = source->type;
	*object = source->object;
	if (queue->taken)
		queue->taken(source->type, source->object);
}

/* Returns false if the event of the token was purged. */
static bool token_spend(struct event_queue *queue, int *type, void **object)
{
	bool found;

	queue_lock(&queue->lock);
	found = queue->stale == 0 && queue->first;
	if (found)
		source_take_first(queue, type, object);
	else if (queue->stale)
		queue->stale--;
	queue_unlock(&queue->lock);
	return found;
}

struct token {
	int fd;
	uint64_t value; /* 0: none was read */
};

static void token_return(void *argument)
{
	const struct token *token = argument;

	if (token->value)
		eventfd_add_token(token->fd);
}

/* ---- reads of O_NONBLOCK without preadv2(2) ---------------------------------------------------------------------- */

/* A thread has set O_NONBLOCK for one read of its own; atomic. Not a mutex, because a forked child clears it. */
static bool nonblocking_read;
static bool nonblocking_read_used; /* once; atomic */

/* If the program sets or clears O_NONBLOCK during the read, its change is lost. */
static ssize_t token_read_nonblocking(int fd, uint64_t *token)
{
	WITHOUT_CANCELLATION;
	ssize_t length = -1;
	int flags;

	__atomic_store_n(&nonblocking_read_used, true, __ATOMIC_RELEASE);
	while (__atomic_exchange_n(&nonblocking_read, true, __ATOMIC_ACQUIRE))
		sched_yield();
	flags = fcntl(fd, F_GETFL);
	if (flags >= 0 && (flags & O_NONBLOCK || !fcntl(fd, F_SETFL, flags | O_NONBLOCK))) {
		length = read(fd, token, sizeof(*token));
		if (!(flags & O_NONBLOCK))
			fcntl(fd, F_SETFL, flags);
	}
	__atomic_store_n(&nonblocking_read, false, __ATOMIC_RELEASE);
	return length;
}

/* Returns true if EAGAIN of a read resulted from token_read_nonblocking() of another thread. */
static bool is_blocking(int fd)
{
	int flags;

	if (!__atomic_load_n(&nonblocking_read_used, __ATOMIC_ACQUIRE))
		return false;
	while (__atomic_load_n(&nonblocking_read, __ATOMIC_ACQUIRE))
		sched_yield();
	flags = fcntl(fd, F_GETFL);
	return flags >= 0 && !(flags & O_NONBLOCK);
}

/* ---- taking ------------------------------------------------------------------------------------------------------ */

int event_token_take(int fd, int own)
{
	struct token token = {.fd = own};
	ssize_t length;
	int error;

	do {
		pthread_cleanup_push(token_return, &token);
		/* Not poll(2), because a blocked read(2) is restarted after signals if the program chose so (SA_RESTART). */
		length = read(fd, &token.value, sizeof(token.value));
		pthread_cleanup_pop(0);
		error = length == sizeof(token.value) ? 0 : length < 0 ? -errno : -EIO;
	} while (error == -EAGAIN && is_blocking(fd));
	return error;
}

int event_queue_take(struct event_queue *queue, int *type, void **object)
{
	int error;

	do {
		error = event_token_take(queue->fd, queue->own);
	} while (!error && !token_spend(queue, type, object));
	return error;
}

/* Reads a token if there is one. musl before 1.2.5 cannot. */
static ssize_t token_read_at_once(int fd, uint64_t *token)
{
#ifdef RWF_NOWAIT
	struct iovec into = {.iov_base = token, .iov_len = sizeof(*token)};

	return preadv2(fd, &into, 1, -1, RWF_NOWAIT);
#else
	(void)fd;
	(void)token;
	errno = ENOSYS;
	return -1;
#endif
}

bool event_token_take_back(int fd)
{
	uint64_t token;
	ssize_t length = token_read_at_once(fd, &token);

	/*
	 * For kernels before 5.8, filters of system calls, and musl. Not a read after poll(2): if another thread took
	 * the token in between, it would wait with the queue's lock, which the next event needs.
	 */
	if (length < 0 && errno != EAGAIN)
		length = token_read_nonblocking(fd, &token);
	return length == sizeof(token);
}

bool event_queue_has(struct event_queue *queue)
{
	bool has;

	queue_lock(&queue->lock);
	has = queue->first || queue->stale;
	queue_unlock(&queue->lock);
	return has;
}

bool event_queue_await(struct event_queue *queue)
{
	bool awaits;

	queue_lock(&queue->lock);
	awaits = !queue->first && !queue->stale;
	queue->awaited = awaits;
	queue_unlock(&queue->lock);
	return awaits;
}

void event_queue_begin_poll(struct event_queue *queue)
{
	polled = queue;
}

void event_queue_end_poll(void)
{
	polled = NULL;
}

int event_queue_take_awaited(struct event_queue *queue, int *type, void **object)
{
	WITHOUT_CANCELLATION;

	while (in_hand || (event_queue_has(queue) && event_token_take_back(queue->own))) {
		in_hand = false;
		if (token_spend(queue, type, object))
			return 0;
	}
	return -EAGAIN;
}

void event_queue_leave(struct event_queue *queue)
{
	queue_lock(&queue->lock);
	queue->awaited = false;
	if (in_hand)
		eventfd_add_token(queue->own);
	in_hand = false;
	queue_unlock(&queue->lock);
}

uint32_t event_source_purge(struct event_queue *queue, struct event_source *source)
{
	WITHOUT_CANCELLATION;
	struct event_source **link;
	uint32_t removed, left;

	queue_lock(&queue->lock);
	removed = left = source->pending;
	if (removed) {
		for (link = &queue->first; *link != source; link = &(*link)->next)
			;
		source_unlink_at(queue, link);
		source->pending = 0;
	}
	/* The other tokens were read by threads that are about to take an event, and will find it stale. */
	while (left && event_token_take_back(queue->own))
		left--;
	queue->stale += left;
	queue_unlock(&queue->lock);
	return removed;
}

bool is_eventfd(int fd)
{
	static const char name[] = "anon_inode:[eventfd]";
	char path[32], target[sizeof(name)];
	ssize_t length;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	length = readlink(path, target, sizeof(target));
	return length == sizeof(name) - 1 && !memcmp(target, name, sizeof(name) - 1);
}

/* Renews a queue's descriptor in a forked child, where no token of the parent's other threads is outstanding. */
static void event_queue_renew(struct queue_lock *lock)
{
	struct event_queue *queue = (struct event_queue *)((char *)lock - offsetof(struct event_queue, lock));
	int status = fcntl(queue->fd, F_GETFL), flags = fcntl(queue->fd, F_GETFD), fd;
	unsigned int count = 0;

	queue->awaited = false;
	descriptor_close(queue->own);
	queue->own = -1;
	/* The program may have closed the descriptor and reused its number. */
	if (queue->relay || status < 0 || flags < 0 || !is_eventfd(queue->fd))
		return;
	for (const struct event_source *source = queue->first; source; source = source->next)
		count += source->pending;
	fd = eventfd(count, EFD_SEMAPHORE | (status & O_NONBLOCK ? EFD_NONBLOCK : 0));
	if (fd < 0)
		return;
	if (dup3(fd, queue->fd, flags & FD_CLOEXEC ? O_CLOEXEC : 0) == queue->fd)
		queue->stale = 0;
	queue->own = descriptor_keep_duplicate(queue->fd);
	close(fd);
}

void event_queues_after_fork(void)
{
	__atomic_store_n(&nonblocking_read, false, __ATOMIC_RELEASE);
	queue_locks_visit(LOCK_LEVEL_EVENTS, event_queue_renew);
}
