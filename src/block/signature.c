/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The signature between memory and wire (mlx5-formats 4.7): data is copied with its guards, fields are checked, copied,
 * made and stripped at the ends of blocks. Both directions are one arithmetic with input and output exchanged.
 */
#include <string.h>

#include "block/field.h"
#include "block/report.h"
#include "block/stage_parts.h"

/* Blocks that are passed at once: their data fits into the first-level cache. */
#define RUN_BLOCKS 32
#define RUN_BYTES 16384u

static const uint8_t zeros[BLOCK_LARGEST];

static const struct signature_setup *setup_of(const struct block_stage *stage)
{
	return &stage->setup->signature;
}

/* ---- the ends of blocks --------------------------------------------------------------------------------------- */

static void check(struct block_stage *stage, uint64_t number, uint64_t expected, uint64_t found)
{
	const struct signature_domain *input = stage->signature.input;
	uint64_t difference = field_difference(setup_of(stage), input, expected, found);

	if (difference)
		signature_report(stage, number, difference, expected, found);
}

static void begin_input_block(struct signature_stage *at)
{
	at->input_guard = guard_begin(at->input->guard, at->input->ones);
	at->input_whole = true;
}

static void begin_output_block(struct signature_stage *at)
{
	at->output_guard = guard_begin(at->output->guard, at->output->ones);
	at->output_whole = true;
}

/* The field that the input should have behind byte raw - 1. */
static uint64_t expected_input(const struct signature_stage *at)
{
	uint64_t guard = at->input_guarded ? guard_finish(at->input->guard, at->input_guard) : 0;

	return field_of_block(at->input, at->raw / at->input->block - 1, guard);
}

/* The field of the output, of whose bytes @found, in the input, those that are copied. */
static uint64_t output_field(const struct block_stage *stage, uint64_t found)
{
	const struct signature_stage *at = &stage->signature;
	uint64_t copied = setup_of(stage)->copied;
	uint64_t running = at->shared ? at->input_guard : at->output_guard;
	uint64_t guard = at->output_guarded ? guard_finish(at->output->guard, running) : 0;

	return (found & copied) | (field_of_block(at->output, at->raw / at->output->block - 1, guard) & ~copied);
}

static bool at_end_of(const struct signature_domain *domain, uint64_t raw)
{
	return domain->field && raw % domain->block == 0;
}

/* ---- data ----------------------------------------------------------------------------------------------------- */

/* At most a block: @to or @from may be NULL, the null key; without @to at all guards alone are kept. */
static void pass_data(struct signature_stage *at, uint8_t *to, const uint8_t *from, uint64_t bytes)
{
	bool second = at->output_guarded && !at->shared;

	if (!from)
		from = zeros;
	if (second)
		at->output_guard = guard_update((enum guard_type)at->output->guard, at->output_guard, from, bytes);
	if (at->input_guarded && to)
		at->input_guard = guard_copy((enum guard_type)at->input->guard, at->input_guard, to, from, bytes);
	else if (at->input_guarded)
		at->input_guard = guard_update((enum guard_type)at->input->guard, at->input_guard, from, bytes);
	else if (to)
		memmove(to, from, bytes);
	at->raw += bytes;
}

/* Data bytes until a block of either side ends. */
static uint64_t until_boundary(const struct signature_stage *at)
{
	uint64_t input = at->input->block - at->raw % at->input->block;
	uint64_t output = at->output->block - at->raw % at->output->block;

	return smaller(input, output);
}

/* ---- whole blocks, the usual case ----------------------------------------------------------------------------- */

struct block_run {
	const uint8_t *from;
	uint8_t *to;
	size_t from_stride, to_stride;
	size_t count;
};

