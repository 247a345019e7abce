/* SPDX-License-Identifier: BSD-2-Clause */
/* A key with a signature, see key.h. */
#include "key.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCK_MOST = 4160 };

void key_configured(struct model_key *key)
{
	key->running = false;
}

static uint8_t *byte_at(const struct model_key *key, uint64_t place)
{
	if (place >= key->length)
		abort();
	return &key->memory[key->place[place]];
}

/* Reads @count bytes of the memory stream from @place on. */
static void read_stream(const struct model_key *key, uint64_t place, uint64_t count, uint8_t *bytes)
{
	for (uint64_t i = 0; i < count; i++)
		bytes[i] = *byte_at(key, place + i);
}

/* Reads raw data from memory. */
static void read_raw(const struct model_key *key, uint64_t raw, uint64_t count, uint8_t *bytes)
{
	for (uint64_t i = 0; i < count; i++)
		bytes[i] = *byte_at(key, place_of_raw(&key->signature.memory, raw + i));
}

/*
 * Returns the wire place where a memory block is complete: after its last byte of data, or after a wire field that
 * directly follows that byte.
 */
static uint64_t end_of_memory_block(const struct signature *signature, uint64_t number)
{
	uint64_t raw = (number + 1) * signature->memory.block;
	uint64_t last = place_of_raw(&signature->wire, raw - 1) + 1;

	if (signature->wire.kind != KIND_NONE && raw % signature->wire.block == 0)
		last += field_bytes(&signature->wire);
	return last;
}

/* Returns true if a memory block becomes complete within [@start, @end). */
static bool completes(const struct signature *signature, uint64_t number, uint64_t start, uint64_t end)
{
	return start < end_of_memory_block(signature, number) && end_of_memory_block(signature, number) <= end;
}

static uint64_t memory_blocks_before(const struct signature *signature, uint64_t end)
{
	uint64_t raw;

	is_raw(&signature->wire, end, &raw);
	return raw / signature->memory.block + 1;
}

/* ---- bounds ---------------------------------------------------------------------------------------------------- */

static void need(uint64_t *most, uint64_t end)
{
	if (end > *most)
		*most = end;
}

/* Returns the end of the memory stream needed for [@start, @end). */
static uint64_t memory_needed(const struct model_key *key, bool transmits, uint64_t start, uint64_t end)
{
	const struct signature *signature = &key->signature;
	const struct domain *memory = &signature->memory, *wire = &signature->wire;
	uint64_t most = 0, raw;

	if (!key->has_signature)
		return end;
	for (uint64_t p = start; p < end; p++) {
		if (is_raw(wire, p, &raw)) {
			need(&most, place_of_raw(memory, raw) + 1);
			continue;
		}
		/* A field is sent with its block. A part of it is sent with the field of the memory there. */
		need(&most, place_of_raw(memory, raw - 1) + 1);
		if (transmits && memory->kind != KIND_NONE && raw % memory->block == 0)
			need(&most, place_of_raw(memory, raw));
	}
	if (memory->kind != KIND_NONE)
		for (uint64_t number = 0; number < memory_blocks_before(signature, end); number++)
			if (completes(signature, number, start, end))
				need(&most, place_of_field(memory, number) + field_bytes(memory));
	return most;
}

bool key_fits(const struct model_key *key, bool transmits, uint64_t start, uint64_t length)
{
	return !length || memory_needed(key, transmits, start, start + length) <= key->length;
}

/* ---- from memory to the wire ----------------------------------------------------------------------------------- */

/* Makes the field of wire block @number. Its data and, where it is copied, its bytes are read from memory. */
static void make_wire_field(const struct model_key *key, uint64_t number, uint64_t first, uint64_t end, uint8_t *field)
{
	const struct domain *wire = &key->signature.wire, *memory = &key->signature.memory;
	uint8_t copy = copy_mask(&key->signature, key->connectx), data[BLOCK_MOST];

	read_raw(key, number * wire->block, wire->block, data);
	field_make(wire, data, number, field);
	for (uint64_t i = first; i < end; i++)
		if (in_mask(copy, i))
			field[i] = *byte_at(key, place_of_field(memory, number) + i);
}

static struct finding check_memory_block(const struct model_key *key, uint64_t number)
{
	const struct domain *memory = &key->signature.memory;
	uint8_t data[BLOCK_MOST], field[GUARD_MOST];

	read_raw(key, number * memory->block, memory->block, data);
	read_stream(key, place_of_field(memory, number), field_bytes(memory), field);
	return field_check(memory, key->signature.check, key->connectx, data, number, field);
}

