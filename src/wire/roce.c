/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes and parses headers of packets: IBTA volume 1, 9.2 and 9.3; annex A14 (XRCETH); docs/inside/wire.md (DCETH,
 * masks). Packets that are refused here are dropped silently, as IBTA 9.6.1 demands for invalid headers. Errors that a
 * responder answers with a NAK pass.
 */
#include "wire/roce.h"

#include <errno.h>

#include "wire/roce_fields.h"

#define P_KEY_MEMBERSHIP 0x8000 /* a full member accepts packets of limited members, too (IBTA 10.9.1.1) */

#define AETH_RESERVED 0x80
#define AETH_KIND_RESERVED 0x40

static uint32_t opcode_header_bytes(uint32_t opcode)
{
	return ROCE_BTH_BYTES + packet_opcodes[opcode].header_bytes;
}

/* Returns the opcode of @packet at @place, or -1. */
static int find_opcode(const struct packet *packet, unsigned int place)
{
	/* Only the last packet has an opcode of its own for immediate data or invalidation (IBTA table 38). */
	static const uint8_t begins_as[MESSAGE_COUNT] = {
		[MESSAGE_SEND_IMM] = MESSAGE_SEND,
		[MESSAGE_SEND_INVALIDATE] = MESSAGE_SEND,
		[MESSAGE_WRITE_IMM] = MESSAGE_WRITE,
	};
	uint8_t message = packet->message;

	if (message == MESSAGE_UNSUPPORTED)
		return packet->opcode;
	if (!(place & PLACE_LAST) && begins_as[message])
		message = begins_as[message];
	return packet_opcode_of(packet->transport, message, place);
}

/* ---- writing -------------------------------------------------------------------------------------------------- */

static uint8_t *write_source(uint8_t *to, const struct packet *packet, uint32_t headers)
{
	if (headers & HEADER_DETH) {
		to = roce_put32(to, packet->qkey);
		to = roce_put32(to, packet->source_qpn);
	}
	if (headers & HEADER_XRCETH)
		to = roce_put32(to, packet->xrc_srqn);
	if (headers & HEADER_DCETH) {
		to = roce_put64(to, packet->dc_key);
		to = roce_put64(to, packet->dc_connection);
		to = roce_put32(to, packet->dc_first_psn);
		to = roce_put32(to, packet->source_qpn);
	}
	return to;
}

static uint8_t *write_target(uint8_t *to, const struct packet *packet, uint32_t headers)
{
	to = roce_put64(to, packet->remote_address);
	to = roce_put32(to, packet->rkey);
	if (headers & HEADER_RETH)
		return roce_put32(to, packet->dma_length);
	to = roce_put64(to, packet->swap_add);
	/* IBTA 9.3.5: a fetch-and-add does not use the compare field. */
	return roce_put64(to, packet->message == MESSAGE_FETCH_ADD ? 0 : packet->compare);
}

static uint8_t *write_extensions(uint8_t *to, const struct packet *packet, uint32_t headers)
{
	if (headers & (HEADER_DETH | HEADER_XRCETH | HEADER_DCETH))
		to = write_source(to, packet, headers);
	if (headers & (HEADER_RETH | HEADER_ATOMICETH))
		to = write_target(to, packet, headers);
	if (headers & HEADER_AETH)
		to = roce_put32(to, (uint32_t)packet->syndrome << 24 | (packet->msn & 0xffffff));
	if (headers & HEADER_ATOMICACKETH)
		to = roce_put64(to, packet->original);
	if (headers & HEADER_IMMDT)
		to = roce_put32(to, be32toh(packet->immediate));
	if (headers & HEADER_IETH)
		to = roce_put32(to, packet->invalidate_rkey);
	return to;
}

