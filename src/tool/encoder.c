/* SPDX-License-Identifier: BSD-2-Clause */
/* Converts text to bytes, see encoder.h. */
#include "tool/encoder.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/fields.h"

struct encoder {
	uint8_t *bytes;
	size_t length;  /* so far, with the current part */
	size_t part_at; /* start of the current part */
	enum part part; /* current; PART_COUNT: none yet */
	bool given[PART_MOST_FIELDS], reserved_given;
	size_t counted_ctrl; /* control segment whose ds is missing, or SIZE_MAX */
	unsigned int line;
	char *error;
	size_t error_size;
	jmp_buf wrong;
};

__attribute__((format(printf, 2, 3))) _Noreturn static void fail(struct encoder *encoder, const char *format, ...)
{
	int length = snprintf(encoder->error, encoder->error_size, "line %u: ", encoder->line);
	va_list args;

	va_start(args, format);
	if (length > 0 && (size_t)length < encoder->error_size)
		vsnprintf(encoder->error + length, encoder->error_size - (size_t)length, format, args);
	va_end(args);
	longjmp(encoder->wrong, 1);
}

/* Untrusted text, safe for a terminal. */
struct shown {
	char text[48];
};

static struct shown word_show(const char *text, size_t length)
{
	struct shown shown = {""};

	for (size_t i = 0; i < length && i < sizeof(shown.text) - 1; i++)
		shown.text[i] = isprint((unsigned char)text[i]) ? text[i] : '?';
	return shown;
}

/* ---- parts ------------------------------------------------------------------------------------------------------ */

/* Returns NULL after the last field. */
static const struct field *part_field(enum part part, unsigned int index)
{
	for (const struct field *field = fields; field->name; field++)
		if (field->part == part && !index--)
			return field;
	return NULL;
}

static const struct field *find_field(enum part part, const char *name, size_t length, unsigned int *index)
{
	const struct field *field;

	for (*index = 0; (field = part_field(part, *index)); (*index)++)
		if (strlen(field->name) == length && !memcmp(field->name, name, length))
			return field;
	return NULL;
}

/* Returns the current part's field if its value must be computed, or NULL if it was given. */
static const struct field *to_be_counted(struct encoder *encoder, const char *name)
{
	unsigned int index;
	const struct field *field = find_field(encoder->part, name, strlen(name), &index);

	return encoder->given[index] ? NULL : field;
}

static void count_ds(struct encoder *encoder)
{
	unsigned int index;
	const struct field *ds = find_field(PART_CTRL, "ds", 2, &index);
	size_t octowords;

	if (encoder->counted_ctrl == SIZE_MAX)
		return;
	octowords = (encoder->length - encoder->counted_ctrl + 15) / 16;
	if (octowords > field_most(ds))
		fail(encoder, "a WQE of %zu bytes is too long", octowords * 16);
	part_field_put(encoder->bytes + encoder->counted_ctrl, ds, octowords);
	encoder->counted_ctrl = SIZE_MAX;
}

static void end_part(struct encoder *encoder)
{
	size_t tail =
		encoder->length - encoder->part_at - (encoder->part < PART_COUNT ? part_infos[encoder->part].bytes : 0);
	const struct field *field;

	if (encoder->part == PART_CTRL && to_be_counted(encoder, "ds"))
		encoder->counted_ctrl = encoder->part_at;
	if (encoder->part != PART_INLINE)
		return;
	field = to_be_counted(encoder, "byte_count");
	if (field)
		part_field_put(encoder->bytes + encoder->part_at, field, tail);
	field = to_be_counted(encoder, "is_inline");
	if (field)
		part_field_put(encoder->bytes + encoder->part_at, field, 1);
}

static uint8_t *bytes_grow(struct encoder *encoder, size_t bytes)
{
	uint8_t *at = encoder->bytes + encoder->length;

	if (bytes > ENCODER_MOST_BYTES - encoder->length)
		fail(encoder, "more than %u bytes", ENCODER_MOST_BYTES);
	memset(at, 0, bytes);
	encoder->length += bytes;
	return at;
}

static void begin_part(struct encoder *encoder, const char *name, size_t length)
{
	enum part part;

	for (part = 0; part < PART_COUNT; part++)
		if (strlen(part_infos[part].name) == length && !memcmp(part_infos[part].name, name, length))
			break;
	if (part == PART_COUNT)
		fail(encoder, "\"%s\" is not a part", word_show(name, length).text);
	end_part(encoder);
	if (part == PART_CTRL)
		count_ds(encoder);
	encoder->part = part;
	encoder->part_at = encoder->length;
	memset(encoder->given, 0, sizeof(encoder->given));
	encoder->reserved_given = false;
	bytes_grow(encoder, part_infos[part].bytes);
}

/* ---- values ----------------------------------------------------------------------------------------------------- */

static int hex_digit_value(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
				      : -1;
}

