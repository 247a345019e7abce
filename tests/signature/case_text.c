/* SPDX-License-Identifier: BSD-2-Clause */
/* Converts cases to and from lines, see case.h. */
#include "case.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const operations[OPERATIONS] = {
	[SEND] = "send",        [SEND_IMM] = "sendi",        [WRITE] = "write",    [WRITE_IMM] = "writei",
	[READ] = "read",        [MEMCPY] = "memcpy",         [UC_SEND] = "ucsend", [UC_SEND_IMM] = "ucsendi",
	[UC_WRITE] = "ucwrite", [UC_WRITE_IMM] = "ucwritei", [UD_SEND] = "udsend", [UD_SEND_IMM] = "udsendi",
};
static const char *const patterns[PATTERNS] = {"random", "zeros", "ones", "same"};
static const char *const crcs[GUARDS] = {[GUARD_CRC32] = "crc32", [GUARD_CRC32C] = "crc32c", [GUARD_CRC64] = "crc64"};

const char *operation_name(enum operation operation)
{
	return operations[operation];
}

bool operation_is_send(enum operation operation)
{
	return operation == SEND || operation == SEND_IMM || operation == UC_SEND || operation == UC_SEND_IMM ||
	       operation == UD_SEND || operation == UD_SEND_IMM;
}

bool operation_has_immediate(enum operation operation)
{
	return operation == SEND_IMM || operation == WRITE_IMM || operation == UC_SEND_IMM ||
	       operation == UC_WRITE_IMM || operation == UD_SEND_IMM;
}

/* ---- printing -------------------------------------------------------------------------------------------------- */

struct text {
	char *line;
	size_t used;
};

__attribute__((format(printf, 2, 3))) static void add(struct text *text, const char *format, ...)
{
	va_list arguments;
	int count;

	va_start(arguments, format);
	count = vsnprintf(text->line + text->used, LINE - text->used, format, arguments);
	va_end(arguments);
	text->used += (size_t)count;
	if (text->used >= LINE)
		abort();
}

static void add_domain(struct text *text, const struct domain *domain)
{
	const char *joint = ":";

	if (domain->kind == KIND_NONE) {
		add(text, "none");
		return;
	}
	if (domain->kind == KIND_CRC) {
		add(text, "%s:%u:%d", crcs[domain->guard], domain->block, domain->ones);
		return;
	}
	add(text, "t10:%u:%s:%d:%x:%x", domain->block, domain->guard == GUARD_T10_CRC ? "crc" : "csum", domain->ones,
	    domain->app, domain->ref);
	if (domain->remap) {
		add(text, "%sremap", joint);
		joint = "+";
	}
	if (domain->app_escape) {
		add(text, "%sapp", joint);
		joint = "+";
	}
	if (domain->app_ref_escape)
		add(text, "%sappref", joint);
}

static void add_layout(struct text *text, const struct layout *layout)
{
	if (layout->repeat)
		add(text, "%ux:", layout->repeat);
	for (uint32_t i = 0; i < layout->count; i++) {
		const struct piece *piece = &layout->piece[i];

		add(text, "%s%s%u+%u", i ? "," : "", piece->plain ? "p" : "", piece->at, piece->bytes);
		if (piece->skip)
			add(text, "/%u", piece->skip);
	}
}

static void add_end(struct text *text, char letter, const struct end *end)
{
	if (!end->is_key) {
		add(text, " %c.plain=%u", letter, end->plain);
		return;
	}
	add(text, " %c.key=%u", letter, end->key);
	if (end->has_signature) {
		add(text, " %c.mem=", letter);
		add_domain(text, &end->signature.memory);
		add(text, " %c.wire=", letter);
		add_domain(text, &end->signature.wire);
		add(text, " %c.check=%02x", letter, end->signature.check);
		if (end->signature.has_copy)
			add(text, " %c.copy=%02x", letter, end->signature.copy);
	}
	add(text, " %c.%s=", letter, end->layout.repeat ? "rep" : "list");
	add_layout(text, &end->layout);
	if (end->under.count) {
		add(text, " %c.under=", letter);
		add_layout(text, &end->under);
	}
	if (end->over.count) {
		add(text, " %c.over=", letter);
		add_layout(text, &end->over);
	}
}

