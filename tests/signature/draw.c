/* SPDX-License-Identifier: BSD-2-Clause */
/* Draws cases, see draw.h. Most transfers are within the key, most input is correct. */
#include "draw.h"

#include <stdio.h>
#include <string.h>

struct drawing {
	struct choose *c;
	const struct abilities *abilities;
	struct test_case *to;
	struct end *key; /* the end with the signature that determines lengths */
	uint32_t length; /* bytes that messages can address */
	bool careful;    /* no request may be refused */
	enum operation operation;
	bool mixes; /* another operation for each message */
	bool goes_back, on_two_pairs;
};

/* ---- blocks ---------------------------------------------------------------------------------------------------- */

static const struct domain *any_domain(struct choose *c, const struct signature *signature)
{
	if (signature->memory.kind == KIND_NONE)
		return &signature->wire;
	if (signature->wire.kind == KIND_NONE || chance(c, 50))
		return &signature->memory;
	return &signature->wire;
}

/* Returns the bytes of raw data: some blocks, and often a part of one. */
static uint32_t draw_raw(struct drawing *d, bool whole)
{
	struct choose *c = d->c;
	uint32_t block = d->key->has_signature ? any_domain(c, &d->key->signature)->block : 1000;
	uint32_t blocks = 1 + (uint32_t)choose_below(c, 6), raw;

	if (chance(c, 1) && chance(c, 50))
		blocks = 7 + (uint32_t)choose_below(c, 94);
	raw = blocks * block;
	if (!whole && chance(c, 35))
		raw = raw - block + 1 + (uint32_t)choose_below(c, block);
	return raw;
}

/* Returns the bytes of the memory stream; sometimes more or less than needed. */
static uint32_t memory_length(struct drawing *d, uint32_t bytes)
{
	struct choose *c = d->c;

	if (chance(c, 10))
		return bytes + (uint32_t)choose_below(c, 64);
	if (!d->careful && chance(c, 4))
		return bytes - (uint32_t)choose_below(c, chance(c, 50) && bytes > 12 ? 12 : bytes);
	return bytes;
}

/* ---- operations ------------------------------------------------------------------------------------------------ */

static enum operation draw_operation(struct drawing *d)
{
	static const enum operation reliable[] = {SEND, SEND, SEND_IMM, WRITE, WRITE, WRITE_IMM, READ, READ, READ};
	static const enum operation unreliable[] = {UC_SEND, UC_SEND_IMM, UC_WRITE, UC_WRITE_IMM};
	static const enum operation datagram[] = {UD_SEND, UD_SEND_IMM};
	struct choose *c = d->c;

	if (d->abilities->unreliable && d->careful && chance(c, 35))
		return chance(c, 50) ? CHOOSE_OF(c, unreliable) : CHOOSE_OF(c, datagram);
	if (d->abilities->memcpy && chance(c, 12))
		return MEMCPY;
	return CHOOSE_OF(c, reliable);
}

static bool is_datagram(enum operation operation)
{
	return operation == UD_SEND || operation == UD_SEND_IMM;
}

/* Returns true if the end is named by SGEs; others cannot have a header. */
static bool can_have_header(const struct drawing *d)
{
	const struct test_case *to = d->to;

	if (d->mixes)
		return false;
	if (operation_is_send(d->operation))
		return true;
	if (to->source.is_key && to->target.is_key)
		return false;
	if (d->operation == WRITE || d->operation == WRITE_IMM)
		return to->source.is_key;
	return d->operation == READ && to->target.is_key;
}

/* ---- steps ----------------------------------------------------------------------------------------------------- */

static void add_configuration(struct drawing *d, bool of_target, const char *letters)
{
	struct step *step;

	if (d->to->step_count == STEPS)
		return;
	step = &d->to->step[d->to->step_count++];
	*step = (struct step){.configures = true, .of_target = of_target};
	snprintf(step->letters, sizeof(step->letters), "%s", letters);
}

static void add_transfer(struct drawing *d, uint32_t start, uint32_t length)
{
	const struct domain *wire = &d->key->signature.wire;
	struct step *step;

	if (d->to->step_count == STEPS || !length)
		return;
	step = &d->to->step[d->to->step_count++];
	if (d->mixes)
		d->operation = draw_operation(d);
	*step = (struct step){.operation = d->operation, .start = start, .length = length};
	if (is_datagram(d->operation) && length > d->abilities->datagram_most - d->to->header)
		step->length = d->abilities->datagram_most - d->to->header;
	step->other = step->operation <= READ && chance(d->c, d->on_two_pairs ? 40 : 0);
	step->back = !d->to->header && chance(d->c, d->goes_back ? 40 : 0);
	if (chance(d->c, 15) && d->operation != MEMCPY)
		step->cut = draw_cut(d->c, wire, step->length);
}

