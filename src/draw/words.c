/* SPDX-License-Identifier: BSD-2-Clause */
/* Formats words and figures. */
#include "draw/words.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "explain/names.h"

/* Removes a UTF-8 character that was truncated. */
static void end_whole(char *out, size_t size)
{
	size_t length = strlen(out), at = length;

	if (length + 1 < size)
		return;
	while (at && (out[at - 1] & 0xc0) == 0x80)
		at--;
	if (at && (out[at - 1] & 0x80))
		out[at - 1] = '\0';
}

void words_put(char *out, size_t size, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(out, size, format, args);
	va_end(args);
	end_whole(out, size);
}

void words_append(char *out, size_t size, const char *format, ...)
{
	size_t used = strlen(out);
	va_list args;

	va_start(args, format);
	vsnprintf(out + used, size - used, format, args);
	va_end(args);
	end_whole(out, size);
}

struct figure words_commas(uint64_t value)
{
	struct figure figure;
	char digits[24];
	size_t count = (size_t)snprintf(digits, sizeof(digits), "%" PRIu64, value), used = 0;

	for (size_t i = 0; i < count; i++) {
		if (i && (count - i) % 3 == 0)
			figure.text[used++] = ',';
		figure.text[used++] = digits[i];
	}
	figure.text[used] = '\0';
	return figure;
}

struct rights_text rights_text(uint8_t rights)
{
	struct rights_text out = {""};

	for (const struct bit_name *name = rights_names; name->name; name++)
		if (rights & name->bit)
			SAY_MORE(out.text, "%s%s", *out.text ? ", " : "", name->name);
	if (!*out.text)
		SAY(out.text, "none");
	return out;
}
