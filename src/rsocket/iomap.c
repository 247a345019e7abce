/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * riomap(), riounmap(), riowrite(): buffers of one end into which the other end writes directly (rsocket(7)). A write
 * with immediate data stores mappings in a table at the writing end, after its targets.
 */
#include <byteswap.h>
#include <endian.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "abi/entry_points.h"
#include "abi/rdmacm_entry_points.h"
#include "core/cancellation.h"
#include "explain/explain.h"
#include "rdmacm/devices.h"
#include "rsocket/table.h"
#include "rsocket/transfer.h"
#include "rsocket/wait.h"

/* Returns the first free entry of the peer's table, or -1. */
static int mapping_free_index(const struct stream *stream)
{
	const struct stream_buffer *buffer;
	int index;

	for (index = 0; (uint32_t)index < stream->peer_map_entries; index++) {
		for (buffer = stream->buffers; buffer && buffer->index != index; buffer = buffer->next)
			;
		if (!buffer)
			return index;
	}
	return -1;
}

static off_t buffer_map(struct rsocket *rs, void *memory, size_t length, int protection, off_t offset)
{
	struct stream *stream = &rs->stream;
	struct stream_buffer *buffer, **last;
	bool remote = protection & PROT_WRITE;
	int index = -1;

	/* A result cannot be negative; -1 requests any offset. */
	if ((protection & ~PROT_WRITE) != PROT_NONE || length > UINT32_MAX || !length || offset < -1)
		return -REFUSE(hca_of_id(NULL), "riomap", EINVAL, RULE_RSOCKET_MAP, length, (uint64_t)protection,
			       (uint64_t)offset);
	/* The peer's request contains the size of its table. */
	if (stream->state != STREAM_CONNECTED && stream->state != STREAM_ACCEPTING)
		return -REFUSE(hca_of_id(NULL), "riomap", ENOTCONN, RULE_RSOCKET_NOT_CONNECTED, (uint64_t)rs->fd);
	if (remote && (index = mapping_free_index(stream)) < 0)
		return -REFUSE(hca_of_id(NULL), "riomap", ENOMEM, RULE_RSOCKET_MAP_FULL, stream->peer_map_entries);
	buffer = calloc(1, sizeof(*buffer));
	if (!buffer)
		return -ENOMEM;
	buffer->mr = softhca_ibv_reg_mr(stream->id->pd, memory, length,
					IBV_ACCESS_LOCAL_WRITE | (remote ? IBV_ACCESS_REMOTE_WRITE : 0));
	if (!buffer->mr) {
		int error = errno;

		free(buffer);
		return -error;
	}
	buffer->offset = offset == -1 ? (uintptr_t)memory : (uint64_t)offset;
	buffer->index = index;
	buffer->pending = remote;
	for (last = &stream->buffers; *last; last = &(*last)->next)
		;
	*last = buffer;
	return (off_t)buffer->offset;
}

off_t softhca_riomap(int socket, void *buf, size_t len, int prot, int flags, off_t offset)
{
	WITHOUT_CANCELLATION;
	struct rsocket *rs = rsocket_begin_stream(socket, "riomap");

	(void)flags;
	return rs ? rsocket_end(rs, buffer_map(rs, buf, len, prot, offset)) : -1;
}

static int buffer_unmap(struct rsocket *rs, const void *memory, size_t length)
{
	struct stream_buffer **link, *buffer;

	for (link = &rs->stream.buffers; (buffer = *link); link = &buffer->next)
		if (buffer->mr->addr == memory && buffer->mr->length == length)
			break;
	if (!buffer)
		return -REFUSE(hca_of_id(NULL), "riounmap", EINVAL, RULE_RSOCKET_UNMAP, (uintptr_t)memory, length);
	*link = buffer->next;
	/* The peer's next write to the buffer fails and ends the connection. */
	softhca_ibv_dereg_mr(buffer->mr);
	free(buffer);
	return 0;
}

int softhca_riounmap(int socket, void *buf, size_t len)
{
	WITHOUT_CANCELLATION;
	struct rsocket *rs = rsocket_begin_stream(socket, "riounmap");

	return rs ? (int)rsocket_end(rs, buffer_unmap(rs, buf, len)) : -1;
}

