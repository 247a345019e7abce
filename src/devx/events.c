/* SPDX-License-Identifier: BSD-2-Clause */
/* Behaves as the kernel's mlx5 driver (docs/inside/devx.md, Events). */
#include "devx/events.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/cancellation.h"
#include "core/descriptor.h"
#include "progress/program_memory.h"
#include "devx/command.h"
#include "explain/explain.h"

/* MAX_TYPES: per call, as in a kernel. */
enum { MAX_TYPES = 16, ENTRY_BYTES = 64 };

/* syndrome of CQ_ERROR; queue types of the others */
enum { SYNDROME_OVERRUN = 1, QUEUE_OF_QP = 0, QUEUE_OF_DCT = 6 };

enum event_type {
#define EVENT(number, name, raised) EVENT_TYPE_##name = (number),
#define UNAFFILIATED(number, name) EVENT_TYPE_##name = (number),
#include "devx/events.def"
};

static const struct {
	uint16_t type;
	int raised;
} affiliated[] = {
#define EVENT(number, name, raised) {number, raised},
#include "devx/events.def"
};

static const uint16_t unaffiliated[] = {
#define UNAFFILIATED(number, name) number,
#include "devx/events.def"
};

/* Reported by QUERY_HCA_CAP, except completions, which a kernel allows on any CQ. */
enum {
	AFFILIATED_MASK = 0
#define EVENT(number, name, raised) | 1u << (number)
#include "devx/events.def"
	,
	UNAFFILIATED_MASK = 0
#define UNAFFILIATED(number, name) | 1u << (number)
#include "devx/events.def"
};
static_assert((uint32_t)AFFILIATED_MASK == (0x001b003c | 1u << EVENT_TYPE_COMPLETION), "user_affiliated_events");
static_assert((uint32_t)UNAFFILIATED_MASK == 0x00000200, "user_unaffiliated_events");

struct event_data {
	uint64_t cookie;
	uint8_t entry[ENTRY_BYTES]; /* unless omitted */
};

struct subscription {
	/* In the channel while an event without data is pending. */
	struct event_source source;
	struct subscription *next, **link; /* list of the object; link is NULL for events without an object */
	struct subscription *next_of_channel, **link_of_channel;
	struct devx_channel *channel;
	uint32_t references;
	uint16_t type;
	int fd; /* eventfd(2) to increment instead, or -1 */
	struct event_data event_data;
};

struct record {
	struct event_source source;
	struct event_data event_data;
};

enum { WAITS_SUBSCRIPTION, WAITS_RECORD, WAITS_LOSS };

struct devx_channel {
	struct event_queue events;
	struct devx_channel *next, **link;
	struct subscription *subscriptions;
	bool omits_data;
	struct event_source loss; /* pending after events were lost for lack of memory */
};

/* ---- notification ------------------------------------------------------------------------------------------------ */

/* The last reference frees it. The lock is held. */
static void subscription_put(struct subscription *subscription)
{
	if (--subscription->references)
		return;
	if (subscription->fd >= 0)
		descriptor_close(subscription->fd);
	free(subscription);
}

/* Leaves a full counter unchanged, as in a kernel, so that raising an event never waits for the program. */
static void eventfd_increment(int fd)
{
	struct pollfd writable = {.fd = fd, .events = POLLOUT};
	const uint64_t one = 1;

	if (descriptor_check(fd) && poll(&writable, 1, 0) == 1 && writable.revents & POLLOUT)
		while (write(fd, &one, sizeof(one)) < 0 && errno == EINTR)
			;
}

static void subscription_notify(struct subscription *subscription)
{
	struct devx_channel *channel = subscription->channel;
	struct record *record;

	if (subscription->fd >= 0)
		return eventfd_increment(subscription->fd);
	if (channel->omits_data) {
		if (event_queue_raise_once(&channel->events, &subscription->source))
			subscription->references++;
		return;
	}
	record = malloc(sizeof(*record));
	if (!record) {
		event_queue_raise_once(&channel->events, &channel->loss);
		return;
	}
	*record = (struct record){
		.source = {.type = WAITS_RECORD, .object = record},
		.event_data = subscription->event_data,
	};
	event_queue_raise(&channel->events, &record->source);
}

