/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs model and device side by side, see run.h. */
#include "run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../model/link.h"

enum { CASES_PER_FULL_COMPARISON = 64 };

/* Most of it is never touched. calloc() would write all of it: Meson sets MALLOC_PERTURB_. */
static struct pooled_key pools[SIDES][KEYS];

static void *allocate(size_t bytes)
{
	void *memory = calloc(1, bytes);

	if (!memory)
		abort();
	return memory;
}

void run_open(struct run *run, bool connectx)
{
	*run = (struct run){.cases = 0};
	world_open(&run->world);
	run->world.connectx = connectx;
	for (int side = 0; side < SIDES; side++) {
		run->pool[side] = pools[side];
		run->memory[side] = allocate(REGION);
		run->end[side] = allocate(sizeof(struct model_end));
		for (int i = 0; i < KEYS; i++)
			run->pool[side][i].key.connectx = connectx;
	}
}

void run_close(struct run *run)
{
	world_close(&run->world);
	for (int side = 0; side < SIDES; side++) {
		free(run->memory[side]);
		free(run->end[side]);
	}
}

/* ---- memory ---------------------------------------------------------------------------------------------------- */

/* Describes which byte of the memory stream is at @at of the region. */
static const char *describe(const struct model_end *end, uint32_t at)
{
	static char text[160];
	const struct domain *memory;
	uint64_t raw;

	if (!end->pooled)
		return "plain memory";
	memory = &end->pooled->key.signature.memory;
	for (uint64_t i = 0; i < end->pooled->key.length; i++) {
		if (end->pooled->key.place[i] != at)
			continue;
		if (!end->pooled->key.has_signature || memory->kind == KIND_NONE)
			snprintf(text, sizeof(text), "byte %lu of the key's memory", i);
		else if (is_raw(memory, i, &raw))
			snprintf(text, sizeof(text), "byte %lu of the key's memory, byte %lu of block %lu", i,
				 raw % memory->block, raw / memory->block);
		else
			snprintf(text, sizeof(text), "byte %lu of the key's memory, byte %lu of the field of block %lu",
				 i, i - place_of_field(memory, raw / memory->block - 1), raw / memory->block - 1);
		return text;
	}
	return "not of the key";
}

static void compare_memory(struct run *run)
{
	static const char *const names[SIDES] = {"source", "target"};
	uint32_t bytes = run->cases % CASES_PER_FULL_COMPARISON ? run->bytes : REGION;

	for (int side = 0; side < SIDES; side++) {
		const uint8_t *real = run->world.memory[side], *model = run->memory[side];
		uint32_t at = 0, differences = 0;

		if (!memcmp(real, model, bytes))
			continue;
		while (real[at] == model[at])
			at++;
		for (uint32_t i = at; i < bytes; i++)
			differences += real[i] != model[i];
		world_fail("byte %u of the %s's region is %02x, not %02x (%s); %u bytes differ", at, names[side],
			   real[at], model[at], describe(run->end[side], at), differences);
	}
}

/* ---- completions and checks ------------------------------------------------------------------------------------ */

static void polled(struct run *run, enum queue queue)
{
	for (int side = 0; side < SIDES; side++)
		for (int i = 0; i < KEYS; i++)
			errors_polled(&run->pool[side][i].errors, queue);
}

static void settle(struct run *run, enum queue queue)
{
	if (run->world.expected_first[queue] == run->world.expected_last[queue])
		return;
	world_settle(&run->world, queue);
	polled(run, queue);
}

static void poll_idle(struct run *run, enum queue queue)
{
	world_expect_idle(&run->world, queue);
	polled(run, queue);
}

static enum fault fault_of(enum mlx5dv_mkey_err_type type)
{
	switch (type) {
	case MLX5DV_MKEY_NO_ERR:
		return FAULT_NONE;
	case MLX5DV_MKEY_SIG_BLOCK_BAD_GUARD:
		return FAULT_GUARD;
	case MLX5DV_MKEY_SIG_BLOCK_BAD_APPTAG:
		return FAULT_APP;
	default:
		return FAULT_REF;
	}
}

