/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of a stream: CQ, QP, rings and lists. See stream.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "abi/entry_points.h"
#include "abi/rdmacm_entry_points.h"
#include "rsocket/objects.h"

/* Separates lists and rings by cache lines; a multiple of the alignment of halves and mappings. */
enum { ALIGNMENT = 64 };

static uint32_t bytes_round_up(uint32_t value)
{
	return (value + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* Zeroed, so that the peer cannot see other data of the process. */
static void *stream_new_memory(struct stream *stream, size_t size, int access, struct ibv_mr **mr)
{
	void *memory = aligned_alloc(ALIGNMENT, (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
	size_t byte;

	if (!memory) {
		errno = ENOMEM;
		return NULL;
	}
	for (byte = 0; byte < size; byte++)
		((char *)memory)[byte] = 0;
	*mr = softhca_ibv_reg_mr(stream->id->pd, memory, size, access);
	if (!*mr) {
		int error = errno;

		free(memory);
		errno = error;
		return NULL;
	}
	return memory;
}

static int stream_make_memory(struct stream *stream)
{
	size_t control = STREAM_CONTROL_ENTRIES * sizeof(struct stream_mapping);
	size_t list =
		STREAM_TARGETS * sizeof(struct stream_target) + stream->iomap_entries * sizeof(struct stream_mapping);

	stream->messages = calloc(stream->receive_entries + 1, sizeof(*stream->messages));
	if (!stream->messages)
		return -ENOMEM;
	stream->send_ring =
		stream_new_memory(stream, stream->send_bytes + control, IBV_ACCESS_LOCAL_WRITE, &stream->send_mr);
	if (!stream->send_ring)
		return -errno;
	stream->ring = stream_new_memory(stream, stream->receive_bytes,
					 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, &stream->ring_mr);
	if (!stream->ring)
		return -errno;
	stream->list =
		stream_new_memory(stream, list, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, &stream->list_mr);
	return stream->list ? 0 : -errno;
}

static int stream_make_queues(struct rsocket *rs)
{
	struct stream *stream = &rs->stream;
	struct ibv_qp_init_attr attr = {
		.qp_context = rs,
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = {.max_send_wr = stream->send_entries,
			.max_recv_wr = stream->receive_entries,
			.max_send_sge = 2,
			.max_recv_sge = 1,
			.max_inline_data = stream->inline_bytes},
	};

	stream->completions = softhca_ibv_create_comp_channel(stream->id->verbs);
	if (!stream->completions)
		return -errno;
	if (fcntl(stream->completions->fd, F_SETFL, O_NONBLOCK))
		return -errno;
	stream->cq = softhca_ibv_create_cq(stream->id->verbs, (int)(stream->send_entries + stream->receive_entries), rs,
					   stream->completions, 0);
	if (!stream->cq)
		return -errno;
	attr.send_cq = stream->cq;
	attr.recv_cq = stream->cq;
	if (softhca_rdma_create_qp(stream->id, NULL, &attr))
		return -errno;
	stream->inline_bytes = attr.cap.max_inline_data;
	return 0;
}

static int stream_post_all_receives(struct stream *stream)
{
	struct ibv_recv_wr receive = {.wr_id = STREAM_REQUEST_RECEIVE}, *bad;
	uint32_t left;
	int error = 0;

	for (left = stream->receive_entries; left && !error; left--)
		error = ibv_post_recv(stream->id->qp, &receive, &bad);
	return -error;
}

int stream_open(struct rsocket *rs)
{
	struct stream *stream = &rs->stream;
	int error;

	stream->send_entries = rs->settings.send_entries;
	stream->receive_entries = rs->settings.receive_entries;
	stream->inline_bytes = rs->settings.inline_bytes;
	stream->iomap_entries = rs->settings.iomap_entries;
	stream->send_bytes = bytes_round_up(rs->settings.send_bytes);
	stream->receive_bytes = bytes_round_up(rs->settings.receive_bytes / 2) * 2;
	error = stream_make_queues(rs);
	if (!error)
		error = stream_make_memory(stream);
	if (!error)
		error = stream_post_all_receives(stream);
	if (error)
		return error;
	stream->send_free = stream->send_bytes;
	stream->control_free = STREAM_CONTROL_ENTRIES;
	stream->entries_free = stream->send_entries - STREAM_CONTROL_ENTRIES;
	/* Granted by the private data; the second half is granted when the connection exists. */
	stream->granted = stream->receive_bytes / 2;
	stream->free_offset = stream->receive_bytes / 2;
	stream->free_bytes = stream->receive_bytes / 2;
	stream->renew_at = (uint16_t)(stream->receive_entries / 2);
	return 0;
}

static void stream_free_memory(void *memory, struct ibv_mr *mr)
{
	if (mr)
		softhca_ibv_dereg_mr(mr);
	free(memory);
}

static void stream_free_buffers(struct stream *stream)
{
	while (stream->buffers) {
		struct stream_buffer *buffer = stream->buffers;

		stream->buffers = buffer->next;
		softhca_ibv_dereg_mr(buffer->mr);
		free(buffer);
	}
}

void stream_drop_request(struct stream *stream)
{
	struct rdma_cm_id *child = stream->request->id;

	softhca_rdma_ack_cm_event(stream->request);
	stream->request = NULL;
	softhca_rdma_reject(child, NULL, 0);
	softhca_rdma_destroy_id(child);
}

void stream_destroy(struct rsocket *rs)
{
	struct stream *stream = &rs->stream;

	if (stream->id && stream->id->qp)
		softhca_rdma_destroy_qp(stream->id);
	if (stream->cq) {
		softhca_ibv_ack_cq_events(stream->cq, stream->events_taken);
		softhca_ibv_destroy_cq(stream->cq);
	}
	if (stream->completions)
		softhca_ibv_destroy_comp_channel(stream->completions);
	stream_free_buffers(stream);
	stream_free_memory(stream->send_ring, stream->send_mr);
	stream_free_memory(stream->ring, stream->ring_mr);
	stream_free_memory(stream->list, stream->list_mr);
	free(stream->messages);
	free(stream->paths);
	if (stream->request)
		stream_drop_request(stream);
	if (stream->id)
		softhca_rdma_destroy_id(stream->id);
	if (stream->channel)
		softhca_rdma_destroy_event_channel(stream->channel);
	*stream = (struct stream){.state = stream->state};
}
