/* SPDX-License-Identifier: BSD-2-Clause */
/* rlisten() and raccept(). */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "abi/entry_points.h"
#include "abi/rdmacm_entry_points.h"
#include "core/cancellation.h"
#include "explain/limit.h"
#include "rdmacm/devices.h"
#include "rsocket/names.h"
#include "rsocket/table.h"
#include "rsocket/wait.h"

enum { MOST_EXPLAINED = 8 };

static int stream_listen(struct rsocket *rs, int backlog)
{
	struct stream *stream = &rs->stream;

	if (stream->state == STREAM_LISTENING)
		return 0;
	if (stream->state != STREAM_IDLE && stream->state != STREAM_BOUND)
		return -REFUSE(hca_of_id(NULL), "rlisten", EINVAL, RULE_RSOCKET_STATE, (uint64_t)rs->fd);
	if (softhca_rdma_listen(stream->id, backlog))
		return -errno;
	stream->state = STREAM_LISTENING;
	return 0;
}

int softhca_rlisten(int socket, int backlog)
{
	WITHOUT_CANCELLATION;
	struct rsocket *rs = rsocket_begin_stream(socket, "rlisten");

	return rs ? (int)rsocket_end(rs, stream_listen(rs, backlog)) : -1;
}

bool stream_has_request(struct rsocket *rs)
{
	return rs->stream.request || rs->stream.state != STREAM_LISTENING;
}

/* Accepts for @child, which no other thread has yet. Returns 0 or a negative errno. */
static int child_accept(struct rsocket *child, const struct rdma_conn_param *request)
{
	uint8_t description[STREAM_PRIVATE_DATA];
	struct rdma_conn_param param = *request;
	struct stream *stream = &child->stream;
	int error;

	error = stream_apply_description(child, request->private_data, request->private_data_len);
	if (error) {
		EXPLAIN_LIMITED(hca_of_id(NULL), (&(const struct explain_subject){.call = "raccept", .error = EPROTO}),
				MOST_EXPLAINED, RULE_RSOCKET_DESCRIPTION, request->private_data_len);
		return error;
	}
	error = stream_open(child);
	if (error)
		return error;
	stream_describe(child, description);
	param.private_data = description;
	param.private_data_len = sizeof(description);
	if (softhca_rdma_accept(stream->id, &param))
		return -errno;
	stream->state = STREAM_ACCEPTING;
	stream->readable = true;
	stream->writable = true;
	return 0;
}

/* Creates the child of @request. Acknowledges the request even on failure. */
static int child_make(const struct rsocket_settings *settings, int family, struct rdma_cm_event *request,
		      struct rsocket **made)
{
	struct rdma_cm_id *id = request->id;
	struct rsocket *child = rsocket_new(family, settings);
	struct rdma_conn_param param = request->param.conn;
	uint8_t data[256];
	int error = child ? 0 : -ENOMEM;

	if (param.private_data)
		memcpy(data, param.private_data, param.private_data_len);
	else
		param.private_data_len = 0;
	param.private_data = data;
	softhca_rdma_ack_cm_event(request);
	if (!error && (child->stream.channel = softhca_rdma_create_event_channel()) == NULL)
		error = -errno;
	if (!error && softhca_rdma_migrate_id(id, child->stream.channel))
		error = -errno;
	if (error || !child->stream.channel) {
		softhca_rdma_reject(id, NULL, 0);
		softhca_rdma_destroy_id(id);
		goto no_child;
	}
	child->stream.id = id;
	id->context = child;
	child->fd = child->stream.channel->fd;
	error = fcntl(child->fd, F_SETFL, O_NONBLOCK) ? -errno : child_accept(child, &param);
	if (!error)
		error = table_enter(child);
	if (error)
		goto no_child;
	*made = child;
	return 0;

no_child:
	if (child)
		rsocket_free(child);
	return error;
}

/* True if only one connection failed, and the next may succeed. */
static bool error_is_of_peer(int error)
{
	return error == -EPROTO || error == -ECONNRESET || error == -EINVAL;
}

static int stream_accept(struct rsocket *rs, struct sockaddr *address, socklen_t *length,
			 const struct wait_limits *limits)
{
	struct rsocket_settings settings;
	struct rdma_cm_event *request;
	struct rsocket *child = NULL;
	int error, family = rs->family;

	do {
		if (rs->stream.state != STREAM_LISTENING)
			return -REFUSE(hca_of_id(NULL), "raccept", EINVAL, RULE_RSOCKET_STATE, (uint64_t)rs->fd);
		error = rsocket_wait_until(rs, limits, stream_has_request);
		if (error || !rs->stream.request)
			return error ? error : -EINVAL;
		request = rs->stream.request;
		rs->stream.request = NULL;
		settings = rs->settings;
		pthread_mutex_unlock(&rs->lock);
		error = child_make(&settings, family, request, &child);
		pthread_mutex_lock(&rs->lock);
	} while (error_is_of_peer(error));
	if (!child)
		return error ? error : -ENOMEM;
	name_copy_out(rdma_get_peer_addr(child->stream.id), address, length);
	return child->fd;
}

int softhca_raccept(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
	CANCELLATION_POINT;
	struct rsocket *rs = rsocket_begin_stream(socket, "raccept");
	struct wait_limits limits = {.may_be_cancelled = &cancellation_before};

	if (!rs)
		return -1;
	limits.dont_wait = rs->nonblocking;
	return (int)rsocket_end(rs, stream_accept(rs, addr, addrlen, &limits));
}