static void take_hex(struct encoder *encoder, const char *value, size_t length, uint8_t *bytes, size_t count)
{
	if (length != 2 * count)
		fail(encoder, "%zu hexadecimal digits where %zu belong", length, 2 * count);
	for (size_t i = 0; i < length; i++) {
		int four = hex_digit_value(value[i]);

		if (four < 0)
			fail(encoder, "\"%s\" is not hexadecimal", word_show(value, length).text);
		bytes[i / 2] |= (uint8_t)(i % 2 ? four : four << 4);
	}
}

static uint64_t token_take(struct encoder *encoder, const struct field *field, const char *value, size_t length)
{
	char word[48], *end;
	uint64_t number;

	if (length && length < sizeof(word)) {
		memcpy(word, value, length);
		word[length] = '\0';
		/* Names take precedence: 512_bytes is a name. */
		if (field_value_number(field->form, word, &number))
			return number;
		errno = 0;
		number = strtoull(word, &end, word[0] == '0' && (word[1] | 0x20) == 'x' ? 16 : 10);
		if (isdigit((unsigned char)word[0]) && !*end && !errno)
			return number;
	}
	fail(encoder, "%s: \"%s\" is neither a number nor the name of one", field->name, word_show(value, length).text);
}

static uint64_t take_number(struct encoder *encoder, const struct field *field, const char *value, size_t length)
{
	uint64_t number = 0;

	for (size_t at = 0;; at++) {
		size_t word = 0;

		while (at + word < length && value[at + word] != '|')
			word++;
		number |= token_take(encoder, field, value + at, word);
		at += word;
		if (at == length)
			break;
	}
	if (number > field_most(field))
		fail(encoder, "%s: 0x%" PRIx64 " has more than %u bits", field->name, number, field->width);
	return number;
}

static void take_reserved(struct encoder *encoder, const char *value, size_t length)
{
	if (encoder->reserved_given)
		fail(encoder, "reserved is given twice");
	encoder->reserved_given = true;
	take_hex(encoder, value, length, encoder->bytes + encoder->part_at, part_infos[encoder->part].bytes);
}

static void take_field(struct encoder *encoder, const char *name, size_t name_length, const char *value, size_t length)
{
	const struct field *field;
	unsigned int index;

	if (encoder->part == PART_COUNT)
		fail(encoder, "\"%s\" is not in a part", word_show(name, name_length).text);
	field = find_field(encoder->part, name, name_length, &index);
	if (!field && name_length == 8 && !memcmp(name, "reserved", 8)) {
		take_reserved(encoder, value, length);
	} else if (!field && part_infos[encoder->part].tail && name_length == 4 && !memcmp(name, "data", 4)) {
		take_hex(encoder, value, length, bytes_grow(encoder, length / 2), length / 2);
	} else if (!field) {
		fail(encoder, "%s has no field \"%s\"", part_infos[encoder->part].name,
		     word_show(name, name_length).text);
	} else {
		if (encoder->given[index])
			fail(encoder, "%s is given twice", field->name);
		encoder->given[index] = true;
		if (field->width)
			part_field_put(encoder->bytes + encoder->part_at, field,
				       take_number(encoder, field, value, length));
		else
			take_hex(encoder, value, length, encoder->bytes + encoder->part_at + field->byte,
				 field->length);
	}
}

/* ---- lines ------------------------------------------------------------------------------------------------------ */

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static void line_trim(const char **text, size_t *length)
{
	while (*length && is_blank(**text)) {
		(*text)++;
		(*length)--;
	}
	while (*length && is_blank((*text)[*length - 1]))
		(*length)--;
}

static void take_line(struct encoder *encoder, const char *line, size_t length)
{
	const char *comment = memchr(line, '#', length), *equals, *value;
	size_t name_length, value_length;

	if (comment)
		length = (size_t)(comment - line);
	line_trim(&line, &length);
	if (!length)
		return;
	equals = memchr(line, '=', length);
	if (!equals) {
		begin_part(encoder, line, length);
		return;
	}
	name_length = (size_t)(equals - line);
	value = equals + 1;
	value_length = length - name_length - 1;
	line_trim(&line, &name_length);
	line_trim(&value, &value_length);
	take_field(encoder, line, name_length, value, value_length);
}

int encode_text(const char *text, size_t length, uint8_t *bytes, char *error, size_t error_size)
{
	struct encoder encoder = {
		.bytes = bytes, .part = PART_COUNT, .counted_ctrl = SIZE_MAX, .error = error, .error_size = error_size};

	if (setjmp(encoder.wrong))
		return -1;
	for (size_t at = 0; at < length; at++) {
		const char *line = text + at, *end = memchr(line, '\n', length - at);
		size_t bytes_of_line = end ? (size_t)(end - line) : length - at;

		encoder.line++;
		take_line(&encoder, line, bytes_of_line);
		at += bytes_of_line;
	}
	end_part(&encoder);
	count_ds(&encoder);
	return (int)encoder.length;
}
