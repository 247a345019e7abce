/* SPDX-License-Identifier: BSD-2-Clause */
/* Iterates over bytes, see decoder.h. */
#include "tool/decoder.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void decoder_begin(struct decoder *decoder, const uint8_t *bytes, size_t length, FILE *out)
{
	*decoder = (struct decoder){.bytes = bytes, .length = length, .end = length, .out = out};
}

void decoder_fault(struct decoder *decoder, const char *format, ...)
{
	va_list args;

	if (*decoder->fault)
		return;
	va_start(args, format);
	vsnprintf(decoder->fault, sizeof(decoder->fault), format, args);
	va_end(args);
}

void decoder_note(struct decoder *decoder, const char *format, ...)
{
	va_list args;

	fputs("# ", decoder->out);
	va_start(args, format);
	vfprintf(decoder->out, format, args);
	va_end(args);
	fputc('\n', decoder->out);
}

const uint8_t *decoder_take(struct decoder *decoder, enum part part, size_t tail)
{
	const uint8_t *bytes = decoder->bytes + decoder->at;
	size_t fixed = part_infos[part].bytes, left = decoder_left(decoder);

	if (fixed > left || tail > left - fixed) {
		decoder_fault(decoder, "%s at byte %zu has %zu bytes, there are %zu", part_infos[part].name,
			      decoder->at, fixed + tail, left);
		decoder_rest(decoder, decoder->end);
		return NULL;
	}
	part_print(decoder->out, part, bytes, tail);
	decoder->at += fixed + tail;
	return bytes;
}

void decoder_rest(struct decoder *decoder, size_t end)
{
	if (end > decoder->at)
		part_print(decoder->out, PART_RAW, decoder->bytes + decoder->at, end - decoder->at);
	decoder->at = end;
}

uint64_t part_get(const uint8_t *bytes, enum part part, const char *name)
{
	for (const struct field *field = fields; field->name; field++)
		if (field->part == part && !strcmp(field->name, name))
			return part_field_get(bytes, field);
	abort();
}