/* Configures keys in one request or in several; the result of an earlier configuration is overridden or kept. */
static void configure_first(struct drawing *d, bool of_target)
{
	static const char *const with[][3] = {
		{"als"},       {"als"},  {"als"},         {"als"},       {"als"},           {"sla"},
		{"las"},       {"rals"}, {"as", "l"},     {"al", "s"},   {"ask", "l"},      {"alj", "s"},
		{"ralj", "s"}, {"ials"}, {"al", "", "s"}, {"alj", "rs"}, {"akj", "s", "l"},
	};
	static const char *const without[][3] = {{"ral"}, {"alj", "r"}, {"iral"}, {"rak", "l"}, {"r", "", "al"}};
	const struct end *end = of_target ? &d->to->target : &d->to->source;
	const char *const *requests = end->has_signature ? CHOOSE_OF(d->c, with) : CHOOSE_OF(d->c, without);

	for (int i = 0; i < 3 && requests[i]; i++)
		add_configuration(d, of_target, requests[i]);
}

/* The last configuration of a key that the next request uses on the same queue need not be waited for. */
static void hurry(struct drawing *d)
{
	struct step *step = d->to->step_count ? &d->to->step[d->to->step_count - 1] : NULL;
	enum operation operation = d->operation;

	if (!step || !step->configures || d->mixes || d->goes_back || d->on_two_pairs || !chance(d->c, 30))
		return;
	if (step->of_target ? operation == READ : operation <= WRITE_IMM || operation == MEMCPY)
		strcat(step->letters, "u");
}

static void configure_again(struct drawing *d)
{
	static const char *const requests[] = {"", "a", "l", "s", "al", "sl", "als", "r"};
	bool of_target = d->to->target.is_key && (!d->to->source.is_key || chance(d->c, 50));
	const struct end *end = of_target ? &d->to->target : &d->to->source;
	const char *request = CHOOSE_OF(d->c, requests);

	/* Without a signature addresses change: a range within the key may be outside now. */
	if (strchr(request, 'r') && (d->careful || end->over.count))
		return;
	if (strchr(request, 's') && !end->has_signature)
		return;
	add_configuration(d, of_target, request);
}

static void transfer_in_sequence(struct drawing *d, uint32_t start, uint32_t end)
{
	uint32_t messages = 2 + (uint32_t)choose_below(d->c, 5);

	for (uint32_t i = 0; i < messages && start < end; i++) {
		uint32_t length = end - start;

		if (i + 1 < messages || chance(d->c, 10))
			length = draw_cut(d->c, &d->key->signature.wire, end - start);
		/* Cuts at the borders of the domain are relative to the beginning of the stream. */
		if (length && length < end - start) {
			uint32_t cut = draw_cut(d->c, &d->key->signature.wire, end);

			if (cut > start && chance(d->c, 70))
				length = cut - start;
		}
		if (!length)
			length = end - start;
		if (is_datagram(d->operation) && length > d->abilities->datagram_most - d->to->header)
			length = d->abilities->datagram_most - d->to->header;
		add_transfer(d, start, length);
		start += length;
		if (chance(d->c, 8))
			configure_again(d);
	}
}

static void transfer_anywhere(struct drawing *d)
{
	uint32_t messages = 1 + (uint32_t)choose_below(d->c, 4);

	for (uint32_t i = 0; i < messages; i++) {
		uint32_t start = chance(d->c, 40) ? 0 : draw_cut(d->c, &d->key->signature.wire, d->length);
		uint32_t length = d->length - start;

		if (chance(d->c, 60))
			length = draw_cut(d->c, &d->key->signature.wire, length);
		if (!length)
			length = 1;
		if (!d->careful && chance(d->c, 6))
			length += (uint32_t)choose_below(d->c, 600);
		add_transfer(d, start, length);
		if (chance(d->c, 15))
			configure_again(d);
	}
}

