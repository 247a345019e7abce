/* SPDX-License-Identifier: BSD-2-Clause */
/* Input of the capture from the filters, see filter.h. */
#include <stdlib.h>

#include "core/thread_memory.h"
#include "filter/capture.h"
#include "filter/filter_parts.h"
#include "wire/roce.h"

static void frame_capture(struct frame *frame, enum capture_direction direction, uint32_t qpn)
{
	uint32_t destination = roce_destination(frame->bytes);
	char text[CAPTURE_COMMENT + 1];
	const char *comment;

	if (!frame->capture)
		return;
	comment = capture_explanation(frame->capture, frame->source_qpn, &frame->why, text, sizeof(text));
	if (!comment)
		comment = capture_explained(destination, frame->mark, text, sizeof(text));
	capture_frame(frame->capture, direction, &frame->path, frame->path.udp_source_port, frame->bytes, frame->length,
		      qpn, comment);
	frame->capture = NULL;
}

/*
 * Captures a frame when it leaves; one lost before is not captured, as on a wire. Within the process, this happens
 * after delivery, when its effect is known.
 */
void filter_capture_leaving(struct frame *frame)
{
	if (!frame->capture)
		return;
	frame->mark = frame->link->immediate ? capture_mark(roce_destination(frame->bytes)) : UINT64_MAX;
	if (!frame->link->immediate)
		frame_capture(frame, CAPTURE_OUTBOUND, frame->source_qpn);
}

void filter_capture_done(struct frame *frame)
{
	if (frame)
		frame_capture(frame, CAPTURE_OUTBOUND, frame->source_qpn);
	free(frame);
}

/* Fills in properties that the packet does not contain and the receiver derives. */
static void packet_complete(struct packet *packet)
{
	struct receiver_view qp;
	uint32_t mtu_shift = 12;

	if (delivery->view(packet->destination_qpn, &qp)) {
		mtu_shift = qp.mtu_shift;
		if (!packet->source_qpn)
			packet->source_qpn = qp.peer_qpn;
	}
	if (packet->count != 1)
		packet->mtu = (uint16_t)(1u << mtu_shift);
	else
		packet->mtu = UINT16_MAX;
	if (!packet->count && packet->message != MESSAGE_READ_REQUEST)
		packet->count = packets_of(packet->payload.length, mtu_shift);
}

void filter_received(struct hca *hca, const struct packet *packet)
{
	struct filters *filters = filters_of(hca);
	const struct fault_verdict as_it_is = {.drop = false};
	uint64_t left = packet->payload.length, mark;
	/* A copy, because reading the payload consumes it. */
	THREAD_VARIABLE(struct packet, copy);

	if (!filters || !filters->capture)
		return;
	*copy = *packet;
	packet_complete(copy);
	mark = capture_mark(copy->destination_qpn);
	for (uint32_t i = 0; i < frames_of(copy); i++) {
		uint32_t payload = frame_payload(copy, left);
		struct frame *frame = frame_cut(copy, i, payload, filters_port(hca), &as_it_is);

		if (!frame)
			return;
		frame->capture = filters->capture;
		/* The frame of the last packet carries the explanation for all. */
		frame->mark = i + 1 == frames_of(copy) ? mark : UINT64_MAX;
		pthread_mutex_lock(&filters->lock);
		frame_list_insert(&filters->arrived, filters->arrived.last, frame);
		pthread_mutex_unlock(&filters->lock);
		left -= payload < left ? payload : left;
	}
}

static struct frame *take_arrived(struct filters *filters)
{
	struct frame *frame;

	pthread_mutex_lock(&filters->lock);
	frame = filters->arrived.first;
	if (frame)
		frame_list_remove(&filters->arrived, frame);
	pthread_mutex_unlock(&filters->lock);
	return frame;
}

void filter_handled(struct hca *hca)
{
	struct filters *filters = filters_of(hca);
	struct frame *frame;

	while (filters && (frame = take_arrived(filters))) {
		frame_capture(frame, CAPTURE_INBOUND, roce_destination(frame->bytes));
		free(frame);
	}
}