struct finding key_transmit(const struct model_key *key, uint64_t start, uint64_t length, uint8_t *bytes)
{
	const struct signature *signature = &key->signature;
	const struct domain *memory = &signature->memory, *wire = &signature->wire;
	struct finding finding = {.fault = FAULT_NONE};
	uint8_t field[GUARD_MOST];
	uint64_t made = UINT64_MAX, end = start + length, raw;

	if (!key->has_signature) {
		read_stream(key, start, length, bytes);
		return finding;
	}
	for (uint64_t p = start; p < end; p++) {
		if (is_raw(wire, p, &raw)) {
			bytes[p - start] = *byte_at(key, place_of_raw(memory, raw));
		} else {
			uint64_t number = raw / wire->block - 1, begin = place_of_field(wire, number);
			uint64_t field_end = begin + field_bytes(wire);

			if (made != number)
				make_wire_field(key, number, p - begin, (end < field_end ? end : field_end) - begin,
						field);
			made = number;
			bytes[p - start] = field[p - begin];
		}
	}
	if (memory->kind == KIND_NONE)
		return finding;
	for (uint64_t number = 0; number < memory_blocks_before(signature, end) && !finding.fault; number++)
		if (completes(signature, number, start, end))
			finding = check_memory_block(key, number);
	finding.in_wire = false;
	return finding;
}

/* ---- from the wire to memory ----------------------------------------------------------------------------------- */

/* Returns true if the wire from @place on was received in one run. */
static bool brought_from(const struct model_key *key, uint64_t place)
{
	return key->begin <= place;
}

static void arrived_raw(const struct model_key *key, uint64_t raw, uint64_t count, uint8_t *bytes)
{
	for (uint64_t i = 0; i < count; i++)
		bytes[i] = key->arrived[place_of_raw(&key->signature.wire, raw + i)];
}

static struct finding check_wire_block(const struct model_key *key, uint64_t number)
{
	const struct domain *wire = &key->signature.wire;
	uint8_t data[BLOCK_MOST];
	struct finding finding;

	arrived_raw(key, number * wire->block, wire->block, data);
	finding = field_check(wire, key->signature.check, key->connectx, data, number,
			      &key->arrived[place_of_field(wire, number)]);
	finding.in_wire = true;
	return finding;
}

static void write_memory_field(const struct model_key *key, uint64_t number)
{
	const struct domain *memory = &key->signature.memory, *wire = &key->signature.wire;
	uint8_t copy = copy_mask(&key->signature, key->connectx), data[BLOCK_MOST], field[GUARD_MOST];
	bool whole = brought_from(key, place_of_raw(wire, number * memory->block));

	if (whole) {
		arrived_raw(key, number * memory->block, memory->block, data);
		field_make(memory, data, number, field);
	}
	for (uint64_t i = 0; i < field_bytes(memory); i++) {
		uint64_t place = place_of_field(memory, number) + i;

		if (in_mask(copy, i)) {
			/*
			 * The structures are the same: the field has the same place on the wire. All of it must have
			 * arrived.
			 */
			if (brought_from(key, place - i))
				*byte_at(key, place) = key->arrived[place];
		} else if (whole) {
			*byte_at(key, place) = field[i];
		}
	}
}

static struct finding receive_signed(struct model_key *key, uint64_t start, uint64_t end)
{
	const struct signature *signature = &key->signature;
	const struct domain *memory = &signature->memory, *wire = &signature->wire;
	struct finding finding = {.fault = FAULT_NONE};
	uint64_t raw;

	for (uint64_t p = start; p < end; p++)
		if (is_raw(wire, p, &raw))
			*byte_at(key, place_of_raw(memory, raw)) = key->arrived[p];
	if (memory->kind != KIND_NONE)
		for (uint64_t number = 0; number < memory_blocks_before(signature, end); number++)
			if (completes(signature, number, start, end))
				write_memory_field(key, number);
	if (wire->kind == KIND_NONE)
		return finding;
	for (uint64_t number = 0; !finding.fault; number++) {
		uint64_t field_end = place_of_field(wire, number) + field_bytes(wire);

		if (field_end > end)
			break;
		if (field_end > start && brought_from(key, field_end - field_bytes(wire) - wire->block))
			finding = check_wire_block(key, number);
	}
	return finding;
}

struct finding key_receive(struct model_key *key, uint64_t start, uint64_t length, const uint8_t *bytes)
{
	struct finding finding = {.fault = FAULT_NONE};

	if (!length)
		return finding;
	if (!key->has_signature) {
		for (uint64_t i = 0; i < length; i++)
			*byte_at(key, start + i) = bytes[i];
		return finding;
	}
	if (!key->running || start != key->next)
		key->begin = start;
	key->running = true;
	key->next = start + length;
	memcpy(&key->arrived[start], bytes, length);
	return receive_signed(key, start, start + length);
}