/* Data after a break does not continue a stream, even if the break was elsewhere: of a whole block, for example. */
static void transfer_with_break(struct drawing *d)
{
	const struct domain *wire = &d->key->signature.wire;
	uint32_t whole = wire->block + (uint32_t)field_bytes(wire), at = draw_cut(d->c, wire, d->length);
	uint32_t start = draw_cut(d->c, wire, d->length), length = 1 + (uint32_t)choose_below(d->c, 40);

	if (wire->kind != KIND_NONE && whole <= d->length && chance(d->c, 60)) {
		start = (uint32_t)choose_below(d->c, d->length / whole) * whole;
		length = whole;
	}
	if (length > d->length - start)
		length = d->length - start;
	add_transfer(d, 0, at);
	add_transfer(d, start, length);
	add_transfer(d, at, d->length - at);
}

static void draw_steps(struct drawing *d)
{
	unsigned int shape = (unsigned int)choose_below(d->c, 100);

	if (d->to->source.is_key)
		configure_first(d, false);
	if (d->to->target.is_key)
		configure_first(d, true);
	hurry(d);
	if (shape < 40)
		add_transfer(d, 0, d->length);
	else if (shape < 50)
		transfer_with_break(d);
	else if (shape < 75)
		transfer_in_sequence(d, chance(d->c, 75) ? 0 : draw_cut(d->c, &d->key->signature.wire, d->length),
				     d->length);
	else
		transfer_anywhere(d);
	/* Repeats the transfer, with or without a configuration. */
	if (chance(d->c, 10)) {
		configure_again(d);
		add_transfer(d, 0, d->length);
	}
}

/* ---- damage ---------------------------------------------------------------------------------------------------- */

/* Returns the domain of the input stream, and where that stream begins in the source. */
static const struct domain *input_domain(const struct test_case *test_case, uint32_t *shift)
{
	static const struct domain none = {.kind = KIND_NONE};

	*shift = 0;
	if (test_case->source.is_key && test_case->source.has_signature)
		return &test_case->source.signature.memory;
	if (!test_case->target.is_key || !test_case->target.has_signature)
		return &none;
	*shift = test_case->header;
	return &test_case->target.signature.wire;
}

static struct patch *add_patch(struct test_case *to)
{
	return to->patch_count < PATCHES ? &to->patch[to->patch_count++] : &to->patch[PATCHES - 1];
}

static void flip_bit(struct choose *c, struct test_case *to, uint32_t at)
{
	*add_patch(to) =
		(struct patch){.at = at, .count = 1, .flips = true, .bytes = {(uint8_t)(1u << choose_below(c, 8))}};
}

/* Writes escaping tags: with a right or wrong guard, with or without the reference tag. */
static void escape(struct choose *c, struct test_case *to, uint32_t field)
{
	struct patch *patch = add_patch(to);

	*patch = (struct patch){
		.at = field + 2, .count = chance(c, 50) ? 2 : 6, .bytes = {255, 255, 255, 255, 255, 255}};
	if (chance(c, 50))
		*add_patch(to) = (struct patch){
			.at = field, .count = 2, .bytes = {(uint8_t)choose_bits(c), (uint8_t)choose_bits(c)}};
}

static void draw_damage(struct drawing *d, uint32_t raw)
{
	struct choose *c = d->c;
	uint32_t shift, damages = 1 + (uint32_t)choose_below(c, 3);
	const struct domain *domain = input_domain(d->to, &shift);
	uint32_t blocks = domain->kind == KIND_NONE ? 0 : raw / domain->block;
	bool escapes = domain->app_escape || domain->app_ref_escape;

	d->to->no_fields = chance(c, 4);
	if (!escapes && chance(c, 50))
		return;
	for (uint32_t i = 0; i < damages; i++) {
		uint32_t block = blocks ? (uint32_t)choose_below(c, blocks) : 0;
		uint32_t field = blocks ? shift + (uint32_t)place_of_field(domain, block) : 0;

		if (blocks && domain->kind == KIND_T10 && chance(c, escapes ? 70 : 10))
			escape(c, d->to, field);
		else if (blocks && chance(c, 50))
			flip_bit(c, d->to, field + (uint32_t)choose_below(c, field_bytes(domain)));
		else
			flip_bit(c, d->to, shift + (uint32_t)choose_below(c, (uint32_t)stream_bytes(domain, raw)));
	}
}

/* ---- cases ----------------------------------------------------------------------------------------------------- */

static void draw_key(struct drawing *d, struct end *end)
{
	end->is_key = true;
	end->key = (uint32_t)choose_below(d->c, KEYS);
}