uint32_t roce_headers_write(uint8_t *to, const struct packet *packet, uint32_t number, unsigned int place,
			    uint32_t payload)
{
	int found = find_opcode(packet, place);
	uint32_t opcode = (uint32_t)found, headers;
	bool solicited, acknowledge, notifies;

	if (found < 0)
		return 0;
	headers = packet_opcodes[opcode].headers & ~HEADER_PAYLOAD;
	solicited = packet->solicited && place & PLACE_LAST;
	/* A request without payload is one packet, although its count is that of the response's packets. */
	acknowledge = packet->acknowledge && (number + 1 == packet->count || place == PLACE_ONLY);
	notifies = packet->message == MESSAGE_CONGESTION;
	roce_put32(to, opcode << 24 | (solicited ? ROCE_BTH_SOLICITED << 16 : 0) |
			       (notifies ? 0 : ROCE_BTH_MIGRATED << 16) |
			       roce_pad(payload) << (16 + ROCE_BTH_PAD_SHIFT) | ROCE_P_KEY);
	roce_put32(to + 4, (notifies ? (uint32_t)ROCE_BTH_BECN << 24 : 0) | (packet->destination_qpn & 0xffffff));
	roce_put32(to + 8, (acknowledge ? (uint32_t)ROCE_BTH_ACKNOWLEDGE << 24 : 0) | psn_add(packet->psn, number));
	if (headers)
		write_extensions(to + ROCE_BTH_BYTES, packet, headers);
	return opcode_header_bytes(opcode);
}

uint32_t roce_masks_write(uint8_t *to, const struct packet *packet)
{
	bool swaps = packet->message == MESSAGE_MASKED_COMPARE_SWAP;
	uint64_t compare = swaps ? packet->compare_mask : 0;

	if (packet->operand_bytes == sizeof(uint32_t)) {
		roce_put32(roce_put32(to, (uint32_t)packet->swap_mask), (uint32_t)compare);
		return 2 * sizeof(uint32_t);
	}
	roce_put64(roce_put64(to, packet->swap_mask), compare);
	return 2 * sizeof(uint64_t);
}

/* ---- parsing -------------------------------------------------------------------------------------------------- */

static const uint8_t *parse_source(struct packet *packet, const uint8_t *from, uint32_t headers)
{
	if (headers & HEADER_DETH) {
		packet->qkey = roce_get32(from);
		packet->source_qpn = roce_get32(from + 4) & 0xffffff;
		from += 8;
	}
	if (headers & HEADER_XRCETH) {
		packet->xrc_srqn = roce_get32(from) & 0xffffff;
		from += 4;
	}
	if (headers & HEADER_DCETH) {
		packet->dc_key = roce_get64(from);
		packet->dc_connection = roce_get64(from + 8);
		packet->dc_first_psn = roce_get32(from + 16) & PSN_MASK;
		packet->source_qpn = roce_get32(from + 20) & 0xffffff;
		from += 24;
	}
	return from;
}

static const uint8_t *parse_target(struct packet *packet, const uint8_t *from, uint32_t headers)
{
	packet->remote_address = roce_get64(from);
	packet->rkey = roce_get32(from + 8);
	if (headers & HEADER_RETH) {
		packet->dma_length = roce_get32(from + 12);
		return from + 16;
	}
	packet->swap_add = roce_get64(from + 12);
	packet->compare = roce_get64(from + 20);
	packet->operand_bytes = sizeof(uint64_t);
	packet->dma_length = sizeof(uint64_t);
	return from + 28;
}

static void parse_extensions(struct packet *packet, const uint8_t *from, uint32_t headers)
{
	if (headers & (HEADER_DETH | HEADER_XRCETH | HEADER_DCETH))
		from = parse_source(packet, from, headers);
	if (headers & (HEADER_RETH | HEADER_ATOMICETH))
		from = parse_target(packet, from, headers);
	if (headers & HEADER_AETH) {
		packet->syndrome = from[0];
		packet->msn = roce_get32(from) & 0xffffff;
		from += 4;
	}
	if (headers & HEADER_ATOMICACKETH) {
		packet->original = roce_get64(from);
		from += 8;
	}
	if (headers & HEADER_IMMDT) {
		packet->immediate = htobe32(roce_get32(from));
		from += 4;
	}
	if (headers & HEADER_IETH)
		packet->invalidate_rkey = roce_get32(from);
}

/* Returns false for reserved codes (IBTA 9.7.5.1.2), and for a response with both data and a NAK. */
static bool good_syndrome(const struct packet *packet)
{
	uint8_t kind = packet->syndrome & AETH_KIND_MASK;

	if (packet->syndrome & AETH_RESERVED || kind == AETH_KIND_RESERVED)
		return false;
	return kind == AETH_ACK || packet->message == MESSAGE_ACKNOWLEDGE;
}

