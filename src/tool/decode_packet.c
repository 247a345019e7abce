/* SPDX-License-Identifier: BSD-2-Clause */
/* RoCEv2 packets (docs/inside/wire.md), from the first header present, and datagrams of the connection manager. */
#include <stdlib.h>
#include <string.h>

#include "format/cm_message.h"
#include "format/opcode.h"
#include "tool/decoder.h"
#include "tool/input.h"

enum { ETHERNET_TYPE_IPV4 = 0x0800, ETHERNET_TYPE_IPV6 = 0x86dd, PROTOCOL_UDP = 17 };
enum { ETHERNET_TYPE_TAG = 0x8100, ETHERNET_TYPE_OUTER_TAG = 0x88a8 }; /* IEEE 802.1Q */
enum { ICRC_BYTES = 4, UDP_BYTES = 8, BTH_BYTES = 12, ROCE_PORT = 4791 };

/* ---- ICRC (IBTA 7.8.1, annex A17.3.3) ---------------------------------------------------------------------------- */

/* The CRC of zlib and Ethernet: reflected, 0x04c11db7. Bit by bit, since it is for one packet. */
static uint32_t crc32_update(uint32_t crc, const uint8_t *bytes, size_t length)
{
	while (length--) {
		crc ^= *bytes++;
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
	}
	return crc;
}

/* Computes the ICRC from the IP header on; fields that routers change count as ones. */
static void icrc_of(const uint8_t *ip, size_t length, size_t udp, uint8_t icrc[ICRC_BYTES])
{
	static const uint8_t ones[8] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
	uint8_t *masked = malloc(length);
	uint32_t crc;

	if (!masked)
		abort();
	memcpy(masked, ip, length);
	if (ip[0] >> 4 == 4) {
		masked[1] = masked[8] = masked[10] = masked[11] = 0xff;
	} else {
		masked[0] |= 0x0f;
		masked[1] = masked[2] = masked[3] = masked[7] = 0xff;
	}
	masked[udp + 6] = masked[udp + 7] = 0xff;
	masked[udp + UDP_BYTES + 4] = 0xff;
	crc = ~crc32_update(crc32_update(UINT32_MAX, ones, sizeof(ones)), masked, length);
	free(masked);
	for (int i = 0; i < ICRC_BYTES; i++)
		icrc[i] = (uint8_t)(crc >> (8 * i));
}

/* ---- MADs ------------------------------------------------------------------------------------------------------- */

static void take_mad(struct decoder *decoder)
{
	enum cm_message_kind kind = cm_mad_kind(decoder->bytes + decoder->at);

	decoder_take(decoder, PART_MAD, 0);
	/* Parts and message kinds have the order of cm_messages.def. */
	if (kind == CM_NO_MESSAGE)
		decoder_take(decoder, PART_PAYLOAD, CM_MAD_BYTES - CM_MAD_HEADER_BYTES);
	else
		decoder_take(decoder, PART_CM_REQ + (enum part)(kind - CM_REQ), 0);
}

/* ---- from BTH on ------------------------------------------------------------------------------------------------ */

static bool take_extensions(struct decoder *decoder, uint16_t headers)
{
	/* In wire order. */
	static const struct {
		uint16_t header;
		enum part part;
	} extensions[] = {
		{HEADER_DETH, PART_DETH},
		{HEADER_XRCETH, PART_XRCETH},
		{HEADER_DCETH, PART_DCETH},
		{HEADER_RETH, PART_RETH},
		{HEADER_ATOMICETH, PART_ATOMICETH},
		{HEADER_AETH, PART_AETH},
		{HEADER_ATOMICACKETH, PART_ATOMICACKETH},
		{HEADER_IMMDT, PART_IMMDT},
		{HEADER_IETH, PART_IETH},
	};

	for (size_t i = 0; i < sizeof(extensions) / sizeof(extensions[0]); i++)
		if (headers & extensions[i].header && !decoder_take(decoder, extensions[i].part, 0))
			return false;
	return true;
}

/* Also decodes the ICRC, if any bytes are left. */
static void take_payload(struct decoder *decoder, const uint8_t *bth)
{
	size_t pad = (size_t)part_get(bth, PART_BTH, "pad"), left = decoder_left(decoder), payload;

	if (left && left < ICRC_BYTES + pad) {
		decoder_fault(decoder, "behind the headers are %zu bytes; pad and ICRC have %zu", left,
			      pad + ICRC_BYTES);
		decoder_rest(decoder, decoder->end);
		return;
	}
	payload = left ? left - ICRC_BYTES - pad : 0;
	if (payload == CM_MAD_BYTES && packet_opcodes[bth[0]].headers & HEADER_DETH &&
	    part_get(bth, PART_BTH, "destination_qpn") == CM_QPN)
		take_mad(decoder);
	else if (payload)
		decoder_take(decoder, PART_PAYLOAD, payload);
	if (left && pad)
		decoder_take(decoder, PART_PAD, pad);
}

static void take_transport(struct decoder *decoder)
{
	const uint8_t *bth = decoder_take(decoder, PART_BTH, 0);

	if (!bth)
		return;
	if (!packet_opcodes[bth[0]].name) {
		decoder_fault(decoder, "0x%02x is not an opcode of a packet", bth[0]);
		decoder_rest(decoder, decoder->end);
	} else if (take_extensions(decoder, packet_opcodes[bth[0]].headers)) {
		take_payload(decoder, bth);
	}
}

