/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What initiator and target of the block target say to each other. All numbers are big-endian, and nothing else is shared:
 * the two may be processes or hosts.
 *
 * The initiator finds the target by address and port, as rdma_cm(7) has them; the target tells how large its disk is when it
 * accepts. Over the queue pair: commands by SEND, answered by SEND. The data of a command goes by RDMA READ or WRITE that the target issues, as in
 * NVMe over Fabrics: for a write command the target reads from the initiator's key, for a read command it writes to it.
 */
#ifndef T10DIF_TARGET_PROTOCOL_H
#define T10DIF_TARGET_PROTOCOL_H

#include <stdint.h>
#include <rdma/rdma_cma.h>

#include "../common.h"

enum {
	BLOCK = 4096,           /* bytes of data */
	TUPLE = 8,              /* guard, application tag, reference tag */
	SECTOR = BLOCK + TUPLE, /* of the target's disk, and what a block with its tuple is on the wire */
	REQUEST_BLOCKS = 32,    /* blocks of a command, at most: 128 KiB */
	DEPTH = 8,              /* commands under way at once */
};

/* Private data of the target's rdma_accept(3). */
struct disk_size {
	uint32_t blocks;
};

enum opcode {
	COMMAND_WRITE = 1,
	COMMAND_READ,
	COMMAND_FLIP_BIT, /* for the demonstration: the disk damages a sector */
	COMMAND_END,
};

struct command {
	uint16_t opcode;
	uint16_t slot;   /* comes back in the response */
	uint32_t lba;    /* first block */
	uint32_t blocks; /* FLIP_BIT: the byte of the sector, from 0 to SECTOR - 1 */
	uint32_t rkey;   /* where the data is read from or written to, from offset 0 on */
	uint32_t tuples; /* 1: blocks have tuples on the wire and on the disk */
};

enum status {
	STATUS_OK,
	STATUS_BAD_COMMAND,
	STATUS_GUARD_ERROR, /* the target has seen that data and tuples do not belong together */
	STATUS_APPLICATION_TAG_ERROR,
	STATUS_REFERENCE_TAG_ERROR,
};

struct response {
	uint16_t slot;
	uint16_t status;
};

/* How the two come together. Both go through these steps in this order. */
struct meeting {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener; /* the target's, else NULL */
	struct rdma_cm_id *id;
};

/**
 * The target's first step: waits at @address and @port, both as rdma_getaddrinfo(3) has them, for one initiator. Prints the
 * port, so that it may be 0: any that is free.
 */
void await_initiator(struct meeting *meeting, const char *address, const char *port);
/** The initiator's: finds out which device leads to the target. */
void find_target(struct meeting *meeting, const char *address, const char *port);

/** Opens @end on that device, and brings its QP to INIT: receives can be posted, and must be before the next step. */
void meeting_open(struct meeting *meeting, struct end *end);

/** The target's: connects, and tells the initiator of @blocks on its disk. */
void accept_initiator(struct meeting *meeting, struct end *end, uint32_t blocks);
/** The initiator's: connects; tries for some seconds, since the target may not wait yet. Returns the blocks on its disk. */
uint32_t connect_to_target(struct meeting *meeting, struct end *end);

/** The last step of both, that neither passes before the other has come to it. */
void disconnect(struct meeting *meeting);
/** When the end is closed. */
void meeting_close(struct meeting *meeting);

/**
 * Adds the SEND of a message to a list of requests that ibv_wr_start() began. The message is copied into the request
 * itself: memory of our own would have to stay as it is until the request is complete.
 */
void add_message(struct end *end, uint64_t wr_id, void *message, size_t length);

#endif
