/* SPDX-License-Identifier: BSD-2-Clause */
/* Commands and their responses, see initiator.h. */
#include "initiator.h"

#include <endian.h>
#include <sched.h>
#include <string.h>

/* Kind of a completion, in the upper half of its wr_id. The lower half is the number of slot or response. */
enum { CONFIGURED, COMMANDED, ANSWERED };

#define WR_ID(what, number) ((uint64_t)(what) << 32 | (number))

static void await_answer(struct initiator *initiator, uint32_t number)
{
	struct ibv_sge sge = {.addr = (uintptr_t)&initiator->response[number],
			      .length = sizeof(struct response),
			      .lkey = initiator->response_mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = WR_ID(ANSWERED, number), .sg_list = &sge, .num_sge = 1}, *bad;
	int error = ibv_post_recv(initiator->end.qp, &wr, &bad);

	if (error)
		die("initiator: ibv_post_recv: %s", strerror(error));
}

/* Sends @command; if @range is given, configures the slot's key with it first. */
static void post(struct initiator *initiator, uint32_t slot, struct command *command, const struct range *range)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(initiator->end.qp);
	int error;

	ibv_wr_start(qp);
	if (range)
		add_configuration(&initiator->end, WR_ID(CONFIGURED, slot), initiator->slot[slot].key, range);
	add_message(&initiator->end, WR_ID(COMMANDED, slot), command, sizeof(*command));
	error = ibv_wr_complete(qp);
	if (error)
		die("initiator: a command: %s", strerror(error));
	initiator->slot[slot].busy = 1;
}

static void post_part(struct initiator *initiator, uint32_t number, const struct job *job, uint32_t first)
{
	struct initiator_slot *slot = &initiator->slot[number];
	uint32_t left = job->blocks - first;
	struct command command = {.opcode = htobe16((uint16_t)job->opcode), .slot = htobe16((uint16_t)number)};
	struct range range;

	slot->lba = job->lba + first;
	slot->blocks = left < REQUEST_BLOCKS ? left : REQUEST_BLOCKS;
	range = (struct range){
		.memory = {.addr = (uintptr_t)job->mr->addr + (size_t)first * BLOCK,
			   .length = slot->blocks * BLOCK,
			   .lkey = job->mr->lkey},
		/* Only the rights and the memory that the command needs, until the key is configured again. */
		.access = job->opcode == COMMAND_WRITE ? IBV_ACCESS_REMOTE_READ
						       : IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
		.tuples = job->tuples,
		.lba = slot->lba,
	};
	command.lba = htobe32(slot->lba);
	command.blocks = htobe32(slot->blocks);
	command.rkey = htobe32(slot->key->rkey);
	command.tuples = htobe32((uint32_t)job->tuples);
	post(initiator, number, &command, &range);
}

/* Waits for a response. */
static struct response next_answer(struct initiator *initiator)
{
	struct response response;
	struct ibv_wc wc;
	int found;

	for (;;) {
		found = ibv_poll_cq(initiator->end.cq, 1, &wc);
		if (found < 0)
			die("initiator: ibv_poll_cq fails");
		if (!found) {
			sched_yield(); /* the target may be waiting for this CPU */
			continue;
		}
		if (wc.status != IBV_WC_SUCCESS)
			die("initiator: %s (vendor_err %u)", ibv_wc_status_str(wc.status), wc.vendor_err);
		if (wc.wr_id >> 32 != ANSWERED)
			continue;
		if (wc.byte_len != sizeof(struct response))
			die("initiator: an answer of %u bytes", wc.byte_len);
		response = initiator->response[(uint32_t)wc.wr_id];
		await_answer(initiator, (uint32_t)wc.wr_id);
		return response;
	}
}

/*
 * Responses may come in another order than the commands: each names its command. Returns the slot of the command.
 */
static uint32_t take_answer(struct initiator *initiator, enum status *status)
{
	struct response response = next_answer(initiator);
	uint32_t slot = be16toh(response.slot);

	if (slot >= DEPTH || !initiator->slot[slot].busy)
		die("initiator: an answer to no command");
	initiator->slot[slot].busy = 0;
	*status = be16toh(response.status);
	return slot;
}

static void finish_part(struct initiator *initiator, const struct job *job, struct outcome *outcome)
{
	enum status status;
	struct initiator_slot *slot = &initiator->slot[take_answer(initiator, &status)];
	const uint8_t *blocks = (const uint8_t *)job->mr->addr + (size_t)(slot->lba - job->lba) * BLOCK;
	struct mlx5dv_mkey_err error;

	if (status != STATUS_OK) {
		outcome->refused++;
		outcome->status = status;
	}
	/* The response shows that the transfer is over, so the key can be checked. */
	if (job->tuples && protection_error(slot->key, &error)) {
		outcome->wrong_data++;
		protection_explain("The initiator's key", &error, blocks, BLOCK, slot->lba);
	}
}

static uint32_t free_slot(const struct initiator *initiator)
{
	uint32_t slot = 0;

	while (initiator->slot[slot].busy)
		slot++;
	return slot;
}

struct outcome initiator_move(struct initiator *initiator, const struct job *job)
{
	struct outcome outcome = {.status = STATUS_OK};
	uint32_t under_way = 0, first = 0;

	while (first < job->blocks || under_way) {
		if (first < job->blocks && under_way < DEPTH) {
			post_part(initiator, free_slot(initiator), job, first);
			under_way++;
			first += REQUEST_BLOCKS < job->blocks - first ? REQUEST_BLOCKS : job->blocks - first;
		} else {
			finish_part(initiator, job, &outcome);
			under_way--;
		}
	}
	return outcome;
}

static void command_without_data(struct initiator *initiator, struct command command)
{
	enum status status;

	post(initiator, 0, &command, NULL);
	take_answer(initiator, &status);
	if (status != STATUS_OK)
		die("initiator: the target refuses command %u", be16toh(command.opcode));
}

void initiator_flip_bit(struct initiator *initiator, uint32_t lba, uint32_t byte)
{
	command_without_data(initiator, (struct command){.opcode = htobe16(COMMAND_FLIP_BIT),
							 .lba = htobe32(lba),
							 .blocks = htobe32(byte)});
}

void initiator_open(struct initiator *initiator, struct meeting *meeting)
{
	meeting_open(meeting, &initiator->end);
	initiator->response_mr =
		end_register(&initiator->end, initiator->response, sizeof(initiator->response), IBV_ACCESS_LOCAL_WRITE);
	for (uint32_t i = 0; i < DEPTH; i++) {
		initiator->slot[i].key = protection_key(&initiator->end);
		await_answer(initiator, i);
	}
	initiator->disk_blocks = connect_to_target(meeting, &initiator->end);
}

void initiator_close(struct initiator *initiator, struct meeting *meeting)
{
	command_without_data(initiator, (struct command){.opcode = htobe16(COMMAND_END)});
	disconnect(meeting);
	for (uint32_t i = 0; i < DEPTH; i++)
		mlx5dv_destroy_mkey(initiator->slot[i].key);
	ibv_dereg_mr(initiator->response_mr);
	end_close(&initiator->end);
}
