/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages and the packet opcodes that carry them; opcodes.def is the table. */
#ifndef SOFTHCA_FORMAT_OPCODE_H
#define SOFTHCA_FORMAT_OPCODE_H

#include <stdbool.h>
#include <stdint.h>
#include <infiniband/verbs.h>

/* What requester and responder exchange. A message becomes one packet or many, which only a link needs to know. */
enum message {
	MESSAGE_NONE,
	MESSAGE_SEND,
	MESSAGE_SEND_IMM,
	MESSAGE_SEND_INVALIDATE,
	MESSAGE_WRITE,
	MESSAGE_WRITE_IMM,
	MESSAGE_READ_REQUEST,
	MESSAGE_COMPARE_SWAP,
	MESSAGE_FETCH_ADD,
	MESSAGE_MASKED_COMPARE_SWAP,
	MESSAGE_MASKED_FETCH_ADD,
	MESSAGE_DISCONNECT, /* of a DCI that leaves: nobody answers */
	MESSAGE_CONGESTION, /* congestion notification packet, CNP (annex A17.9): nobody answers */
	MESSAGE_READ_RESPONSE,
	MESSAGE_ACKNOWLEDGE,
	MESSAGE_ATOMIC_ACKNOWLEDGE,
	MESSAGE_COUNT,
};

enum packet_place {
	PLACE_FIRST = 1,
	PLACE_LAST = 2,
	PLACE_MIDDLE = 0,
	PLACE_ONLY = PLACE_FIRST | PLACE_LAST,
};

enum packet_header {
	HEADER_DETH = 1 << 0,
	HEADER_RETH = 1 << 1,
	HEADER_ATOMICETH = 1 << 2,
	HEADER_AETH = 1 << 3,
	HEADER_ATOMICACKETH = 1 << 4,
	HEADER_IMMDT = 1 << 5,
	HEADER_IETH = 1 << 6,
	HEADER_PAYLOAD = 1 << 7,
	HEADER_XRCETH = 1 << 8,
	HEADER_DCETH = 1 << 9,
};

/* What stands for a transport in a CNP: no queue pair has it. */
#define TRANSPORT_NONE 0

struct packet_opcode {
	const char *name; /* NULL: no such opcode */
	uint8_t transport; /* enum ibv_qp_type; of XRC and DC, whose ends differ, IBV_QPT_XRC_SEND and QP_TYPE_DCI; of a CNP
			      TRANSPORT_NONE */
	uint8_t message;
	uint8_t place;
	uint8_t header_bytes; /* of the extension headers */
	uint16_t headers;
};

extern const struct packet_opcode packet_opcodes[256];

/** The BTH opcode of a packet, or -1 if the transport has none for it. */
int packet_opcode_of(enum ibv_qp_type transport, enum message message, enum packet_place place);

static inline bool message_is_masked_atomic(uint8_t message)
{
	return message == MESSAGE_MASKED_COMPARE_SWAP || message == MESSAGE_MASKED_FETCH_ADD;
}

static inline bool message_is_atomic(uint8_t message)
{
	return message == MESSAGE_COMPARE_SWAP || message == MESSAGE_FETCH_ADD || message_is_masked_atomic(message);
}

/** "SEND", "READ request", … for explanations and traces. */
const char *message_name(unsigned int message);

#endif
