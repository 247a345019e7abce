/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzzes the receiving end of the shm link: the other process has written anything into the shared memory. An input is a list
 * of records, each a slot and the beginning of its data in the data area.
 *
 * Checks that nothing is read outside of the ring, which has exactly its size, that the poller terminates, and that memory
 * without remote rights does not change.
 */
#include <string.h>
#include <unistd.h>

#include "core/epoch.h"
#include "link/shm/peer.h"
#include "transport/run/run.h"
#include "world.h"

enum {
	RECORDS = 40,
	/* Bits of record.aid: fields that a fuzzer can hardly guess are corrected. */
	AID_QPN = 1 << 0,
	AID_PSN = 1 << 1,
	AID_TARGET = 1 << 2, /* a RETH after the BTH names writable memory */
	AID_PAD = 1 << 3,    /* the pad count matches the length */
	AID_STATE = 1 << 4,  /* the data becomes the state of the other side */
};

struct record {
	uint8_t aid, bytes; /* of data */
	struct {
		uint8_t flags, headers, rule[2], length[4];
		uint8_t bytes[SHM_INLINE_BYTES];
	} slot;
	uint8_t data[255];
};

static struct shm_ring *rings[2];

static void put32(uint8_t *to, uint32_t value)
{
	value = htobe32(value);
	memcpy(to, &value, sizeof(value));
}

static void put_right(struct shm_slot *slot, uint8_t aid)
{
	const struct hca_qp *qp = world.pair[WORLD_RC].end[1].qp;

	if (aid & AID_QPN)
		put32(slot->bytes + 4, qp->number);
	if (aid & AID_PSN)
		put32(slot->bytes + 8, (uint32_t)slot->bytes[8] << 24 | qp->responder.expected_psn);
	if (aid & AID_TARGET) {
		put32(slot->bytes + 12, 0);
		put32(slot->bytes + 16, (uint32_t)WORLD_BASE + 0x1040);
		put32(slot->bytes + 20, WORLD_KEY(WORLD_FULL));
	}
	if (aid & AID_PAD)
		slot->bytes[1] = (uint8_t)((slot->bytes[1] & 0xcf) | roce_pad(slot->length) << 4);
}

/* Returns the number of input bytes used. */
static size_t write_record(struct shm_cursor *cursor, const uint8_t *data, size_t size)
{
	uint32_t number = cursor->slot;
	struct record record = {0};
	struct shm_slot slot = {0};
	size_t used = size < offsetof(struct record, data) ? size : offsetof(struct record, data);
	uint32_t lines, at;

	memcpy(&record, data, used);
	if (record.bytes > size - used)
		record.bytes = (uint8_t)(size - used);
	memcpy(record.data, data + used, record.bytes);
	slot.flags = record.slot.flags;
	slot.headers = record.slot.headers;
	memcpy(&slot.rule, record.slot.rule, sizeof(slot.rule));
	memcpy(&slot.length, record.slot.length, sizeof(slot.length));
	memcpy(slot.bytes, record.slot.bytes, sizeof(slot.bytes));
	put_right(&slot, record.aid);
	lines = shm_record_lines(&slot);
	/* A slot that is refused anyway may lie anywhere. */
	at = lines > SHM_DATA_LINES / 2 ? 0 : shm_step(cursor, lines);
	if ((size_t)at * SHM_LINE + record.bytes <= SHM_DATA_BYTES)
		memcpy(rings[0]->data + (size_t)at * SHM_LINE, record.data, record.bytes);
	if (record.aid & AID_STATE)
		memcpy(&rings[0]->state, record.data, sizeof(rings[0]->state));
	cursor->slot = number + 1;
	shm_publish(rings[0], number, &slot);
	return used + record.bytes;
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	world_make();
	for (int i = 0; i < 2; i++)
		rings[i] = world_exact(sizeof(*rings[i]));
	return 0;
}

/* Clears only lines that may have been written: a ring is large. */
static void clear_rings(void)
{
	for (int i = 0; i < 2; i++) {
		memset(&rings[i]->state, 0, sizeof(rings[i]->state));
		memset(rings[i]->slot, 0, (RECORDS + 1) * sizeof(rings[i]->slot[0]));
		rings[i]->head = 0;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct world_connection connection = {
		.access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
		.mtu = IBV_MTU_1024,
		.max_rd_atomic = 1,
		.max_dest_rd_atomic = 1,
	};
	struct host_peer host = {.pid = getpid(), .socket.fd = -1};
	static struct shm_peer peer;
	struct shm_cursor cursor = {0};
	struct run run;

	world_reset();
	clear_rings();
	world_connect(&world.pair[WORLD_RC], &connection);
	/* Packets sent there are lost: no other QP uses their numbers. */
	for (int i = 0; i < 2; i++) {
		struct hca_qp *qp = world.pair[WORLD_RC].end[i].qp;

		qp->link = link_shm();
		qp->in_process = false;
		qp->whole = link_shm()->whole;
	}
	peer = (struct shm_peer){
		.host = &host,
		.out.ring = rings[1],
		.in.ring = rings[0],
		.own = &rings[1]->state,
		.other = &rings[0]->state,
	};
	shm_await(&peer);
	host.shm = &peer;
	for (int i = 0; i < RECORDS && size; i++) {
		size_t used = write_record(&cursor, data, size);

		data += used;
		size -= used;
		epoch_enter();
		run_begin(&run);
		while (shm_poll_peer(&host, &run))
			WORLD_CHECK(peer.in.at.slot <= cursor.slot);
		run_finish(&run);
		epoch_leave();
		/* A record that breaks the format is the last one read. */
		WORLD_CHECK(peer.broken || peer.in.at.slot == cursor.slot);
		if (peer.broken)
			break;
		cursor = peer.in.at;
	}
	world_check_memory();
	world_disconnect(&world.pair[WORLD_RC]);
	world_take_events();
	return 0;
}