static void check_key(struct run *run, int side)
{
	static const char *const faults[] = {"no error", "bad guard", "bad application tag", "bad reference tag"};
	struct model_end *end = run->end[side];
	struct mlx5dv_mkey_err error = {.err_type = (enum mlx5dv_mkey_err_type)99};
	struct finding expected;
	bool told = errors_check(end->pooled, &expected);
	int result = world_check(&run->world, side, end->end, &error);
	enum fault fault;

	if (result != (told ? 0 : EINVAL))
		world_fail("mlx5dv_mkey_check of side %d: %s, not %s", side, strerror(result),
			   told ? "success" : "EINVAL");
	if (!told)
		return;
	fault = fault_of(error.err_type);
	if (fault != expected.fault)
		world_fail(
			"mlx5dv_mkey_check of side %d: %s (actual %lx, expected %lx, offset %lu), not %s (%lx, %lx, %lu)",
			side, faults[fault], fault ? error.err.sig.actual_value : 0,
			fault ? error.err.sig.expected_value : 0, fault ? error.err.sig.offset : 0,
			faults[expected.fault], expected.actual, expected.expected, expected.offset);
	if (!fault)
		return;
	run->findings++;
	run->faults[fault]++;
	run->found[side] = expected;
	if (error.err.sig.actual_value != expected.actual || error.err.sig.expected_value != expected.expected ||
	    error.err.sig.offset != expected.offset)
		world_fail(
			"mlx5dv_mkey_check of side %d: %s with actual %lx, expected %lx, offset %lu, not %lx, %lx, %lu",
			side, faults[fault], error.err.sig.actual_value, error.err.sig.expected_value,
			error.err.sig.offset, expected.actual, expected.expected, expected.offset);
}

static void check_keys(struct run *run)
{
	for (int side = 0; side < SIDES; side++)
		if (run->end[side]->pooled)
			check_key(run, side);
}

static bool memory_is_right(const struct run *run)
{
	for (int side = 0; side < SIDES; side++)
		if (memcmp(run->world.memory[side], run->memory[side], run->bytes))
			return false;
	return true;
}

/* ---- steps ----------------------------------------------------------------------------------------------------- */

/* An unreliable request completes when it is sent, not when it arrives. */
static void deliver(struct run *run)
{
	const struct timespec moment = {.tv_nsec = 100000};

	while (link_progress())
		;
	/* If it changes nothing, memory is right before it arrives. It must not arrive in the next case. */
	for (int i = 0; run->world.unfollowed && i < 100; i++) {
		nanosleep(&moment, NULL);
		link_progress();
	}
	run->world.unfollowed = false;
	/* A WRITE of UC has no completion at the target. */
	for (int i = 0; link_in_real_time() && !memory_is_right(run) && i < 20000; i++)
		nanosleep(&moment, NULL);
}

static enum queue send_queue(int side)
{
	return side == SOURCE ? SOURCE_SEND : TARGET_SEND;
}

static const struct step sign_source = {.configures = true, .letters = "s"};
static const struct step sign_target = {.configures = true, .of_target = true, .letters = "s"};

static void settle_all(struct run *run)
{
	for (int queue = 0; queue < QUEUES; queue++)
		settle(run, (enum queue)queue);
}

static void configure(struct run *run, const struct step *step)
{
	int side = step->of_target ? TARGET : SOURCE;
	struct model_end *end = run->end[side];

	if (!end->pooled)
		world_fail("the case configures an end that has no key");
	settle_all(run);
	deliver(run);
	world_configure(&run->world, side, end->end, step->letters);
	end_configure(end, step->letters);
	settle(run, send_queue(side));
}

/*
 * After a refusal the errors found before are undetermined. Establishes a known state: none is recorded, and a
 * configuration arms the key.
 */
static void recover(struct run *run, const struct step *step)
{
	struct mlx5dv_mkey_err error;

	world_reconnect(&run->world, transport_of_step(step));
	for (int side = 0; side < SIDES; side++) {
		struct model_end *end = run->end[side];

		if (!end->pooled)
			continue;
		/* An earlier record is only reported while there is a signature. */
		if (world_check(&run->world, side, end->end, &error))
			configure(run, side == SOURCE ? &sign_source : &sign_target);
		if (world_check(&run->world, side, end->end, &error))
			world_fail("mlx5dv_mkey_check of side %d fails after a refusal", side);
		end->pooled->errors = (struct errors){.silent = true, .polled = true};
	}
}

/* Resolves the range of an end: its header is in a separate SGE, if it has SGEs. */
static bool resolve(struct run *run, const struct step *step, int which)
{
	struct model_end *end = run->end[side_of(step, which)];
	uint32_t header = run->test_case->header;

	if (is_local(step->operation, which) && end->pooled)
		return end_resolve(end, header, step->start, step->length, step->cut);
	return end_resolve(end, 0, step->start, header + step->length, 0);
}