static void run_data(const struct signature_stage *at, const struct block_run *run, uint64_t *input_guards,
		     uint64_t *output_guards)
{
	struct guard_blocks blocks = {run->from, run->to, run->from_stride, run->to_stride, at->input->block};

	if (at->input_guarded) {
		guard_copy_blocks((enum guard_type)at->input->guard, at->input->ones, &blocks, run->count,
				  input_guards);
		blocks.to = NULL;
	}
	if (at->output_guarded && !at->shared) {
		guard_copy_blocks((enum guard_type)at->output->guard, at->output->ones, &blocks, run->count,
				  output_guards);
		blocks.to = NULL;
	}
	for (size_t i = 0; blocks.to && i < run->count; i++)
		memmove(run->to + i * run->to_stride, run->from + i * run->from_stride, at->input->block);
}

static void run_fields(struct block_stage *stage, const struct block_run *run, const uint64_t *input_guards,
		       const uint64_t *output_guards)
{
	const struct signature_stage *at = &stage->signature;
	const struct signature_domain *input = at->input, *output = at->output;
	const uint8_t *from = run->from + input->block;
	uint8_t *to = run->to + input->block;
	uint64_t number = at->raw / input->block, copied = setup_of(stage)->copied, found = 0;

	for (size_t i = 0; i < run->count; i++, number++, from += run->from_stride, to += run->to_stride) {
		if (input->field) {
			found = field_load(from, input->field);
			check(stage, number, field_of_block(input, number, input_guards[i]), found);
		}
		if (output->field)
			field_store(to, output->field,
				    (found & copied) | (field_of_block(output, number, output_guards[i]) & ~copied));
	}
}

/*
 * Passes as many whole blocks as lie in one piece on both sides. @from or @to is the wire, the other is NULL: memory.
 * Returns the bytes of the wire, 0 if there is no such block here.
 */
static uint64_t pass_blocks(struct block_stage *stage, uint8_t *to, const uint8_t *from, uint64_t bytes)
{
	struct signature_stage *at = &stage->signature;
	uint64_t input_guards[RUN_BLOCKS] = {0}, own_guards[RUN_BLOCKS] = {0};
	uint64_t input_block = extended_block(at->input), output_block = extended_block(at->output);
	uint64_t wire_block = to ? output_block : input_block, memory_block = to ? input_block : output_block;
	struct block_run run = {.from_stride = input_block, .to_stride = output_block};

	if (bytes < wire_block || at->input->block != at->output->block || at->raw % at->input->block || at->in_field)
		return 0;
	memory_ready(stage);
	run.count = smaller(bytes / wire_block, stage->piece.length / memory_block);
	run.count = smaller(run.count, smaller(RUN_BLOCKS, RUN_BYTES / at->input->block));
	if (!run.count || !stage->piece.address)
		return 0;
	run.from = from ? from : stage->piece.address;
	run.to = to ? to : stage->piece.address;
	run_data(at, &run, input_guards, own_guards);
	run_fields(stage, &run, input_guards, at->shared ? input_guards : own_guards);
	memory_passed(stage, run.count * memory_block);
	at->raw += run.count * at->input->block;
	begin_input_block(at);
	begin_output_block(at);
	return run.count * wire_block;
}

/* ---- transmitting --------------------------------------------------------------------------------------------- */

/* The field of memory behind byte raw - 1: read, and checked now or when the field on the wire has been passed. */
static uint64_t end_memory_block(struct block_stage *stage, bool whole, bool later)
{
	struct signature_stage *at = &stage->signature;
	uint8_t bytes[FIELD_LARGEST];
	uint64_t found;

	memory_read(stage, bytes, at->input->field);
	found = field_load(bytes, at->input->field);
	at->expected = expected_input(at);
	at->found = found;
	at->check_due = whole && later;
	if (whole && !later)
		check(stage, at->raw / at->input->block - 1, at->expected, found);
	return found;
}

