/* SPDX-License-Identifier: BSD-2-Clause */
/* rconnect() of rsockets. */
#include <errno.h>

#include "abi/entry_points.h"
#include "abi/rdmacm_entry_points.h"
#include "core/cancellation.h"
#include "explain/explain.h"
#include "rdmacm/devices.h"
#include "rdmacm/sockaddr.h"
#include "rsocket/datagram.h"
#include "rsocket/table.h"
#include "rsocket/wait.h"

bool stream_connect_is_done(struct rsocket *rs)
{
	return rs->stream.state != STREAM_CONNECTING;
}

/* Returns the present result of connect(2). */
static int stream_connect_result(struct rsocket *rs)
{
	int error = rs->error;

	switch (rs->stream.state) {
	case STREAM_CONNECTING:
		return -EINPROGRESS;
	case STREAM_REFUSED:
		rs->error = 0;
		return error ? -error : -ECONNABORTED;
	default:
		return 0;
	}
}

static int stream_connect(struct rsocket *rs, const struct sockaddr *address, socklen_t length,
			  const struct wait_limits *limits)
{
	struct stream *stream = &rs->stream;
	int error;

	switch (stream->state) {
	case STREAM_IDLE:
	case STREAM_BOUND:
		if (!address || length < sizeof(sa_family_t) || !address_size(address) ||
		    length < address_size(address))
			return -REFUSE(hca_of_id(NULL), "rconnect", EINVAL, RULE_RSOCKET_ADDRESS, length,
				       address && length >= sizeof(sa_family_t) ? address->sa_family : 0);
		if (softhca_rdma_resolve_addr(stream->id, NULL, (struct sockaddr *)address, STREAM_RESOLVE_MS))
			return -errno;
		stream->state = STREAM_CONNECTING;
		break;
	case STREAM_CONNECTING:
		break;
	case STREAM_REFUSED:
		/* An ID connects only once. */
		return rs->error ? stream_connect_result(rs)
				 : -REFUSE(hca_of_id(NULL), "rconnect", EINVAL, RULE_RSOCKET_STATE, (uint64_t)rs->fd);
	case STREAM_LISTENING:
		return -REFUSE(hca_of_id(NULL), "rconnect", EINVAL, RULE_RSOCKET_STATE, (uint64_t)rs->fd);
	default:
		return -EISCONN;
	}
	error = rsocket_wait_until(rs, limits, stream_connect_is_done);
	return error && error != -EAGAIN ? error : stream_connect_result(rs);
}

int softhca_rconnect(int socket, const struct sockaddr *addr, socklen_t addrlen)
{
	CANCELLATION_POINT;
	struct rsocket *rs = rsocket_begin(socket, "rconnect");
	struct wait_limits limits = {.may_be_cancelled = &cancellation_before};

	if (!rs)
		return -1;
	limits.dont_wait = rs->nonblocking;
	return (int)rsocket_end(rs, rs->datagram ? datagram_connect(rs, addr, addrlen)
						 : stream_connect(rs, addr, addrlen, &limits));
}
