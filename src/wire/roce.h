/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RoCEv2 on the wire (IBTA volume 1, chapters 5 and 9, annex A17): BTH and extension headers, in big-endian order, from
 * and to struct packet, and the invariant CRC. Driven by format/opcodes.def; pure functions, any thread.
 *
 * The shm link uses the same headers, without ICRC.
 */
#ifndef SOFTHCA_WIRE_ROCE_H
#define SOFTHCA_WIRE_ROCE_H

#include <stddef.h>
#include <stdint.h>

#include "explain/explain.h"
#include "wire/packet.h"

#define ROCE_BTH_BYTES 12
#define ROCE_ICRC_BYTES 4
#define ROCE_MOST_HEADERS 72 /* BTH and the longest extension headers of any opcode */
#define ROCE_PORT 4791

/**
 * Writes BTH and extension headers of packet @number (from 0) of the run @packet, which is at @place (enum packet_place)
 * of its message and carries @payload bytes: opcode, pad count, PSN and so on follow from these. The masks of a masked
 * atomic are payload (roce_masks_write). Returns the bytes written, at most ROCE_MOST_HEADERS; 0: the transport has no
 * opcode for it, it cannot be sent.
 */
uint32_t roce_headers_write(uint8_t *to, const struct packet *packet, uint32_t number, unsigned int place,
			    uint32_t payload);

/** Writes the masks of the masked atomic @packet; returns the bytes, 8 or 16. */
uint32_t roce_masks_write(uint8_t *to, const struct packet *packet);

/** BTH pad count for @payload bytes. */
static inline uint32_t roce_pad(uint32_t payload)
{
	return -payload & 3;
}

/**
 * Fills all fields of @packet that its headers tell from @length bytes at @bytes: BTH, headers, payload, pad; no ICRC.
 * The payload becomes packet->payload, by reference, pad left out. count is 1, or 0 for a READ request (the responder
 * knows the MTU); mtu, path, own_path and link are the caller's. Returns 0, or -EPROTO with @why: too short for its
 * headers, unknown opcode, transport version not 0, bad pad count, P_Key that is not the default one, a length that the
 * opcode cannot have, a reserved syndrome. Never reads past @length. @why names rule and figures, for explain_make().
 */
int roce_parse(struct packet *packet, const uint8_t *bytes, size_t length, struct refusal *why);

/** The destination QP of a BTH. @bytes: at least ROCE_BTH_BYTES. */
static inline uint32_t roce_destination(const uint8_t *bytes)
{
	return (uint32_t)bytes[5] << 16 | (uint32_t)bytes[6] << 8 | bytes[7];
}

/** Sets the request for an acknowledgement in a BTH: for whoever writes one for many packets. */
static inline void roce_ask_acknowledge(uint8_t *bytes)
{
	bytes[8] |= 0x80;
}

/** The pad count that a BTH tells. @bytes: at least ROCE_BTH_BYTES. */
static inline uint32_t roce_pad_of(const uint8_t *bytes)
{
	return bytes[1] >> 4 & 3;
}

/**
 * The first half of roce_parse(): BTH and extension headers only, for whoever has the payload elsewhere, of any length.
 * @packet->payload.length becomes 0. Returns the bytes of the headers, or -EPROTO with @why.
 */
int roce_headers_parse(struct packet *packet, const uint8_t *bytes, size_t length, struct refusal *why);

/** The masks of the masked atomic @packet, its whole payload of @length bytes at @bytes. Returns 0, or -EPROTO with @why. */
int roce_masks_parse(struct packet *packet, const uint8_t *bytes, size_t length, struct refusal *why);

/*
 * The ICRC (IBTA 7.8.1, annex A17) covers IP header, UDP header, BTH to pad, with the fields that routers change taken as
 * ones. The IPv4 header is taken to say "do not fragment", as that of a socket with path MTU discovery does.
 */

/**
 * The UDP source port of @path: its own if set, else made of the flow label as the Linux kernel makes it
 * (rdma_flow_label_to_udp_sport), or, without one, of @qpns.
 */
uint16_t roce_source_port(const struct packet_path *path, uint32_t source_qpn, uint32_t destination_qpn);

/**
 * The ICRC, as the four bytes on the wire in the order of memory, of @length bytes (BTH … pad) at @bytes, sent along
 * @path from UDP port @source_port to @destination_port, with IPv4 identification @identification (IPv6 has none).
 */
uint32_t roce_icrc(const struct packet_path *path, uint16_t source_port, uint16_t destination_port,
		   uint16_t identification, const uint8_t *bytes, size_t length);

/* What the ICRC covers of an IPv4 header and a receiver of UDP does not see (docs/inside/wire.md). */
struct ipv4_unseen {
	uint16_t identification;
	bool may_fragment; /* the flag "do not fragment" is clear */
	bool solved; /* it is not what was expected: its 17 bits were solved for, 15 bits of the ICRC were checked */
};

/**
 * Checks the ICRC behind @length bytes (BTH … pad) at @bytes. With IPv4 @unseen->identification is the one to expect, and
 * "do not fragment" is; where the ICRC is not that of these, @unseen becomes that which it fits. Returns false if there is
 * no such header (IPv6 has nothing unseen).
 */
bool roce_icrc_fits(const struct packet_path *path, uint16_t source_port, uint16_t destination_port,
		    struct ipv4_unseen *unseen, const uint8_t *bytes, size_t length);

#endif
