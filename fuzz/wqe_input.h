/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Input of the WQE fuzzer: a configuration, up to 16 operations, and the contents of the rings. Fields have fixed places, so
 * that a mutation of one does not affect others; missing bytes of a short input are zero. make-seeds.py writes the same
 * structure.
 */
#ifndef SOFTHCA_FUZZ_WQE_INPUT_H
#define SOFTHCA_FUZZ_WQE_INPUT_H

#include "world.h"

#define INPUT_OPS 16
/* Placeholder at byte 4 of any block for the number of the QP that owns the ring. */
#define INPUT_OWN_QPN 0x515151u
/* Placeholder at byte 48 of any block, where the address of a datagram is: each byte of a GID, for the device's own. */
#define INPUT_OWN_GID 0x51
/* A flag: messages travel in packets. */
#define INPUT_PACKETS 16

enum input_op {
	OP_SEND_A, /* argument: blocks to announce; rings the doorbell */
	OP_SEND_B,
	OP_RECEIVE_A, /* argument: entries to announce */
	OP_RECEIVE_B,
	OP_TIMER_A, /* expires the timer, if armed */
	OP_TIMER_B,
	OP_MODIFY_A, /* argument: SQD, RTS, ERR */
	OP_MODIFY_B,
	OP_REWRITE_A, /* argument: block to overwrite, and the source block of the input */
	OP_REWRITE_B,
	OP_JUMP_A, /* argument: moves the doorbell record by that much times 257, without a doorbell */
	OP_JUMP_B,
	OP_POLL,
	OP_KEY,   /* argument: indirect key to restore; 0: the full region, which is narrowed */
	OP_ARM,   /* argument: CQ, and whether for solicited events */
	OP_LIMIT, /* argument: limit of the SRQ */
	OP_COUNT,
};

struct input_config {
	uint8_t pair;                     /* enum world_pair, modulo */
	uint8_t flags;                    /* 1 to itself, 2 unreachable, 4 peer in RTR, 8 streams, INPUT_PACKETS */
	uint8_t sq_start[2], rq_start[2]; /* little-endian */
	uint8_t access;                   /* bits 0 to 3: remote write, read, atomic, bind */
	uint8_t retries;                  /* bits 0 to 2 rnr_retry, 3 to 5 retry_cnt, 6 to 7 MTU */
	uint8_t reads;                    /* bits 0 to 3 max_rd_atomic, 4 to 7 max_dest_rd_atomic */
	uint8_t lose;                     /* bit n: the link loses packet n */
	uint8_t double_;                  /* bit n: the link delivers packet n twice */
	uint8_t damage;                   /* 1 + number of the packet with the damaged header, 0 none */
	uint8_t field;                    /* of the header */
	uint8_t value[3];
};

struct input {
	struct input_config config;
	struct {
		uint8_t kind, argument;
	} op[INPUT_OPS];
	uint8_t sq_a[WORLD_SQ_BLOCKS * 64]; /* from the first WQE on, wherever it is in the ring */
	uint8_t rq_b[WORLD_RQ_ENTRIES << WORLD_RQ_SHIFT];
	uint8_t srq[WORLD_SRQ_ENTRIES << WORLD_SRQ_SHIFT];
	uint8_t sq_b[WORLD_SQ_BLOCKS * 64];
	uint8_t rq_a[WORLD_RQ_ENTRIES << WORLD_RQ_SHIFT];
};

#endif
