/* SPDX-License-Identifier: BSD-2-Clause */
/* The signature between memory and wire (mlx5-formats 4.7). */
#include <string.h>

#include "block/field.h"
#include "mkey/psv.h"
#include "mkey/signature_report.h"
#include "mkey/stage_parts.h"

static const uint8_t zeros[BLOCK_LARGEST];

static const struct signature_setup *setup_of(const struct block_stage *stage)
{
	return &stage->setup->signature;
}

/* ---- the ends of blocks --------------------------------------------------------------------------------------- */

void signature_check(struct block_stage *stage, uint64_t number, uint64_t expected, uint64_t found)
{
	const struct signature_domain *input = stage->signature.input;
	uint64_t difference = field_difference(setup_of(stage), input, expected, found);

	if (difference)
		signature_report(stage, number, difference, expected, found);
}

static void begin_input_block(struct signature_stage *at)
{
	at->input_guard = at->input_start;
	at->input_whole = true;
}

static void begin_output_block(struct signature_stage *at)
{
	at->output_guard = at->output_start;
	at->output_whole = true;
}

static void begin_blocks(struct signature_stage *at)
{
	begin_input_block(at);
	begin_output_block(at);
}

/* Returns the field that the input should have after byte raw - 1. */
static uint64_t expected_input(const struct signature_stage *at)
{
	uint64_t guard = at->input_guarded ? guard_finish(at->input->guard, at->input_guard) : 0;

	return field_of_block(at->input, at->raw / at->input->block - 1, guard);
}

/* Returns the field of the output. Copied bytes come from @found, the field of the input. */
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

/* ---- transaction signatures ------------------------------------------------------------------------------------- */

static struct psv *psv_of(const struct block_stage *stage, const struct signature_domain *domain)
{
	return psv_find(stage->access.hca, domain->psv, stage->access.pd);
}

static uint64_t domain_guard_start(const struct block_stage *stage, const struct signature_domain *domain)
{
	struct psv *psv = domain->continues ? psv_of(stage, domain) : NULL;

	return psv ? psv_begin(psv, stage->map->serial, stage->map->version) : guard_begin(domain->guard, domain->ones);
}

static void transaction_store(const struct block_stage *stage, const struct signature_domain *domain, uint64_t guard)
{
	struct psv *psv = domain->transaction ? psv_of(stage, domain) : NULL;

	if (psv)
		psv_store(psv, (uint32_t)guard);
}

/* Stores the guards in the PSVs after all of the data, for the next key. */
static void end_transaction(const struct block_stage *stage)
{
	const struct signature_stage *at = &stage->signature;

	if (at->raw != at->input->block || !at->input_whole || !at->output_whole)
		return;
	transaction_store(stage, at->input, at->input_guard);
	transaction_store(stage, at->output, at->output_guard);
}

/* ---- data ----------------------------------------------------------------------------------------------------- */

/* Copies @bytes, at most a block, and updates the guards. NULL @from: the null key. NULL @to: only the guards. */
static void signature_pass_data(struct block_stage *stage, uint8_t *to, const uint8_t *from, uint64_t bytes)
{
	struct signature_stage *at = &stage->signature;
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
	if (__builtin_expect(setup_of(stage)->transaction, 0))
		end_transaction(stage);
}

/* Returns the data bytes until a block of either side ends, at most BLOCK_LARGEST. */
static uint64_t until_boundary(const struct signature_stage *at)
{
	uint64_t input = at->input->block - at->raw % at->input->block;
	uint64_t output = at->output->block - at->raw % at->output->block;

	return min_bytes(min_bytes(input, output), BLOCK_LARGEST);
}

/* ---- transmitting --------------------------------------------------------------------------------------------- */

/* Reads and returns the memory field after byte raw - 1. Checks it now or, if @later, after the wire field. */
static uint64_t end_memory_block(struct block_stage *stage, bool later)
{
	struct signature_stage *at = &stage->signature;
	uint8_t bytes[FIELD_LARGEST];
	uint64_t found;

	memory_read(stage, bytes, at->input->field);
	found = field_load(bytes, at->input->field);
	at->expected = expected_input(at);
	at->found = found;
	at->check_due = later;
	if (!later)
		signature_check(stage, at->raw / at->input->block - 1, at->expected, found);
	return found;
}

static void make_wire_field(struct block_stage *stage)
{
	struct signature_stage *at = &stage->signature;
	uint64_t found = 0;

	at->check_due = false;
	if (at_end_of(at->input, at->raw))
		found = end_memory_block(stage, true);
	at->field = output_field(stage, found);
	at->field_ready = true;
}

static uint64_t transmit_field(struct block_stage *stage, uint8_t *to, uint64_t bytes)
{
	struct signature_stage *at = &stage->signature;
	uint8_t field[FIELD_LARGEST];

	if (!at->field_ready)
		make_wire_field(stage);
	bytes = min_bytes(bytes, at->output->field - at->field_at);
	field_store(field, FIELD_LARGEST, at->field);
	memcpy(to, field + at->field_at, bytes);
	at->field_at += (uint32_t)bytes;
	if (at->field_at < at->output->field)
		return bytes;
	if (at->check_due)
		signature_check(stage, at->raw / at->input->block - 1, at->expected, at->found);
	at->in_field = false;
	begin_output_block(at);
	if (at_end_of(at->input, at->raw))
		begin_input_block(at);
	return bytes;
}

