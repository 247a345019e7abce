/* SPDX-License-Identifier: BSD-2-Clause */
/* Event channels, see channel.h. */
#include "rdmacm/channel.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "cm_host/manager.h"
#include "core/cancellation.h"
#include "core/descriptor.h"
#include "core/event_queue.h"
#include "progress/progress.h"
#include "rdmacm/devices.h"
#include "verbs/object/lint.h"

#define ACKNOWLEDGEMENT_PATIENCE_NS 100000000

/*
 * All channels, because one in which a thread is blocked must stay reachable after the program has destroyed it. One
 * lock, because a migration changes an ID's counts together with the queues of two channels.
 */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t acknowledged; /* a count of fetched events became 0 */
	struct user_cm_channel *first;
} events = {.lock = PTHREAD_MUTEX_INITIALIZER, .acknowledged = PTHREAD_COND_INITIALIZER};

void events_lock(void)
{
	pthread_mutex_lock(&events.lock);
}

void events_unlock(void)
{
	pthread_mutex_unlock(&events.lock);
}

static void channel_before_fork(void)
{
	events_lock();
}

static void channel_after_fork_in_parent(void)
{
	events_unlock();
}

/* Threads that waited for an acknowledgement exist in the parent only. */
static void channel_after_fork_in_child(void)
{
	pthread_cond_init(&events.acknowledged, NULL);
	shared_devices_after_fork();
	events_unlock();
}

/*
 * A fork must take the lock of events last, because the manager's handlers take it. Handlers registered first are
 * called last (pthread_atfork(3)), and a constructor runs before other registrations.
 */
static void __attribute__((constructor)) channel_handle_fork(void)
{
	pthread_atfork(channel_before_fork, channel_after_fork_in_parent, channel_after_fork_in_child);
}

struct user_cm_channel *channel_create(void)
{
	struct user_cm_channel *channel = calloc(1, sizeof(*channel));

	if (!channel)
		return NULL;
	channel->base.fd = descriptor_show(eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC));
	channel->own = descriptor_keep_duplicate(channel->base.fd);
	if (channel->own < 0) {
		descriptor_close(channel->base.fd);
		free(channel);
		return NULL;
	}
	channel->last = &channel->first;
	channel->process = progress_generation();
	events_lock();
	channel->next = events.first;
	events.first = channel;
	events_unlock();
	return channel;
}

/* Frees @channel, which is destroyed and has no users. The caller holds the lock. */
static void channel_free(struct user_cm_channel *channel)
{
	struct user_cm_channel **link;

	for (link = &events.first; *link != channel; link = &(*link)->next)
		;
	*link = channel->next;
	free(channel);
}

static void channel_put_locked(struct user_cm_channel *channel)
{
	if (!--channel->users && channel->destroyed)
		channel_free(channel);
}

static void event_discard(struct user_cm_event *event)
{
	/* Also rejects the peer's request. */
	if (event->child) {
		cm_id_destroy(event->child);
		hca_manager_wake();
	}
	free(event);
}

static void events_discard(struct user_cm_event *list)
{
	while (list) {
		struct user_cm_event *event = list;

		list = event->next;
		event_discard(event);
	}
}

void channel_destroy(struct user_cm_channel *channel)
{
	WITHOUT_CANCELLATION;
	struct user_cm_event *left, *event;
	int fd = channel->base.fd, own = channel->own;

	events_lock();
	left = channel->first;
	for (event = left; event; event = event->next)
		if (event->child)
			event->owner->waiting--;
	channel->first = NULL;
	channel->last = &channel->first;
	channel->destroyed = true;
	channel->base.fd = channel->own = -1;
	channel->users++;
	events_unlock();
	/*
	 * As with the real library, a thread inside read(2) stays blocked: the kernel keeps the file until the call
	 * returns.
	 */
	descriptor_close(fd);
	descriptor_close(own);
	events_discard(left);
	channel_put(channel);
}

