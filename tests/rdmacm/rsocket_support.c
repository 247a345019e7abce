/* SPDX-License-Identifier: BSD-2-Clause */
/* See rsocket_support.h. */
#include "rsocket_support.h"

uint16_t rport_of(int socket)
{
	struct sockaddr_in name;
	socklen_t length = sizeof(name);

	assert_success(rgetsockname(socket, (struct sockaddr *)&name, &length));
	assert_int_equal(length, sizeof(name));
	return ntohs(name.sin_port);
}

int new_rlistener(int backlog)
{
	int listener = rsocket(AF_INET, SOCK_STREAM, 0);

	assert_true(listener >= 0);
	assert_success(rbind(listener, loopback(0), sizeof(struct sockaddr_in)));
	assert_success(rlisten(listener, backlog));
	return listener;
}

void set_nonblocking(int socket, bool on)
{
	assert_success(rfcntl(socket, F_SETFL, on ? O_NONBLOCK : 0));
}

short rready(int socket, short events, int milliseconds)
{
	struct pollfd fd = {.fd = socket, .events = events};
	int found = rpoll(&fd, 1, milliseconds);

	assert_true(found >= 0);
	assert_int_equal(found, !!fd.revents);
	return fd.revents;
}

int begin_rconnect(uint16_t port)
{
	int client = rsocket(AF_INET, SOCK_STREAM, 0);

	assert_true(client >= 0);
	set_nonblocking(client, true);
	assert_errno(rconnect(client, loopback(port), sizeof(struct sockaddr_in)), EINPROGRESS);
	return client;
}

void rbegin(struct rpair *pair, int listener)
{
	int error;
	socklen_t length = sizeof(error);

	pair->listener = listener < 0 ? new_rlistener(4) : -1;
	if (listener < 0)
		listener = pair->listener;
	pair->client = begin_rconnect(rport_of(listener));
	assert_int_equal(rready(listener, POLLIN, LIMIT_MS), POLLIN);
	pair->server = raccept(listener, NULL, NULL);
	assert_true(pair->server >= 0);
	assert_int_equal(rready(pair->client, POLLOUT, LIMIT_MS), POLLOUT);
	assert_success(rgetsockopt(pair->client, SOL_SOCKET, SO_ERROR, &error, &length));
	assert_int_equal(error, 0);
	set_nonblocking(pair->client, false);
}

void rend(struct rpair *pair)
{
	assert_success(rclose(pair->client));
	assert_success(rclose(pair->server));
	if (pair->listener >= 0)
		assert_success(rclose(pair->listener));
}

static uint8_t byte_at(size_t place)
{
	return (uint8_t)(place * 2654435761u >> 13);
}

void fill_stream(void *memory, size_t bytes, size_t place)
{
	uint8_t *next = memory;

	for (; bytes--; place++)
		*next++ = byte_at(place);
}

bool is_of_stream(const void *memory, size_t bytes, size_t place)
{
	const uint8_t *next = memory;

	for (; bytes--; place++)
		if (*next++ != byte_at(place))
			return false;
	return true;
}