int roce_headers_parse(struct packet *packet, const uint8_t *bytes, size_t length, struct refusal *why)
{
	const struct packet_opcode *opcode;
	uint32_t first, destination;

	if (length < ROCE_BTH_BYTES)
		return REFUSAL(why, EPROTO, RULE_FRAME_SHORT, length, ROCE_BTH_BYTES);
	first = roce_get32(bytes);
	destination = roce_destination(bytes);
	opcode = &packet_opcodes[first >> 24];
	if (first >> 16 & ROCE_BTH_VERSION)
		return REFUSAL(why, EPROTO, RULE_FRAME_VERSION, destination, first >> 16 & ROCE_BTH_VERSION);
	if (((first | P_KEY_MEMBERSHIP) & 0xffff) != ROCE_P_KEY)
		return REFUSAL(why, EPROTO, RULE_FRAME_P_KEY, destination, first & 0xffff, ROCE_P_KEY);
	if (!opcode->name)
		return REFUSAL(why, EPROTO, RULE_FRAME_OPCODE, destination, first >> 24);
	if (length < opcode_header_bytes(first >> 24))
		return REFUSAL(why, EPROTO, RULE_FRAME_SHORT, length, opcode_header_bytes(first >> 24));
	packet->transport = opcode->transport;
	packet->message = opcode->message;
	packet->place = opcode->place;
	packet->opcode = (uint8_t)(first >> 24);
	packet->solicited = first >> 16 & ROCE_BTH_SOLICITED;
	packet->acknowledge = bytes[8] & ROCE_BTH_ACKNOWLEDGE;
	packet->destination_qpn = destination;
	packet->source_qpn = 0;
	packet->psn = roce_get32(bytes + 8) & PSN_MASK;
	packet->count = opcode->message != MESSAGE_READ_REQUEST;
	packet->why.rule = RULE_NONE;
	packet->peer_rule = 0;
	packet->payload.length = 0;
	if (opcode->headers & ~HEADER_PAYLOAD)
		parse_extensions(packet, bytes + ROCE_BTH_BYTES, opcode->headers);
	if (opcode->headers & HEADER_AETH && !good_syndrome(packet))
		return REFUSAL(why, EPROTO, RULE_FRAME_SYNDROME, packet->message, destination, packet->syndrome);
	return (int)opcode_header_bytes(first >> 24);
}

int roce_masks_parse(struct packet *packet, const uint8_t *bytes, size_t length, struct refusal *why)
{
	if (length == 2 * sizeof(uint64_t)) {
		packet->swap_mask = roce_get64(bytes);
		packet->compare_mask = roce_get64(bytes + 8);
	} else if (length == 2 * sizeof(uint32_t)) {
		packet->swap_mask = roce_get32(bytes);
		packet->compare_mask = roce_get32(bytes + 4);
	} else {
		return REFUSAL(why, EPROTO, RULE_FRAME_MASKS, packet->message, packet->destination_qpn, length);
	}
	packet->operand_bytes = (uint8_t)(length / 2);
	packet->dma_length = packet->operand_bytes;
	return 0;
}

int roce_parse(struct packet *packet, const uint8_t *bytes, size_t length, struct refusal *why)
{
	int headers = roce_headers_parse(packet, bytes, length, why);
	size_t rest, pad;

	if (headers < 0)
		return headers;
	rest = length - (size_t)headers;
	pad = bytes[1] >> ROCE_BTH_PAD_SHIFT & 3;
	if (rest & 3 || pad > rest)
		return REFUSAL(why, EPROTO, RULE_FRAME_PAD, packet->message, packet->destination_qpn, rest, pad);
	if (!(packet_opcodes[bytes[0]].headers & HEADER_PAYLOAD)) {
		if (rest)
			return REFUSAL(why, EPROTO, RULE_FRAME_LENGTH, packet->message, packet->destination_qpn, rest);
		return 0;
	}
	if (message_is_masked_atomic(packet->message))
		return roce_masks_parse(packet, bytes + headers, rest - pad, why);
	stream_begin(&packet->payload, NULL, 0);
	stream_add_memory(&packet->payload, bytes + headers, rest - pad);
	return 0;
}
