/* SPDX-License-Identifier: BSD-2-Clause */
/* Drafts of commands, their flaws, and the results of their calls. */
#include "world.h"

#include <errno.h>
#include <stdio.h>

enum { HEADER = 16, CANARY = 0xa5, NC_PAGE = 1 };

/* In addition to the kinds of objects. */
enum { KIND_UAR = KINDS, KIND_UMEM, KIND_EQ };

/* ---- fields ----------------------------------------------------------------------------------------------------------- */

/* @byte: the byte of the 32-bit word, or one of its bytes. */
void put(uint8_t *command, size_t byte, int high, int low, uint64_t value)
{
	uint64_t mask = ((UINT64_C(2) << (high - low)) - 1) << low;
	uint32_t word;

	byte &= ~(size_t)3;
	memcpy(&word, command + byte, sizeof(word));
	word = htobe32((uint32_t)((be32toh(word) & ~mask) | (value << low & mask)));
	memcpy(command + byte, &word, sizeof(word));
}

uint64_t get(const uint8_t *command, size_t byte, int high, int low)
{
	uint32_t word;

	memcpy(&word, command + (byte & ~(size_t)3), sizeof(word));
	return be32toh(word) >> low & ((UINT64_C(2) << (high - low)) - 1);
}

static void put64(uint8_t *command, size_t byte, uint64_t value)
{
	value = htobe64(value);
	memcpy(command + byte, &value, sizeof(value));
}

/* ---- drafts ----------------------------------------------------------------------------------------------------------- */

/* A kernel overwrites the user number that a program wrote. */
struct draft draft_of(struct world *world, uint16_t opcode, size_t in, size_t out)
{
	struct draft draft = {.in_bytes = in, .out_bytes = out, .says = out, .outcomes = OUTCOME_OK};

	put(draft.in, 0, 31, 16, opcode);
	if (chance(&world->choose, 30))
		put(draft.in, 0, 15, 0, choose_bits(&world->choose));
	return draft;
}

static struct flaw *new_flaw(struct draft *draft, size_t byte, int high, int low)
{
	struct flaw *flaw = &draft->flaws[draft->flaw_count++];

	*flaw = (struct flaw){.byte = (uint16_t)byte, .high = (uint8_t)high, .low = (uint8_t)low, .status = 3};
	return flaw;
}

void draft_flaw(struct draft *draft, size_t byte, int high, int low, uint64_t first, uint64_t last)
{
	struct flaw *flaw = new_flaw(draft, byte, high, low);

	flaw->how = FLAW_VALUE;
	flaw->first = first;
	flaw->last = last;
}

static void number_flaw(struct draft *draft, size_t byte, int high, int low, int kind)
{
	struct flaw *flaw = new_flaw(draft, byte, high, low);

	flaw->how = FLAW_NUMBER;
	flaw->kind = (enum kind)kind;
	flaw->status = 5;
}

void draft_number(struct draft *draft, size_t byte, int high, int low, enum kind kind, const struct object *object)
{
	put(draft->in, byte, high, low, object->number);
	number_flaw(draft, byte, high, low, (int)kind);
}

void draft_memory(struct draft *draft, size_t id, size_t offset_byte, uint64_t offset, uint64_t bytes)
{
	const struct umem *umem = draft->made.umem[0];
	struct flaw *flaw;

	put(draft->in, id, 31, 0, umem->handle->umem_id);
	number_flaw(draft, id, 31, 0, KIND_UMEM);
	put64(draft->in, offset_byte, offset);
	flaw = new_flaw(draft, offset_byte, 63, 0);
	flaw->how = FLAW_RANGE;
	flaw->umem = umem;
	flaw->last = bytes;
}

bool draft_uar(struct world *world, struct context *context, struct draft *draft, size_t byte)
{
	struct mlx5dv_devx_uar *uar = context->uars[choose_below(&world->choose, UARS)];

	if (!uar)
		return false;
	put(draft->in, byte, 23, 0, uar->page_id);
	number_flaw(draft, byte, 23, 0, KIND_UAR);
	return true;
}

