/* SPDX-License-Identifier: BSD-2-Clause */
/* Atomic operations, plain and masked (mlx5-formats 1.5). */
#ifndef SOFTHCA_TRANSPORT_RESPONDER_ATOMIC_H
#define SOFTHCA_TRANSPORT_RESPONDER_ATOMIC_H

#include "core/compiler.h"
#include "wire/packet.h"

/* Adds fields separately: drops the carry out of a field. */
static inline uint64_t atomic_add_in_fields(uint64_t a, uint64_t b, uint64_t boundary)
{
	return ((a & ~boundary) + (b & ~boundary)) ^ ((a ^ b) & boundary);
}

static inline uint64_t atomic_replace(uint64_t before, uint64_t swap, uint64_t mask)
{
	return (before & ~mask) | (swap & mask);
}

/** Returns the value that replaces @before. Pure. */
static inline SPECIALISED uint64_t atomic_result(const struct packet *packet, uint64_t before)
{
	uint64_t different = before ^ packet->compare;

	switch (packet->message) {
	case MESSAGE_FETCH_ADD:
		return before + packet->swap_add;
	case MESSAGE_MASKED_FETCH_ADD:
		return atomic_add_in_fields(before, packet->swap_add, packet->swap_mask);
	case MESSAGE_COMPARE_SWAP:
		return different ? before : packet->swap_add;
	default:
		return different & packet->compare_mask ? before
							: atomic_replace(before, packet->swap_add, packet->swap_mask);
	}
}

/** Executes an 8-byte atomic on the word @target, atomic towards the CPUs as well. Returns the value before. */
static inline SPECIALISED uint64_t atomic_execute_word(const struct packet *packet, uint64_t *target)
{
	uint64_t before;

	if (packet->message == MESSAGE_FETCH_ADD)
		return __atomic_fetch_add(target, packet->swap_add, __ATOMIC_SEQ_CST);
	before = __atomic_load_n(target, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(target, &before, atomic_result(packet, before), true, __ATOMIC_SEQ_CST,
					    __ATOMIC_RELAXED))
		;
	return before;
}

/**
 * Executes an atomic on @sink, the checked, unread target. Returns the value before. Takes the device lock of atomics
 * if the memory is not one aligned word. Inside an epoch section.
 */
uint64_t atomic_execute(const struct walk_access *access, const struct packet *packet, struct stream *sink);

#endif
