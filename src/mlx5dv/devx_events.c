/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions that return an errno value also store it in errno, since programs read it. */
#include <errno.h>
#include <stdlib.h>

#include "abi/entry_points.h"
#include "verbs/object/devx.h"

struct mlx5dv_devx_event_channel *softhca_mlx5dv_devx_create_event_channel(
	struct ibv_context *context, enum mlx5dv_devx_create_event_channel_flags flags)
{
	struct user_event_channel *channel;
	struct devx *devx;
	int error;

	if (object_refused("mlx5dv_devx_create_event_channel", NULL, context))
		return NULL;
	devx = user_devx(context);
	channel = devx ? calloc(1, sizeof(*channel)) : NULL;
	if (!channel)
		return NULL;
	error = -devx_channel_create(devx, flags, &channel->device, &channel->base.fd);
	if (error) {
		free(channel);
		errno = error;
		return NULL;
	}
	channel->context = context;
	object_enter(&channel->base, &channel->alive, context);
	devx_handle_enter(context, &channel->handle, channel, &channel->alive);
	return &channel->base;
}

void softhca_mlx5dv_devx_destroy_event_channel(struct mlx5dv_devx_event_channel *base)
{
	struct user_event_channel *channel = user_container_of(base, struct user_event_channel, base);

	if (object_refused("mlx5dv_devx_destroy_event_channel", NULL, base))
		return;
	devx_channel_destroy(user_devx(channel->context), channel->device);
	devx_handle_leave(channel->context, &channel->handle);
	free(channel);
}

/*
 * Returns the channel, and through @object the device object of @obj (may be NULL). NULL with errno set if either is
 * unknown.
 */
static struct user_event_channel *channel_find(const char *call, struct mlx5dv_devx_event_channel *base,
					       struct mlx5dv_devx_obj *obj, struct devx_object **object)
{
	struct user_event_channel *channel = user_container_of(base, struct user_event_channel, base);
	const struct user_devx_object *found = (const struct user_devx_object *)obj;

	if (object_refused(call, NULL, base) || optional_refused(call, channel->context, obj))
		return NULL;
	*object = found ? found->device : NULL;
	return channel;
}

int softhca_mlx5dv_devx_subscribe_devx_event(struct mlx5dv_devx_event_channel *base, struct mlx5dv_devx_obj *obj,
					     uint16_t events_sz, uint16_t events_num[], uint64_t cookie)
{
	struct devx_object *object;
	struct user_event_channel *channel = channel_find("mlx5dv_devx_subscribe_devx_event", base, obj, &object);

	if (!channel)
		return errno;
	return with_errno(
		-devx_subscribe(user_devx(channel->context), channel->device, object, events_num, events_sz, cookie));
}

int softhca_mlx5dv_devx_subscribe_devx_event_fd(struct mlx5dv_devx_event_channel *base, int fd,
						struct mlx5dv_devx_obj *obj, uint16_t event_num)
{
	struct devx_object *object;
	struct user_event_channel *channel = channel_find("mlx5dv_devx_subscribe_devx_event_fd", base, obj, &object);

	if (!channel)
		return errno;
	return with_errno(-devx_subscribe_fd(user_devx(channel->context), channel->device, fd, object, event_num));
}

ssize_t softhca_mlx5dv_devx_get_event(struct mlx5dv_devx_event_channel *base,
				      struct mlx5dv_devx_async_event_hdr *event_data, size_t event_resp_len)
{
	struct user_event_channel *channel = user_container_of(base, struct user_event_channel, base);
	ssize_t taken;

	if (object_refused("mlx5dv_devx_get_event", NULL, base))
		return -1;
	taken = devx_channel_take(user_devx(channel->context), channel->device, event_data, event_resp_len);
	if (taken >= 0)
		return taken;
	errno = (int)-taken;
	return -1;
}