static int event_type_of(int raised)
{
	for (size_t i = 0; i < sizeof(affiliated) / sizeof(affiliated[0]); i++)
		if (affiliated[i].raised == raised)
			return affiliated[i].type;
	return -1;
}

/* Implements event_queue.relay. */
static void events_relay(struct event_queue *queue, const struct event_source *source)
{
	struct devx *devx = (struct devx *)((char *)queue - offsetof(struct devx, events));
	const struct devx_object *object = source->object;
	int type = event_type_of(source->type);

	queue_lock(&devx->subscriptions);
	for (struct subscription *each = object->subscription; each; each = each->next)
		if (each->type == type)
			subscription_notify(each);
	queue_unlock(&devx->subscriptions);
}

void devx_events_open(struct devx *devx)
{
	event_queue_init_relay(&devx->events, events_relay);
	queue_lock_init(&devx->subscriptions, LOCK_LEVEL_SUBSCRIPTIONS, false);
}

void devx_events_close(struct devx *devx)
{
	queue_lock_destroy(&devx->subscriptions);
	event_queue_destroy(&devx->events);
}

/* ---- subscription ------------------------------------------------------------------------------------------------ */

static bool event_type_exists(uint16_t type, const struct devx_object *object)
{
	for (size_t i = 0; object && i < sizeof(affiliated) / sizeof(affiliated[0]); i++)
		if (affiliated[i].type == type)
			return true;
	for (size_t i = 0; !object && i < sizeof(unaffiliated) / sizeof(unaffiliated[0]); i++)
		if (unaffiliated[i] == type)
			return true;
	return false;
}

/* The entry is the same for all events of a subscription. */
static void event_fill_entry(uint8_t *entry, uint16_t type, const struct devx_object *object)
{
	devx_field_set(entry, EQE_TYPE, type);
	if (!object)
		return;
	if (type == EVENT_TYPE_CQ_ERROR) {
		devx_field_set(entry, EQE_CQ_ERROR_CQN, object->number);
		devx_field_set(entry, EQE_CQ_ERROR_SYNDROME, SYNDROME_OVERRUN);
		return;
	}
	devx_field_set(entry, EQE_NUMBER, object->number);
	devx_field_set(entry, EQE_QUEUE_TYPE, object->kind == DEVX_DCT ? QUEUE_OF_DCT : QUEUE_OF_QP);
}

static void subscription_list(struct subscription *subscription, struct devx_object *object)
{
	struct devx_channel *channel = subscription->channel;

	subscription->next_of_channel = channel->subscriptions;
	if (subscription->next_of_channel)
		subscription->next_of_channel->link_of_channel = &subscription->next_of_channel;
	subscription->link_of_channel = &channel->subscriptions;
	channel->subscriptions = subscription;
	if (!object)
		return;
	subscription->next = object->subscription;
	if (subscription->next)
		subscription->next->link = &subscription->next;
	subscription->link = &object->subscription;
	object->subscription = subscription;
}

static void subscription_end(struct subscription *subscription)
{
	*subscription->link_of_channel = subscription->next_of_channel;
	if (subscription->next_of_channel)
		subscription->next_of_channel->link_of_channel = subscription->link_of_channel;
	if (subscription->link) {
		*subscription->link = subscription->next;
		if (subscription->next)
			subscription->next->link = subscription->link;
	}
	subscription_put(subscription);
}

void devx_unsubscribe_all(struct devx *devx, struct devx_object *object)
{
	WITHOUT_CANCELLATION;
	struct subscription *next;

	queue_lock(&devx->subscriptions);
	for (struct subscription *each = object->subscription; each; each = next) {
		next = each->next;
		subscription_end(each);
	}
	queue_unlock(&devx->subscriptions);
}

