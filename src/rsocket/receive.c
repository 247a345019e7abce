/* SPDX-License-Identifier: BSD-2-Clause */
/* rrecv(), rrecvfrom(), rrecvmsg(), rread(), rreadv(). */
#include <errno.h>
#include <limits.h>

#include "abi/rdmacm_entry_points.h"
#include "core/cancellation.h"
#include "explain/explain.h"
#include "rdmacm/devices.h"
#include "rsocket/datagram.h"
#include "rsocket/names.h"
#include "rsocket/table.h"
#include "rsocket/transfer.h"
#include "rsocket/wait.h"

static bool stream_has_data_or_ended(struct rsocket *rs)
{
	return stream_has_data(rs) || !rs->stream.readable;
}

/* Copies up to @left bytes of any number of messages. @consume: marks them as read. */
static size_t stream_take(struct rsocket *rs, struct pieces *pieces, size_t left, bool consume)
{
	struct stream *stream = &rs->stream;
	uint32_t message = stream->first_message, offset = stream->read_offset;
	size_t taken = 0;

	while (left && message != stream->end_message) {
		uint32_t bytes = stream->messages[message], until_end = stream->receive_bytes - offset;
		bool whole = bytes <= left;
		uint32_t first;

		if (!whole)
			bytes = (uint32_t)left;
		first = bytes < until_end ? bytes : until_end;
		pieces_copy_in(pieces, stream->ring + offset, first);
		pieces_copy_in(pieces, stream->ring, bytes - first);
		offset = (offset + bytes) % stream->receive_bytes;
		left -= bytes;
		taken += bytes;
		if (!whole && consume)
			stream->messages[message] -= bytes;
		if (!whole)
			break;
		message = message == stream->receive_entries ? 0 : message + 1;
		if (consume)
			stream->received++;
	}
	if (consume) {
		stream->first_message = message;
		stream->read_offset = offset;
		stream->free_bytes += (uint32_t)taken;
		stream_grant(rs);
	}
	return taken;
}

static ssize_t stream_receive(const char *call, struct rsocket *rs, const struct iovec *list, size_t count, int flags,
			      const struct wait_limits *limits)
{
	bool peek = flags & MSG_PEEK;
	struct pieces pieces = {.list = list, .count = count};
	size_t bytes = pieces_bytes(list, count), done = 0;
	int error;

	if (bytes > SSIZE_MAX)
		return -EINVAL;
	error = stream_wait_connected(rs, call, limits);
	if (error || !bytes)
		return error;
	do {
		if (!stream_has_data(rs))
			error = rsocket_wait_until(rs, limits, stream_has_data_or_ended);
		if (error || !stream_has_data(rs))
			break;
		done += stream_take(rs, &pieces, bytes - done, !peek);
	} while (done < bytes && flags & MSG_WAITALL && !peek);
	if (done)
		return (ssize_t)done;
	if (!error && rs->stream.reset) {
		error = -rs->error;
		rs->error = 0;
	}
	return error;
}

static ssize_t rsocket_receive(const char *call, int socket, const struct iovec *list, size_t count, int *flags,
			       struct sockaddr *address, socklen_t *length)
{
	CANCELLATION_POINT;
	struct rsocket *rs = rsocket_begin(socket, call);
	struct wait_limits limits = {.may_be_cancelled = &cancellation_before};
	ssize_t result;

	if (!rs)
		return -1;
	limits.dont_wait = rs->nonblocking || *flags & MSG_DONTWAIT;
	if (*flags & MSG_OOB)
		return rsocket_end(rs,
				   -REFUSE(hca_of_id(NULL), call, EOPNOTSUPP, RULE_RSOCKET_FLAGS, (uint64_t)*flags));
	if (rs->datagram)
		return rsocket_end(rs, datagram_receive(rs, list, count, flags, address, length, &limits));
	result = stream_receive(call, rs, list, count, *flags, &limits);
	*flags = 0;
	if (result >= 0)
		name_copy_out(rdma_get_peer_addr(rs->stream.id), address, length);
	return rsocket_end(rs, result);
}

ssize_t softhca_rrecv(int socket, void *buf, size_t len, int flags)
{
	const struct iovec piece = {.iov_base = buf, .iov_len = len};

	return rsocket_receive("rrecv", socket, &piece, 1, &flags, NULL, NULL);
}

ssize_t softhca_rrecvfrom(int socket, void *buf, size_t len, int flags, struct sockaddr *src_addr, socklen_t *addrlen)
{
	const struct iovec piece = {.iov_base = buf, .iov_len = len};

	return rsocket_receive("rrecvfrom", socket, &piece, 1, &flags, src_addr, addrlen);
}

ssize_t softhca_rrecvmsg(int socket, struct msghdr *msg, int flags)
{
	ssize_t result;

	if (msg->msg_control && msg->msg_controllen) {
		errno = REFUSE(hca_of_id(NULL), "rrecvmsg", EOPNOTSUPP, RULE_RSOCKET_ANCILLARY, msg->msg_controllen);
		return -1;
	}
	/* As recvmsg(2). */
	if (msg->msg_iovlen > IOV_MAX) {
		errno = EMSGSIZE;
		return -1;
	}
	result = rsocket_receive("rrecvmsg", socket, msg->msg_iov, msg->msg_iovlen, &flags, msg->msg_name,
				 msg->msg_name ? &msg->msg_namelen : NULL);
	if (result >= 0)
		msg->msg_flags = flags;
	return result;
}

ssize_t softhca_rread(int socket, void *buf, size_t count)
{
	return softhca_rrecv(socket, buf, count, 0);
}

ssize_t softhca_rreadv(int socket, const struct iovec *iov, int iovcnt)
{
	int flags = 0;

	if (iovcnt < 0 || iovcnt > IOV_MAX) {
		errno = EINVAL;
		return -1;
	}
	return rsocket_receive("rreadv", socket, iov, (size_t)iovcnt, &flags, NULL, NULL);
}
