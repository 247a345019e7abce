/* SPDX-License-Identifier: BSD-2-Clause */
/* Atomic operations, plain and masked (mlx5-formats 1.5): their arithmetic, and how they get at memory. */
#ifndef SOFTHCA_TRANSPORT_ATOMIC_H
#define SOFTHCA_TRANSPORT_ATOMIC_H

#include "wire/packet.h"

static inline bool message_is_masked_atomic(uint8_t message)
{
	return message == MESSAGE_MASKED_COMPARE_SWAP || message == MESSAGE_MASKED_FETCH_ADD;
}

static inline bool message_is_atomic(uint8_t message)
{
	return message == MESSAGE_COMPARE_SWAP || message == MESSAGE_FETCH_ADD || message_is_masked_atomic(message);
}

/** Bytes that the atomic of @packet works on: 8, or 4 of a masked one that says so. */
static inline uint32_t atomic_bytes(const struct packet *packet)
{
	bool narrow = message_is_masked_atomic(packet->message) && packet->operand_bytes == sizeof(uint32_t);

	return narrow ? sizeof(uint32_t) : sizeof(uint64_t);
}

/** What @before becomes by the atomic of @packet, whose operands are those of the packet. Pure. */
uint64_t atomic_result(const struct packet *packet, uint64_t before);

/**
 * Executes the atomic of @packet on @sink, which holds the target with the right for it, and was not used yet. Returns
 * what was there before. Inside an epoch section; takes the device's lock of atomics where memory is not one aligned
 * word.
 */
uint64_t atomic_execute(const struct walk_access *access, const struct packet *packet, struct stream *sink);

#endif
