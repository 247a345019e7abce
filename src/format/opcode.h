/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages and the packet opcodes that carry them (opcodes.def). */
#ifndef SOFTHCA_FORMAT_OPCODE_H
#define SOFTHCA_FORMAT_OPCODE_H

#include <stdbool.h>
#include <stdint.h>
#include <infiniband/verbs.h>

/* messages.def. */
enum message {
#define MESSAGE(name, ...) MESSAGE_##name,
#include "format/messages.def"
#undef MESSAGE
	MESSAGE_COUNT,
};

enum message_property {
	MESSAGE_TAKES_RECEIVE = 1 << 0,
	MESSAGE_TAKES_RECEIVE_LAST = 1 << 1,
	MESSAGE_IS_ATOMIC = 1 << 2,
	MESSAGE_IS_MASKED = 1 << 3,
	MESSAGE_IS_LONG = 1 << 4,
	MESSAGE_IS_RESPONSE = 1 << 5,
	MESSAGE_IS_ANSWERED = 1 << 6,
};

struct message_properties {
	uint8_t family; /* enum message */
	uint8_t access; /* enum ibv_access_flags that the QP must allow */
	uint8_t properties;
};

/* In the header, so that the compiler evaluates it for constant messages. */
static const struct message_properties message_properties[MESSAGE_COUNT] = {
#define RECEIVE MESSAGE_TAKES_RECEIVE
#define RECEIVE_LAST MESSAGE_TAKES_RECEIVE_LAST
#define ATOMIC MESSAGE_IS_ATOMIC
#define MASKED MESSAGE_IS_MASKED
#define LONG MESSAGE_IS_LONG
#define RESPONSE MESSAGE_IS_RESPONSE
#define ANSWERED MESSAGE_IS_ANSWERED
#define REMOTE_WRITE IBV_ACCESS_REMOTE_WRITE
#define REMOTE_READ IBV_ACCESS_REMOTE_READ
#define REMOTE_ATOMIC IBV_ACCESS_REMOTE_ATOMIC
#define MESSAGE(name, text, family, access, properties) [MESSAGE_##name] = {MESSAGE_##family, access, properties},
#include "format/messages.def"
#undef MESSAGE
#undef RECEIVE
#undef RECEIVE_LAST
#undef ATOMIC
#undef MASKED
#undef LONG
#undef RESPONSE
#undef ANSWERED
#undef REMOTE_WRITE
#undef REMOTE_READ
#undef REMOTE_ATOMIC
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

/* Transport of a CNP; no queue pair has it. */
#define TRANSPORT_NONE 0

struct packet_opcode {
	const char *name; /* NULL: no such opcode */
	/* enum ibv_qp_type; IBV_QPT_XRC_SEND and QP_TYPE_DCI for both ends, TRANSPORT_NONE for a CNP */
	uint8_t transport;
	uint8_t message;
	uint8_t place;
	uint8_t header_bytes; /* length of the extension headers */
	uint16_t headers;
};

extern const struct packet_opcode packet_opcodes[256];

/** Returns the BTH opcode, or -1 if the transport has none, or several (MESSAGE_UNSUPPORTED). */
int packet_opcode_of(enum ibv_qp_type transport, enum message message, enum packet_place place);

static inline bool message_has(uint8_t message, enum message_property property)
{
	return message < MESSAGE_COUNT && message_properties[message].properties & property;
}

static inline bool message_is_masked_atomic(uint8_t message)
{
	return message_has(message, MESSAGE_IS_MASKED);
}

static inline bool message_is_atomic(uint8_t message)
{
	return message_has(message, MESSAGE_IS_ATOMIC);
}

static inline bool message_is_write(uint8_t message)
{
	return message < MESSAGE_COUNT && message_properties[message].family == MESSAGE_WRITE;
}

/** Returns the message without its variants (immediate data, invalidation). */
static inline uint8_t message_family(uint8_t message)
{
	return message < MESSAGE_COUNT ? message_properties[message].family : message;
}

/** Returns "SEND", "READ request", … */
const char *message_name(unsigned int message);

#endif
