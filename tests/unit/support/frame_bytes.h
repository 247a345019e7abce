/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets as bytes, from BTH to pad. The layouts of IBTA volume 1, 9.2 and 9.3, are implemented a second time here,
 * because tests check the codec (wire/roce.h) against them. Each call appends a header; fields can be corrupted
 * afterwards.
 */
#ifndef SOFTHCA_TESTS_FRAME_BYTES_H
#define SOFTHCA_TESTS_FRAME_BYTES_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum {
	FRAME_MOST = 16384,
	/* Offsets in the BTH. */
	FRAME_OPCODE = 0,
	FRAME_FLAGS = 1, /* solicited, migrated, pad (2 bits), transport version (4 bits) */
	FRAME_P_KEY = 2,
	FRAME_ECN = 4, /* forward and backward congestion, 6 reserved bits */
	FRAME_DESTINATION = 5,
	FRAME_ACKNOWLEDGE = 8, /* request for an acknowledgement, and 7 reserved bits */
	FRAME_PSN = 9,
	FRAME_BTH = 12,
};

struct frame_bytes {
	uint32_t length;
	uint8_t byte[FRAME_MOST];
};

static inline void frame_put(struct frame_bytes *frame, uint64_t value, uint32_t bytes)
{
	for (uint32_t i = 0; i < bytes; i++)
		frame->byte[frame->length++] = (uint8_t)(value >> 8 * (bytes - 1 - i));
}

/* Starts a frame with a BTH in the default partition that requests an acknowledgement. */
static inline void frame_begin(struct frame_bytes *frame, uint8_t opcode, uint32_t destination, uint32_t psn)
{
	frame->length = 0;
	frame_put(frame, opcode, 1);
	frame_put(frame, 0x40, 1);
	frame_put(frame, 0xffff, 2);
	frame_put(frame, destination & 0xffffff, 4);
	frame_put(frame, UINT32_C(0x80000000) | (psn & 0xffffff), 4);
}

static inline void frame_reth(struct frame_bytes *frame, uint64_t address, uint32_t rkey, uint32_t length)
{
	frame_put(frame, address, 8);
	frame_put(frame, rkey, 4);
	frame_put(frame, length, 4);
}

static inline void frame_atomic_eth(struct frame_bytes *frame, uint64_t address, uint32_t rkey, uint64_t swap,
				    uint64_t compare)
{
	frame_put(frame, address, 8);
	frame_put(frame, rkey, 4);
	frame_put(frame, swap, 8);
	frame_put(frame, compare, 8);
}

static inline void frame_aeth(struct frame_bytes *frame, uint8_t syndrome, uint32_t msn)
{
	frame_put(frame, (uint32_t)syndrome << 24 | (msn & 0xffffff), 4);
}

static inline void frame_deth(struct frame_bytes *frame, uint32_t qkey, uint32_t source)
{
	frame_put(frame, qkey, 4);
	frame_put(frame, source & 0xffffff, 4);
}

/* Appends @length bytes of @fill, and their pad. */
static inline void frame_payload(struct frame_bytes *frame, uint8_t fill, uint32_t length)
{
	uint32_t pad = -length & 3;

	memset(frame->byte + frame->length, fill, length);
	memset(frame->byte + frame->length + length, 0, pad);
	frame->length += length + pad;
	frame->byte[FRAME_FLAGS] = (uint8_t)((frame->byte[FRAME_FLAGS] & ~0x30u) | pad << 4);
}

#endif
