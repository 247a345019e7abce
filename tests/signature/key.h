/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A key in the model: the effect of a transfer on memory and on the bytes on the wire, and the error that it finds.
 * Whole buffers, a byte at a time.
 *
 * Addresses and lengths are those of a request: bytes on the wire side of the key, from 0 (mlx5-formats 4.7, 5.4).
 */
#ifndef SOFTHCA_TESTS_SIGNATURE_KEY_H
#define SOFTHCA_TESTS_SIGNATURE_KEY_H

#include "case.h"

struct model_key {
	bool connectx; /* profile */
	bool has_signature;
	struct signature signature;
	/* The memory stream: byte i is memory[place[i]]. */
	uint8_t *memory;
	uint32_t place[STREAM_MOST];
	uint64_t length;
	/* Receiving: bytes [begin, next) arrived without a gap, in order, since the key was configured. */
	bool running;
	uint64_t begin, next;
	uint8_t arrived[STREAM_MOST];
};

/** Clears the record of received data: the key was configured. */
void key_configured(struct model_key *key);

/** Returns true if the memory needed for [@start, @start + @length) is in the key. @transmits: from memory to the wire. */
bool key_fits(const struct model_key *key, bool transmits, uint64_t start, uint64_t length);

/** Transfers from memory to the wire: writes @length bytes to @wire. Returns the first error. */
struct finding key_transmit(const struct model_key *key, uint64_t start, uint64_t length, uint8_t *wire);

/** Transfers from the wire to memory. Returns the first error. */
struct finding key_receive(struct model_key *key, uint64_t start, uint64_t length, const uint8_t *wire);

#endif
