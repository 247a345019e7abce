/* SPDX-License-Identifier: BSD-2-Clause */
/* Explanation records as text: the rule's sentence with the record's figures. */
#include <arpa/inet.h>
#include <endian.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error_name.h"
#include "explain/explain.h"
#include "explain/names.h"
#include "explain/rules.h"
#include "format/cm_message.h"
#include "format/cm_state.h"
#include "format/opcode.h"
#include "format/wqe.h"

struct text {
	char *buffer;
	size_t size, length;
};

static void __attribute__((format(printf, 2, 3))) add(struct text *out, const char *format, ...)
{
	size_t room = out->length < out->size ? out->size - out->length : 0;
	va_list args;
	int length;

	va_start(args, format);
	length = vsnprintf(room ? out->buffer + out->length : NULL, room, format, args);
	va_end(args);
	if (length > 0)
		out->length += (size_t)length;
}

/* Adds names of bits, as "A|B|0x40". */
static void add_mask(struct text *out, uint64_t mask, const struct bit_name *names)
{
	const char *separator = "";

	if (!mask)
		add(out, "none");
	for (; names->name; names++) {
		if (!(mask & names->bit))
			continue;
		add(out, "%s%s", separator, names->name);
		separator = "|";
		mask &= ~names->bit;
	}
	if (mask)
		add(out, "%s0x%" PRIx64, separator, mask);
}

static const char *opcode_name(uint64_t opcode)
{
	const char *name = opcode < 256 ? wqe_opcodes[opcode].name : NULL;

	return name ? name : "unknown opcode";
}

static const char *request_name(const struct explain_subject *subject)
{
	return subject->request ? subject->request : opcode_name(subject->opcode);
}

static void add_error(struct text *out, uint64_t error)
{
	const char *name = error <= INT_MAX ? error_name((int)error) : NULL;

	add(out, "%s", name ? name : "unknown error");
}

/* Adds up to eight characters in memory order. Unprintable ones become "?", because they come from outside. */
static void add_chars(struct text *out, uint64_t value)
{
	char text[sizeof(value)];

	memcpy(text, &value, sizeof(text));
	for (size_t i = 0; i < sizeof(text) && text[i]; i++)
		add(out, "%c", text[i] >= ' ' && text[i] <= '~' ? text[i] : '?');
}

/* Adds @value in @format, or @unknown for 0. */
static void __attribute__((format(printf, 2, 0)))
add_known(struct text *out, const char *format, uint64_t value, const char *unknown)
{
	if (value)
		add(out, format, value);
	else
		add(out, "%s", unknown);
}

/* Adds EXPLAIN_ORIGIN; an IPv4-mapped GID (RFC 4291, 2.5.5.2) as IPv4 address. */
static void add_origin(struct text *out, const uint64_t *figures)
{
	uint64_t gid[2] = {htobe64(figures[1]), htobe64(figures[2])};
	bool mapped = figures[1] == 0 && figures[2] >> 32 == 0xffff;
	const char *bytes = (const char *)gid;
	char address[INET6_ADDRSTRLEN];

	if (figures[0] == ORIGIN_THIS_PROCESS)
		add(out, "this process");
	else if (figures[0] == ORIGIN_OTHER_PROCESS)
		add(out, "another process");
	else if (figures[0] != ORIGIN_HOST)
		add(out, "process %" PRIu64, figures[0]);
	else if (inet_ntop(mapped ? AF_INET : AF_INET6, bytes + (mapped ? 12 : 0), address, sizeof(address)))
		add(out, "host %s", address);
}

/* Adds a rule of another process, whose library may have others. */
static void add_cause(struct text *out, uint64_t number)
{
	const struct rule_text *rule = rule_text((enum explain_rule)number);

	if (number)
		add(out, ", by its rule %" PRIu64, number);
	if (number && rule != rule_text(RULE_NONE))
		add(out, " %s", rule->name);
}

/* Adds EXPLAIN_USERS: "2 MRs, 1 AH and 1 QP". */
static void add_users(struct text *out, const uint64_t *figures)
{
#define NAME(NAME, name) name,
	static const char *const names[] = {EXPLAIN_USER_KINDS(NAME)};
#undef NAME
	uint64_t count[EXPLAIN_USER_COUNT];
	int left = 0;

	for (int i = 0; i < EXPLAIN_USER_COUNT; i++) {
		count[i] = figures[i / 3] >> i % 3 * EXPLAIN_USER_BITS & ((UINT64_C(1) << EXPLAIN_USER_BITS) - 1);
		left += count[i] != 0;
	}
	if (!left)
		add(out, "objects");
	for (int i = 0; left && i < EXPLAIN_USER_COUNT; i++) {
		if (!count[i])
			continue;
		left--;
		add(out, "%" PRIu64 " %s%s%s", count[i], names[i], count[i] == 1 ? "" : "s",
		    left > 1    ? ", "
		    : left == 1 ? " and "
				: "");
	}
}

static bool is_within(uint64_t address, uint64_t start, uint64_t length)
{
	return address >= start && address - start < length;
}

