/* SPDX-License-Identifier: BSD-2-Clause */
/* Frames: packets to bytes and back, see frame.h. */
#include "core/thread_memory.h"
#include "filter/frame.h"

#include <stdlib.h>
#include <string.h>

#include "format/cm_message.h"
#include "mkey/stream.h"
#include "wire/roce.h"

#define BTH_VARIANT 4 /* not in the ICRC, since routers change it */

static uint8_t transport_of_packet(const struct packet *packet)
{
	switch ((int)packet->transport) {
	case IBV_QPT_UC:
		return FAULT_UC;
	case IBV_QPT_UD:
		return FAULT_UD;
	case IBV_QPT_XRC_SEND:
		return FAULT_XRC;
	case IBV_QPT_RC:
	case TRANSPORT_NONE:
		return FAULT_RC;
	default:
		return FAULT_DC;
	}
}

static uint8_t frame_kind(const struct packet *packet)
{
	switch (packet->message) {
	case MESSAGE_WRITE:
	case MESSAGE_WRITE_IMM:
	case MESSAGE_ATOMIC_WRITE:
		return FAULT_WRITE;
	case MESSAGE_READ_REQUEST:
		return FAULT_READ;
	case MESSAGE_COMPARE_SWAP:
	case MESSAGE_FETCH_ADD:
	case MESSAGE_MASKED_COMPARE_SWAP:
	case MESSAGE_MASKED_FETCH_ADD:
		return FAULT_ATOMIC;
	case MESSAGE_DISCONNECT:
		return FAULT_DISCONNECT;
	case MESSAGE_CONGESTION:
		return FAULT_CNP;
	case MESSAGE_READ_RESPONSE:
		return FAULT_READ_RESPONSE;
	case MESSAGE_ATOMIC_ACKNOWLEDGE:
		return FAULT_ATOMIC_RESPONSE;
	case MESSAGE_ACKNOWLEDGE:
		switch (packet->syndrome & AETH_KIND_MASK) {
		case AETH_ACK:
			return FAULT_ACK;
		case AETH_RNR_NAK:
			return FAULT_RNR_NAK;
		default:
			return FAULT_NAK;
		}
	default:
		return FAULT_SEND;
	}
}

/* Returns the kind of a SEND to queue pair 1. Reads a copy of the stream, because the original is for the frame. */
static uint8_t kind_of_mad(const struct packet *packet)
{
	static const uint8_t kinds[CM_MESSAGE_KINDS] = {
		[CM_NO_MESSAGE] = FAULT_SEND,
#define CM_MESSAGE(NAME, ...) [CM_##NAME] = FAULT_CM_##NAME,
#include "format/cm_messages.def"
	};
	THREAD_VARIABLE(struct stream, payload);
	uint8_t mad[CM_MAD_BYTES];

	if (packet->payload.length != sizeof(mad))
		return FAULT_SEND;
	*payload = packet->payload;
	stream_read(payload, mad, sizeof(mad));
	return kinds[cm_mad_kind(mad)];
}

struct fault_subject frame_subject(const struct packet *packet, uint32_t payload)
{
	uint8_t kind = frame_kind(packet);

	if (kind == FAULT_SEND && packet->transport == IBV_QPT_UD && packet->destination_qpn == CM_QPN)
		kind = kind_of_mad(packet);
	return (struct fault_subject){
		.transport = transport_of_packet(packet),
		.kind = kind,
		.sender = packet->source_qpn,
		.destination = packet->destination_qpn,
		.payload = payload,
	};
}

uint32_t frame_payload(const struct packet *packet, uint64_t left)
{
	if (message_is_masked_atomic(packet->message))
		return 2u * packet->operand_bytes;
	return left > packet->mtu ? packet->mtu : (uint32_t)left;
}

static void bit_flip(uint8_t *bytes, uint64_t bits, uint64_t draw)
{
	uint64_t bit = draw % bits;

	bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
}

/* Flips one bit of the ICRC or of the bytes that it covers. */
static void frame_spoil(struct frame *frame, uint64_t draw)
{
	uint64_t bit = draw % (8 * (uint64_t)(frame->length - 1));

	if (bit / 8 >= BTH_VARIANT)
		bit += 8;
	frame->bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
	frame->spoilt = true;
}

