/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * capture_cm: sends itself each message of the connection manager several times, with a random value in every field, and ends
 * when all have come. For a capture. Prints a line of JSON per message, with its fields by their names in
 * format/cm_messages.def: {"message": "REQ", "transaction_id": 1, "attribute_modifier": 2, "fields": {"local_qpn": 3, …}}.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hca/hca.h"
#include "format/cm_message.h"
#include "process/commands.h"
#include "cm_host/services.h"
#include "transport/gsi/gsi.h"
#include "wire/mad.h"
#include "wire/packet.h"

#include "../model/choose.h"

enum { SPACE = 0x0106, PORT = 7471, ROUNDS = 8, PATIENCE_US = 5000000, NAP_US = 1000 };

static uint32_t received; /* atomic */

static void receive(struct hca *hca, const struct packet_path *path, const uint8_t mad[MAD_BYTES], bool waited)
{
	(void)waited;
	(void)hca;
	(void)path;
	(void)mad;
	__atomic_add_fetch(&received, 1, __ATOMIC_SEQ_CST);
}

static void lose(struct hca *hca, const struct packet_path *path, const uint8_t mad[MAD_BYTES], enum mad_loss why)
{
	receive(hca, path, mad, false);
	fprintf(stderr, "lost for reason %d\n", (int)why);
	exit(EXIT_FAILURE);
}

static const struct management manager = {.receive = receive, .lost = lose};

static struct choose numbers = {7471};

static uint64_t draw(void)
{
	return choose_bits(&numbers);
}

static uint8_t *bytes_of(struct cm_message *message, const struct cm_field *field)
{
	return (uint8_t *)&message->req + field->offset;
}

/* Little-endian, as the host. */
static uint64_t number_of(struct cm_message *message, const struct cm_field *field)
{
	uint64_t number = 0;

	memcpy(&number, bytes_of(message, field), field->size);
	return number;
}

static void fill(struct cm_message *message, const struct cm_field *field)
{
	uint64_t number = field->width && field->width < 64 ? draw() & ((UINT64_C(1) << field->width) - 1) : draw();

	if (field->width) {
		memcpy(bytes_of(message, field), &number, field->size);
		return;
	}
	for (uint32_t i = 0; i < field->size; i++)
		bytes_of(message, field)[i] = (uint8_t)draw();
}

/* Overwrites random fields: the message must come to this process, and has addresses of one family. */
static void address(struct cm_message *message, uint32_t slot, bool v4)
{
	static const uint8_t mapped[12] = {[10] = 0xff, 0xff};
	uint64_t service = (uint64_t)SPACE << 16 | PORT;
	uint32_t id = slot << MAD_COUNTER_BITS | (uint32_t)(draw() & ((1u << MAD_COUNTER_BITS) - 1));
	struct cm_req *req = &message->req;

	switch (message->kind) {
	case CM_REQ:
		req->service_id = service;
		/* tshark takes them as the addresses of the packet. */
		memcpy(req->primary_local_gid, mapped, sizeof(mapped));
		memcpy(req->primary_remote_gid, mapped, sizeof(mapped));
		/* The header of the RDMA IP CM service; its last four bytes are an IPv4 address. */
		req->private_data[1] = v4 ? 0x4a : 0x65;
		if (v4) {
			memset(req->private_data + 4, 0, 12);
			memset(req->private_data + 20, 0, 12);
		}
		break;
	case CM_SIDR_REQ:
		message->sidr_req.service_id = service;
		break;
	case CM_SIDR_REP:
		message->sidr_rep.request_id = id;
		break;
	default:
		/* The second number of all other messages. */
		message->mra.remote_comm_id = id;
		break;
	}
}

static void print_fields(struct cm_message *message)
{
	const char *separator = "";

	printf("{\"message\": \"%s\", \"transaction_id\": %" PRIu64 ", \"attribute_modifier\": %" PRIu32
	       ", \"fields\": {",
	       cm_message_name(message->kind), message->transaction_id, message->attribute_modifier);
	for (const struct cm_field *field = cm_fields; field->name; field++) {
		if (field->message != message->kind)
			continue;
		printf("%s\"%s\": ", separator, field->name);
		separator = ", ";
		if (field->width) {
			printf("%" PRIu64, number_of(message, field));
			continue;
		}
		putchar('"');
		for (uint32_t i = 0; i < field->size; i++)
			printf("%02x", bytes_of(message, field)[i]);
		putchar('"');
	}
	puts("}}");
}

int main(void)
{
	struct hca *hca = hca_device(0);
	const struct packet_path path = {
		.source = hca->gids[3].gid,
		.destination = hca->gids[3].gid,
		.type = IBV_GID_TYPE_ROCE_V2,
		.hop_limit = 64,
	};
	uint32_t slot, sent = 0;

	management = &manager;
	if (hca_port_claim(hca, SPACE, PORT) || hca_port_listen(hca, SPACE, PORT) || hca_manager_slot(hca, &slot))
		return EXIT_FAILURE;
	for (uint32_t round = 0; round < ROUNDS; round++) {
		for (uint32_t kind = CM_NO_MESSAGE + 1; kind < CM_MESSAGE_KINDS; kind++) {
			struct cm_message message = {.kind = kind, .transaction_id = draw() << 16 | sent++};
			uint8_t mad[CM_MAD_BYTES];

			for (const struct cm_field *field = cm_fields; field->name; field++)
				if (field->message == kind)
					fill(&message, field);
			address(&message, slot, round & 1);
			/* Messages with ECE options there. */
			if (kind == CM_REQ || kind == CM_REP || kind == CM_SIDR_REP)
				message.attribute_modifier = (uint32_t)draw();
			cm_pack(&message, mad);
			print_fields(&message);
			gsi_send(hca, &path, mad);
			gsi_wake(the_registry.gsi);
		}
	}
	for (int i = 0; i < PATIENCE_US / NAP_US && __atomic_load_n(&received, __ATOMIC_SEQ_CST) < sent; i++)
		usleep(NAP_US);
	return __atomic_load_n(&received, __ATOMIC_SEQ_CST) == sent ? EXIT_SUCCESS : EXIT_FAILURE;
}
