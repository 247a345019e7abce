/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The usual, fast case: many whole blocks that are contiguous on both sides. Their data is passed before their fields.
 */
#include <string.h>

#include "block/field.h"
#include "core/compiler.h"
#include "mkey/stage_parts.h"

/* Blocks per run; fewer if two guards read the data, so that the second pass hits the L1 cache. */
#define RUN_BLOCKS 32
#define RUN_BLOCKS_TWICE 4
/* Length from which the data is expected in memory: the caches of a core cannot hold both sides. */
#define FAR_BYTES (UINT64_C(4) << 20)

static const uint64_t no_guards[RUN_BLOCKS];

struct block_run {
	const uint8_t *from;
	uint8_t *to;
	size_t from_stride, to_stride;
	size_t block; /* bytes of data */
	size_t count;
	bool far;
};

/* Like field_of_block(), without its branches. */
struct field_maker {
	uint64_t constant;
	uint32_t reference, step;
	unsigned int shift; /* position of the guard */
};

static struct field_maker maker_of(const struct signature_domain *domain, uint64_t number)
{
	return (struct field_maker){
		.constant = domain->tags ? (uint64_t)domain->app_tag << FIELD_APP_SHIFT : 0,
		.reference = domain->tags ? domain->ref_tag + (domain->increments ? (uint32_t)number : 0) : 0,
		.step = domain->tags && domain->increments,
		.shift = guard_shift(domain),
	};
}

static inline uint64_t make_field(const struct field_maker *maker, uint64_t guard, size_t place)
{
	return guard << maker->shift | maker->constant | (uint32_t)(maker->reference + maker->step * (uint32_t)place);
}

/* Copies the data and computes the guards. NULL: that guard is not needed, or is the same as the other. */
static void run_pass_data(const struct signature_stage *at, const struct block_run *run, uint64_t *input_guards,
			  uint64_t *output_guards)
{
	struct guard_blocks blocks = {
		.from = run->from,
		.to = run->to,
		.from_stride = run->from_stride,
		.to_stride = run->to_stride,
		.block = run->block,
		.far = run->far,
	};

	if (input_guards) {
		guard_copy_blocks((enum guard_type)at->input->guard, at->input->ones, &blocks, run->count,
				  input_guards);
		blocks.to = NULL;
	}
	if (output_guards) {
		guard_copy_blocks((enum guard_type)at->output->guard, at->output->ones, &blocks, run->count,
				  output_guards);
		blocks.to = NULL;
	}
	for (size_t i = 0; blocks.to && i < run->count; i++)
		memmove(run->to + i * run->to_stride, run->from + i * run->from_stride, run->block);
}

static inline SPECIALISED void run_check_sized(struct block_stage *stage, const struct block_run *run,
					       const uint64_t *guards, uint64_t number, unsigned int size)
{
	const struct field_maker maker = maker_of(stage->signature.input, number);
	const uint64_t checked = stage->setup->signature.checked;
	const uint8_t *field = run->from + run->block;

	for (size_t i = 0; i < run->count; i++, field += run->from_stride) {
		uint64_t found = field_load(field, size), expected = make_field(&maker, guards[i], i);

		if (__builtin_expect((found ^ expected) & checked, 0))
			signature_check(stage, number + i, expected, found);
	}
}

static void run_check_fields(struct block_stage *stage, const struct block_run *run, const uint64_t *guards,
			     uint64_t number)
{
	if (stage->signature.input->field == FIELD_LARGEST)
		run_check_sized(stage, run, guards, number, FIELD_LARGEST);
	else
		run_check_sized(stage, run, guards, number, FIELD_LARGEST / 2);
}

static inline SPECIALISED void run_make_sized(const struct block_stage *stage, const struct block_run *run,
					      const uint64_t *guards, uint64_t number, unsigned int size)
{
	const struct field_maker maker = maker_of(stage->signature.output, number);
	const uint64_t copied = stage->setup->signature.copied;
	const uint8_t *found = run->from + run->block;
	uint8_t *field = run->to + run->block;

	for (size_t i = 0; i < run->count; i++, field += run->to_stride, found += run->from_stride) {
		uint64_t made = make_field(&maker, guards[i], i);

		if (copied)
			made = (made & ~copied) | (field_load(found, size) & copied);
		field_store(field, size, made);
	}
}

static void run_make_fields(const struct block_stage *stage, const struct block_run *run, const uint64_t *guards,
			    uint64_t number)
{
	if (stage->signature.output->field == FIELD_LARGEST)
		run_make_sized(stage, run, guards, number, FIELD_LARGEST);
	else
		run_make_sized(stage, run, guards, number, FIELD_LARGEST / 2);
}

/* Returns @bytes / @block, at most @most. Avoids slow divisions. */
static size_t blocks_in(uint64_t bytes, uint64_t block, size_t most)
{
	if (bytes < 2 * block)
		return bytes >= block;
	return bytes >= most * block ? most : (uint32_t)bytes / (uint32_t)block;
}

uint64_t signature_pass_blocks(struct block_stage *stage, uint8_t *to, const uint8_t *from, uint64_t bytes)
{
	struct signature_stage *at = &stage->signature;
	const struct signature_domain *input = at->input, *output = at->output;
	struct block_run run = {
		.from_stride = extended_block(input), .to_stride = extended_block(output), .block = input->block};
	size_t wire_block = to ? run.to_stride : run.from_stride, memory_block = to ? run.from_stride : run.to_stride;
	uint64_t storage[2][RUN_BLOCKS], number;
	uint64_t *input_guards = at->input_guarded ? storage[0] : NULL;
	uint64_t *output_guards = at->output_guarded && !(input_guards && at->shared) ? storage[1] : NULL;
	const uint64_t *found_by = input_guards ? input_guards : no_guards;
	const uint64_t *made_of = output_guards ? output_guards : at->output_guarded ? found_by : no_guards;

	number = at->raw ? at->raw / run.block : 0; /* most transfers are one block */
	if (bytes < wire_block || input->block != output->block || at->in_field || at->raw != number * run.block ||
	    stage->setup->signature.transaction)
		return 0;
	memory_ready(stage);
	run.count = blocks_in(bytes, wire_block, input_guards && output_guards ? RUN_BLOCKS_TWICE : RUN_BLOCKS);
	run.count = blocks_in(stage->piece.length, memory_block, run.count);
	if (!run.count || !stage->piece.address)
		return 0;
	run.far = stage->range.wire.end - stage->range.wire.first >= FAR_BYTES;
	run.from = from ? from : stage->piece.address;
	run.to = to ? to : stage->piece.address;
	run_pass_data(at, &run, input_guards, output_guards);
	if (input->field && stage->setup->signature.checked)
		run_check_fields(stage, &run, found_by, number);
	if (output->field)
		run_make_fields(stage, &run, made_of, number);
	memory_passed(stage, run.count * memory_block);
	at->raw += run.count * run.block;
	return run.count * wire_block;
}
