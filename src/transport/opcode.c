/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of packet opcodes, from opcodes.def. */
#include "transport/opcode.h"

#include "hca/hca.h"

#define RC IBV_QPT_RC
#define UC IBV_QPT_UC
#define UD IBV_QPT_UD
#define XRC IBV_QPT_XRC_SEND
#define DC QP_TYPE_DCI
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

const struct packet_opcode packet_opcodes[256] = {
#define OPCODE(code, name, transport, message, place, headers)                                                         \
	[code] = {#name, transport, MESSAGE_##message, PLACE_##place, headers},
#include "transport/opcodes.def"
#undef OPCODE
};

int packet_opcode_of(enum ibv_qp_type transport, enum message message, enum packet_place place)
{
	for (int code = 0; code < 256; code++) {
		const struct packet_opcode *opcode = &packet_opcodes[code];

		if (opcode->name && opcode->transport == transport && opcode->message == message &&
		    opcode->place == place)
			return code;
	}
	return -1;
}

const char *message_name(unsigned int message)
{
	static const char *const names[MESSAGE_COUNT] = {
		[MESSAGE_NONE] = "nothing",
		[MESSAGE_SEND] = "SEND",
		[MESSAGE_SEND_IMM] = "SEND with immediate",
		[MESSAGE_SEND_INVALIDATE] = "SEND with invalidate",
		[MESSAGE_WRITE] = "RDMA WRITE",
		[MESSAGE_WRITE_IMM] = "RDMA WRITE with immediate",
		[MESSAGE_READ_REQUEST] = "RDMA READ request",
		[MESSAGE_COMPARE_SWAP] = "compare-and-swap",
		[MESSAGE_FETCH_ADD] = "fetch-and-add",
		[MESSAGE_MASKED_COMPARE_SWAP] = "masked compare-and-swap",
		[MESSAGE_MASKED_FETCH_ADD] = "masked fetch-and-add",
		[MESSAGE_DISCONNECT] = "disconnect",
		[MESSAGE_READ_RESPONSE] = "RDMA READ response",
		[MESSAGE_ACKNOWLEDGE] = "acknowledgement",
		[MESSAGE_ATOMIC_ACKNOWLEDGE] = "atomic acknowledgement",
	};

	return message < MESSAGE_COUNT ? names[message] : "packet";
}