static void add_patches(struct text *text, const struct test_case *test_case)
{
	for (uint32_t i = 0; i < test_case->patch_count; i++) {
		const struct patch *patch = &test_case->patch[i];

		add(text, "%s%u%c", i ? "," : " patch=", patch->at, patch->flips ? '^' : '=');
		for (uint32_t b = 0; b < patch->count; b++)
			add(text, "%02x", patch->bytes[b]);
	}
}

static void add_step(struct text *text, const struct step *step)
{
	if (step->configures) {
		add(text, " c%c=%s", step->of_target ? 't' : 's', step->letters);
		return;
	}
	add(text, " %s%s%s:%u+%u", step->back ? "<" : "", step->other ? "2" : "", operations[step->operation],
	    step->start, step->length);
	if (step->cut)
		add(text, "/%u", step->cut);
}

void case_print(const struct test_case *test_case, char line[LINE])
{
	struct text text = {.line = line};

	add(&text, "%s data=%" PRIu64 ":%s", test_case->connectx ? "connectx" : "man", test_case->data,
	    patterns[test_case->pattern]);
	add_end(&text, 's', &test_case->source);
	add_end(&text, 't', &test_case->target);
	if (test_case->no_fields)
		add(&text, " nofields");
	add_patches(&text, test_case);
	if (test_case->header)
		add(&text, " header=%u", test_case->header);
	if (test_case->late)
		add(&text, " late");
	if (test_case->lazy)
		add(&text, " lazy");
	if (test_case->together)
		add(&text, " together");
	if (test_case->extended)
		add(&text, " extended");
	for (uint32_t i = 0; i < test_case->step_count; i++)
		add_step(&text, &test_case->step[i]);
}

/* ---- parsing --------------------------------------------------------------------------------------------------- */

/* Each of these parses an item at *at and advances *at, or returns false. */
static bool take(const char **at, const char *text)
{
	size_t length = strlen(text);

	if (strncmp(*at, text, length))
		return false;
	*at += length;
	return true;
}

static bool take_number(const char **at, int base, uint64_t most, uint64_t *number)
{
	char *end;

	if (**at == '-' || **at == '+' || **at == ' ')
		return false;
	*number = strtoull(*at, &end, base);
	if (end == *at || *number > most)
		return false;
	*at = end;
	return true;
}

static bool take_u32(const char **at, uint32_t most, uint32_t *number)
{
	uint64_t value;

	if (!take_number(at, 10, most, &value))
		return false;
	*number = (uint32_t)value;
	return true;
}

static bool take_hex(const char **at, uint64_t most, uint64_t *number)
{
	return take_number(at, 16, most, number);
}

static bool take_block(const char **at, struct domain *domain)
{
	uint64_t ones;

	if (!take(at, ":") || !take_u32(at, 4160, &domain->block))
		return false;
	if (domain->block != 512 && domain->block != 520 && domain->block != 4048 && domain->block != 4096 &&
	    domain->block != 4160)
		return false;
	if (domain->kind == KIND_T10) {
		domain->guard = GUARD_T10_CRC;
		if (take(at, ":csum"))
			domain->guard = GUARD_T10_CSUM;
		else if (!take(at, ":crc"))
			return false;
	}
	if (!take(at, ":") || !take_number(at, 10, 1, &ones))
		return false;
	domain->ones = ones;
	return true;
}

