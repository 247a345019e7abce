/* SPDX-License-Identifier: BSD-2-Clause */
/* Records with contents that identify them, for tests of link/shm/ring.h. */
#ifndef SOFTHCA_TESTS_SHM_RING_FIXTURE_H
#define SOFTHCA_TESTS_SHM_RING_FIXTURE_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "link/shm/ring.h"

/* Returns byte @i of record @number, counted over all its parts. */
static inline uint8_t record_byte(uint64_t number, uint32_t i)
{
	return (uint8_t)((number * 0x9e3779b97f4a7c15u >> 32) + i * 7 + (i >> 8));
}

/*
 * Writes record @number with the sizes of @slot. Computes the places of its parts independently, from the description
 * in link/shm/ring.h. Returns the result of shm_reserve(), never -EAGAIN.
 */
static inline int record_send(struct shm_producer *producer, const struct shm_slot *shape, uint64_t number)
{
	struct shm_slot slot = *shape;
	bool payload_outside = slot.headers + slot.length > 116;
	uint32_t lines = (slot.flags & SHM_FLAG_PATH ? 1 : 0) + (payload_outside ? (slot.length + 63) / 64 : 0);
	struct shm_cursor from, to;
	uint32_t at, i = 0;
	uint8_t *data;
	int error;

	do {
		from = to = shm_tail(producer);
		at = shm_step(&to, lines);
		error = shm_reserve(producer, from, to);
	} while (error == -EAGAIN);
	if (error)
		return error;
	data = producer->ring->data + (size_t)at * 64;
	if (slot.flags & SHM_FLAG_PATH)
		for (; i < 64; i++)
			*data++ = record_byte(number, i);
	for (uint32_t j = 0; j < slot.headers; j++)
		slot.bytes[j] = record_byte(number, i++);
	for (uint32_t j = 0; j < slot.length; j++)
		(payload_outside ? data : slot.bytes + slot.headers)[j] = record_byte(number, i++);
	shm_publish(producer->ring, from.slot, &slot);
	return 0;
}

/* Returns true if every byte of @record is that of number @number. */
static inline bool record_is(const struct shm_record *record, uint64_t number)
{
	uint32_t i = 0;

	if (record->path)
		for (; i < 64; i++)
			if (record->path[i] != record_byte(number, i))
				return false;
	for (uint32_t j = 0; j < record->slot.headers; j++)
		if (record->headers[j] != record_byte(number, i++))
			return false;
	for (uint32_t j = 0; j < record->slot.length; j++)
		if (record->payload[j] != record_byte(number, i++))
			return false;
	return true;
}

/* Returns valid sizes of a record, derived from the @random bits. */
static inline struct shm_slot record_shape(uint64_t random)
{
	static const uint32_t longest[] = {40, 116, 300, 5000, SHM_MOST_PAYLOAD};
	struct shm_slot slot = {
		.headers = (uint8_t)(ROCE_BTH_BYTES + 4 * (random % ((ROCE_MOST_HEADERS - ROCE_BTH_BYTES) / 4 + 1))),
		.flags = random >> 8 & 1 ? SHM_FLAG_PATH : 0,
		.length = (uint32_t)((random >> 20) % (longest[(random >> 16 & 15) % 5] + 1)),
	};

	if (slot.flags & SHM_FLAG_PATH && random >> 13 & 1)
		slot.flags |= SHM_FLAG_FRAME;
	return slot;
}

static inline uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

#endif