static void make_wire_field(struct block_stage *stage)
{
	struct signature_stage *at = &stage->signature;
	uint64_t found = 0;

	at->check_due = false;
	if (at_end_of(at->input, at->raw))
		found = end_memory_block(stage, at->input_whole, true);
	at->field = output_field(stage, found);
	at->field_ready = true;
}

static uint64_t transmit_field(struct block_stage *stage, uint8_t *to, uint64_t bytes)
{
	struct signature_stage *at = &stage->signature;
	uint8_t field[FIELD_LARGEST];

	if (!at->field_ready)
		make_wire_field(stage);
	bytes = smaller(bytes, at->output->field - at->field_at);
	field_store(field, FIELD_LARGEST, at->field);
	memcpy(to, field + at->field_at, bytes);
	at->field_at += (uint32_t)bytes;
	if (at->field_at < at->output->field)
		return bytes;
	if (at->check_due)
		check(stage, at->raw / at->input->block - 1, at->expected, at->found);
	at->in_field = false;
	begin_output_block(at);
	if (at_end_of(at->input, at->raw))
		begin_input_block(at);
	return bytes;
}

/* Behind data of memory: what ends here. */
static void transmit_boundary(struct block_stage *stage)
{
	struct signature_stage *at = &stage->signature;

	if (at_end_of(at->output, at->raw)) {
		at->in_field = true;
		at->field_ready = false;
		at->field_at = 0;
	} else if (at_end_of(at->input, at->raw)) {
		end_memory_block(stage, at->input_whole, false);
		begin_input_block(at);
	}
}

static uint64_t transmit_data(struct block_stage *stage, uint8_t *to, uint64_t bytes)
{
	struct signature_stage *at = &stage->signature;
	uint64_t run = pass_blocks(stage, to, NULL, bytes);

	if (run)
		return run;
	memory_ready(stage);
	bytes = smaller(smaller(bytes, until_boundary(at)), stage->piece.length);
	pass_data(at, to, stage->piece.address, bytes);
	memory_passed(stage, bytes);
	transmit_boundary(stage);
	return bytes;
}

void signature_transmit(struct block_stage *stage, uint8_t *to, uint64_t bytes)
{
	if (!setup_of(stage)->enabled) {
		memory_read(stage, to, bytes);
		return;
	}
	while (bytes) {
		uint64_t passed = (stage->signature.in_field ? transmit_field : transmit_data)(stage, to, bytes);

		to += passed;
		bytes -= passed;
	}
}

/* Reads the data between the beginning of a block and the position @raw for its guards. */
static void read_ahead(struct block_stage *stage, uint64_t raw)
{
	struct signature_stage *at = &stage->signature;

	while (at->raw < raw) {
		uint64_t bytes;

		memory_ready(stage);
		bytes = smaller(smaller(raw - at->raw, until_boundary(at)), stage->piece.length);
		pass_data(at, NULL, stage->piece.address, bytes);
		memory_passed(stage, bytes);
		/* In the field on the wire, that of memory is still needed. */
		if (at->raw == raw && at->in_field)
			return;
		if (at_end_of(at->input, at->raw)) {
			memory_skip(stage, at->input->field);
			begin_input_block(at);
		}
		if (at_end_of(at->output, at->raw))
			begin_output_block(at);
	}
}

static void begin_transmission(struct block_stage *stage, uint64_t wire)
{
	struct signature_stage *at = &stage->signature;
	struct wire_position position = wire_position(setup_of(stage), wire);

	at->raw = signature_start(setup_of(stage), wire);
	at->in_field = position.in_field;
	at->field_at = position.field;
	at->field_ready = false;
	begin_input_block(at);
	begin_output_block(at);
	read_ahead(stage, position.raw);
	/* The last byte of the data in front of this field was passed by somebody else: its block is not ours to check. */
	if (at->in_field)
		at->input_whole = false;
}

/* ---- receiving ------------------------------------------------------------------------------------------------ */

