/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A packet, or a run of packets: header fields in host order, payload by reference. A run is one message, or a part of
 * one, with the PSNs psn … psn + count - 1. `place` shows whether it contains the first and the last packet of its
 * message. Links that hand over references carry a run as a whole; others cut it at the path MTU (format/opcode.h).
 *
 * A packet lives in a struct run (wire/run.h). Its payload refers to memory of keys and to WQEs, so it is valid until
 * the call that it was passed to returns.
 */
#ifndef SOFTHCA_WIRE_PACKET_H
#define SOFTHCA_WIRE_PACKET_H

#include "mkey/stream.h"
#include "format/opcode.h"

/* AETH syndromes (IBTA 9.7.5.1.2): kind, with a code in the low five bits. */
enum aeth_kind {
	AETH_ACK = 0x00,
	/*
	 * IBTA 9.7.7.2: the code of an acknowledgement is a credit count; this one means that credits are not counted.
	 */
	AETH_NO_CREDITS = 0x1f,
	AETH_RNR_NAK = 0x20,
	AETH_NAK = 0x60,
	AETH_KIND_MASK = 0x60,
	AETH_CODE_MASK = 0x1f,
};

enum nak_code {
	NAK_SEQUENCE = 0,
	NAK_INVALID_REQUEST = 1,
	NAK_REMOTE_ACCESS = 2,
	NAK_REMOTE_OPERATION = 3,
};

struct link;

struct packet_path {
	union ibv_gid source, destination;
	enum ibv_gid_type type; /* RoCE v1 or v2 */
	uint8_t service_level, traffic_class, hop_limit;
	uint32_t flow_label;
	uint16_t udp_source_port; /* RoCE v2; 0: from the flow label */
	/* Connection to another process of this host over which it arrived (link/host/host.h); 0: none. */
	uint32_t process;
};

struct packet {
	/* BTH */
	uint8_t transport; /* as in struct packet_opcode */
	uint8_t message;   /* enum message */
	uint8_t place;     /* enum packet_place */
	uint8_t opcode;    /* BTH opcode of MESSAGE_UNSUPPORTED; undefined for other messages */
	bool solicited;
	bool acknowledge; /* the responder must acknowledge the last packet */
	bool handed_on;   /* came from another host by way of the process with the RoCE port; for queue pair 1 */
	uint32_t destination_qpn, source_qpn;
	uint32_t psn; /* PSN of the first packet of the run */
	/* As path->process; only for a `paired` link. */
	uint32_t connection;
	/* At least 1. 0 in an arrived packet: as many as its bytes take; the responder knows the MTU. */
	uint32_t count;
	uint16_t mtu; /* bytes of payload per packet */
	/* To the destination or, for an arrived packet, back to its sender. NULL: the packet is lost. */
	const struct link *link;
	/* DETH */
	uint32_t qkey;
	/* XRCETH */
	uint32_t xrc_srqn;
	/* DCETH, and source_qpn (transport/responder/dct.h) */
	uint64_t dc_key;
	uint64_t dc_connection; /* chosen by the initiator, larger than those of its earlier connections */
	uint32_t dc_first_psn;  /* first PSN of the connection */
	/* RETH, AtomicETH */
	uint64_t remote_address;
	uint32_t rkey;
	uint32_t dma_length;
	uint64_t swap_add, compare;
	/* Masked atomics (mlx5-formats 1.5): a fetch-and-add has its boundary in swap_mask. */
	uint64_t swap_mask, compare_mask;
	uint8_t operand_bytes; /* 4 or 8 */
	/* AETH, AtomicAckETH */
	uint8_t syndrome;
	/* NAK: number of the rule by which another process of this host refused; 0: not known. */
	uint8_t peer_rule;
	uint32_t msn;
	uint64_t original;
	/* ImmDt (network order), IETH */
	__be32 immediate;
	uint32_t invalidate_rkey;
	/* Explanation of a NAK from this process, otherwise RULE_NONE. */
	struct refusal why;

	const struct packet_path *path;
	struct packet_path own_path;   /* storage for `path` of datagrams and DC packets */
	struct walk_access own_access; /* storage for the access that reads the payload of a reply to XRC */
	struct stream payload;         /* if payload.length is 0, the other members are undefined */
};

#define ATOMIC_WRITE_PAYLOAD 8 /* IBTA annex A19: payload of an ATOMIC WRITE */

/** Returns the operand size of an atomic: 8 bytes, or 4 for a masked atomic of 4 bytes. */
static inline uint32_t atomic_bytes(const struct packet *packet)
{
	bool narrow = message_is_masked_atomic(packet->message) && packet->operand_bytes == sizeof(uint32_t);

	return narrow ? sizeof(uint32_t) : sizeof(uint64_t);
}

#define PSN_MASK 0xffffffu
#define MULTICAST_QPN 0xffffffu /* IBTA 10.5.1: destination of all multicast packets */

/** Returns the distance a - b of two PSNs, negative if a is older (IBTA 9.7.2: half of the 24-bit space). */
static inline int32_t psn_distance(uint32_t a, uint32_t b)
{
	return (int32_t)((a - b) << 8) >> 8;
}

static inline uint32_t psn_add(uint32_t psn, uint32_t count)
{
	return (psn + count) & PSN_MASK;
}

/** Returns the number of packets for @length bytes, at least 1. */
static inline uint32_t packets_of(uint64_t length, uint32_t mtu_shift)
{
	return length ? (uint32_t)((length - 1) >> mtu_shift) + 1 : 1;
}

/** Removes the first @known packets, but not all, of 2^@mtu_shift bytes of payload each. */
static inline void packet_leave_out(struct packet *packet, uint32_t known, uint32_t mtu_shift)
{
	packet->psn = psn_add(packet->psn, known);
	packet->count -= known;
	packet->place &= (uint8_t)~PLACE_FIRST;
	stream_skip(&packet->payload, (uint64_t)known << mtu_shift);
}

#endif
