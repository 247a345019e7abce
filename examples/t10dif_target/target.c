/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The target, a separate program (initiator_main.c shows how to run it): a disk in memory, with sectors of 4104 bytes, a block
 * and its tuple. It validates every command: the requested blocks must be on the disk.
 */
#include <endian.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "protection.h"

/* Kind of a completion, in the upper half of its wr_id. The lower half is the slot. */
enum { RECEIVED, CONFIGURED, TRANSFERRED, ANSWERED };

#define WR_ID(what, slot) ((uint64_t)(what) << 32 | (slot))

/* A slot for an outstanding command. */
struct slot {
	struct command command; /* as received */
	struct mlx5dv_mkey *key;
	uint32_t lba, blocks; /* of the transfer */
	int is_read, tuples;
};

struct target {
	struct end end;
	uint8_t *disk;
	uint32_t blocks;
	struct ibv_mr *disk_mr, *slot_mr;
	struct slot slot[DEPTH];
	int ended;
};

static void receive_into(struct target *target, uint32_t slot)
{
	struct ibv_sge sge = {.addr = (uintptr_t)&target->slot[slot].command,
			      .length = sizeof(struct command),
			      .lkey = target->slot_mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = WR_ID(RECEIVED, slot), .sg_list = &sge, .num_sge = 1}, *bad;
	int error = ibv_post_recv(target->end.qp, &wr, &bad);

	if (error)
		die("target: ibv_post_recv: %s", strerror(error));
}

static void answer(struct target *target, uint32_t slot, enum status status)
{
	struct response response = {.slot = target->slot[slot].command.slot, .status = htobe16((uint16_t)status)};
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(target->end.qp);
	int error;

	/* Posts the receive of the next command first: the initiator may send it once it has the response. */
	receive_into(target, slot);
	ibv_wr_start(qp);
	add_message(&target->end, WR_ID(ANSWERED, slot), &response, sizeof(response));
	error = ibv_wr_complete(qp);
	if (error)
		die("target: answering: %s", strerror(error));
}

/* Returns the place of a block on the disk. Blocks without tuples are packed; they only serve to compare rates. */
static uint8_t *place(const struct target *target, const struct slot *slot)
{
	return target->disk + (size_t)slot->lba * wire_bytes(1, slot->tuples);
}

/* Configures the slot's key for the sectors and moves them, in one list of requests without waiting in between. */
static void transfer(struct target *target, uint32_t number, uint32_t rkey)
{
	struct slot *slot = &target->slot[number];
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(target->end.qp);
	struct range range = {
		.memory = {.addr = (uintptr_t)place(target, slot),
			   .length = wire_bytes(slot->blocks, slot->tuples),
			   .lkey = target->disk_mr->lkey},
		.access = IBV_ACCESS_LOCAL_WRITE,
		.tuples = slot->tuples,
		.tuples_in_memory = 1,
		.lba = slot->lba,
	};
	int error;

	ibv_wr_start(qp);
	add_configuration(&target->end, WR_ID(CONFIGURED, number), slot->key, &range);
	qp->wr_id = WR_ID(TRANSFERRED, number);
	qp->wr_flags = IBV_SEND_SIGNALED;
	if (slot->is_read)
		ibv_wr_rdma_write(qp, rkey, 0);
	else
		ibv_wr_rdma_read(qp, rkey, 0);
	/* Through the key, addresses are offsets, and lengths those of the wire. */
	ibv_wr_set_sge(qp, slot->key->lkey, 0, wire_bytes(slot->blocks, slot->tuples));
	error = ibv_wr_complete(qp);
	if (error)
		die("target: a transfer: %s", strerror(error));
}

/* Handles the end of a transfer, and checks its data separately. */
static void transferred(struct target *target, uint32_t number)
{
	static const enum status status[] = {
		[MLX5DV_MKEY_SIG_BLOCK_BAD_GUARD] = STATUS_GUARD_ERROR,
		[MLX5DV_MKEY_SIG_BLOCK_BAD_APPTAG] = STATUS_APPLICATION_TAG_ERROR,
		[MLX5DV_MKEY_SIG_BLOCK_BAD_REFTAG] = STATUS_REFERENCE_TAG_ERROR,
	};
	struct slot *slot = &target->slot[number];
	struct mlx5dv_mkey_err error;

	if (!slot->tuples || !protection_error(slot->key, &error)) {
		answer(target, number, STATUS_OK);
		return;
	}
	protection_explain("The target's key", &error, place(target, slot), SECTOR, slot->lba);
	answer(target, number, status[error.err_type]);
}

