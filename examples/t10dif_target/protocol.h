/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What initiator and target of the block target say to each other. All numbers are big-endian, and nothing else is shared:
 * the two may be processes or hosts.
 *
 * Over a TCP connection, once: a hello in each direction, and a word that the queue pair is connected. Over the queue pair:
 * commands by SEND, answered by SEND. The data of a command goes by RDMA READ or WRITE that the target issues, as in
 * NVMe over Fabrics: for a write command the target reads from the initiator's key, for a read command it writes to it.
 */
#ifndef T10DIF_TARGET_PROTOCOL_H
#define T10DIF_TARGET_PROTOCOL_H

#include <stdint.h>

#include "../common.h"

enum {
	BLOCK = 4096,           /* bytes of data */
	TUPLE = 8,              /* guard, application tag, reference tag */
	SECTOR = BLOCK + TUPLE, /* of the target's disk, and what a block with its tuple is on the wire */
	REQUEST_BLOCKS = 32,    /* blocks of a command, at most: 128 KiB */
	DEPTH = 8,              /* commands under way at once */
};

struct hello {
	uint32_t qp_num;
	uint8_t gid[16];
	uint32_t blocks; /* of the target's disk; 0 from the initiator */
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

/**
 * Waits at @address and @port, both as getaddrinfo(3) has them, for one initiator; returns the socket. Prints the port, so
 * that it may be 0: any that is free.
 */
int accept_initiator(const char *address, const char *port);
/** The other end of it. Tries for some seconds, since the target may not wait yet. */
int connect_to_target(const char *address, const char *port);

/**
 * Connects @end to the peer behind @socket, which calls this as well. @blocks: as in the hello; returns the peer's.
 * Before the first command is sent, both sides have to be connected and to have posted receives: wait_for_peer().
 */
uint32_t meet(struct end *end, int socket, uint32_t blocks);
/** A step that neither side passes before the other has come to it. */
void wait_for_peer(int socket);

/**
 * Adds the SEND of a message to a list of requests that ibv_wr_start() began. The message is copied into the request
 * itself: memory of our own would have to stay as it is until the request is complete.
 */
void add_message(struct end *end, uint64_t wr_id, void *message, size_t length);

#endif
