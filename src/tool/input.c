/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads bytes from files and hexadecimal digits, see input.h. */
#include "tool/input.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tool/tool.h"

FILE *input_open(const char *name)
{
	struct stat status;
	FILE *file = strcmp(name, "-") ? fopen(name, "re") : stdin;

	if (!file)
		tool_fail(EXIT_FAILURE, "cannot read %s: %m", name);
	if (!fstat(fileno(file), &status) && S_ISDIR(status.st_mode))
		tool_fail(EXIT_FAILURE, "cannot read %s: it is a directory", name);
	return file;
}

struct input input_read(FILE *file, const char *name)
{
	struct input input = {malloc(INPUT_MOST_BYTES + 1), 0};

	if (!input.bytes)
		tool_fail(EXIT_FAILURE, "out of memory");
	input.length = fread(input.bytes, 1, INPUT_MOST_BYTES + 1, file);
	if (!ferror(file) && input.length <= INPUT_MOST_BYTES)
		return input;
	free(input.bytes);
	if (ferror(file))
		tool_fail(EXIT_FAILURE, "cannot read %s: %m", name);
	tool_fail(EXIT_FAILURE, "%s has more than %u bytes", name, INPUT_MOST_BYTES);
}

/* ---- hexadecimal ------------------------------------------------------------------------------------------------ */

static bool is_between(uint8_t c)
{
	return isspace(c) || c == ',' || c == ':';
}

bool input_is_text(const struct input *text)
{
	bool digits = false;

	for (size_t i = 0; i < text->length; i++) {
		uint8_t c = text->bytes[i];

		if (isxdigit(c))
			digits = true;
		else if (!isascii(c) || !(isprint(c) || isspace(c)))
			return false;
	}
	return digits;
}

static unsigned int hex_value(uint8_t digit)
{
	return digit <= '9' ? digit - (unsigned int)'0' : (digit | 0x20u) - 'a' + 10;
}

/* Returns the size of a label such as "0x55d0:" or "55d0 <ring+64>:", or 0. A label ends with a colon and a blank. */
static size_t label_bytes(const uint8_t *text, size_t length)
{
	bool symbol = false;

	for (size_t i = 0; i < length && text[i] != '\n'; i++) {
		if (text[i] == ':' && (i + 1 == length || isspace(text[i + 1])))
			return i + 1;
		if (text[i] == '<' || text[i] == '>')
			symbol = text[i] == '<';
		else if (isspace(text[i]) && !symbol && !(i + 1 < length && text[i + 1] == '<'))
			return 0;
	}
	return 0;
}

/*
 * Returns the digits of the offset of a line such as "0010   45 00", or 0. An offset is longer than the bytes after it
 * and counts those before it. With @offsets, the last line of od(1) and hexdump(1) is only an offset.
 */
static size_t offset_digits(const uint8_t *text, size_t length, size_t bytes, bool offsets)
{
	size_t digits = 0, next;
	uint64_t value = 0;

	while (digits < length && digits <= 16 && isxdigit(text[digits]))
		value = value << 4 | hex_value(text[digits++]);
	if (digits < 4 || digits > 16 || value != bytes)
		return 0;
	for (next = digits; next < length && (text[next] == ' ' || text[next] == '\t'); next++)
		;
	if (next == length || text[next] == '\n')
		return offsets ? digits : 0;
	if (next == digits || length - next < 2 || !isxdigit(text[next]) || !isxdigit(text[next + 1]))
		return 0;
	return length - next == 2 || isspace(text[next + 2]) ? digits : 0;
}

/* Returns the bytes at the start of the line that are not data. @offsets: lines begin with offsets. */
static size_t passed_over(const uint8_t *text, size_t length, size_t bytes, bool *offsets)
{
	size_t label = label_bytes(text, length), digits = label ? 0 : offset_digits(text, length, bytes, *offsets);

	*offsets |= digits > 0;
	return label + digits;
}

/* Appends the word at @text to @bytes. */
static const char *hex_word_take(const uint8_t *text, size_t length, struct input *bytes)
{
	bool prefixed = length > 2 && text[0] == '0' && (text[1] | 0x20) == 'x';

	for (size_t i = prefixed ? 2 : 0; i < length; i++)
		if (!isxdigit(text[i]))
			return "is not hexadecimal";
	if (length % 2)
		return "has an odd number of digits";
	/* From x/4xw of a debugger: the last byte comes first. */
	if (prefixed && length != 4)
		return "is a number of several bytes: whether the first comes first is not said; give bytes";
	for (size_t i = prefixed ? 2 : 0; i < length; i += 2)
		bytes->bytes[bytes->length++] = (uint8_t)(hex_value(text[i]) << 4 | hex_value(text[i + 1]));
	return NULL;
}

static void put_error(const uint8_t *word, size_t length, const char *wrong, char *error, size_t size)
{
	char shown[40];
	size_t count = length < sizeof(shown) ? length : sizeof(shown);

	for (size_t i = 0; i < count; i++)
		shown[i] = isprint(word[i]) ? (char)word[i] : '?';
	snprintf(error, size, "\"%.*s%s\" %s", (int)count, shown, count < length ? "..." : "", wrong);
}

bool input_from_hex(const struct input *text, struct input *bytes, char *error, size_t error_size)
{
	bool line_begins = true, offsets = false;

	*bytes = (struct input){malloc(text->length / 2 + 1), 0};
	if (!bytes->bytes)
		tool_fail(EXIT_FAILURE, "out of memory");
	for (size_t at = 0; at < text->length;) {
		size_t length = 0, passed = 0;
		const char *wrong;

		if (line_begins)
			passed = passed_over(text->bytes + at, text->length - at, bytes->length, &offsets);
		line_begins = false;
		if (passed) {
			at += passed;
			continue;
		}
		/* Characters, from hexdump(1). */
		if (text->bytes[at] == '|') {
			while (at < text->length && text->bytes[at] != '\n')
				at++;
			continue;
		}
		if (is_between(text->bytes[at])) {
			line_begins = text->bytes[at++] == '\n';
			continue;
		}
		while (at + length < text->length && !is_between(text->bytes[at + length]))
			length++;
		wrong = hex_word_take(text->bytes + at, length, bytes);
		if (wrong) {
			put_error(text->bytes + at, length, wrong, error, error_size);
			free(bytes->bytes);
			return false;
		}
		at += length;
	}
	return true;
}