static void flip_bit(struct target *target, uint32_t number, uint32_t lba, uint32_t byte)
{
	if (lba >= target->blocks || byte >= SECTOR) {
		answer(target, number, STATUS_BAD_COMMAND);
		return;
	}
	target->disk[(size_t)lba * SECTOR + byte] ^= 0x10;
	answer(target, number, STATUS_OK);
}

static void received(struct target *target, uint32_t number)
{
	struct slot *slot = &target->slot[number];
	const struct command *command = &slot->command;
	uint16_t opcode = be16toh(command->opcode);
	uint32_t lba = be32toh(command->lba), blocks = be32toh(command->blocks);

	switch (opcode) {
	case COMMAND_WRITE:
	case COMMAND_READ:
		if (!blocks || blocks > REQUEST_BLOCKS || lba > target->blocks || blocks > target->blocks - lba)
			break;
		slot->lba = lba;
		slot->blocks = blocks;
		slot->is_read = opcode == COMMAND_READ;
		slot->tuples = be32toh(command->tuples) == 1;
		transfer(target, number, be32toh(command->rkey));
		return;
	case COMMAND_FLIP_BIT:
		flip_bit(target, number, lba, blocks);
		return;
	case COMMAND_END:
		answer(target, number, STATUS_OK);
		target->ended = 1;
		return;
	}
	answer(target, number, STATUS_BAD_COMMAND);
}

static void serve(struct target *target)
{
	struct ibv_wc wc[DEPTH];

	while (!target->ended) {
		int found = ibv_poll_cq(target->end.cq, DEPTH, wc);

		if (found < 0)
			die("target: ibv_poll_cq fails");
		if (!found)
			sched_yield(); /* the initiator may be waiting for this CPU */
		for (int i = 0; i < found; i++) {
			if (wc[i].status != IBV_WC_SUCCESS)
				die("target: %s (vendor_err %u)", ibv_wc_status_str(wc[i].status), wc[i].vendor_err);
			if (wc[i].wr_id >> 32 == RECEIVED && wc[i].byte_len != sizeof(struct command))
				die("target: a command of %u bytes", wc[i].byte_len);
			if (wc[i].wr_id >> 32 == RECEIVED)
				received(target, (uint32_t)wc[i].wr_id);
			else if (wc[i].wr_id >> 32 == TRANSFERRED)
				transferred(target, (uint32_t)wc[i].wr_id);
		}
	}
}

static void open_disk(struct target *target, uint32_t blocks)
{
	size_t bytes = (size_t)blocks * SECTOR;

	target->blocks = blocks;
	target->disk = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (target->disk == MAP_FAILED)
		die_errno("target: %zu bytes of memory", bytes);
	/* No remote rights: only the target's own requests access the disk. */
	target->disk_mr = end_register(&target->end, target->disk, bytes, IBV_ACCESS_LOCAL_WRITE);
}

static void target_run(struct meeting *meeting, uint32_t blocks)
{
	static struct target target;

	meeting_open(meeting, &target.end);
	open_disk(&target, blocks);
	target.slot_mr = end_register(&target.end, target.slot, sizeof(target.slot), IBV_ACCESS_LOCAL_WRITE);
	for (uint32_t i = 0; i < DEPTH; i++) {
		target.slot[i].key = protection_key(&target.end);
		receive_into(&target, i);
	}
	accept_initiator(meeting, &target.end, blocks);

	serve(&target);

	disconnect(meeting);
	for (uint32_t i = 0; i < DEPTH; i++)
		mlx5dv_destroy_mkey(target.slot[i].key);
	ibv_dereg_mr(target.disk_mr);
	ibv_dereg_mr(target.slot_mr);
	munmap(target.disk, (size_t)blocks * SECTOR);
	end_close(&target.end);
}

int main(int argc, char **argv)
{
	unsigned long mib = argc > 3 ? strtoul(argv[3], NULL, 0) : 128;
	struct meeting meeting = {.listener = NULL};

	if (argc < 3 || argc > 4 || mib < 1 || mib > 4096)
		die("usage: t10dif_target ADDRESS PORT [MIB]");
	await_initiator(&meeting, argv[1], argv[2]);
	target_run(&meeting, (uint32_t)(mib * ((1 << 20) / BLOCK)));
	meeting_close(&meeting);
	return 0;
}