/* Writes the field of memory behind byte raw - 1. Of a block that was entered in the middle no guard is known. */
static void write_memory_field(struct block_stage *stage, uint64_t found)
{
	struct signature_stage *at = &stage->signature;
	uint64_t copied = setup_of(stage)->copied;
	uint8_t bytes[FIELD_LARGEST];

	field_store(bytes, FIELD_LARGEST, output_field(stage, found));
	if (at->output_whole) {
		memory_write(stage, bytes, at->output->field);
	} else {
		for (unsigned int i = 0; i < at->output->field; i++)
			if (copied >> (56 - 8 * i) & 0xff)
				memory_write(stage, bytes + i, 1);
			else
				memory_skip(stage, 1);
	}
	begin_output_block(at);
}

static uint64_t receive_field(struct block_stage *stage, const uint8_t *from, uint64_t bytes)
{
	struct signature_stage *at = &stage->signature;

	bytes = smaller(bytes, at->input->field - at->field_at);
	for (uint64_t i = 0; i < bytes; i++, at->field_at++)
		at->field |= (uint64_t)from[i] << (56 - 8 * at->field_at);
	if (at->field_at < at->input->field)
		return bytes;
	if (at->input_whole)
		check(stage, at->raw / at->input->block - 1, expected_input(at), at->field);
	if (at_end_of(at->output, at->raw))
		write_memory_field(stage, at->field);
	at->in_field = false;
	begin_input_block(at);
	return bytes;
}

static void receive_boundary(struct block_stage *stage)
{
	struct signature_stage *at = &stage->signature;

	if (at_end_of(at->input, at->raw)) {
		at->in_field = true;
		at->field_at = 0;
		at->field = 0;
	} else if (at_end_of(at->output, at->raw)) {
		write_memory_field(stage, 0);
	}
}

static uint64_t receive_data(struct block_stage *stage, const uint8_t *from, uint64_t bytes)
{
	struct signature_stage *at = &stage->signature;
	uint64_t run = pass_blocks(stage, NULL, from, bytes);

	if (run)
		return run;
	memory_ready(stage);
	bytes = smaller(smaller(bytes, until_boundary(at)), stage->piece.length);
	pass_data(at, stage->piece.address, from, bytes);
	memory_passed(stage, bytes);
	receive_boundary(stage);
	return bytes;
}

void signature_receive(struct block_stage *stage, const uint8_t *from, uint64_t bytes)
{
	if (!setup_of(stage)->enabled) {
		memory_write(stage, from, bytes);
		return;
	}
	while (bytes) {
		uint64_t passed = (stage->signature.in_field ? receive_field : receive_data)(stage, from, bytes);

		from += passed;
		bytes -= passed;
	}
}

static void begin_reception(struct block_stage *stage, uint64_t wire)
{
	struct signature_stage *at = &stage->signature;
	struct wire_position position = wire_position(setup_of(stage), wire);

	at->raw = position.raw;
	at->in_field = position.in_field;
	at->field_at = position.field;
	at->field = 0;
	begin_input_block(at);
	begin_output_block(at);
	at->input_whole = !at->in_field && at->raw % at->input->block == 0;
	at->output_whole = !at->in_field && at->raw % at->output->block == 0;
}

void signature_begin(struct block_stage *stage, uint64_t wire)
{
	const struct signature_setup *setup = setup_of(stage);
	struct signature_stage *at = &stage->signature;

	if (!setup->enabled)
		return;
	at->input = stage->transmits ? &setup->memory : &setup->wire;
	at->output = stage->transmits ? &setup->wire : &setup->memory;
	at->input_guarded = input_guarded(setup, at->input);
	at->output_guarded = output_guarded(setup, at->output);
	at->shared = at->input_guarded && at->output_guarded && at->input->guard == at->output->guard &&
		     at->input->ones == at->output->ones && at->input->block == at->output->block;
	if (stage->transmits)
		begin_transmission(stage, wire);
	else
		begin_reception(stage, wire);
}
