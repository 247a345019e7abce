/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * capture_all FILE: writes a capture of every opcode, in several sizes, over IPv4 and IPv6, with random fields, and on stdout a
 * line of JSON for each packet with the values of its fields. For tests/tool/capture.py.
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hca/hca.h"
#include "filter/capture.h"
#include "process/commands.h"
#include "wire/roce.h"
#include "test_random.h"

enum { PORTS = 0xc000 };

static struct capture *capture;
static void draw_path(struct packet_path *path, const char *source, const char *destination)
{
	if (inet_pton(AF_INET6, source, &path->source) != 1 ||
	    inet_pton(AF_INET6, destination, &path->destination) != 1)
		exit(EXIT_FAILURE);
	path->type = IBV_GID_TYPE_ROCE_V2;
	path->traffic_class = (uint8_t)random64();
	path->hop_limit = (uint8_t)random64();
	path->flow_label = random64() & 0xfffff;
}

static void draw(struct packet *packet, uint8_t code)
{
	const struct packet_opcode *opcode = &packet_opcodes[code];
	bool acknowledges = opcode->message == MESSAGE_ACKNOWLEDGE;

	packet->transport = opcode->transport;
	packet->message = opcode->message;
	packet->place = opcode->place;
	packet->solicited = random64() & 1;
	packet->acknowledge = random64() & 1;
	/* 0 and 1 are for management; their payload is decoded as such. */
	packet->destination_qpn = 0x100 | (random64() & 0xffffff);
	packet->source_qpn = 0x100 | (random64() & 0xffffff);
	packet->psn = random64() & PSN_MASK;
	packet->count = 1;
	packet->qkey = (uint32_t)random64();
	packet->xrc_srqn = random64() & 0xffffff;
	packet->dc_key = random64();
	packet->dc_connection = random64();
	packet->dc_first_psn = random64() & PSN_MASK;
	packet->remote_address = random64();
	packet->rkey = (uint32_t)random64();
	packet->dma_length = (uint32_t)random64();
	packet->swap_add = random64();
	packet->compare = random64();
	packet->operand_bytes = random64() & 1 ? 4 : 8;
	packet->swap_mask = random64() >> (64 - 8 * packet->operand_bytes);
	packet->compare_mask = random64() >> (64 - 8 * packet->operand_bytes);
	packet->syndrome = acknowledges && random64() & 1 ? AETH_RNR_NAK | (random64() & 31) : random64() & 31;
	packet->msn = random64() & 0xffffff;
	packet->original = random64();
	packet->immediate = (uint32_t)random64();
	packet->invalidate_rkey = (uint32_t)random64();
}

static void tell(const struct packet *packet, uint8_t code, const struct packet_path *path, uint16_t port,
		 uint32_t payload, uint32_t qpn, const char *comment)
{
	char source[64], destination[64];

	inet_ntop(AF_INET6, &path->source, source, sizeof(source));
	inet_ntop(AF_INET6, &path->destination, destination, sizeof(destination));
	printf("{\"name\":\"%s\",\"opcode\":%u,\"source\":\"%s\",\"destination\":\"%s\",\"port\":%u,\"payload\":%u,",
	       packet_opcodes[code].name, code, source, destination, port, payload);
	printf("\"headers\":%u,\"solicited\":%d,\"acknowledge\":%d,", packet_opcodes[code].headers,
	       packet->solicited && packet->place & PLACE_LAST, packet->acknowledge);
	printf("\"traffic_class\":%u,\"hop_limit\":%u,\"flow_label\":%u,", path->traffic_class, path->hop_limit,
	       path->flow_label);
	printf("\"destination_qpn\":%u,\"source_qpn\":%u,\"psn\":%u,\"qkey\":%u,", packet->destination_qpn,
	       packet->source_qpn, packet->psn, packet->qkey);
	printf("\"xrc_srqn\":%u,\"dc_key\":%" PRIu64 ",\"dc_connection\":%" PRIu64 ",\"dc_first_psn\":%u,",
	       packet->xrc_srqn, packet->dc_key, packet->dc_connection, packet->dc_first_psn);
	printf("\"remote_address\":%" PRIu64 ",\"rkey\":%u,\"dma_length\":%u,\"swap_add\":%" PRIu64
	       ",\"compare\":%" PRIu64 ",",
	       packet->remote_address, packet->rkey, packet->dma_length, packet->swap_add,
	       packet->message == MESSAGE_FETCH_ADD ? 0 : packet->compare);
	printf("\"syndrome\":%u,\"msn\":%u,\"original\":%" PRIu64 ",\"immediate\":\"%08x\",\"invalidate\":\"%08x\",",
	       packet->syndrome, packet->msn, packet->original, ntohl(packet->immediate), packet->invalidate_rkey);
	printf("\"operand_bytes\":%u,\"swap_mask\":%" PRIu64 ",\"compare_mask\":%" PRIu64 ",", packet->operand_bytes,
	       packet->swap_mask, packet->compare_mask);
	printf("\"qpn\":%u,\"comment\":\"%s\"}\n", qpn, comment ? comment : "");
}