static bool take_domain(const char **at, struct domain *domain)
{
	uint64_t app, ref;

	*domain = (struct domain){0};
	if (take(at, "none"))
		return true;
	domain->kind = KIND_CRC;
	for (enum guard guard = GUARD_CRC64; guard >= GUARD_CRC32; guard--) {
		const char *rest = *at;

		domain->guard = guard;
		/* crc32 is a prefix of crc32c. */
		if (take(&rest, crcs[guard]) && *rest == ':') {
			*at = rest;
			return take_block(at, domain);
		}
	}
	domain->kind = KIND_T10;
	if (!take(at, "t10") || !take_block(at, domain) || !take(at, ":") || !take_hex(at, 0xffff, &app) ||
	    !take(at, ":") || !take_hex(at, 0xffffffff, &ref))
		return false;
	domain->app = (uint16_t)app;
	domain->ref = (uint32_t)ref;
	for (const char *joint = ":"; take(at, joint); joint = "+") {
		if (take(at, "remap"))
			domain->remap = true;
		else if (take(at, "appref"))
			domain->app_ref_escape = true;
		else if (take(at, "app"))
			domain->app_escape = true;
		else
			return false;
	}
	return true;
}

static bool take_layout(const char **at, struct layout *layout)
{
	const char *rest = *at;
	uint32_t repeat;

	*layout = (struct layout){0};
	if (take_u32(&rest, REGION, &repeat) && take(&rest, "x:")) {
		layout->repeat = repeat;
		*at = rest;
		if (!repeat)
			return false;
	}
	do {
		struct piece *piece = &layout->piece[layout->count];

		if (layout->count == PIECES)
			return false;
		piece->plain = take(at, "p");
		if (!take_u32(at, REGION, &piece->at) || !take(at, "+") || !take_u32(at, REGION, &piece->bytes))
			return false;
		if (take(at, "/") && !take_u32(at, REGION, &piece->skip))
			return false;
		layout->count++;
	} while (take(at, ","));
	return true;
}

static bool take_end(const char **at, struct end *end)
{
	uint64_t mask;

	if (take(at, "plain="))
		return take_u32(at, 4096, &end->plain);
	if (take(at, "key=")) {
		end->is_key = true;
		return take_u32(at, KEYS - 1, &end->key);
	}
	if (take(at, "mem=")) {
		end->has_signature = true;
		return take_domain(at, &end->signature.memory);
	}
	if (take(at, "wire="))
		return take_domain(at, &end->signature.wire);
	if (take(at, "check=")) {
		if (!take_hex(at, 0xff, &mask))
			return false;
		end->signature.check = (uint8_t)mask;
		return true;
	}
	if (take(at, "copy=")) {
		end->signature.has_copy = true;
		if (!take_hex(at, 0xff, &mask))
			return false;
		end->signature.copy = (uint8_t)mask;
		return true;
	}
	if (take(at, "list=") || take(at, "rep="))
		return take_layout(at, &end->layout);
	if (take(at, "under="))
		return take_layout(at, &end->under);
	return take(at, "over=") && take_layout(at, &end->over);
}

static bool take_patches(const char **at, struct test_case *test_case)
{
	do {
		struct patch *patch = &test_case->patch[test_case->patch_count];

		if (test_case->patch_count == PATCHES || !take_u32(at, STREAM_MOST, &patch->at))
			return false;
		patch->flips = take(at, "^");
		if (!patch->flips && !take(at, "="))
			return false;
		for (patch->count = 0; patch->count < 8 && strspn(*at, "0123456789abcdef") >= 2; *at += 2) {
			char digits[] = {(*at)[0], (*at)[1], 0};

			patch->bytes[patch->count++] = (uint8_t)strtoul(digits, NULL, 16);
		}
		test_case->patch_count++;
	} while (take(at, ","));
	return true;
}