static int mapping_send(struct rsocket *rs, struct stream_buffer *buffer)
{
	struct stream *stream = &rs->stream;
	struct stream_mapping mapping = {.offset = buffer->offset,
					 .target = {.address = (uintptr_t)buffer->mr->addr,
						    .key = buffer->mr->rkey,
						    .length = (uint32_t)buffer->mr->length}};
	uint32_t until_end = stream->send_bytes - stream->send_offset;
	uint32_t first = sizeof(mapping) < until_end ? (uint32_t)sizeof(mapping) : until_end;
	struct ibv_send_wr request = {
		.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
		.imm_data = htobe32(stream_immediate(STREAM_OP_MAPPING, (uint32_t)buffer->index)),
		.wr.rdma = {.remote_addr = stream->peer_map + (uint32_t)buffer->index * sizeof(mapping),
			    .rkey = stream->peer_list_key},
	};
	int error;

	if (stream->swap)
		mapping = (struct stream_mapping){.offset = bswap_64(mapping.offset),
						  .target = {.address = bswap_64(mapping.target.address),
							     .key = bswap_32(mapping.target.key),
							     .length = bswap_32(mapping.target.length)}};
	memcpy(stream->send_ring + stream->send_offset, &mapping, first);
	memcpy(stream->send_ring, (const char *)&mapping + first, sizeof(mapping) - first);
	error = stream_post_write(rs, &request, NULL, sizeof(mapping));
	if (!error)
		stream->sequence++;
	return error;
}

/* Returns a buffer that was not announced to the peer, or NULL. */
static struct stream_buffer *buffer_first_pending(const struct stream *stream)
{
	struct stream_buffer *buffer = stream->buffers;

	while (buffer && !buffer->pending)
		buffer = buffer->next;
	return buffer;
}

int stream_send_mappings(struct rsocket *rs, const struct wait_limits *limits)
{
	struct stream_buffer *buffer;
	int error = 0;

	while (!error && buffer_first_pending(&rs->stream)) {
		error = stream_wait_to_send(rs, limits);
		/* If the thread slept, another one may have unmapped or announced the buffer. */
		buffer = buffer_first_pending(&rs->stream);
		if (error || !buffer)
			break;
		buffer->pending = false;
		error = mapping_send(rs, buffer);
	}
	return error;
}

/*
 * Copies the mapping that contains @offset, because the peer may write to it at any time. It can only refer to memory
 * of the peer.
 */
static bool mapping_find(const struct stream *stream, uint64_t offset, struct stream_mapping *found)
{
	const volatile struct stream_mapping *table =
		(const volatile struct stream_mapping *)(stream->list + STREAM_TARGETS);
	uint32_t index;

	for (index = 0; index < stream->iomap_entries; index++) {
		found->offset = table[index].offset;
		found->target.address = table[index].target.address;
		found->target.key = table[index].target.key;
		found->target.length = table[index].target.length;
		if (offset >= found->offset && offset - found->offset < found->target.length)
			return true;
	}
	return false;
}

static int mapping_write_some(struct rsocket *rs, const struct stream_mapping *mapping, uint64_t offset,
			      struct pieces *pieces, uint32_t *before, size_t *left)
{
	struct stream *stream = &rs->stream;
	uint64_t into = offset - mapping->offset;
	uint32_t bytes = stream_write_size(stream, before, *left, mapping->target.length - (uint32_t)into);
	uint32_t until_end = stream->send_bytes - stream->send_offset;
	uint32_t first = bytes < until_end ? bytes : until_end;
	struct ibv_send_wr request = {
		.opcode = IBV_WR_RDMA_WRITE,
		.wr.rdma = {.remote_addr = mapping->target.address + into, .rkey = mapping->target.key},
	};

	pieces_copy_out(pieces, stream->send_ring + stream->send_offset, first);
	pieces_copy_out(pieces, stream->send_ring, bytes - first);
	*left -= bytes;
	return stream_post_write(rs, &request, NULL, bytes);
}

static ssize_t mapping_write(struct rsocket *rs, const void *memory, size_t count, uint64_t offset,
			     const struct wait_limits *limits)
{
	const struct iovec piece = {.iov_base = (void *)memory, .iov_len = count};
	struct pieces pieces = {.list = &piece, .count = 1};
	uint32_t before = STREAM_FIRST_WRITE;
	struct stream_mapping mapping;
	size_t left = count;
	int error;

	if (count > SSIZE_MAX)
		return -EINVAL;
	error = stream_wait_connected(rs, "riowrite", limits);
	if (!error)
		error = stream_send_mappings(rs, limits);
	while (!error && left) {
		if (!stream_can_send(rs))
			error = stream_wait_to_send(rs, limits);
		if (!error && !mapping_find(&rs->stream, offset + (count - left), &mapping))
			error = -REFUSE(hca_of_id(NULL), "riowrite", EINVAL, RULE_RSOCKET_NOT_MAPPED,
					offset + (count - left));
		if (!error)
			error = mapping_write_some(rs, &mapping, offset + (count - left), &pieces, &before, &left);
	}
	return left < count ? (ssize_t)(count - left) : error;
}

size_t softhca_riowrite(int socket, const void *buf, size_t count, off_t offset, int flags)
{
	CANCELLATION_POINT;
	struct rsocket *rs = rsocket_begin_stream(socket, "riowrite");
	struct wait_limits limits = {.may_be_cancelled = &cancellation_before};

	if (!rs)
		return (size_t)-1;
	limits.dont_wait = rs->nonblocking || flags & MSG_DONTWAIT;
	return (size_t)rsocket_end(rs, mapping_write(rs, buf, count, (uint64_t)offset, &limits));
}
