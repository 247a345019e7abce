/* SPDX-License-Identifier: BSD-2-Clause */
/* Event channels of objects made by command, and the events that they return. */
#ifndef SOFTHCA_TESTS_API_SUPPORT_DEVX_EVENT_H
#define SOFTHCA_TESTS_API_SUPPORT_DEVX_EVENT_H

#include "support/devx.h"

#include <fcntl.h>
#include <poll.h>

/* Numbers of events. */
enum {
	COMPLETION = 0x00,
	COMM_EST = 0x02,
	CQ_ERROR = 0x04,
	WQ_CATAS = 0x05,
	PORT_CHANGE = 0x09,
	LAST_WQE = 0x13,
	RQ_LIMIT = 0x14
};

enum { EVENT_BYTES = 8 + 64 };

/* The output of mlx5dv_devx_get_event(). */
union event {
	struct mlx5dv_devx_async_event_hdr header;
	uint8_t bytes[EVENT_BYTES + 8];
};

static inline bool waits(const struct mlx5dv_devx_event_channel *channel)
{
	struct pollfd fd = {.fd = channel->fd, .events = POLLIN};

	return poll(&fd, 1, 0) == 1 && fd.revents == POLLIN;
}

/* Opens a channel. Without O_NONBLOCK a missing event would hang the test. */
static inline struct mlx5dv_devx_event_channel *open_channel(int flags)
{
	struct mlx5dv_devx_event_channel *channel =
		mlx5dv_devx_create_event_channel(client.context, (enum mlx5dv_devx_create_event_channel_flags)flags);

	assert_non_null(channel);
	assert_int_equal(fcntl(channel->fd, F_SETFL, O_NONBLOCK), 0);
	assert_false(waits(channel));
	return channel;
}

static inline void expect_none(struct mlx5dv_devx_event_channel *channel)
{
	union event event;

	assert_false(waits(channel));
	errno = 0;
	assert_int_equal(mlx5dv_devx_get_event(channel, &event.header, EVENT_BYTES), -1);
	assert_int_equal(errno, EAGAIN);
}

/* Returns the next event of a channel with data. */
static inline union event take(struct mlx5dv_devx_event_channel *channel, uint64_t cookie, uint16_t type)
{
	double deadline = seconds_now() + 20;
	union event event;

	while (!waits(channel))
		assert_true(seconds_now() < deadline);
	memset(&event, 0xa5, sizeof(event));
	assert_int_equal(mlx5dv_devx_get_event(channel, &event.header, sizeof(event)), EVENT_BYTES);
	assert_int_equal(event.header.cookie, cookie);
	assert_int_equal(event.header.out_data[1], type);
	assert_int_equal(event.bytes[EVENT_BYTES], 0xa5);
	return event;
}

static inline void expect_queue_event(struct mlx5dv_devx_event_channel *channel, uint64_t cookie, uint16_t type,
				      uint32_t number)
{
	union event event = take(channel, cookie, type);

	assert_int_equal(event.header.out_data[52], 0); /* a queue pair */
	assert_int_equal(get32(event.header.out_data, 56), number);
}

static inline int subscribe(struct mlx5dv_devx_event_channel *channel, struct mlx5dv_devx_obj *object, uint16_t type,
			    uint64_t cookie)
{
	return mlx5dv_devx_subscribe_devx_event(channel, object, sizeof(type), &type, cookie);
}

#endif