/* ---- flaws ------------------------------------------------------------------------------------------------------------ */

static bool exists(struct context *context, int kind, uint64_t number)
{
	if (kind < KINDS)
		return object_find(context, (enum kind)kind, (uint32_t)number);
	/* The uncached page belongs to the context, whether or not a program has requested it. */
	if (kind == KIND_UAR && number == NC_PAGE)
		return true;
	for (size_t i = 0; i < UARS; i++)
		if (kind == KIND_UAR && context->uars[i] && context->uars[i]->page_id == number)
			return true;
	for (size_t i = 0; i < UMEMS; i++)
		if (kind == KIND_UMEM && context->umems[i].handle && context->umems[i].handle->umem_id == number)
			return true;
	return false;
}

/* Returns a number of another context, of another kind, of a destroyed object, or of none. */
static uint64_t some_number(struct world *world, struct context *context)
{
	struct context *other = &world->contexts[context == &world->contexts[0]];
	struct object *object;

	switch (choose_below(&world->choose, 5)) {
	case 0:
		object = object_some(world, other, (enum kind)choose_below(&world->choose, KINDS));
		return object ? object->number : 0;
	case 1:
		object = object_some(world, context, (enum kind)choose_below(&world->choose, KINDS));
		return object ? object->number + choose_below(&world->choose, 2) : 0;
	case 2:
		return choose_below(&world->choose, 16);
	case 3:
		return 0;
	default:
		return choose_bits(&world->choose) & 0xffffff;
	}
}

static void apply(struct world *world, struct context *context, struct draft *draft, const struct flaw *flaw)
{
	uint64_t value = flaw->first + choose_below(&world->choose, flaw->last - flaw->first + 1);

	if (flaw->how == FLAW_NUMBER) {
		value = some_number(world, context);
		if (exists(context, (int)flaw->kind, value))
			return;
	}
	if (flaw->how == FLAW_RANGE)
		put64(draft->in, flaw->byte,
		      chance(&world->choose, 50) ? flaw->umem->bytes - choose_below(&world->choose, flaw->last)
						 : UINT64_MAX - choose_below(&world->choose, 8192));
	else
		put(draft->in, flaw->byte, flaw->high, flaw->low, value);
	if (flaw->status == BY_HOST)
		draft->refused_by_host = true;
	else
		draft->outcomes = (draft->outcomes & ~OUTCOME_OK) | OUTCOME(flaw->status);
}

/* Draws wrong lengths, and buffers that end too early. Refusals of the host precede those of the device. */
static void spoil_buffers(struct world *world, struct draft *draft)
{
	switch (choose_below(&world->choose, 6)) {
	case 0: /* too short for the device */
		if (draft->in_bytes <= HEADER)
			return;
		draft->in_bytes = HEADER + choose_below(&world->choose, draft->in_bytes - HEADER);
		draft->outcomes = (draft->outcomes & ~OUTCOME_OK) | OUTCOME(BIT_LENGTH);
		return;
	case 1: /* for the host */
		draft->in_bytes = choose_below(&world->choose, HEADER);
		draft->refused_by_host = true;
		return;
	case 2:
		draft->out_bytes = choose_below(&world->choose, HEADER);
		draft->refused_by_host = true;
		return;
	case 3:
		draft->unreadable = true;
		return;
	case 4:
		draft->unwritable = true;
		return;
	default: /* less room than the output needs, or more */
		draft->out_bytes = HEADER + choose_below(&world->choose, 3 * PAGE / 2);
	}
}

void draft_spoil(struct world *world, struct context *context, struct draft *draft)
{
	for (uint64_t flaws = draft->flaw_count ? choose_below(&world->choose, 3) : 0; flaws; flaws--)
		if (chance(&world->choose, 60))
			apply(world, context, draft, &draft->flaws[choose_below(&world->choose, draft->flaw_count)]);
	if (chance(&world->choose, 10))
		spoil_buffers(world, draft);
}

/* ---- issuing ---------------------------------------------------------------------------------------------------------- */