static void transmit_boundary(struct block_stage *stage)
{
	struct signature_stage *at = &stage->signature;

	if (at_end_of(at->output, at->raw)) {
		at->in_field = true;
		at->field_ready = false;
		at->field_at = 0;
	} else if (at_end_of(at->input, at->raw)) {
		end_memory_block(stage, false);
		begin_input_block(at);
	}
}

static uint64_t transmit_data(struct block_stage *stage, uint8_t *to, uint64_t bytes)
{
	struct signature_stage *at = &stage->signature;
	uint64_t run = signature_pass_blocks(stage, to, NULL, bytes);

	if (run) {
		begin_blocks(at);
		return run;
	}
	memory_ready(stage);
	bytes = min_bytes(min_bytes(bytes, until_boundary(at)), stage->piece.length);
	signature_pass_data(stage, to, stage->piece.address, bytes);
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

/* Reads the beginning of the block up to @raw, for the guards. */
static void read_ahead(struct block_stage *stage, uint64_t raw)
{
	struct signature_stage *at = &stage->signature;

	while (at->raw < raw) {
		uint64_t bytes;

		memory_ready(stage);
		bytes = min_bytes(min_bytes(raw - at->raw, until_boundary(at)), stage->piece.length);
		signature_pass_data(stage, NULL, stage->piece.address, bytes);
		memory_passed(stage, bytes);
		/* Inside the wire field, the memory field has yet to be read. */
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

static void begin_transmission(struct block_stage *stage)
{
	struct signature_stage *at = &stage->signature;
	const struct wire_position position = stage->range.position;

	at->raw = stage->range.start;
	at->in_field = position.in_field;
	at->field_at = position.field;
	at->field_ready = false;
	begin_blocks(at);
	read_ahead(stage, position.raw);
}

/* ---- receiving ------------------------------------------------------------------------------------------------ */

/*
 * Writes the memory field after byte raw - 1. If the block was entered in the middle, its guard is unknown, and only
 * copied bytes are written; nothing if the wire field was.
 */
static void write_memory_field(struct block_stage *stage, uint64_t found)
{
	struct signature_stage *at = &stage->signature;
	uint64_t copied = setup_of(stage)->copied;
	uint8_t bytes[FIELD_LARGEST];

	field_store(bytes, FIELD_LARGEST, output_field(stage, found));
	if (at->field_torn) {
		memory_skip(stage, at->output->field);
	} else if (at->output_whole) {
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

	bytes = min_bytes(bytes, at->input->field - at->field_at);
	for (uint64_t i = 0; i < bytes; i++, at->field_at++)
		at->field |= (uint64_t)from[i] << (56 - 8 * at->field_at);
	if (at->field_at < at->input->field)
		return bytes;
	if (at->input_whole)
		signature_check(stage, at->raw / at->input->block - 1, expected_input(at), at->field);
	if (at_end_of(at->output, at->raw))
		write_memory_field(stage, at->field);
	at->in_field = false;
	begin_input_block(at);
	return bytes;
}

static void receive_boundary(struct block_stage *stage)
{
	struct signature_stage *at = &stage->signature;

	at->field_torn = false;
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
	uint64_t run = signature_pass_blocks(stage, NULL, from, bytes);

	if (run) {
		begin_blocks(at);
		return run;
	}
	memory_ready(stage);
	bytes = min_bytes(min_bytes(bytes, until_boundary(at)), stage->piece.length);
	signature_pass_data(stage, stage->piece.address, from, bytes);
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

static void begin_reception(struct block_stage *stage)
{
	struct signature_stage *at = &stage->signature;
	const struct wire_position position = stage->range.position;

	at->raw = position.raw;
	at->in_field = position.in_field;
	at->field_at = position.field;
	at->field_torn = at->field_at;
	at->field = 0;
	begin_blocks(at);
	at->input_whole = !at->in_field && at->raw % at->input->block == 0;
	at->output_whole = !at->in_field && at->raw % at->output->block == 0;
}

void signature_begin(struct block_stage *stage)
{
	const struct signature_setup *setup = setup_of(stage);
	struct signature_stage *at = &stage->signature;
	const struct signature_domain *input = stage->transmits ? &setup->memory : &setup->wire;
	const struct signature_domain *output = stage->transmits ? &setup->wire : &setup->memory;
	bool in, out;

	if (!setup->enabled)
		return;
	in = input_guarded(setup, input);
	out = output_guarded(setup, output);
	at->input = input;
	at->output = output;
	at->input_guarded = in;
	at->output_guarded = out;
	at->shared = in && out && input->guard == output->guard && input->ones == output->ones &&
		     input->block == output->block && !setup->transaction;
	at->input_start = domain_guard_start(stage, input);
	at->output_start = domain_guard_start(stage, output);
	if (stage->transmits)
		begin_transmission(stage);
	else
		begin_reception(stage);
}