/* Returns false if it is refused, which ends the case. */
static bool transfer(struct run *run, const struct step *step)
{
	static uint8_t message[MESSAGE_MOST];
	struct model_end *source = run->end[side_of(step, FROM)], *target = run->end[side_of(step, TO)];
	enum operation operation = step->operation;
	enum ending ending = ENDS_WELL;
	struct finding finding;

	if (!resolve(run, step, TO) || !end_fits(target, false))
		ending = TO_REFUSES;
	if (!resolve(run, step, FROM) || !end_fits(source, true))
		ending = FROM_REFUSES;
	if (ending != ENDS_WELL) {
		settle_all(run);
		world_transfer(&run->world, run->test_case, step, ending);
		settle_all(run);
		recover(run, step);
		run->refusals++;
		return false;
	}
	finding = end_gather(source, message);
	if (source->pooled)
		errors_found(source->pooled, finding, queue_of_error(step, FROM));
	finding = end_scatter(target, message);
	if (target->pooled)
		errors_found(target->pooled, finding, queue_of_error(step, TO));
	world_transfer(&run->world, run->test_case, step, ENDS_WELL);
	run->transfers++;
	run->operations[operation]++;
	run->back += step->back;
	run->other += step->other;
	run->message_bytes += step->length + run->test_case->header;
	return true;
}

/*
 * Polls after a transfer: the expected completions, then, in profile connectx, errors of the passive end. Each time
 * there must be no more errors than in the model.
 */
static void conclude(struct run *run)
{
	settle_all(run);
	if (!run->world.connectx)
		deliver(run);
	if (!run->test_case->lazy)
		check_keys(run);
	deliver(run);
	if (run->test_case->late)
		return;
	for (int queue = 0; queue < QUEUES; queue++)
		if (queue % OTHER_PAIR == SOURCE_RECEIVE || queue % OTHER_PAIR == TARGET_RECEIVE)
			poll_idle(run, (enum queue)queue);
	if (!run->test_case->lazy)
		check_keys(run);
}

static void prepare(struct run *run)
{
	for (int side = 0; side < SIDES; side++) {
		const struct end *end = side == SOURCE ? &run->test_case->source : &run->test_case->target;

		run->end[side]->end = end;
		run->end[side]->memory = run->memory[side];
		run->end[side]->pooled = end->is_key ? &run->pool[side][end->key] : NULL;
		run->found[side] = (struct finding){.fault = FAULT_NONE};
		if (end->is_key)
			end_lay(run->end[side], false);
	}
	run->bytes = fill_ends(run->test_case, run->end[SOURCE], run->end[TARGET]);
	for (int side = 0; side < SIDES; side++) {
		memcpy(run->world.memory[side], run->memory[side], run->bytes);
		if (run->end[side]->pooled)
			world_surround(&run->world, side, run->end[side]->end);
	}
	settle_all(run);
}

/* In profile connectx, a record that cannot be reported without a signature can be once there is one. */
static void finish(struct run *run)
{
	settle_all(run);
	deliver(run);
	for (int queue = 0; queue < QUEUES; queue++)
		poll_idle(run, (enum queue)queue);
	check_keys(run);
	for (int side = 0; side < SIDES; side++) {
		if (!run->end[side]->pooled || !run->end[side]->pooled->errors.recorded.fault)
			continue;
		configure(run, side == SOURCE ? &sign_source : &sign_target);
		check_key(run, side);
	}
	compare_memory(run);
}

static void count_key(struct run *run, const struct end *end)
{
	const struct signature *signature = &end->signature;
	int structure = OTHER_STRUCTURE;

	if (!end->is_key)
		return;
	if (!end->has_signature)
		structure = NO_SIGNATURE;
	else if (signature->wire.kind == KIND_NONE)
		structure = MEMORY_ONLY;
	else if (signature->memory.kind == KIND_NONE)
		structure = WIRE_ONLY;
	else if (same_structure(signature))
		structure = SAME_STRUCTURE;
	run->structures[structure]++;
	run->layouts[end->layout.repeat ? INTERLEAVED : LIST]++;
	run->layouts[WITH_KEY_UNDER] += end->under.count > 0;
	run->layouts[WITH_KEY_OVER] += end->over.count > 0;
}

void run_case(struct run *run, const struct test_case *test_case)
{
	run->test_case = test_case;
	run->cases++;
	/* The case determines the losses on a wire, so its line includes them. Nothing is in flight now. */
	link_open(test_case->data);
	run->world.extended = test_case->extended;
	count_key(run, &test_case->source);
	count_key(run, &test_case->target);
	prepare(run);
	for (uint32_t i = 0; i < test_case->step_count; i++) {
		const struct step *step = &test_case->step[i];

		if (step->configures)
			configure(run, step);
		else if (!transfer(run, step))
			break;
		else if (!test_case->together || (i + 1 < test_case->step_count && test_case->step[i + 1].configures))
			conclude(run);
	}
	finish(run);
}
