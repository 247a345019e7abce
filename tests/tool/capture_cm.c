/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * capture_cm: sends itself a REQ and a DREQ of the connection manager, whose fields are told in capture.py, and ends when both
 * have come. For a capture.
 */
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device/device.h"
#include "hca/hca.h"
#include "hca/services.h"
#include "transport/gsi.h"
#include "wire/mad.h"
#include "wire/packet.h"

enum { SPACE = 0x0106, PORT = 7471, PATIENCE_US = 5000000, NAP_US = 1000 };

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

static void put(uint8_t *to, uint64_t value, int bytes)
{
	value = htobe64(value << (64 - 8 * bytes));
	memcpy(to, &value, (size_t)bytes);
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
	uint8_t req[MAD_BYTES] = {1, 7, 2, 3}, dreq[MAD_BYTES] = {1, 7, 2, 3};
	uint32_t slot;

	management = &manager;
	if (hca_port_claim(hca, SPACE, PORT) || hca_port_listen(hca, SPACE, PORT) || hca_manager_slot(hca, &slot))
		return EXIT_FAILURE;
	/* IBTA 12.6.5, behind the header. */
	put(req + 16, 0x10, 2);
	put(req + 24, 0x12345678, 4);
	put(req + 24 + 8, (uint64_t)SPACE << 16 | PORT, 8);
	put(req + 24 + 32, 0x4711, 3);
	gsi_send(hca, &path, req);
	put(dreq + 16, 0x15, 2);
	put(dreq + 24, 0x12345678, 4);
	put(dreq + 28, (uint64_t)slot << 18, 4);
	put(dreq + 32, 0x4712, 3);
	gsi_send(hca, &path, dreq);
	for (int i = 0; i < PATIENCE_US / NAP_US && __atomic_load_n(&received, __ATOMIC_SEQ_CST) < 2; i++)
		usleep(NAP_US);
	return __atomic_load_n(&received, __ATOMIC_SEQ_CST) == 2 ? EXIT_SUCCESS : EXIT_FAILURE;
}
