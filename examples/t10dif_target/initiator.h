/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The initiator's view of the disk: blocks without tuples in its memory, and commands that move many of them, as up to DEPTH
 * outstanding commands of REQUEST_BLOCKS each.
 */
#ifndef T10DIF_TARGET_INITIATOR_H
#define T10DIF_TARGET_INITIATOR_H

#include "protection.h"

/* A slot for an outstanding command. */
struct initiator_slot {
	struct mlx5dv_mkey *key;
	uint32_t lba, blocks;
	int busy;
};

struct initiator {
	struct end end;
	struct initiator_slot slot[DEPTH];
	struct response response[DEPTH]; /* buffers for responses; any response may arrive in any of them */
	struct ibv_mr *response_mr;
	uint32_t disk_blocks;
};

/* Blocks to be moved between memory and the disk, starting at @lba. */
struct job {
	enum opcode opcode; /* COMMAND_WRITE or COMMAND_READ */
	int tuples;
	struct ibv_mr *mr; /* where the blocks are in memory, from its start */
	uint32_t lba, blocks;
};

/* Results. The job continues after a request that the target refuses, or with wrong data. */
struct outcome {
	uint32_t refused;    /* responses that are not STATUS_OK */
	enum status status;  /* status of the last of these, otherwise STATUS_OK */
	uint32_t wrong_data; /* requests in which the initiator's own key found an error */
};

/** Connects to the target of @meeting. */
void initiator_open(struct initiator *initiator, struct meeting *meeting);
/** Sends the target the command to end, and closes. */
void initiator_close(struct initiator *initiator, struct meeting *meeting);

struct outcome initiator_move(struct initiator *initiator, const struct job *job);
/** Makes the target flip a bit of @byte of a sector, tuples included. */
void initiator_flip_bit(struct initiator *initiator, uint32_t lba, uint32_t byte);

#endif
