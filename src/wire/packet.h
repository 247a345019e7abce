/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A packet, or a run of them: header fields in host order, and payload by reference.
 *
 * What requester and responder exchange is a run: one message, or a part of one, that takes the packet sequence numbers
 * psn … psn + count - 1. `place` tells whether the run holds the first and the last packet of its message. Links that
 * hand over references take a run whole; a link that needs the bytes cuts it at the path MTU (format/opcode.h gives
 * the wire opcode of each packet).
 *
 * A packet lives in a struct run (transport/run.h) of the thread that handles it. Its payload refers to the memory of
 * keys and to WQEs: it is valid until the call it was passed to returns.
 */
#ifndef SOFTHCA_WIRE_PACKET_H
#define SOFTHCA_WIRE_PACKET_H

#include "mkey/stream.h"
#include "format/opcode.h"

/* AETH syndromes (IBTA 9.7.5.1.2): what an acknowledgement says; codes in the low five bits. */
enum aeth_kind {
	AETH_ACK = 0x00,
	/* IBTA 9.7.7.2: of an acknowledgement the code is a count of credits, and this one says that none are counted. */
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

/* Addresses of a datagram and of a connection. */
struct packet_path {
	union ibv_gid source, destination;
	enum ibv_gid_type type; /* RoCE v1 or v2 */
	uint8_t service_level, traffic_class, hop_limit;
	uint32_t flow_label;
	uint16_t udp_source_port; /* RoCE v2; 0: from the flow label */
	/* The connection that it arrived over from another process of this host (link/host/host.h); 0: none. */
	uint32_t process;
};

struct packet {
	/* BTH */
	uint8_t transport; /* as in struct packet_opcode */
	uint8_t message;   /* enum message */
	uint8_t place;     /* enum packet_place */
	uint8_t opcode;    /* BTH opcode of MESSAGE_UNSUPPORTED; undefined for other messages */
	bool solicited;
	bool acknowledge; /* the responder shall acknowledge the last packet */
	bool handed_on;   /* of another host, by the process that has the RoCE port; for queue pair 1 */
	uint32_t destination_qpn, source_qpn;
	uint32_t psn; /* of the first packet of the run */
	/* Connection to another process of this host that it arrived over (link/host/host.h); only of a link that is `paired`. */
	uint32_t connection;
	uint32_t
		count; /* packets, at least 1; of what arrived also 0: as many as its bytes take, the responder knows the MTU */
	uint16_t mtu; /* bytes of payload per packet */
	/* That leads to the destination, or of what arrived: back; NULL: the packet is lost, as on a wire. */
	const struct link *link;
	/* DETH */
	uint32_t qkey;
	/* XRCETH */
	uint32_t xrc_srqn;
	/* DCETH, and source_qpn (transport/dct.h) */
	uint64_t dc_key;
	uint64_t dc_connection; /* number that the initiator gave it: larger than all it gave before */
	uint32_t dc_first_psn;  /* of the connection */
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
	/* Number of the rule by which a responder in another process of this host refused; 0: not known. Only in NAKs. */
	uint8_t peer_rule;
	uint32_t msn;
	uint64_t original;
	/* ImmDt (network order, as the program gave it), IETH */
	__be32 immediate;
	uint32_t invalidate_rkey;
	/* Explanation of a NAK when the refusing side is in this process, else RULE_NONE. */
	struct refusal why;

	const struct packet_path *path;
	struct packet_path own_path;   /* storage of the path of a datagram, and of packets of DC */
	struct walk_access own_access; /* storage, of the answer to XRC: as what its payload is read */
	struct stream payload;         /* payload.length bytes; a length of 0 needs no valid stream beyond that */
};

#define ATOMIC_WRITE_PAYLOAD 8 /* IBTA annex A19: payload of an ATOMIC WRITE */

/** Bytes that the atomic of @packet works on: 8, or 4 of a masked one that says so. */
static inline uint32_t atomic_bytes(const struct packet *packet)
{
	bool narrow = message_is_masked_atomic(packet->message) && packet->operand_bytes == sizeof(uint32_t);

	return narrow ? sizeof(uint32_t) : sizeof(uint64_t);
}

#define PSN_MASK 0xffffffu
#define MULTICAST_QPN 0xffffffu /* IBTA 10.5.1: the destination of all multicast packets */

/** Distance a - b of two packet sequence numbers: negative if a is older (IBTA 9.7.2: half of the 24-bit space). */
static inline int32_t psn_distance(uint32_t a, uint32_t b)
{
	return (int32_t)((a - b) << 8) >> 8;
}

static inline uint32_t psn_add(uint32_t psn, uint32_t count)
{
	return (psn + count) & PSN_MASK;
}

/** Packets that @length bytes take; a message without payload takes one. */
static inline uint32_t packets_of(uint64_t length, uint32_t mtu_shift)
{
	return length ? (uint32_t)((length - 1) >> mtu_shift) + 1 : 1;
}

/** Leaves out the first @known packets of the run @packet, which has more of them, each with 2^@mtu_shift bytes of payload. */
static inline void packet_leave_out(struct packet *packet, uint32_t known, uint32_t mtu_shift)
{
	packet->psn = psn_add(packet->psn, known);
	packet->count -= known;
	packet->place &= (uint8_t)~PLACE_FIRST;
	stream_skip(&packet->payload, (uint64_t)known << mtu_shift);
}

#endif
