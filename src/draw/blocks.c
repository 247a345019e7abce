/* SPDX-License-Identifier: BSD-2-Clause */
/* Adds blocks of a signature, or data units of a cipher. */
#include <inttypes.h>

#include "block/field.h"
#include "block/range.h"
#include "draw/parts.h"
#include "draw/words.h"
#include "explain/names.h"

enum { HEAD = 4, TAIL = 1 };

#define FIELD_GUARD_T10 (~(FIELD_APP | FIELD_REF))

/* ---- facts ---------------------------------------------------------------------------------------------------- */

static void describe_domain(struct picture *picture, const char *name, const struct signature_domain *domain)
{
	struct picture_fact *fact = picture_fact(picture, name);

	if (!domain->field) {
		SAY(fact->value, "blocks of %u bytes, without a signature", domain->block);
		return;
	}
	SAY(fact->value, "blocks of %u bytes, each followed by %u bytes: %s, seed %s", domain->block, domain->field,
	    guard_name(domain->guard), domain->ones ? "all ones" : "0");
	if (!domain->tags)
		return;
	SAY_MORE(fact->value, "; application tag 0x%04x, reference tag 0x%08x", domain->app_tag, domain->ref_tag);
	if (domain->increments)
		SAY_MORE(fact->value, ", incremented for each block");
	if (domain->escape_both)
		SAY_MORE(fact->value, "; escape if both tags are all ones");
	else if (domain->escape_app)
		SAY_MORE(fact->value, "; escape if the application tag is all ones");
}

/* Names the bytes of a field that @mask selects. */
static void say_mask(struct picture_fact *fact, uint64_t mask, const struct signature_domain *domain)
{
	const struct {
		uint64_t bytes;
		const char *name;
	} parts[] = {{FIELD_GUARD_T10, "guard"}, {FIELD_APP, "application tag"}, {FIELD_REF, "reference tag"}};

	if (!domain->tags) {
		uint64_t all = guard_bytes(domain);

		mask &= all;
		SAY(fact->value,
		    mask == all ? "all of it"
		    : mask      ? "bytes of the mask 0x%016" PRIx64
				: "nothing",
		    mask);
		return;
	}
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		uint64_t bytes = mask & parts[i].bytes;

		if (!bytes)
			continue;
		SAY_MORE(fact->value, "%s%s", *fact->value ? ", " : "", parts[i].name);
		if (bytes != parts[i].bytes)
			SAY_MORE(fact->value, " (0x%016" PRIx64 ")", bytes);
	}
	if (!*fact->value)
		SAY(fact->value, "nothing");
}

static void describe_signature(struct picture *picture, const struct signature_setup *signature)
{
	const struct signature_domain *memory = &signature->memory, *wire = &signature->wire;
	const struct signature_domain *either = memory->field ? memory : wire;
	struct picture_fact *fact;

	describe_domain(picture, "in memory", memory);
	describe_domain(picture, "on the wire", wire);
	fact = picture_fact(picture, "on the way");
	if (memory->field && wire->field)
		SAY(fact->value, "the input field is checked, the output field copied or generated");
	else if (memory->field)
		SAY(fact->value, "checked and removed on the way to the wire, generated on the way to memory");
	else
		SAY(fact->value, "generated on the way to the wire, checked and removed on the way to memory");
	say_mask(picture_fact(picture, "checked"), signature->checked, either);
	if (memory->field && wire->field)
		say_mask(picture_fact(picture, "copied"), signature->copied, either);
	if (signature->limit != UINT64_MAX)
		SAY(picture_fact(picture, "set up for")->value, "%s bytes of data", COMMAS(signature->limit));
}

static void describe_cipher(struct picture *picture, const struct block_setup *setup)
{
	const struct cipher_setup *cipher = &setup->cipher;
	struct picture_fact *fact = picture_fact(picture, "cipher");

	SAY(fact->value, "AES-XTS, data units of %u bytes; %s", cipher->unit,
	    cipher->encrypts_on_tx ? "encrypts on the way to the wire" : "decrypts on the way to the wire");
	if (setup->signature.enabled)
		SAY_MORE(fact->value, ", %s",
			 cipher->on_wire ? "between signature and wire" : "between memory and signature");
	fact = picture_fact(picture, "tweak");
	SAY(fact->value, "0x");
	for (int i = sizeof(cipher->tweak) - 1; i >= 0; i--)
		SAY_MORE(fact->value, "%02x", cipher->tweak[i]);
	SAY_MORE(fact->value, ", incremented for each data unit");
}

