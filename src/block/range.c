/* SPDX-License-Identifier: BSD-2-Clause */
/* Converts between positions on the wire and in memory. */
#include "block/range.h"

/* Returns @position / @by. 64-bit divisions are slow, and positions nearly always fit into 32 bits. */
static inline uint64_t position_quotient(uint64_t position, uint32_t by)
{
	return position <= UINT32_MAX ? (uint32_t)position / by : position / by;
}

struct wire_position wire_position(const struct signature_setup *signature, uint64_t wire)
{
	const struct signature_domain *domain = &signature->wire;
	uint64_t number, inside;

	if (!signature->enabled || !domain->field)
		return (struct wire_position){.raw = wire};
	number = position_quotient(wire, extended_block(domain));
	inside = wire - number * extended_block(domain);
	if (inside < domain->block)
		return (struct wire_position){.raw = number * domain->block + inside};
	return (struct wire_position){
		.raw = (number + 1) * domain->block,
		.in_field = true,
		.field = (uint32_t)(inside - domain->block),
	};
}

uint64_t wire_position_of(const struct signature_setup *signature, uint64_t raw)
{
	const struct signature_domain *domain = &signature->wire;

	return raw + (domain->field ? raw / domain->block * domain->field : 0);
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
	return input->transaction || (input->field && signature->checked & guard_bytes(input));
}

bool output_guarded(const struct signature_setup *signature, const struct signature_domain *output)
{
	return output->transaction || (output->field && ~signature->copied & guard_bytes(output));
}

static uint64_t unit_floor(uint64_t position, uint32_t unit)
{
	return position_quotient(position, unit) * unit;
}

static uint64_t unit_ceiling(uint64_t position, uint32_t unit)
{
	return unit_floor(position + (unit - 1), unit);
}

static uint64_t lower_position(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

bool ends_inside_unit(const struct cipher_setup *cipher, uint64_t end)
{
	uint64_t inside = end % cipher->unit;

	return inside && inside % CIPHER_BLOCK == 0 && inside <= cipher->unit - CIPHER_BLOCK;
}

/*
 * Returns the range of the data units that @range touches (transmitting) or completes (receiving), or to its end inside
 * a unit if a message may end there. @all: end of the last unit.
 */
static struct byte_range unit_range(const struct cipher_setup *cipher, bool transmits, struct byte_range range,
				    uint64_t all)
{
	struct byte_range out = {unit_floor(range.first, cipher->unit), range.end};

	if (ends_inside_unit(cipher, range.end))
		return out;
	if (transmits)
		out.end = lower_position(unit_ceiling(range.end, cipher->unit), range.end > all ? range.end : all);
	else if (range.end != all)
		out.end = unit_floor(range.end, cipher->unit);
	if (out.end < out.first)
		out.end = out.first;
	return out;
}

/* Returns the raw position from which a transmission must read data for its guards. */
static uint64_t raw_start(const struct signature_setup *signature, const struct wire_position *position)
{
	/* A field belongs to the block that precedes it. */
	uint64_t at = position->raw - position->in_field, first = position->raw;

	if (input_guarded(signature, &signature->memory))
		first = lower_position(first, unit_floor(at, signature->memory.block));
	if (output_guarded(signature, &signature->wire))
		first = lower_position(first, unit_floor(at, signature->wire.block));
	return first;
}

static uint64_t memory_position(const struct signature_domain *domain, uint64_t raw)
{
	return raw + (domain->field ? position_quotient(raw, domain->block) * domain->field : 0);
}

static bool block_ends_at(const struct signature_domain *domain, uint64_t raw)
{
	return domain->field && raw == unit_floor(raw, domain->block);
}

/* Returns the range of the signature's memory side. Sets range->position and range->start. */
static struct byte_range needed_for(const struct signature_setup *signature, bool transmits, struct byte_range wire,
				    struct transfer_range *range)
{
	const struct signature_domain *memory = &signature->memory;
	const struct wire_position first = wire_position(signature, wire.first);
	const struct wire_position end = wire_position(signature, wire.end);
	const uint64_t start = transmits ? raw_start(signature, &first) : first.raw;
	struct byte_range needed;

	needed.first = memory_position(memory, start);
	/* A transfer from inside a wire field needs the memory field before it. */
	if (first.in_field && start == first.raw && block_ends_at(memory, first.raw))
		needed.first -= memory->field;
	needed.end = memory_position(memory, end.raw);
	/*
	 * needed.end is after the field of a block that ends there, which is needed only if the transfer reaches the
	 * wire field (receiving: completes it).
	 */
	if (end.in_field && (!transmits || !end.field) && block_ends_at(memory, end.raw))
		needed.end -= memory->field;
	if (needed.end < needed.first)
		needed.end = needed.first;
	range->position = first;
	range->start = start;
	return needed;
}

/*
 * Writes the result member by member, in place: copying a structure right after its members were written would wait for
 * the store buffer.
 */
void transfer_range_set(struct transfer_range *range, const struct block_setup *setup, bool transmits, uint64_t first,
			uint64_t length, uint64_t all)
{
	const struct cipher_setup *cipher = &setup->cipher;
	struct byte_range wire = {first, first + length}, needed, memory;

	if (cipher->enabled && cipher->on_wire)
		wire = unit_range(cipher, transmits, wire, wire_length(setup, all));
	needed = wire;
	if (setup->signature.enabled)
		needed = needed_for(&setup->signature, transmits, wire, range);
	memory = needed;
	if (cipher->enabled && !cipher->on_wire) {
		memory = unit_range(cipher, transmits, needed, all);
		/* A reception writes an incomplete unit later, as a whole. */
		if (memory.end < needed.end)
			memory.end = needed.end;
	}
	range->wire.first = wire.first;
	range->wire.end = wire.end;
	range->needed.first = needed.first;
	range->needed.end = needed.end;
	range->memory.first = memory.first;
	range->memory.end = memory.end;
}