static void frame_read_payload(struct packet *packet, uint32_t payload, uint8_t *to)
{
	if (message_is_masked_atomic(packet->message))
		roce_masks_write(to, packet);
	else if (payload)
		stream_read(&packet->payload, to, payload);
}

static unsigned int frame_packet_place(const struct packet *packet, uint32_t number)
{
	return (number ? 0 : packet->place & PLACE_FIRST) |
	       (number + 1 == frames_of(packet) ? packet->place & PLACE_LAST : 0);
}

static void frame_add_icrc(struct frame *frame, const struct packet *packet, uint16_t port)
{
	uint32_t icrc;

	frame->path.udp_source_port = roce_source_port(packet->path, packet->source_qpn, packet->destination_qpn);
	icrc = roce_icrc(&frame->path, frame->path.udp_source_port, port, 0, frame->bytes, frame->length);
	memcpy(frame->bytes + frame->length, &icrc, ROCE_ICRC_BYTES);
	frame->length += ROCE_ICRC_BYTES;
}

struct frame *frame_cut(struct packet *packet, uint32_t number, uint32_t payload, uint16_t port,
			const struct fault_verdict *verdict)
{
	uint8_t headers[ROCE_MOST_HEADERS];
	uint32_t header_bytes =
		roce_headers_write(headers, packet, number, frame_packet_place(packet, number), payload);
	uint32_t pad = roce_pad(payload);
	struct frame *frame = malloc(sizeof(*frame) + header_bytes + payload + pad + ROCE_ICRC_BYTES);

	if (!frame || !header_bytes) {
		free(frame);
		return NULL;
	}
	*frame = (struct frame){
		.link = packet->link,
		.path = *packet->path,
		.source_qpn = packet->source_qpn,
		.why = packet->why,
		.mtu = packet->mtu,
		.payload = payload,
		.length = header_bytes + payload + pad,
	};
	memcpy(frame->bytes, headers, header_bytes);
	frame_read_payload(packet, payload, frame->bytes + header_bytes);
	memset(frame->bytes + header_bytes + payload, 0, pad);
	if (verdict->corrupt_payload && payload)
		bit_flip(frame->bytes + header_bytes, 8 * (uint64_t)payload, verdict->payload_draw);
	frame_add_icrc(frame, packet, port);
	if (verdict->corrupt_frame)
		frame_spoil(frame, verdict->frame_draw);
	return frame;
}

struct frame *frame_copy(const struct frame *frame)
{
	struct frame *copy = malloc(sizeof(*copy) + frame->length);

	if (copy) {
		memcpy(copy, frame, sizeof(*copy) + frame->length);
		copy->flow = NULL;
	}
	return copy;
}

static bool frame_refuse(struct hca *hca, const struct frame *frame, const struct refusal *why)
{
	explain_make(hca, &(struct explain_subject){.qpn = roce_destination(frame->bytes)}, why->rule, why->args,
		     EXPLAIN_ARGS);
	return false;
}

/* Frames are made with IPv4 identification 0. */
static bool has_its_icrc(const struct frame *frame, uint16_t port, uint32_t length)
{
	uint32_t icrc = roce_icrc(&frame->path, frame->path.udp_source_port, port, 0, frame->bytes, length);

	return !memcmp(frame->bytes + length, &icrc, sizeof(icrc));
}

bool frame_parse(struct hca *hca, const struct frame *frame, uint16_t port, struct packet *packet)
{
	uint32_t length = frame->length - ROCE_ICRC_BYTES;
	struct refusal why;

	if (frame->spoilt && !has_its_icrc(frame, port, length)) {
		why = (struct refusal){RULE_FRAME_ICRC, {roce_destination(frame->bytes), frame->length}};
		return frame_refuse(hca, frame, &why);
	}
	if (roce_parse(packet, frame->bytes, length, &why))
		return frame_refuse(hca, frame, &why);
	packet->mtu = frame->mtu;
	packet->path = &frame->path;
	packet->link = frame->link;
	/* Within a process, explanations name the sender and its rule. */
	if (!(packet_opcodes[frame->bytes[0]].headers & (HEADER_DETH | HEADER_DCETH)))
		packet->source_qpn = frame->source_qpn;
	packet->why = frame->why;
	return true;
}