/* ---- blocks --------------------------------------------------------------------------------------------------- */

/* Blocks of the memory domain, or data units. */
struct steps {
	const struct mapping *map;
	const struct signature_setup *signature; /* NULL: data units of a cipher */
	uint32_t data, in_memory;                /* bytes of data, and of memory */
	uint64_t count;
};

static struct steps steps_of(const struct mapping *map)
{
	const struct block_setup *setup = map->blocks;
	struct steps steps = {.map = map, .data = setup->cipher.unit, .in_memory = setup->cipher.unit};

	if (setup->signature.enabled) {
		steps.signature = &setup->signature;
		steps.data = setup->signature.memory.block;
		steps.in_memory = extended_block(&setup->signature.memory);
	}
	if (steps.in_memory)
		steps.count = map->length / steps.in_memory + (map->length % steps.in_memory != 0);
	return steps;
}

static uint64_t wire_of(const struct steps *steps, uint64_t number)
{
	uint64_t raw = number * steps->data;

	return steps->signature ? wire_position_of(steps->signature, raw) : raw;
}

/* Returns the step of wire byte @wire. */
static uint64_t step_of_wire(const struct steps *steps, uint64_t wire)
{
	uint64_t raw = wire;

	if (steps->signature) {
		const struct wire_position position = wire_position(steps->signature, wire);

		raw = position.in_field ? position.raw - 1 : position.raw;
	}
	return raw / steps->data;
}

static void say_field(char *out, size_t size, const struct signature_domain *domain, uint64_t number)
{
	words_put(out, size, "%u: %s", domain->field, guard_name(domain->guard));
	if (domain->tags)
		words_append(out, size, ", app 0x%04x, ref 0x%08x", domain->app_tag,
			     (uint32_t)(domain->ref_tag + (domain->increments ? number : 0)));
}

/* Describes the wire fields after the data of step @number: several or none if wire blocks have another size. */
static void say_wire_fields(struct picture_block *block, const struct steps *steps, uint64_t number)
{
	const struct signature_domain *wire = &steps->signature->wire;
	uint64_t first = number * steps->data / wire->block, end = (number + 1) * steps->data / wire->block;

	if (!wire->field || first == end)
		return;
	if (end - first == 1)
		say_field(block->wire_field, sizeof(block->wire_field), wire, first);
	else
		SAY(block->wire_field, "%s of %u bytes", COMMAS(end - first), wire->field);
}

static void say_data(char *out, size_t size, uint64_t at, uint64_t bytes, const char *what)
{
	words_put(out, size, "+0x%" PRIx64 ": %s%s", at, COMMAS(bytes), what);
}

static void describe_block(struct picture_block *block, const struct steps *steps, uint64_t number)
{
	uint64_t at = number * steps->in_memory, left = steps->map->length - at;
	uint64_t bytes = left < steps->data ? left : steps->data;
	const struct cipher_setup *cipher = &steps->map->blocks->cipher;
	const char *memory = "", *wire = "";

	SAY(block->number, "%s", COMMAS(number));
	if (cipher->enabled) {
		memory = cipher->encrypts_on_tx ? "" : " enciphered";
		wire = cipher->encrypts_on_tx ? " enciphered" : "";
	}
	say_data(block->memory, sizeof(block->memory), at, bytes, memory);
	say_data(block->wire, sizeof(block->wire), wire_of(steps, number), bytes, wire);
	if (!steps->signature || bytes < steps->data)
		return;
	if (steps->signature->memory.field)
		say_field(block->memory_field, sizeof(block->memory_field), &steps->signature->memory, number);
	say_wire_fields(block, steps, number);
}

