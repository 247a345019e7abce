/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RoCEv2 wire format (IBTA volume 1, chapters 5 and 9, annex A17): converts between struct packet and BTH with
 * extension headers, by format/opcodes.def, and computes the invariant CRC. Pure functions; any thread. The shm link
 * uses the same headers, without ICRC.
 */
#ifndef SOFTHCA_WIRE_ROCE_H
#define SOFTHCA_WIRE_ROCE_H

#include <stddef.h>
#include <stdint.h>

#include "explain/explain.h"
#include "wire/packet.h"

#define ROCE_BTH_BYTES 12
#define ROCE_ICRC_BYTES 4
#define ROCE_MOST_HEADERS 72 /* BTH and the longest extension headers */
#define ROCE_PORT 4791

/**
 * Writes BTH and extension headers of packet @number (from 0) of the run @packet, at @place (enum packet_place) of its
 * message and with @payload bytes; the masks of a masked atomic are payload (roce_masks_write). Returns the bytes
 * written, at most ROCE_MOST_HEADERS, or 0 if the transport has no opcode for the packet.
 */
uint32_t roce_headers_write(uint8_t *to, const struct packet *packet, uint32_t number, unsigned int place,
			    uint32_t payload);

/** Writes the masks of the masked atomic @packet. Returns the bytes written, 8 or 16. */
uint32_t roce_masks_write(uint8_t *to, const struct packet *packet);

/** Returns the BTH pad count for @payload bytes. */
static inline uint32_t roce_pad(uint32_t payload)
{
	return -payload & 3;
}

/**
 * Fills @packet from @length bytes at @bytes: BTH, headers, payload, pad, without ICRC. packet->payload refers to the
 * payload without pad. count is 1, or 0 for a READ request (the responder knows the MTU). Does not set mtu, path,
 * own_path and link. Returns 0, or -EPROTO with @why (for explain_make()) for a malformed packet: rules 183 to 190.
 */
int roce_parse(struct packet *packet, const uint8_t *bytes, size_t length, struct refusal *why);

/** Returns the destination QP of a BTH. */
static inline uint32_t roce_destination(const uint8_t *bytes)
{
	return (uint32_t)bytes[5] << 16 | (uint32_t)bytes[6] << 8 | bytes[7];
}

/** Sets the acknowledge request bit of a BTH. */
static inline void roce_ask_acknowledge(uint8_t *bytes)
{
	bytes[8] |= 0x80;
}

/** Returns the pad count of a BTH. */
static inline uint32_t roce_pad_of(const uint8_t *bytes)
{
	return bytes[1] >> 4 & 3;
}

/**
 * As roce_parse(), for headers with payload stored elsewhere: payload.length becomes 0. Returns the length of the
 * headers, or -EPROTO with @why.
 */
int roce_headers_parse(struct packet *packet, const uint8_t *bytes, size_t length, struct refusal *why);

/** Parses the masks of the masked atomic @packet, @length bytes at @bytes. Returns 0, or -EPROTO with @why. */
int roce_masks_parse(struct packet *packet, const uint8_t *bytes, size_t length, struct refusal *why);

/*
 * The ICRC (IBTA 7.8.1, annex A17; docs/inside/wire.md). The IPv4 header is assumed to say "do not fragment", as for a
 * socket with path MTU discovery.
 */

/**
 * Returns the UDP source port of @path: its own if set; otherwise from the flow label as in Linux
 * (rdma_flow_label_to_udp_sport) or, without a flow label, from the QP numbers.
 */
uint16_t roce_source_port(const struct packet_path *path, uint32_t source_qpn, uint32_t destination_qpn);

/**
 * Returns the ICRC, in wire order in memory, of @length bytes (BTH … pad) at @bytes, sent along @path between these UDP
 * ports, with IPv4 identification @identification (IPv6 has none).
 */
uint32_t roce_icrc(const struct packet_path *path, uint16_t source_port, uint16_t destination_port,
		   uint16_t identification, const uint8_t *bytes, size_t length);

/*
 * State of the CRC after the headers of IP and UDP, with identification 0: the same for all packets of one length
 * between two ports. The headers cost as much as 1000 bytes of payload.
 */
struct roce_icrc_start {
	union ibv_gid source, destination;
	uint16_t source_port, destination_port;
	uint32_t length; /* BTH … pad; 0: not computed yet */
	uint32_t crc;
};

#define ROCE_ICRC_STARTS 8 /* a power of two */

/** Returns the start for packets of @length bytes (BTH … pad) along @path, if possible from @starts. */
const struct roce_icrc_start *roce_icrc_start(struct roce_icrc_start starts[static ROCE_ICRC_STARTS],
					      const struct packet_path *path, uint16_t source_port,
					      uint16_t destination_port, size_t length);
/** As roce_icrc(), for a packet of the length of @start. @identification: 0 for IPv6. */
uint32_t roce_icrc_from(const struct roce_icrc_start *start, uint16_t identification, const uint8_t *bytes);

/* Parts of the IPv4 header that the ICRC covers but a receiver of UDP does not see (docs/inside/wire.md). */
struct ipv4_unseen {
	uint16_t identification;
	bool may_fragment; /* "do not fragment" is clear */
	bool solved; /* not as expected: these 17 bits were computed from the ICRC, of which only 15 bits were checked */
};

/**
 * Checks the ICRC after @length bytes (BTH … pad) at @bytes. With IPv4, @unseen->identification is the expected one,
 * and "do not fragment" is expected; otherwise @unseen becomes the values that the ICRC matches. Returns false if none
 * match (IPv6 has no unseen fields).
 */
bool roce_icrc_fits(const struct packet_path *path, uint16_t source_port, uint16_t destination_port,
		    struct ipv4_unseen *unseen, const uint8_t *bytes, size_t length);
/** As roce_icrc_fits(), for a packet of the length of @start. */
bool roce_icrc_fits_from(const struct roce_icrc_start *start, struct ipv4_unseen *unseen, const uint8_t *bytes);

#endif
