/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Headers of the most frequent RC packets: roce_headers_write() and roce_headers_parse(), compiled for one opcode per
 * call (core/compiler.h). Pure functions; any thread.
 */
#ifndef SOFTHCA_WIRE_ROCE_WHOLE_H
#define SOFTHCA_WIRE_ROCE_WHOLE_H

#include "core/compiler.h"
#include "wire/roce.h"
#include "wire/roce_fields.h"

/* Opcodes of RC (IBTA table 38). */
enum roce_whole {
	ROCE_WHOLE_SEND = 0x04,
	ROCE_WHOLE_WRITE = 0x0a,
	ROCE_WHOLE_READ_REQUEST = 0x0c,
	ROCE_WHOLE_READ_RESPONSE = 0x10,
	ROCE_WHOLE_ACKNOWLEDGE = 0x11,
};

static inline SPECIALISED uint32_t roce_whole_bytes(const enum roce_whole opcode)
{
	switch (opcode) {
	case ROCE_WHOLE_WRITE:
	case ROCE_WHOLE_READ_REQUEST:
		return ROCE_BTH_BYTES + ROCE_RETH_BYTES;
	case ROCE_WHOLE_READ_RESPONSE:
	case ROCE_WHOLE_ACKNOWLEDGE:
		return ROCE_BTH_BYTES + ROCE_AETH_BYTES;
	default:
		return ROCE_BTH_BYTES;
	}
}

static inline SPECIALISED bool roce_whole_has_payload(const enum roce_whole opcode)
{
	return opcode != ROCE_WHOLE_READ_REQUEST && opcode != ROCE_WHOLE_ACKNOWLEDGE;
}

static inline SPECIALISED enum message roce_whole_message(const enum roce_whole opcode)
{
	switch (opcode) {
	case ROCE_WHOLE_WRITE:
		return MESSAGE_WRITE;
	case ROCE_WHOLE_READ_REQUEST:
		return MESSAGE_READ_REQUEST;
	case ROCE_WHOLE_READ_RESPONSE:
		return MESSAGE_READ_RESPONSE;
	case ROCE_WHOLE_ACKNOWLEDGE:
		return MESSAGE_ACKNOWLEDGE;
	default:
		return MESSAGE_SEND;
	}
}

/* Returns the first word of the BTH, without the solicited event bit, for a packet with @payload bytes. */
static inline SPECIALISED uint32_t roce_whole_word(const enum roce_whole opcode, uint32_t payload)
{
	uint32_t pad = roce_whole_has_payload(opcode) ? roce_pad(payload) : 0;

	return (uint32_t)opcode << 24 | ROCE_BTH_MIGRATED << 16 | pad << (16 + ROCE_BTH_PAD_SHIFT) | ROCE_P_KEY;
}

/** Writes the headers of @packet: RC, the message of @opcode, PLACE_ONLY, with @payload bytes. */
static inline SPECIALISED void roce_whole_write(uint8_t *to, const struct packet *packet, const enum roce_whole opcode,
						uint32_t payload)
{
	to = roce_put32(to, roce_whole_word(opcode, payload) |
				    (packet->solicited ? (uint32_t)ROCE_BTH_SOLICITED << 16 : 0));
	to = roce_put32(to, packet->destination_qpn & 0xffffff);
	to = roce_put32(to,
			(packet->acknowledge ? (uint32_t)ROCE_BTH_ACKNOWLEDGE << 24 : 0) | (packet->psn & PSN_MASK));
	switch (opcode) {
	case ROCE_WHOLE_WRITE:
	case ROCE_WHOLE_READ_REQUEST:
		roce_put32(roce_put32(roce_put64(to, packet->remote_address), packet->rkey), packet->dma_length);
		break;
	case ROCE_WHOLE_READ_RESPONSE:
	case ROCE_WHOLE_ACKNOWLEDGE:
		roce_put32(to, (uint32_t)packet->syndrome << 24 | (packet->msn & 0xffffff));
		break;
	default:
		break;
	}
}

/**
 * Fills @packet from roce_whole_bytes() of headers at @bytes, which no other process can change, for a packet with
 * @payload bytes. Returns false, with @packet undefined, if the headers need roce_headers_parse(), which also finds
 * what is invalid.
 */
static inline SPECIALISED bool roce_whole_parse(struct packet *packet, const uint8_t *bytes,
						const enum roce_whole opcode, uint32_t payload)
{
	uint32_t first = roce_get32(bytes);

	if (unlikely((first & ~((uint32_t)ROCE_BTH_SOLICITED << 16 | (uint32_t)ROCE_BTH_MIGRATED << 16)) !=
		     (roce_whole_word(opcode, payload) & ~((uint32_t)ROCE_BTH_MIGRATED << 16))))
		return false;
	packet->transport = IBV_QPT_RC;
	packet->message = roce_whole_message(opcode);
	packet->place = PLACE_ONLY;
	packet->solicited = first >> 16 & ROCE_BTH_SOLICITED;
	packet->acknowledge = bytes[8] & ROCE_BTH_ACKNOWLEDGE;
	packet->destination_qpn = roce_get32(bytes + 4) & 0xffffff;
	packet->source_qpn = 0;
	packet->psn = roce_get32(bytes + 8) & PSN_MASK;
	packet->count = opcode != ROCE_WHOLE_READ_REQUEST;
	packet->why.rule = RULE_NONE;
	packet->payload.length = 0;
	bytes += ROCE_BTH_BYTES;
	switch (opcode) {
	case ROCE_WHOLE_WRITE:
	case ROCE_WHOLE_READ_REQUEST:
		packet->remote_address = roce_get64(bytes);
		packet->rkey = roce_get32(bytes + 8);
		packet->dma_length = roce_get32(bytes + 12);
		return true;
	case ROCE_WHOLE_READ_RESPONSE:
	case ROCE_WHOLE_ACKNOWLEDGE:
		packet->syndrome = bytes[0];
		packet->msn = roce_get32(bytes) & 0xffffff;
		/* NAKs are rare and take the general parser. */
		return likely((packet->syndrome & ~(unsigned int)AETH_CODE_MASK) == AETH_ACK);
	default:
		return true;
	}
}

#endif