/* @fd: owned by the subscription; or -1. */
static struct subscription *subscription_new(struct devx_channel *channel, const struct devx_object *object,
					     uint16_t type, uint64_t cookie, int fd)
{
	struct subscription *subscription = calloc(1, sizeof(*subscription));

	if (!subscription)
		return NULL;
	subscription->channel = channel;
	subscription->source = (struct event_source){.type = WAITS_SUBSCRIPTION, .object = subscription};
	subscription->references = 1;
	subscription->type = type;
	subscription->fd = fd;
	subscription->event_data.cookie = cookie;
	event_fill_entry(subscription->event_data.entry, type, object);
	return subscription;
}

/*
 * Adds the subscriptions @made to @object. The device polls the doorbell record of a CQ with a subscriber to detect
 * that it is armed; without a thread that can poll it, nothing is subscribed.
 */
static int subscriptions_begin(struct devx *devx, struct devx_object *object, struct subscription *const *made,
			       size_t count)
{
	bool watched = false;
	int error;

	queue_lock(&devx->subscriptions);
	for (size_t i = 0; i < count; i++) {
		subscription_list(made[i], object);
		watched |= object && object->kind == DEVX_CQ && made[i]->type == EVENT_TYPE_COMPLETION;
	}
	queue_unlock(&devx->subscriptions);
	error = watched ? hca_cq_watch(object->cq) : 0;
	if (!error)
		return 0;
	queue_lock(&devx->subscriptions);
	for (size_t i = 0; i < count; i++)
		subscription_end(made[i]);
	queue_unlock(&devx->subscriptions);
	return error;
}

int devx_subscribe(struct devx *devx, struct devx_channel *channel, struct devx_object *object, const uint16_t *types,
		   size_t bytes, uint64_t cookie)
{
	WITHOUT_CANCELLATION;
	static const char call[] = "mlx5dv_devx_subscribe_devx_event";
	struct subscription *made[MAX_TYPES];
	size_t count = bytes / sizeof(*types), done = 0;

	if (!count || count > MAX_TYPES || bytes % sizeof(*types))
		return -REFUSE(devx->hca, call, EINVAL, RULE_DEVX_EVENT_COUNT, bytes, MAX_TYPES);
	for (size_t i = 0; i < count; i++)
		if (!event_type_exists(types[i], object))
			return -REFUSE(devx->hca, call, EINVAL, RULE_DEVX_EVENT_TYPE, types[i],
				       devx_name_figure(object ? devx_kind_name(object->kind) : "no"));
	while (done < count && (made[done] = subscription_new(channel, object, types[done], cookie, -1)))
		done++;
	if (done == count)
		return subscriptions_begin(devx, object, made, count);
	while (done)
		free(made[--done]);
	return -ENOMEM;
}

/* As in a kernel: EBADF if it is not a descriptor, EINVAL if it is not an eventfd(2). */
static int eventfd_duplicate(int fd)
{
	int copy = fd < 0 ? -1 : descriptor_keep_duplicate(fd);

	if (fd < 0)
		return -EBADF;
	if (copy < 0)
		return -errno;
	if (is_eventfd(copy))
		return copy;
	descriptor_close(copy);
	return -EINVAL;
}

int devx_subscribe_fd(struct devx *devx, struct devx_channel *channel, int fd, struct devx_object *object,
		      uint16_t type)
{
	WITHOUT_CANCELLATION;
	static const char call[] = "mlx5dv_devx_subscribe_devx_event_fd";
	struct subscription *subscription;
	int copy;

	if (!event_type_exists(type, object))
		return -REFUSE(devx->hca, call, EINVAL, RULE_DEVX_EVENT_TYPE, type,
			       devx_name_figure(object ? devx_kind_name(object->kind) : "no"));
	copy = eventfd_duplicate(fd);
	if (copy < 0)
		return -REFUSE(devx->hca, call, -copy, RULE_DEVX_EVENT_FD, (uint64_t)(int64_t)fd);
	subscription = subscription_new(channel, object, type, 0, copy);
	if (!subscription) {
		descriptor_close(copy);
		return -ENOMEM;
	}
	return subscriptions_begin(devx, object, &subscription, 1);
}

