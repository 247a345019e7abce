/* SPDX-License-Identifier: BSD-2-Clause */
/* rsend(), rsendto(), rsendmsg(), rwrite(), rwritev(). */
#include <endian.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "abi/rdmacm_entry_points.h"
#include "core/cancellation.h"
#include "explain/explain.h"
#include "rdmacm/devices.h"
#include "rsocket/datagram.h"
#include "rsocket/table.h"
#include "rsocket/transfer.h"
#include "rsocket/wait.h"

static bool stream_is_opened(struct rsocket *rs)
{
	return !stream_is_opening(&rs->stream);
}

int stream_wait_connected(struct rsocket *rs, const char *call, const struct wait_limits *limits)
{
	struct stream *stream = &rs->stream;
	int error = stream_is_opening(stream) ? rsocket_wait_until(rs, limits, stream_is_opened) : 0;

	if (error)
		return error;
	if (stream->state != STREAM_REFUSED && stream->state >= STREAM_CONNECTED)
		return 0;
	return -REFUSE(hca_of_id(NULL), call, ENOTCONN, RULE_RSOCKET_NOT_CONNECTED, (uint64_t)rs->fd);
}

static bool stream_can_send_or_ended(struct rsocket *rs)
{
	return stream_can_send(rs) || rs->stream.state != STREAM_CONNECTED || !rs->stream.writable;
}

int stream_wait_to_send(struct rsocket *rs, const struct wait_limits *limits)
{
	struct stream *stream = &rs->stream;
	int error = rsocket_wait_until(rs, limits, stream_can_send_or_ended);

	if (error || stream_can_send(rs))
		return error;
	if (stream->shut_by_program)
		return -EPIPE;
	error = rs->error;
	rs->error = 0;
	return error ? -error : -ECONNRESET;
}

uint32_t stream_write_size(const struct stream *stream, uint32_t *before, size_t left, uint32_t most)
{
	uint32_t size = left < *before ? (uint32_t)left : *before;

	if (left > *before && *before < STREAM_LARGEST_WRITE)
		*before *= 2;
	if (size > stream->send_free)
		size = stream->send_free;
	return size < most ? size : most;
}

int stream_post_write(struct rsocket *rs, struct ibv_send_wr *request, const void *from, uint32_t bytes)
{
	struct stream *stream = &rs->stream;
	uint32_t until_end = stream->send_bytes - stream->send_offset;
	uint32_t first = bytes < until_end ? bytes : until_end;
	struct ibv_sge parts[2] = {
		{.addr = (uintptr_t)(stream->send_ring + stream->send_offset),
		 .length = first,
		 .lkey = stream->send_mr->lkey},
		{.addr = (uintptr_t)stream->send_ring, .length = bytes - first, .lkey = stream->send_mr->lkey},
	};
	struct ibv_send_wr *bad;
	int error;

	if (from)
		parts[0] = (struct ibv_sge){.addr = (uintptr_t)from, .length = bytes};
	request->sg_list = parts;
	request->num_sge = !from && first < bytes ? 2 : 1;
	request->send_flags = bytes <= stream->inline_bytes ? IBV_SEND_INLINE : 0;
	request->wr_id = (uint64_t)bytes << 32 | STREAM_REQUEST_DATA;
	error = ibv_post_send(stream->id->qp, request, &bad);
	if (error) {
		stream_break(rs, error);
		return -error;
	}
	stream->send_offset = (stream->send_offset + bytes) % stream->send_bytes;
	stream->entries_free--;
	stream->send_free -= bytes;
	return 0;
}

/* Sends one message; the caller has checked that it can be sent. */
static int stream_send_some(struct rsocket *rs, struct pieces *pieces, uint32_t *before, size_t *left)
{
	struct stream *stream = &rs->stream;
	uint32_t bytes = stream_write_size(stream, before, *left, stream->target.length);
	uint32_t until_end = stream->send_bytes - stream->send_offset;
	struct ibv_send_wr request = {
		.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
		.imm_data = htobe32(stream_immediate(STREAM_OP_DATA, bytes)),
		.wr.rdma = {.remote_addr = stream->target.address, .rkey = stream->target.key},
	};
	size_t here;
	const void *from = pieces_here(pieces, &here);
	int error;

	if (bytes > stream->inline_bytes || here < bytes) {
		uint32_t first = bytes < until_end ? bytes : until_end;

		pieces_copy_out(pieces, stream->send_ring + stream->send_offset, first);
		pieces_copy_out(pieces, stream->send_ring, bytes - first);
		from = NULL;
	} else {
		pieces_skip(pieces, bytes);
	}
	error = stream_post_write(rs, &request, from, bytes);
	if (error)
		return error;
	stream->sequence++;
	stream->target.address += bytes;
	stream->target.length -= bytes;
	*left -= bytes;
	return 0;
}

