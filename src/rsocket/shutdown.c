/* SPDX-License-Identifier: BSD-2-Clause */
/* rshutdown() and rclose(): the orderly end (rdma-cm 5). */
#include <errno.h>
#include <unistd.h>

#include "abi/rdmacm_entry_points.h"
#include "core/cancellation.h"
#include "progress/progress.h"
#include "explain/explain.h"
#include "rdmacm/devices.h"
#include "rsocket/datagram.h"
#include "rsocket/table.h"
#include "rsocket/wait.h"

/* For a peer that takes nothing; SO_LINGER sets another time. */
enum { LINGER_SECONDS = 30 };

static bool stream_can_control(struct rsocket *rs)
{
	return rs->stream.control_free || rs->stream.state != STREAM_CONNECTED;
}

static bool stream_all_sent(struct rsocket *rs)
{
	return rs->stream.state != STREAM_CONNECTED || stream_has_sent_all(&rs->stream);
}

/* Signals do not interrupt the wait, nor close(2). */
static int rsocket_wait_for(struct rsocket *rs, const struct wait_limits *limits, bool (*done)(struct rsocket *rs))
{
	int error;

	do
		error = rsocket_wait_until(rs, limits, done);
	while (error == -EINTR);
	return error;
}

/*
 * Sends a control message, and waits until the peer has everything that was sent before. This does not depend on
 * whether the peer's program reads, except for control messages beyond its posted receives: data in flight has room
 * there.
 */
static int stream_send_control(struct rsocket *rs, enum stream_control control, const struct wait_limits *limits)
{
	int error;

	rsocket_wake(rs);
	error = rsocket_wait_for(rs, limits, stream_can_control);
	if (error)
		return error;
	if (rs->stream.state == STREAM_CONNECTED)
		stream_post_control(rs, control);
	return rsocket_wait_for(rs, limits, stream_all_sent);
}

static int stream_shut_down(struct rsocket *rs, int how, const struct wait_limits *limits)
{
	struct stream *stream = &rs->stream;
	enum stream_control control = STREAM_DISCONNECT;

	if (stream->state != STREAM_CONNECTED) {
		stream->readable = false;
		rsocket_wake(rs);
		return 0;
	}
	if (how == SHUT_RD) {
		stream->readable = false;
		if (stream->writable) {
			rsocket_wake(rs);
			return 0;
		}
	} else {
		if (!stream->writable && (how == SHUT_WR || !stream->readable))
			return rsocket_wait_for(rs, limits, stream_all_sent);
		if (how == SHUT_RDWR)
			stream->readable = false;
		stream->writable = false;
		stream->shut_by_program = true;
		if (stream->readable)
			control = STREAM_SHUTDOWN;
	}
	return stream_send_control(rs, control, limits);
}

/* Like shutdown(2), not a cancellation point. */
int softhca_rshutdown(int socket, int how)
{
	WITHOUT_CANCELLATION;
	struct rsocket *rs = rsocket_begin(socket, "rshutdown");
	int error = 0;

	if (!rs)
		return -1;
	if (how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR)
		error = -REFUSE(hca_of_id(NULL), "rshutdown", EINVAL, RULE_RSOCKET_HOW, (uint64_t)how);
	else if (rs->datagram)
		error = 0;
	else if (rs->stream.state < STREAM_CONNECTED || rs->stream.state == STREAM_REFUSED)
		error = stream_wait_connected(rs, "rshutdown",
					      &(const struct wait_limits){.dont_wait = rs->nonblocking});
	if (!error && !rs->datagram)
		error = stream_shut_down(rs, how,
					 &(const struct wait_limits){.deadline_ns = rsocket_now_ns() +
										    LINGER_SECONDS * SECOND_NS});
	return (int)rsocket_end(rs, error);
}

static bool stream_is_confirmed(struct rsocket *rs)
{
	return rs->stream.state != STREAM_ACCEPTING;
}

static void stream_finish(struct rsocket *rs, const int *may_be_cancelled)
{
	const struct linger *linger = &rs->settings.linger;
	uint64_t seconds = linger->l_onoff ? (uint32_t)linger->l_linger : LINGER_SECONDS;
	const struct wait_limits limits = {.deadline_ns = rsocket_now_ns() + seconds * SECOND_NS,
					   .may_be_cancelled = may_be_cancelled,
					   .closing = true};

	/* A peer that does not confirm must not block the program. */
	if (seconds)
		(void)rsocket_wait_for(rs, &limits, stream_is_confirmed);
	/* With SO_LINGER of 0 seconds, data in flight is lost (socket(7)). */
	if (rs->stream.state == STREAM_CONNECTED && seconds)
		(void)stream_shut_down(rs, SHUT_RDWR, &limits);
	rs->closed = true;
	rsocket_wake(rs);
}

int softhca_rclose(int socket)
{
	CANCELLATION_POINT;
	struct rsocket *rs = table_remove(socket);

	if (!rs) {
		errno = REFUSE(hca_of_id(NULL), "rclose", EBADF, RULE_RSOCKET_NONE, (uint64_t)socket);
		return -1;
	}
	if (rs->process == progress_generation()) {
		pthread_mutex_lock(&rs->lock);
		if (!rs->datagram)
			stream_finish(rs, &cancellation_before);
		else
			rs->closed = true;
		rsocket_wake(rs);
		pthread_mutex_unlock(&rs->lock);
	}
	rsocket_put(rs);
	return 0;
}