static bool is_masked(uint8_t code)
{
	return packet_opcodes[code].message == MESSAGE_MASKED_COMPARE_SWAP ||
	       packet_opcodes[code].message == MESSAGE_MASKED_FETCH_ADD;
}

static bool has_size(uint8_t code, uint32_t payload)
{
	return !payload || (packet_opcodes[code].headers & HEADER_PAYLOAD && !is_masked(code));
}

static void write_packet(uint8_t code, const struct packet_path *path, uint32_t payload)
{
	static const struct refusal why = {RULE_PACKET_NO_QP, {MESSAGE_SEND, 0x4001, 0x4002}};
	static uint8_t bytes[ROCE_MOST_HEADERS + 4096 + ROCE_ICRC_BYTES];
	static uint32_t number;
	char text[CAPTURE_COMMENT + 1];
	const char *comment = NULL;
	struct packet packet;
	uint16_t port = (uint16_t)(PORTS + number);
	uint32_t qpn = number % 3 ? 0x4000 + number : 0, length, icrc;
	enum capture_direction direction = number++ & 1 ? CAPTURE_INBOUND : CAPTURE_OUTBOUND;

	draw(&packet, code);
	length = roce_headers_write(bytes, &packet, 0, packet.place, payload);
	for (uint32_t i = 0; i < payload; i++)
		bytes[length++] = (uint8_t)i;
	memset(bytes + length, 0, 3);
	length += roce_pad(payload);
	if (is_masked(code))
		length += roce_masks_write(bytes + length, &packet);
	icrc = roce_icrc(path, port, ROCE_PORT, 0, bytes, length);
	memcpy(bytes + length, &icrc, sizeof(icrc));
	if (!(number % 10))
		comment = capture_explanation(capture, qpn, &why, text, sizeof(text));
	capture_frame(capture, direction, path, port, bytes, length + ROCE_ICRC_BYTES, qpn, comment);
	tell(&packet, code, path, port, payload, qpn, comment);
}

int main(int argc, char **argv)
{
	static const uint32_t sizes[] = {0, 1, 6, 255, 1024, 4096};
	static const char *const ends[][2] = {
		{"::ffff:192.168.1.1", "::ffff:192.168.1.2"},
		{"fd00::1", "fd00::2"},
		{"fe80::a8bb:ccff:fedd:ee01", "fe80::a8bb:ccff:fedd:ee02"},
		{"::ffff:192.168.1.1", "ff0e::ffff:e001:203"},
	};
	char error[512];
	struct hca *hca = hca_device(0);

	if (argc != 2)
		return EXIT_FAILURE;
	snprintf(hca->settings.capture, sizeof(hca->settings.capture), "%s", argv[1]);
	if (capture_open(hca, &capture, error, sizeof(error))) {
		fprintf(stderr, "%s\n", error);
		return EXIT_FAILURE;
	}
	for (unsigned int code = 0; code < 256; code++) {
		bool sent = packet_opcodes[code].name && packet_opcodes[code].message != MESSAGE_UNSUPPORTED;

		for (size_t i = 0; sent && i < sizeof(ends) / sizeof(ends[0]); i++) {
			struct packet_path path = {.service_level = 0};

			draw_path(&path, ends[i][0], ends[i][1]);
			for (size_t size = 0; size < sizeof(sizes) / sizeof(sizes[0]); size++)
				if (has_size((uint8_t)code, sizes[size]))
					write_packet((uint8_t)code, &path, sizes[size]);
		}
	}
	capture_close(capture);
	return EXIT_SUCCESS;
}