void channel_enter(struct user_cm_channel *channel, struct user_cm_id *id)
{
	events_lock();
	channel->users++;
	id->channel = channel;
	id->base.channel = &channel->base;
	events_unlock();
}

void channel_leave(struct user_cm_id *id)
{
	events_lock();
	channel_put_locked(id->channel);
	id->channel = NULL;
	id->base.channel = NULL;
	events_unlock();
}

struct user_cm_event *event_new(struct user_cm_id *id, enum rdma_cm_event_type type, int status)
{
	struct user_cm_event *event = calloc(1, sizeof(*event));

	if (event) {
		event->owner = id;
		event->base.id = &id->base;
		event->base.event = type;
		event->base.status = status;
	}
	return event;
}

/* Does not block unless the counter is 2^64 - 2. */
static void channel_add_token(int fd)
{
	uint64_t one = 1;

	while (descriptor_check(fd) && write(fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

/*
 * Removes the token of a dropped event. If a thread has read it, that thread must not take another event for it. The
 * caller holds the lock.
 */
static void channel_revoke_token(struct user_cm_channel *channel)
{
	if (!event_token_take_back(channel->own))
		channel->stale++;
}

static void channel_append(struct user_cm_channel *channel, struct user_cm_event *event)
{
	event->next = NULL;
	*channel->last = event;
	channel->last = &event->next;
	channel_add_token(channel->own);
}

void event_put_locked(struct user_cm_event *event)
{
	channel_append(event->owner->channel, event);
}

void event_put(struct user_cm_event *event)
{
	WITHOUT_CANCELLATION;
	bool wanted;

	events_lock();
	wanted = event->owner->channel && !event->owner->channel->destroyed && event->owner->state != ID_DESTROYING;
	if (wanted)
		event_put_locked(event);
	events_unlock();
	if (!wanted)
		event_discard(event);
}

int event_raise(struct user_cm_id *id, enum rdma_cm_event_type type, int status,
		bool (*deliver)(struct user_cm_event *event))
{
	struct user_cm_event *event = event_new(id, type, status);

	if (!event)
		return -ENOMEM;
	event->deliver = deliver;
	event_put(event);
	return 0;
}

/*
 * Removes and returns the events of @owner, only those of @group unless that is NULL, in order. The caller holds the
 * lock.
 */
static struct user_cm_event *channel_take_events(struct user_cm_channel *channel, const struct user_cm_id *owner,
						 const struct user_cm_group *group)
{
	struct user_cm_event *taken = NULL, **last = &taken, **link = &channel->first;

	while (*link) {
		struct user_cm_event *event = *link;

		if (event->owner != owner || (group && event->group != group)) {
			link = &event->next;
			continue;
		}
		*link = event->next;
		event->next = NULL;
		*last = event;
		last = &event->next;
		channel_revoke_token(channel);
	}
	channel->last = link;
	return taken;
}

/*
 * Waits until *@handed is 0. Warns the program once per call if that takes long, without the lock. Waits first, because
 * another thread may be about to acknowledge. The caller holds the lock.
 */
static void wait_acknowledged(const char *call, const struct user_cm_id *id, const uint32_t *handed, bool *warned)
{
	struct timespec until;
	uint32_t left;

	if (*warned || !lint_is_on()) {
		pthread_cond_wait(&events.acknowledged, &events.lock);
		return;
	}
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += ACKNOWLEDGEMENT_PATIENCE_NS;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	if (pthread_cond_timedwait(&events.acknowledged, &events.lock, &until) != ETIMEDOUT || !*handed)
		return;
	*warned = true;
	left = *handed;
	events_unlock();
	LINT(events_wait, id->base.verbs, call, "rdma id", left);
	events_lock();
}

void events_drain(struct user_cm_id *owner, struct user_cm_group *group)
{
	WITHOUT_CANCELLATION;
	struct user_cm_event *dropped = NULL, *event;
	const uint32_t *handed = group ? &group->handed : &owner->handed;
	bool warned = false;

	events_lock();
	do {
		if (owner->channel && !owner->channel->destroyed) {
			struct user_cm_event *more = channel_take_events(owner->channel, owner, group);

			for (event = more; event && event->next; event = event->next)
				;
			if (event) {
				event->next = dropped;
				dropped = more;
			}
		}
		if (*handed)
			wait_acknowledged(group ? "rdma_leave_multicast" : "rdma_destroy_id", owner, handed, &warned);
	} while (*handed);
	for (event = dropped; event; event = event->next)
		if (event->child)
			owner->waiting--;
	events_unlock();
	events_discard(dropped);
}

void events_migrate(struct user_cm_id *id, struct user_cm_channel *to)
{
	WITHOUT_CANCELLATION;
	struct user_cm_event *moved = NULL, *event;
	struct user_cm_channel *from;
	bool warned = false;

	events_lock();
	while (id->handed)
		wait_acknowledged("rdma_migrate_id", id, &id->handed, &warned);
	from = id->channel;
	if (!from->destroyed)
		moved = channel_take_events(from, id, NULL);
	to->users++;
	id->channel = to;
	id->base.channel = &to->base;
	while (moved) {
		event = moved;
		moved = event->next;
		channel_append(to, event);
	}
	channel_put_locked(from);
	events_unlock();
}

/* The caller holds the lock. */
static void event_count_handed(struct user_cm_event *event, uint32_t change)
{
	event->owner->handed += change;
	if (event->group)
		event->group->handed += change;
	if (!event->owner->handed || (event->group && !event->group->handed))
		pthread_cond_broadcast(&events.acknowledged);
}

/*
 * Returns the first event after a token was read, or NULL if that token's event was dropped. The event counts as
 * fetched now, so destruction of its ID waits for this thread.
 */
static struct user_cm_event *channel_take_first(struct user_cm_channel *channel)
{
	struct user_cm_event *event;

	events_lock();
	event = channel->stale ? NULL : channel->first;
	if (channel->stale)
		channel->stale--;
	if (event) {
		channel->first = event->next;
		if (!channel->first)
			channel->last = &channel->first;
		if (event->child)
			event->owner->waiting--;
		event_count_handed(event, 1);
	}
	events_unlock();
	return event;
}

void channel_put(struct user_cm_channel *channel)
{
	events_lock();
	channel_put_locked(channel);
	events_unlock();
}

static void channel_end_use(void *channel)
{
	channel_put(channel);
}

static int channel_read_token(struct user_cm_channel *channel)
{
	int error = 0;

	/* The only cancellation point: programs end their event threads here (rping(1)). */
	pthread_cleanup_push(channel_end_use, channel);
	error = event_token_take(channel->base.fd, channel->own);
	pthread_cleanup_pop(0);
	return error;
}

/* Does the remaining work of @event; the program may use its owner meanwhile. Returns false to drop the event. */
static bool event_deliver(struct user_cm_event *event)
{
	struct user_cm_id *id = event->owner;
	bool wanted = true;
	int error;

	pthread_mutex_lock(&id->lock);
	if (event->deliver)
		wanted = event->deliver(event);
	/* The reason of CONNECT_ERROR is in errno. */
	error = errno;
	pthread_mutex_unlock(&id->lock);
	if (event->deliver)
		hca_manager_push();
	errno = error;
	return wanted;
}

int channel_next(struct user_cm_channel *channel, struct user_cm_event **event)
{
	int error;

	events_lock();
	channel->users++;
	events_unlock();
	do {
		*event = NULL;
		error = channel_read_token(channel);
		if (!error) {
			WITHOUT_CANCELLATION;

			*event = channel_take_first(channel);
			if (*event && !event_deliver(*event)) {
				event_acknowledged(*event);
				event_discard(*event);
				*event = NULL;
			}
		}
	} while (!error && !*event && !channel->destroyed);
	if (!error && !*event)
		error = -EBADF;
	channel_end_use(channel);
	return error;
}

void event_acknowledged(struct user_cm_event *event)
{
	events_lock();
	event_count_handed(event, (uint32_t)-1);
	events_unlock();
}
