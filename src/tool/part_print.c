/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints a part as text, see decoder.h. */
#include <arpa/inet.h>
#include <inttypes.h>
#include <string.h>

#include "explain/names.h"
#include "explain/rules.h"
#include "format/cm_message.h"
#include "tool/decoder.h"

#define NAME_COLUMNS 24
#define BYTES_OF_A_LINE 32

static void bytes_put(FILE *out, const uint8_t *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		fprintf(out, "%02x", bytes[i]);
}

static void print_name(FILE *out, const char *name)
{
	fprintf(out, "  %-*s = ", NAME_COLUMNS, name);
}

/* ---- what numbers mean ------------------------------------------------------------------------------------------ */

/* Prints the names of bits, "LEN|LR". */
static void print_mask(FILE *out, enum field_form form, uint64_t number)
{
	const char *separator = "  # ";

	for (const struct field_value *value = field_values; value->name; value++) {
		if (value->form != form || !value->mask || !(number & value->number))
			continue;
		fprintf(out, "%s%s", separator, value->name);
		separator = "|";
	}
}

/* Looks up numbers with names in other tables. */
static const char *text_of(const struct field *field, uint64_t number)
{
	if (field->form == FORM_SYNDROME)
		return syndrome_name((uint8_t)number);
	if (field->form == FORM_RULE && number)
		return rule_text((enum explain_rule)number)->name;
	/* IBTA 9.7.5.1.2. */
	if (field->form == FORM_AETH_SYNDROME && number < 0x20)
		return "ACK";
	if (field->form == FORM_AETH_SYNDROME && number >= 0x20 && number < 0x40)
		return "RNR_NAK";
	if (field->part == PART_CM_REJ && !strcmp(field->name, "reason"))
		return cm_rejection_text((unsigned int)number);
	if (field->part == PART_CM_SIDR_REP && !strcmp(field->name, "status"))
		return cm_sidr_status_text((unsigned int)number);
	return field_value_name(field->form, number);
}

static void print_number(FILE *out, const struct field *field, uint64_t number)
{
	const char *text = text_of(field, number);

	fprintf(out, field->form == FORM_DECIMAL ? "%" PRIu64 : "0x%" PRIx64, number);
	if (text)
		fprintf(out, "  # %s", text);
	else
		print_mask(out, field->form, number);
}

static void print_address(FILE *out, const struct field *field, const uint8_t *bytes)
{
	char text[INET6_ADDRSTRLEN];

	if (field->part == PART_IPV4)
		inet_ntop(AF_INET, bytes, text, sizeof(text));
	else if (field->part == PART_IPV6 || (field->length == 16 && strstr(field->name, "gid")))
		inet_ntop(AF_INET6, bytes, text, sizeof(text));
	else
		return;
	fprintf(out, "  # %s", text);
}

/* ---- a part ----------------------------------------------------------------------------------------------------- */

static void print_field(FILE *out, const struct field *field, const uint8_t *bytes)
{
	print_name(out, field->name);
	if (field->width) {
		print_number(out, field, part_field_get(bytes, field));
	} else {
		bytes_put(out, bytes + field->byte, field->length);
		print_address(out, field, bytes + field->byte);
	}
	fputc('\n', out);
}

/* Prints nonzero bits outside all fields. */
static void print_reserved(FILE *out, enum part part, const uint8_t *bytes)
{
	uint8_t left[PART_MOST_BYTES], any = 0;

	memcpy(left, bytes, part_infos[part].bytes);
	for (const struct field *field = fields; field->name; field++) {
		if (field->part != part)
			continue;
		if (field->width)
			part_field_put(left, field, 0);
		else
			memset(left + field->byte, 0, field->length);
	}
	for (size_t i = 0; i < part_infos[part].bytes; i++)
		any |= left[i];
	if (!any)
		return;
	print_name(out, "reserved");
	bytes_put(out, left, part_infos[part].bytes);
	fputc('\n', out);
}

void part_print(FILE *out, enum part part, const uint8_t *bytes, size_t tail)
{
	const uint8_t *behind = bytes + part_infos[part].bytes;

	fprintf(out, "%s\n", part_infos[part].name);
	for (const struct field *field = fields; field->name; field++)
		if (field->part == part)
			print_field(out, field, bytes);
	print_reserved(out, part, bytes);
	for (size_t at = 0; at < tail; at += BYTES_OF_A_LINE) {
		print_name(out, "data");
		bytes_put(out, behind + at, tail - at < BYTES_OF_A_LINE ? tail - at : BYTES_OF_A_LINE);
		fputc('\n', out);
	}
}