static void take_icrc(struct decoder *decoder, const uint8_t *ip, size_t udp)
{
	uint8_t icrc[ICRC_BYTES];
	size_t covered = (size_t)(decoder->bytes + decoder->at - (ip ? ip : decoder->bytes));

	if (decoder_left(decoder) != ICRC_BYTES)
		return;
	if (ip && covered >= udp + UDP_BYTES + BTH_BYTES) {
		icrc_of(ip, covered, udp, icrc);
		if (!memcmp(icrc, decoder->bytes + decoder->at, sizeof(icrc))) {
			decoder_note(decoder, "the ICRC is right");
		} else {
			decoder_note(decoder, "the ICRC is wrong: that of this packet is %02x%02x%02x%02x", icrc[0],
				     icrc[1], icrc[2], icrc[3]);
			decoder_fault(decoder, "the ICRC is wrong");
		}
	}
	decoder_take(decoder, PART_ICRC, 0);
}

/* ---- what is around it ------------------------------------------------------------------------------------------- */

/* Returns the size of an IP header before UDP, or 0. */
static size_t ip_header(const uint8_t *ip, size_t left)
{
	size_t bytes = left < 20 ? 0 : ip[0] >> 4 == 4 ? (size_t)(ip[0] & 0xf) * 4 : ip[0] >> 4 == 6 ? 40 : 0;

	if (bytes < 20 || left < bytes + UDP_BYTES)
		return 0;
	return ip[ip[0] >> 4 == 4 ? 9 : 6] == PROTOCOL_UDP ? bytes : 0;
}

static bool is_tag(uint64_t type)
{
	return type == ETHERNET_TYPE_TAG || type == ETHERNET_TYPE_OUTER_TAG;
}

/* Checks Ethernet addresses, tags, and an IP header. */
static bool is_ethernet(const struct decoder *decoder)
{
	const uint8_t *bytes = decoder->bytes + decoder->at;

	for (size_t at = 12; decoder_left(decoder) >= at + 2 + 20; at += part_infos[PART_VLAN].bytes) {
		uint32_t type = (uint32_t)bytes[at] << 8 | bytes[at + 1];

		if (!is_tag(type))
			return (type == ETHERNET_TYPE_IPV4 && bytes[at + 2] >> 4 == 4) ||
			       (type == ETHERNET_TYPE_IPV6 && bytes[at + 2] >> 4 == 6);
	}
	return false;
}

static void take_link(struct decoder *decoder, enum part part)
{
	const uint8_t *header = decoder_take(decoder, part, 0);

	while (header && is_tag(part_get(header, part, "type"))) {
		part = PART_VLAN;
		header = decoder_take(decoder, part, 0);
	}
}

/* Decodes an IP header of @bytes, and UDP after it. */
static void take_datagram(struct decoder *decoder, size_t bytes)
{
	const uint8_t *ip = decoder->bytes + decoder->at, *udp;
	bool four = ip[0] >> 4 == 4;
	size_t length, whole = decoder->end;

	decoder_take(decoder, four ? PART_IPV4 : PART_IPV6, 0);
	if (four)
		decoder_rest(decoder, decoder->at + bytes - part_infos[PART_IPV4].bytes);
	udp = decoder_take(decoder, PART_UDP, 0);
	if (part_get(udp, PART_UDP, "destination_port") != ROCE_PORT)
		decoder_note(decoder, "RoCEv2 is at port %d, or where all have agreed on another", ROCE_PORT);
	length = (size_t)part_get(udp, PART_UDP, "length");
	if (length < UDP_BYTES || length - UDP_BYTES > decoder_left(decoder)) {
		decoder_fault(decoder, "the UDP header says %zu bytes, there are %zu", length,
			      decoder_left(decoder) + UDP_BYTES);
		decoder_rest(decoder, decoder->end);
		return;
	}
	decoder->end = decoder->at + length - UDP_BYTES;
	take_transport(decoder);
	take_icrc(decoder, ip, bytes);
	decoder_rest(decoder, decoder->end);
	decoder->end = whole;
	/* Padding of a short Ethernet frame. */
	decoder_rest(decoder, whole);
}

/* Recognizes a BTH rather than an IP header by opcode, flags and the default partition. */
static bool is_transport(const uint8_t *bytes)
{
	return packet_opcodes[bytes[0]].name && (bytes[2] & 0x7f) == 0x7f && bytes[3] == 0xff;
}

enum packet_begin packet_begin_of(uint32_t link_type)
{
	switch (link_type) {
	case LINK_TYPE_ETHERNET:
		return BEGIN_ETHERNET;
	case LINK_TYPE_RAW:
	case LINK_TYPE_IPV4:
	case LINK_TYPE_IPV6:
		return BEGIN_IP;
	case LINK_TYPE_COOKED:
		return BEGIN_COOKED;
	case LINK_TYPE_COOKED_2:
		return BEGIN_COOKED_2;
	default:
		return BEGIN_ANY;
	}
}

void decode_packet(struct decoder *decoder, enum packet_begin begin)
{
	static const enum part links[] = {
		[BEGIN_ETHERNET] = PART_ETHERNET, [BEGIN_COOKED] = PART_COOKED, [BEGIN_COOKED_2] = PART_COOKED_2};
	size_t bytes;

	if (begin == BEGIN_ANY && is_ethernet(decoder))
		begin = BEGIN_ETHERNET;
	if (begin != BEGIN_ANY && begin != BEGIN_IP)
		take_link(decoder, links[begin]);
	bytes = ip_header(decoder->bytes + decoder->at, decoder_left(decoder));
	if (begin == BEGIN_ANY && bytes && is_transport(decoder->bytes + decoder->at))
		bytes = 0;
	if (bytes) {
		take_datagram(decoder, bytes);
	} else if (begin != BEGIN_ANY) {
		decoder_fault(decoder, "it is not a UDP datagram");
	} else {
		take_transport(decoder);
		take_icrc(decoder, NULL, 0);
	}
	decoder_rest(decoder, decoder->end);
}