/* ---- channels --------------------------------------------------------------------------------------------------- */

int devx_channel_create(struct devx *devx, uint32_t flags, struct devx_channel **out, int *fd)
{
	static const char call[] = "mlx5dv_devx_create_event_channel";
	struct devx_channel *channel;
	int error;

	if (flags & ~(uint32_t)DEVX_CHANNEL_OMIT_DATA)
		return -REFUSE(devx->hca, call, EINVAL, RULE_DEVX_CHANNEL_FLAGS, flags);
	channel = calloc(1, sizeof(*channel));
	if (!channel)
		return -ENOMEM;
	error = event_queue_init(&channel->events);
	if (error) {
		free(channel);
		return -REFUSE(devx->hca, call, -error, RULE_NO_DESCRIPTOR, -error);
	}
	channel->omits_data = flags & DEVX_CHANNEL_OMIT_DATA;
	channel->loss.type = WAITS_LOSS;
	queue_lock(&devx->subscriptions);
	channel->next = devx->channels;
	if (channel->next)
		channel->next->link = &channel->next;
	channel->link = &devx->channels;
	devx->channels = channel;
	queue_unlock(&devx->subscriptions);
	*out = channel;
	*fd = channel->events.fd;
	return 0;
}

static void channel_drop_waiting(struct devx_channel *channel)
{
	struct event_source *source;

	while ((source = channel->events.first)) {
		event_source_purge(&channel->events, source);
		if (source->type == WAITS_RECORD)
			free(source->object);
		else if (source->type == WAITS_SUBSCRIPTION)
			subscription_put(source->object);
	}
}

void devx_channel_destroy(struct devx *devx, struct devx_channel *channel)
{
	WITHOUT_CANCELLATION;
	struct subscription *next;

	queue_lock(&devx->subscriptions);
	for (struct subscription *each = channel->subscriptions; each; each = next) {
		next = each->next_of_channel;
		subscription_end(each);
	}
	channel_drop_waiting(channel);
	*channel->link = channel->next;
	if (channel->next)
		channel->next->link = channel->link;
	queue_unlock(&devx->subscriptions);
	event_queue_destroy(&channel->events);
	free(channel);
}

void devx_channels_close(struct devx *devx)
{
	while (devx->channels)
		devx_channel_destroy(devx, devx->channels);
}

/* As in a kernel, waits for an event first, which stays pending. */
static int channel_refuse_size(struct devx *devx, const struct devx_channel *channel, size_t bytes, size_t needed)
{
	struct pollfd readable = {.fd = channel->events.fd, .events = POLLIN};
	int flags = fcntl(readable.fd, F_GETFL);
	int ready = poll(&readable, 1, flags & O_NONBLOCK ? 0 : -1);

	if (ready < 0)
		return -errno;
	if (!ready)
		return -EAGAIN;
	return -REFUSE(devx->hca, "mlx5dv_devx_get_event", EINVAL, RULE_DEVX_EVENT_ROOM, bytes, needed);
}

ssize_t devx_channel_take(struct devx *devx, struct devx_channel *channel, void *data, size_t bytes)
{
	size_t needed = channel->omits_data ? sizeof(uint64_t) : sizeof(struct event_data);
	struct subscription *subscription;
	struct record *record;
	struct event_data event_data;
	void *object;
	int type, error;

	if (bytes < needed)
		return channel_refuse_size(devx, channel, bytes, needed);
	error = event_queue_take(&channel->events, &type, &object);
	if (error)
		return error;
	if (type == WAITS_LOSS)
		return -EOVERFLOW;
	if (type == WAITS_RECORD) {
		record = object;
		event_data = record->event_data;
		free(record);
	} else {
		subscription = object;
		queue_lock(&devx->subscriptions);
		event_data = subscription->event_data;
		subscription_put(subscription);
		queue_unlock(&devx->subscriptions);
	}
	return program_write(data, &event_data, needed) ? -EFAULT : (ssize_t)needed;
}