/* ---- errors --------------------------------------------------------------------------------------------------- */

static uint64_t step_of_error(const struct steps *steps, const struct explain_record *record)
{
	bool memory = record->args[2];

	return memory || !steps->signature->wire.block ? record->args[1]
						       : record->args[1] * steps->signature->wire.block / steps->data;
}

static void say_error(struct picture_block *block, const struct explain_record *record)
{
	const char *what = record->rule == RULE_BLOCK_GUARD     ? "guard"
			   : record->rule == RULE_BLOCK_APP_TAG ? "application tag"
								: "reference tag";

	block->mark = MARK_REFUSED;
	SAY(block->problem, "%s %s: %s 0x%" PRIx64 ", found 0x%" PRIx64, what,
	    record->args[2] ? "in memory" : "on the wire", record->rule == RULE_BLOCK_GUARD ? "computed" : "expected",
	    record->args[3], record->args[4]);
}

/* Marks step @number if an explanation or the refused access concerns it. */
static void block_mark(struct picture_block *block, const struct picture_subject *subject, const struct steps *steps,
		       uint64_t number)
{
	struct explain_record record = {.serial = 0};
	uint64_t wire = wire_of(steps, number), end = wire_of(steps, number + 1);

	while (steps->signature && bad_block_previous(subject, record.serial, &record)) {
		if (step_of_error(steps, &record) != number)
			continue;
		say_error(block, &record);
		return;
	}
	if (subject->refused && mapping_is_staged(subject->map) && subject->access.address < end &&
	    (subject->access.address >= wire || subject->access.length > wire - subject->access.address))
		block->mark = MARK_TOUCHED;
}

static struct chosen choose_blocks(const struct picture_subject *subject, const struct steps *steps)
{
	struct chosen chosen = {.limit = steps->count};
	struct explain_record record = {.serial = 0};

	chosen_add(&chosen, 0, HEAD);
	chosen_add(&chosen, steps->count - TAIL, steps->count);
	for (int i = 0; i < 2 && steps->signature && bad_block_previous(subject, record.serial, &record); i++)
		chosen_add_around(&chosen, step_of_error(steps, &record), 1);
	if (subject->refused && subject->access.length) {
		uint64_t last = subject->access.address + (subject->access.length - 1);

		chosen_add_around(&chosen, step_of_wire(steps, subject->access.address), 0);
		chosen_add_around(&chosen, step_of_wire(steps, last), 0);
	}
	return chosen;
}

static struct picture_block *picture_add_block(struct picture *picture, enum picture_row_kind kind)
{
	struct picture_block *block;

	if (picture->blocks == PICTURE_BLOCKS)
		return NULL;
	block = &picture->block[picture->blocks++];
	block->kind = kind;
	return block;
}

static void picture_add_blocks(struct picture *picture, const struct picture_subject *subject,
			       const struct steps *steps)
{
	const struct chosen chosen = choose_blocks(subject, steps);
	struct picture_block *block;
	uint64_t next = 0;

	for (uint32_t i = 0; i < chosen.count; i++) {
		if (chosen.range[i].first > next && (block = picture_add_block(picture, ROW_ELIDED)))
			SAY(block->number, "… %s more", COMMAS(chosen.range[i].first - next));
		for (next = chosen.range[i].first; next < chosen.range[i].end; next++) {
			block = picture_add_block(picture, ROW_PIECE);
			if (!block)
				return;
			describe_block(block, steps, next);
			block_mark(block, subject, steps, next);
		}
	}
}

void picture_blocks(struct picture *picture, const struct picture_subject *subject)
{
	const struct mapping *map = subject->map;
	struct steps steps;

	if (!map->blocks || !mapping_is_staged(map))
		return;
	if (map->blocks->signature.enabled)
		describe_signature(picture, &map->blocks->signature);
	if (map->blocks->cipher.enabled)
		describe_cipher(picture, map->blocks);
	else if (map->needs_cipher)
		SAY(picture_fact(picture, "cipher")->value, "none yet: the key was created for one");
	steps = steps_of(map);
	if (steps.count)
		picture_add_blocks(picture, subject, &steps);
}