/* Makes the layout of the end that has @wire_bytes on its wire side; returns the limit of its messages. */
static uint32_t lay_out(struct drawing *d, struct end *end, uint32_t wire_bytes, bool alone)
{
	static const struct domain none = {.kind = KIND_NONE};
	const struct domain *memory = end->has_signature ? &end->signature.memory : &none;
	uint64_t raw = wire_bytes;
	uint32_t free = PLAIN_START + (uint32_t)choose_below(d->c, 64), length;

	if (end->has_signature)
		is_raw(&end->signature.wire, wire_bytes, &raw);
	length = memory_length(d, (uint32_t)stream_bytes(memory, raw));
	draw_layout(d->c, memory, length ? length : 1, &free, end);
	if (!alone || !chance(d->c, 12))
		return wire_bytes;
	return draw_over(d->c, wire_bytes, &free, end);
}

static void draw_ends(struct drawing *d)
{
	struct test_case *to = d->to;
	unsigned int shape = (unsigned int)choose_below(d->c, 100);

	to->source.plain = (uint32_t)choose_below(d->c, 130);
	to->target.plain = (uint32_t)choose_below(d->c, 130);
	if (shape < 40 || shape >= 80)
		draw_key(d, &to->source);
	if (shape >= 40)
		draw_key(d, &to->target);
	d->key = to->source.is_key ? &to->source : &to->target;
}

static void choose_operation(struct drawing *d)
{
	d->careful = !d->abilities->refusals || (d->to->source.is_key && d->to->target.is_key) || chance(d->c, 50);
	d->mixes = chance(d->c, 15);
	d->operation = draw_operation(d);
	if (can_have_header(d) && chance(d->c, 12))
		d->to->header = 1 + (uint32_t)choose_below(d->c, HEADER_MOST - 1);
	d->goes_back = chance(d->c, 20);
	d->on_two_pairs = chance(d->c, 20);
	d->to->extended = chance(d->c, 25);
	d->to->late = chance(d->c, 15);
	d->to->lazy = chance(d->c, 15);
	d->to->together = !d->mixes && !d->goes_back && !d->on_two_pairs && chance(d->c, 15);
}

static void draw_profile(struct choose *c, bool connectx, struct test_case *to)
{
	*to = (struct test_case){.connectx = connectx, .data = choose_bits(c) >> 20};
	if (chance(c, 20))
		to->pattern = (enum pattern)choose_below(c, PATTERNS);
}

void draw_case(struct choose *c, const struct abilities *abilities, bool connectx, struct test_case *to)
{
	struct drawing d = {.c = c, .abilities = abilities, .to = to};
	uint32_t raw, wire;

	draw_profile(c, connectx, to);
	draw_ends(&d);
	choose_operation(&d);
	d.key->has_signature = !chance(c, 4);
	if (d.key->has_signature)
		draw_signature(c, connectx, &d.key->signature);
	raw = draw_raw(&d, false);
	wire = (uint32_t)stream_bytes(&d.key->signature.wire, raw);
	d.length = lay_out(&d, d.key, wire, !(to->source.is_key && to->target.is_key));
	if (d.key == &to->source && to->target.is_key) {
		to->target.has_signature = !chance(c, 4);
		if (to->target.has_signature && chance(c, 80) && to->source.has_signature)
			draw_signature_for(c, connectx, &to->source.signature.wire, &to->target.signature);
		else if (to->target.has_signature)
			draw_signature(c, connectx, &to->target.signature);
		lay_out(&d, &to->target, wire, false);
	}
	draw_damage(&d, raw);
	draw_steps(&d);
}

/* ---- two pairs ------------------------------------------------------------------------------------------------- */

/* Returns the length after which blocks of both domains end together. */
static uint32_t common_block(const struct signature *signature)
{
	if (signature->memory.kind == KIND_NONE)
		return signature->wire.block;
	if (signature->wire.kind == KIND_NONE || signature->wire.block == signature->memory.block)
		return signature->memory.block;
	return 0;
}