/*
 * Adds a hint if an address outside a key's range was sent as 32 bits or in the wrong byte order. @figures: start and
 * length of the key, start and length of the request.
 */
static void add_hint(struct text *out, const uint64_t *figures)
{
	uint64_t start = figures[0], length = figures[1], address = figures[2];
	uint64_t whole = (start & ~(uint64_t)UINT32_MAX) | address;

	if (whole < start)
		whole += UINT64_C(1) << 32;
	if (address <= UINT32_MAX && start > UINT32_MAX && is_within(whole, start, length))
		add(out, "; its address lost its upper 32 bits: 0x%" PRIx64 " would be inside", whole);
	else if (is_within(__builtin_bswap64(address), start, length))
		add(out, "; its address is in the other byte order: 0x%" PRIx64 " would be inside",
		    __builtin_bswap64(address));
}

/* Adds the first figure of @args; some formats have more than one. */
static void add_figure(struct text *out, const char *format, size_t length, const uint64_t *args)
{
	uint64_t value = *args;

#define IS(word) (length == sizeof(word) - 1 && !memcmp(format, word, length))
	if (IS("x"))
		add(out, "0x%" PRIx64, value);
	else if (IS("u"))
		add(out, "%" PRIu64, value);
	else if (IS("d"))
		add(out, "%" PRId64, (int64_t)value);
	else if (IS("sender"))
		add_known(out, " of queue pair 0x%" PRIx64, value, "");
	else if (IS("process"))
		add_known(out, "process %" PRIu64, value, "a process that is not known");
	else if (IS("origin"))
		add_origin(out, args);
	else if (IS("users"))
		add_users(out, args);
	else if (IS("hint"))
		add_hint(out, args);
	else if (IS("swapped"))
		add_known(out, " (0x%" PRIx64 ", the same bytes in the other order, does)", value, "");
	else if (IS("cause"))
		add_cause(out, value);
	else if (IS("access"))
		add_mask(out, value, access_names);
	else if (IS("rights"))
		add_mask(out, value, rights_names);
	else if (IS("attr"))
		add_mask(out, value, attr_names);
	else if (IS("state"))
		add(out, "%s", qp_state_name((unsigned int)value));
	else if (IS("type"))
		add(out, "%s", qp_type_name((unsigned int)value));
	else if (IS("kind"))
		add(out, "%s", key_kind_name((unsigned int)value));
	else if (IS("guard"))
		add(out, "%s", guard_name((unsigned int)value));
	else if (IS("opcode"))
		add(out, "%s", opcode_name(value));
	else if (IS("transport"))
		add(out, "%s", message_name((unsigned int)value));
	else if (IS("domain"))
		add(out, "%s", value ? "memory" : "wire");
	else if (IS("error"))
		add_error(out, value);
	else if (IS("chars"))
		add_chars(out, value);
	else if (IS("cm"))
		add(out, "%s", cm_message_name((unsigned int)value));
	else if (IS("cm_state"))
		add(out, "%s", cm_state_name((unsigned int)value));
	else if (IS("cm_reject"))
		add(out, "%s", cm_rejection_text((unsigned int)value));
	else if (IS("cm_sidr"))
		add(out, "%s", cm_sidr_status_text((unsigned int)value));
	else if (IS("yes"))
		add(out, "%s", value ? "yes" : "no");
	else
		add(out, "%" PRIu64, value);
#undef IS
}

static void add_sentence(struct text *out, const char *text, const uint64_t *args)
{
	while (*text) {
		const char *format, *rest;
		uint32_t figure;
		size_t length;

		rest = rule_placeholder(text, &figure, &format, &length);
		if (rest)
			add_figure(out, format, length, args + figure);
		else
			add(out, "%c", *text);
		text = rest ? rest : text + 1;
	}
}

static void add_subject(struct text *out, const char *device, const struct explain_subject *subject)
{
	/* NULL for a number that the C library does not know: a program can put one into a record. */
	const char *error = error_name(subject->error);

	add(out, "%s", device);
	if (subject->qpn)
		add(out, " qp 0x%x", subject->qpn);
	if (subject->call) {
		add(out, " %s", subject->call);
		if (subject->wr_id)
			add(out, " wr_id %" PRIu64, subject->wr_id);
		if (subject->error)
			add(out, " → %s", error ? error : "unknown error");
	} else if (subject->syndrome) {
		if (subject->receive)
			add(out, " receive");
		else
			add(out, " %s wr_id %" PRIu64, request_name(subject), subject->wr_id);
		add(out, " → %s", syndrome_name(subject->syndrome));
	}
	add(out, ": ");
}

size_t explain_render(const char *device, const struct explain_record *record, char *buffer, size_t size)
{
	const struct rule_text *rule = rule_text(record->rule);
	struct text out = {buffer, size, 0};

	if (size)
		buffer[0] = '\0';
	add_subject(&out, device, &record->subject);
	add_sentence(&out, rule->text, record->args);
	add(&out, ". [%d %s; %s] %s", (int)record->rule, rule->name, rule->source, rule->advice);
	return out.length;
}