/* After a partial transfer, the next call reports the error. */
static ssize_t transfer_result(size_t done, int error)
{
	return done ? (ssize_t)done : error;
}

static ssize_t stream_send(const char *call, struct rsocket *rs, const struct iovec *list, size_t count,
			   const struct wait_limits *limits)
{
	struct pieces pieces = {.list = list, .count = count};
	size_t bytes = pieces_bytes(list, count), left = bytes;
	uint32_t before = STREAM_FIRST_WRITE;
	int error;

	if (bytes > SSIZE_MAX)
		return -EINVAL;
	error = stream_wait_connected(rs, call, limits);
	if (!error)
		error = stream_send_mappings(rs, limits);
	/* Sending nothing only reports whether the stream is writable. */
	if (!error && !left && !rs->stream.writable)
		error = stream_wait_to_send(rs, limits);
	while (!error && left) {
		if (!stream_can_send(rs))
			error = stream_wait_to_send(rs, limits);
		if (!error)
			error = stream_send_some(rs, &pieces, &before, &left);
	}
	return transfer_result(bytes - left, error);
}

static ssize_t rsocket_send(const char *call, int socket, const struct iovec *list, size_t count, int flags,
			    const struct sockaddr *address, socklen_t length)
{
	CANCELLATION_POINT;
	struct rsocket *rs = rsocket_begin(socket, call);
	struct wait_limits limits = {.may_be_cancelled = &cancellation_before};

	if (!rs)
		return -1;
	limits.dont_wait = rs->nonblocking || flags & MSG_DONTWAIT;
	if (flags & MSG_OOB)
		return rsocket_end(rs, -REFUSE(hca_of_id(NULL), call, EOPNOTSUPP, RULE_RSOCKET_FLAGS, (uint64_t)flags));
	if (rs->datagram)
		return rsocket_end(rs, datagram_send(rs, list, count, address, length, &limits));
	if (address)
		return rsocket_end(rs, -EISCONN);
	return rsocket_end(rs, stream_send(call, rs, list, count, &limits));
}

ssize_t softhca_rsend(int socket, const void *buf, size_t len, int flags)
{
	const struct iovec piece = {.iov_base = (void *)buf, .iov_len = len};

	return rsocket_send("rsend", socket, &piece, 1, flags, NULL, 0);
}

ssize_t softhca_rsendto(int socket, const void *buf, size_t len, int flags, const struct sockaddr *dest_addr,
			socklen_t addrlen)
{
	const struct iovec piece = {.iov_base = (void *)buf, .iov_len = len};

	return rsocket_send("rsendto", socket, &piece, 1, flags, dest_addr, addrlen);
}

ssize_t softhca_rsendmsg(int socket, const struct msghdr *msg, int flags)
{
	if (msg->msg_control && msg->msg_controllen) {
		errno = REFUSE(hca_of_id(NULL), "rsendmsg", EOPNOTSUPP, RULE_RSOCKET_ANCILLARY, msg->msg_controllen);
		return -1;
	}
	/* As sendmsg(2). */
	if (msg->msg_iovlen > IOV_MAX) {
		errno = EMSGSIZE;
		return -1;
	}
	return rsocket_send("rsendmsg", socket, msg->msg_iov, msg->msg_iovlen, flags, msg->msg_name, msg->msg_namelen);
}

ssize_t softhca_rwrite(int socket, const void *buf, size_t count)
{
	const struct iovec piece = {.iov_base = (void *)buf, .iov_len = count};

	return rsocket_send("rwrite", socket, &piece, 1, 0, NULL, 0);
}

ssize_t softhca_rwritev(int socket, const struct iovec *iov, int iovcnt)
{
	if (iovcnt < 0 || iovcnt > IOV_MAX) {
		errno = EINVAL;
		return -1;
	}
	return rsocket_send("rwritev", socket, iov, (size_t)iovcnt, 0, NULL, 0);
}