void draw_two_pairs(struct choose *c, const struct abilities *abilities, bool connectx, struct test_case *to)
{
	static const enum operation operations[] = {SEND, SEND_IMM, WRITE, WRITE_IMM, READ};
	struct drawing d = {.c = c, .abilities = abilities, .to = to, .careful = true};
	uint32_t unit, whole, wire, shift, order[10], count = 0, blocks = 2 + (uint32_t)choose_below(c, 9);
	bool transmits = chance(c, 35);
	const struct domain *domain;

	draw_profile(c, connectx, to);
	d.key = transmits ? &to->source : &to->target;
	draw_key(&d, d.key);
	d.key->has_signature = true;
	do {
		draw_signature(c, connectx, &d.key->signature);
		unit = common_block(&d.key->signature);
	} while (!unit);
	wire = (uint32_t)stream_bytes(&d.key->signature.wire, blocks * unit);
	whole = wire / blocks;
	d.length = lay_out(&d, d.key, wire, false);
	domain = input_domain(to, &shift);
	if (domain->kind != KIND_NONE && chance(c, 60))
		flip_bit(c, to, (uint32_t)choose_below(c, (uint32_t)stream_bytes(domain, blocks * unit)));
	configure_first(&d, !transmits);
	to->together = true;
	/* Messages of one to three blocks, in any order. */
	for (uint32_t at = 0; at < blocks; at++)
		order[count++] = at;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t other = (uint32_t)choose_below(c, count), swap = order[i];

		order[i] = order[other];
		order[other] = swap;
	}
	for (uint32_t i = 0; i < count; i++) {
		uint32_t first = order[i], run = 1;

		while (i + 1 < count && run < 3 && order[i + 1] == order[i] + 1) {
			run++;
			i++;
		}
		d.operation = CHOOSE_OF(c, operations);
		add_transfer(&d, first * whole, run * whole);
		to->step[to->step_count - 1].other = chance(c, 50);
	}
}

/* ---- the corruption campaign ----------------------------------------------------------------------------------- */

void draw_flip(struct choose *c, const struct abilities *abilities, bool connectx, struct test_case *to)
{
	struct drawing d = {.c = c, .abilities = abilities, .to = to, .careful = true};
	bool transmits = chance(c, 50);
	const struct domain *domain;
	uint32_t raw, wire, shift, at;

	draw_profile(c, connectx, to);
	d.key = transmits ? &to->source : &to->target;
	draw_key(&d, d.key);
	d.key->has_signature = true;
	do {
		draw_signature(c, connectx, &d.key->signature);
		d.key->signature.memory.app_escape = d.key->signature.memory.app_ref_escape = false;
		d.key->signature.wire.app_escape = d.key->signature.wire.app_ref_escape = false;
		domain = input_domain(to, &shift);
	} while (domain->kind == KIND_NONE);
	raw = domain->block * (1 + (uint32_t)choose_below(c, 6));
	wire = (uint32_t)stream_bytes(&d.key->signature.wire, raw);
	d.length = lay_out(&d, d.key, wire, false);
	do {
		d.operation = draw_operation(&d);
	} while (is_datagram(d.operation) && d.length > abilities->datagram_most);
	at = (uint32_t)choose_below(c, (uint32_t)stream_bytes(domain, raw));
	/* Fields are a small part of the bytes. */
	if (chance(c, 50))
		at = (uint32_t)(place_of_field(domain, choose_below(c, raw / domain->block)) +
				choose_below(c, field_bytes(domain)));
	flip_bit(c, to, at);
	configure_first(&d, !transmits);
	hurry(&d);
	at = chance(c, 40) ? draw_cut(c, &d.key->signature.wire, d.length) : 0;
	add_transfer(&d, 0, at);
	add_transfer(&d, at, d.length - at);
}

/* Returns the bits of check_mask for the guard. */
static uint8_t guard_mask(const struct domain *domain)
{
	return (uint8_t)(0xff << (8 - guard_bytes(domain->guard)));
}

bool fault_of_flip(const struct test_case *test_case, enum fault *fault)
{
	uint32_t shift;
	const struct domain *domain = input_domain(test_case, &shift);
	const struct end *end = test_case->source.is_key ? &test_case->source : &test_case->target;
	uint8_t check = end->signature.check, guard = guard_mask(domain);
	uint64_t raw, at = test_case->patch[0].at, byte;

	if (is_raw(domain, at, &raw)) {
		*fault = check & guard ? FAULT_GUARD : FAULT_NONE;
		return (check & guard) == guard || !(check & guard);
	}
	byte = at - place_of_field(domain, raw / domain->block - 1);
	if (!in_mask(check, byte))
		*fault = FAULT_NONE;
	else
		*fault = domain->kind == KIND_CRC || byte < 2 ? FAULT_GUARD : byte < 4 ? FAULT_APP : FAULT_REF;
	return true;
}
