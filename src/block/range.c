/* SPDX-License-Identifier: BSD-2-Clause */
/* Positions on the wire and in memory, see range.h. */
#include "block/range.h"

struct wire_position wire_position(const struct signature_setup *signature, uint64_t wire)
{
	const struct signature_domain *domain = &signature->wire;
	uint64_t number, inside;

	if (!signature->enabled || !domain->field)
		return (struct wire_position){.raw = wire};
	number = wire / extended_block(domain);
	inside = wire % extended_block(domain);
	if (inside < domain->block)
		return (struct wire_position){.raw = number * domain->block + inside};
	return (struct wire_position){
		.raw = (number + 1) * domain->block,
		.in_field = true,
		.field = (uint32_t)(inside - domain->block),
	};
}

uint64_t wire_length(const struct block_setup *setup, uint64_t memory)
{
	const struct signature_domain *from = &setup->signature.memory, *to = &setup->signature.wire;
	uint64_t raw = memory, inside;

	if (!setup->signature.enabled)
		return memory;
	if (from->field) {
		inside = memory % extended_block(from);
		raw = memory / extended_block(from) * from->block + (inside < from->block ? inside : from->block);
	}
	return raw + (to->field ? raw / to->block * to->field : 0);
}

bool input_guarded(const struct signature_setup *signature, const struct signature_domain *input)
{
	return input->field && signature->checked & guard_bytes(input);
}

bool output_guarded(const struct signature_setup *signature, const struct signature_domain *output)
{
	return output->field && ~signature->copied & guard_bytes(output);
}

static uint64_t down(uint64_t position, uint64_t unit)
{
	return position - position % unit;
}

static uint64_t up(uint64_t position, uint64_t unit)
{
	return position + (unit - 1) - (position + (unit - 1)) % unit;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* The units that [@range) touches, when transmitting; those that it completes, when receiving. @all: where the last ends. */
static struct byte_range units(const struct cipher_setup *cipher, bool transmits, struct byte_range range, uint64_t all)
{
	struct byte_range out = {down(range.first, cipher->unit), range.end};

	if (transmits)
		out.end = least(up(range.end, cipher->unit), range.end > all ? range.end : all);
	else if (range.end != all)
		out.end = down(range.end, cipher->unit);
	if (out.end < out.first)
		out.end = out.first;
	return out;
}

/* The raw position from which a transmission must read to have the guards right. */
static uint64_t raw_start(const struct signature_setup *signature, const struct wire_position *position)
{
	/* In a field, the block it belongs to is the one before. */
	uint64_t at = position->raw - position->in_field, first = position->raw;

	if (input_guarded(signature, &signature->memory))
		first = least(first, down(at, signature->memory.block));
	if (output_guarded(signature, &signature->wire))
		first = least(first, down(at, signature->wire.block));
	return first;
}

uint64_t signature_start(const struct signature_setup *signature, uint64_t wire)
{
	struct wire_position position = wire_position(signature, wire);

	return signature->enabled ? raw_start(signature, &position) : wire;
}

/* In front of data byte @raw. */
static uint64_t memory_position(const struct signature_domain *domain, uint64_t raw)
{
	return raw + (domain->field ? raw / domain->block * domain->field : 0);
}

/* Where the memory of [@range) of the signature's wire side lies. */
static struct byte_range signed_range(const struct signature_setup *signature, bool transmits, struct byte_range range)
{
	const struct signature_domain *memory = &signature->memory;
	struct wire_position first = wire_position(signature, range.first), end = wire_position(signature, range.end);
	struct byte_range out;
	uint64_t start;
	bool ends_block = memory->field && end.raw && end.raw % memory->block == 0;
	bool field_follows = signature->wire.field && end.raw % signature->wire.block == 0;

	if (!signature->enabled)
		return range;
	start = transmits ? raw_start(signature, &first) : first.raw;
	out.first = memory_position(memory, start);
	/* A field in which the transfer begins concerns the field in memory before that position. */
	if (first.in_field && start == first.raw && memory->field && start % memory->block == 0)
		out.first -= memory->field;
	out.end = memory_position(memory, end.raw);
	/*
	 * memory_position() is behind the field of a block that ends there. It is not needed if the field on the wire,
	 * which decides whether the block is complete, was not reached (not completed, when receiving).
	 */
	if (ends_block && field_follows && end.in_field && (!transmits || !end.field))
		out.end -= memory->field;
	if (out.end < out.first)
		out.end = out.first;
	return out;
}

struct transfer_range transfer_range(const struct block_setup *setup, bool transmits, uint64_t wire, uint64_t length,
				     uint64_t memory)
{
	const struct cipher_setup *cipher = &setup->cipher;
	struct transfer_range range = {.wire = {wire, wire + length}};

	if (cipher->enabled && cipher->on_wire)
		range.wire = units(cipher, transmits, range.wire, wire_length(setup, memory));
	range.needed = signed_range(&setup->signature, transmits, range.wire);
	range.memory = range.needed;
	if (cipher->enabled && !cipher->on_wire) {
		range.memory = units(cipher, transmits, range.needed, memory);
		/* Receiving, what does not complete a unit is written with the unit. */
		if (range.memory.end < range.needed.end)
			range.memory.end = range.needed.end;
	}
	return range;
}
