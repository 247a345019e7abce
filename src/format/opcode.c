/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of packet opcodes, from opcodes.def. */
#include "format/opcode.h"

#include "format/qp_types.h"

#define RC IBV_QPT_RC
#define UC IBV_QPT_UC
#define UD IBV_QPT_UD
#define XRC IBV_QPT_XRC_SEND
#define DC QP_TYPE_DCI
#define CN TRANSPORT_NONE
#define DETH HEADER_DETH
#define RETH HEADER_RETH
#define ATOMICETH HEADER_ATOMICETH
#define AETH HEADER_AETH
#define ATOMICACKETH HEADER_ATOMICACKETH
#define IMMDT HEADER_IMMDT
#define IETH HEADER_IETH
#define PAYLOAD HEADER_PAYLOAD
#define XRCETH HEADER_XRCETH
#define DCETH HEADER_DCETH

#define IF(headers, header, bytes) ((headers)&HEADER_##header ? (bytes) : 0)
#define HEADER_BYTES(headers)                                                                                          \
	(IF(headers, DETH, 8) + IF(headers, XRCETH, 4) + IF(headers, DCETH, 24) + IF(headers, RETH, 16) +              \
	 IF(headers, ATOMICETH, 28) + IF(headers, AETH, 4) + IF(headers, ATOMICACKETH, 8) + IF(headers, IMMDT, 4) +    \
	 IF(headers, IETH, 4))

const struct packet_opcode packet_opcodes[256] = {
#define OPCODE(code, name, transport, message, place, headers)                                                         \
	[code] = {#name, transport, MESSAGE_##message, PLACE_##place, HEADER_BYTES(headers), headers},
#define UNSUPPORTED(code, name, transport) [code] = {#name, transport, MESSAGE_UNSUPPORTED, PLACE_ONLY, 0, PAYLOAD},
#include "format/opcodes.def"
};

/* Opcodes by transport, message and place, in the low byte of entries that are not 0. */
enum { KNOWN = 0x100 };
enum { INDEX_RC, INDEX_UC, INDEX_UD, INDEX_XRC, INDEX_DC, INDEX_CN, INDEX_COUNT };

static const uint16_t codes[INDEX_COUNT][MESSAGE_COUNT][PLACE_ONLY + 1] = {
#define OPCODE(code, name, transport, message, place, headers)                                                         \
	[INDEX_##transport][MESSAGE_##message][PLACE_##place] = KNOWN | code,
#include "format/opcodes.def"
};

static int transport_index(enum ibv_qp_type transport)
{
	switch ((int)transport) {
	case RC:
		return INDEX_RC;
	case UC:
		return INDEX_UC;
	case UD:
		return INDEX_UD;
	case XRC:
		return INDEX_XRC;
	case DC:
		return INDEX_DC;
	case CN:
		return INDEX_CN;
	default:
		return -1;
	}
}

int packet_opcode_of(enum ibv_qp_type transport, enum message message, enum packet_place place)
{
	int index = transport_index(transport);
	uint16_t code = index < 0 || message >= MESSAGE_COUNT ? 0 : codes[index][message][place & PLACE_ONLY];

	return code ? code & 0xff : -1;
}

const char *message_name(unsigned int message)
{
	static const char *const names[MESSAGE_COUNT] = {
#define MESSAGE(name, text, ...) [MESSAGE_##name] = (text),
#include "format/messages.def"
#undef MESSAGE
	};

	return message < MESSAGE_COUNT ? names[message] : "packet";
}