static bool take_step(const char **at, struct test_case *test_case)
{
	struct step *step = &test_case->step[test_case->step_count];
	size_t letters;

	if (test_case->step_count == STEPS)
		return false;
	step->of_target = take(at, "ct=");
	if (step->of_target || take(at, "cs=")) {
		letters = strspn(*at, "iralkjsu");
		step->configures = true;
		if (letters >= LETTERS)
			return false;
		memcpy(step->letters, *at, letters);
		*at += letters;
		test_case->step_count++;
		return true;
	}
	step->back = take(at, "<");
	step->other = take(at, "2");
	for (step->operation = 0; step->operation < OPERATIONS; step->operation++) {
		const char *rest = *at;

		if (take(&rest, operations[step->operation]) && take(&rest, ":")) {
			*at = rest;
			break;
		}
	}
	/* Only messages of RC use the other pair. */
	if (step->operation == OPERATIONS || (step->other && step->operation > READ) ||
	    !take_u32(at, STREAM_MOST, &step->start) || !take(at, "+") || !take_u32(at, STREAM_MOST, &step->length))
		return false;
	if (take(at, "/") && !take_u32(at, STREAM_MOST, &step->cut))
		return false;
	test_case->step_count++;
	return true;
}

static bool take_data(const char **at, struct test_case *test_case)
{
	if (!take_number(at, 10, UINT64_MAX, &test_case->data) || !take(at, ":"))
		return false;
	for (enum pattern i = 0; i < PATTERNS; i++) {
		if (take(at, patterns[i])) {
			test_case->pattern = i;
			return true;
		}
	}
	return false;
}

static bool take_word(const char **at, struct test_case *test_case)
{
	if (take(at, "s."))
		return take_end(at, &test_case->source);
	if (take(at, "t."))
		return take_end(at, &test_case->target);
	if (take(at, "data="))
		return take_data(at, test_case);
	if (take(at, "patch="))
		return take_patches(at, test_case);
	if (take(at, "header="))
		return take_u32(at, HEADER_MOST, &test_case->header);
	if (take(at, "nofields"))
		return test_case->no_fields = true;
	if (take(at, "late"))
		return test_case->late = true;
	if (take(at, "lazy"))
		return test_case->lazy = true;
	if (take(at, "together"))
		return test_case->together = true;
	if (take(at, "extended"))
		return test_case->extended = true;
	return take_step(at, test_case);
}

/* Checks the range of the pieces of @end in its region. Pieces of `layout` are in the stream of `under`, if there is one. */
static bool within(const struct layout *layout, uint64_t most)
{
	for (uint32_t i = 0; i < layout->count; i++) {
		const struct piece *piece = &layout->piece[i];
		uint64_t repeat = layout->repeat ? layout->repeat : 1;
		uint64_t end = piece->at + (repeat - 1) * ((uint64_t)piece->bytes + piece->skip) + piece->bytes;

		if (end > most)
			return false;
	}
	return true;
}

static uint64_t bytes_of(const struct layout *layout)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < layout->count; i++)
		bytes += layout->piece[i].bytes;
	return layout->repeat ? bytes * layout->repeat : bytes;
}

static bool end_is_sound(const struct end *end)
{
	if (!end->is_key)
		return true;
	if (!end->layout.count || bytes_of(&end->layout) > LAYOUT_MOST || bytes_of(&end->under) > LAYOUT_MOST ||
	    bytes_of(&end->over) > STREAM_MOST || !within(&end->under, REGION) || !within(&end->over, STREAM_MOST))
		return false;
	return within(&end->layout, end->under.count ? bytes_of(&end->under) : REGION);
}

bool case_parse(const char *line, struct test_case *test_case)
{
	const char *at = line;

	*test_case = (struct test_case){0};
	while (*at == ' ')
		at++;
	test_case->connectx = take(&at, "connectx");
	if (!test_case->connectx && !take(&at, "man"))
		goto wrong;
	for (;;) {
		while (*at == ' ' || *at == '\n')
			at++;
		if (!*at)
			break;
		if (!take_word(&at, test_case) || (*at && *at != ' ' && *at != '\n'))
			goto wrong;
	}
	if (!end_is_sound(&test_case->source) || !end_is_sound(&test_case->target))
		goto wrong;
	for (uint32_t i = 0; i < test_case->step_count; i++)
		if (!test_case->step[i].configures &&
		    test_case->step[i].start > STREAM_MOST - test_case->step[i].length)
			goto wrong;
	return true;
wrong:
	fprintf(stderr, "no case: not understood from '%.40s' on\n", at);
	return false;
}