/* Only the first bytes of an unreadable or unwritable buffer exist. */
enum { BYTES_BEFORE_END = 8 };

void *issue_in(struct world *world, const struct draft *draft)
{
	uint8_t *in = world->in_end - (draft->unreadable ? BYTES_BEFORE_END : draft->in_bytes);

	memcpy(in, draft->in, draft->unreadable ? BYTES_BEFORE_END : draft->in_bytes);
	return in;
}

void *issue_out(struct world *world, const struct draft *draft)
{
	size_t bytes = draft->unwritable ? BYTES_BEFORE_END : draft->out_bytes;

	memset(world->out_end - 2 * (size_t)PAGE, CANARY, 2 * (size_t)PAGE);
	return world->out_end - bytes;
}

static bool is_one_of(outcomes outcomes, uint8_t status)
{
	return outcomes & OUTCOME(status == 0x50 ? BIT_LENGTH : status < BIT_LENGTH ? status : 63);
}

/* Expects no write before the output, nor after the returned bytes. */
static void check_output(struct world *world, const struct draft *draft, size_t said)
{
	const uint8_t *begin = world->out_end - 2 * (size_t)PAGE, *out = world->out_end - draft->out_bytes;

	for (const uint8_t *at = begin; at < out; at++)
		if (*at != CANARY)
			DIFFERENCE(world, "command %lx wrote before its output", get(draft->in, 0, 31, 16));
	for (size_t i = said; i < draft->out_bytes; i++)
		if (out[i] != CANARY)
			DIFFERENCE(world, "command %lx wrote byte %zu of its output", get(draft->in, 0, 31, 16), i);
}

/* Prints byte:value, the notation of fact sheets. */
static void print_words(const struct draft *draft)
{
	printf("command");
	for (size_t at = 0; at < draft->in_bytes && at < COMMAND; at += 4)
		if (get(draft->in, at, 31, 0))
			printf(" %zu:%08lx", at, get(draft->in, at, 31, 0));
	printf("\n");
}

bool expect_outcome(struct world *world, const struct draft *draft, int error)
{
	const uint8_t *out = world->out_end - draft->out_bytes;
	unsigned long opcode = get(draft->in, 0, 31, 16);
	/* A command that was executed but could not return its result: a created object is destroyed, a change stays. */
	int expected = draft->unreadable               ? EFAULT
		       : draft->refused_by_host        ? EINVAL
		       : draft->unwritable             ? EFAULT
		       : draft->outcomes == OUTCOME_OK ? 0
						       : EREMOTEIO;

	if (error != expected || (error == EREMOTEIO && !is_one_of(draft->outcomes, out[0])))
		print_words(draft);
	if (error != expected)
		DIFFERENCE(world,
			   "command %lx of %zu and %zu bytes: error %d, not %d; status %x, rule %lu, expected %lx",
			   opcode, draft->in_bytes, draft->out_bytes, error, expected, error == EREMOTEIO ? out[0] : 0,
			   error == EREMOTEIO ? get(out, 4, 31, 0) : 0, draft->outcomes);
	if (error == EFAULT || error == EINVAL)
		return error == EFAULT && draft->unwritable && !draft->unreadable && draft->outcomes == OUTCOME_OK;
	if (error && (!is_one_of(draft->outcomes, out[0]) || !get(out, 4, 31, 0)))
		DIFFERENCE(world, "command %lx: status %x, syndrome %lu, expected %lx", opcode, out[0],
			   get(out, 4, 31, 0), draft->outcomes);
	if (!error && get(out, 0, 31, 24))
		DIFFERENCE(world, "command %lx: status %x of a success", opcode, out[0]);
	check_output(world, draft, error ? HEADER : draft->says);
	memcpy(world->out, out, draft->out_bytes < sizeof(world->out) ? draft->out_bytes : sizeof(world->out));
	if (draft->out_bytes < sizeof(world->out))
		memset(world->out + draft->out_bytes, 0, sizeof(world->out) - draft->out_bytes);
	return !error;
}
