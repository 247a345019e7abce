/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Protocol between initiator and target, the only interface between the two: they may run on one host or on two. All
 * numbers are big-endian.
 *
 * The initiator finds the target by address and port, as in rdma_cm(7); the target reports the size of its disk when it
 * accepts. Over the queue pair: commands by SEND, answered by SEND. The data of a command moves by RDMA READ or WRITE that the
 * target issues, as in NVMe over Fabrics: for a write command the target reads from the initiator's key, for a read command it
 * writes to it.
 */
#ifndef T10DIF_TARGET_PROTOCOL_H
#define T10DIF_TARGET_PROTOCOL_H

#include <stdint.h>
#include <rdma/rdma_cma.h>

#include "../common.h"

enum {
	BLOCK = 4096,           /* bytes of data */
	TUPLE = 8,              /* guard, application tag, reference tag */
	SECTOR = BLOCK + TUPLE, /* sector of the target's disk: a block with its tuple, as on the wire */
	REQUEST_BLOCKS = 32,    /* maximum number of blocks of a command: 128 KiB */
	DEPTH = 8,              /* outstanding commands */
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
	uint16_t slot;   /* returned in the response */
	uint32_t lba;    /* first block */
	uint32_t blocks; /* FLIP_BIT: the byte of the sector, from 0 to SECTOR - 1 */
	uint32_t rkey;   /* key of the data, from offset 0 on */
	uint32_t tuples; /* 1: blocks have tuples on the wire and on the disk */
};

enum status {
	STATUS_OK,
	STATUS_BAD_COMMAND,
	STATUS_GUARD_ERROR, /* the target found that data and tuples do not match */
	STATUS_APPLICATION_TAG_ERROR,
	STATUS_REFERENCE_TAG_ERROR,
};

struct response {
	uint16_t slot;
	uint16_t status;
};

/* Data for connecting both ends. Both call the following functions in this order. */
struct meeting {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener; /* the target's, otherwise NULL */
	struct rdma_cm_id *id;
};

/**
 * The target's first step: waits at @address and @port, both as in rdma_getaddrinfo(3), for one initiator. Prints the port, so
 * that 0 (any free port) is allowed.
 */
void await_initiator(struct meeting *meeting, const char *address, const char *port);
/** The initiator's first step: finds the device that leads to the target. */
void find_target(struct meeting *meeting, const char *address, const char *port);

/** Opens @end on that device, and brings its QP to INIT: receives can be posted now, and must be before the next step. */
void meeting_open(struct meeting *meeting, struct end *end);

/** Second step of the target: connects, and reports the number of @blocks of its disk to the initiator. */
void accept_initiator(struct meeting *meeting, struct end *end, uint32_t blocks);
/**
 * Second step of the initiator: connects; retries for some seconds, because the target may not wait yet. Returns the
 * blocks of its disk.
 */
uint32_t connect_to_target(struct meeting *meeting, struct end *end);

/** The last step of both; returns when both have called it. */
void disconnect(struct meeting *meeting);
/** Called after the end is closed. */
void meeting_close(struct meeting *meeting);

/**
 * Adds the SEND of a message to a list of requests that ibv_wr_start() began. The message is copied into the request;
 * otherwise its memory would have to stay unchanged until the request is complete.
 */
void add_message(struct end *end, uint64_t wr_id, void *message, size_t length);

#endif
