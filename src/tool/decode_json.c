/* SPDX-License-Identifier: BSD-2-Clause */
/* softhca decode --json: converts the text format of decoder.h line by line. */
#include <string.h>

#include "tool/decoder.h"
#include "tool/json.h"

struct json_writer {
	FILE *out;
	bool in_part, has_fields, has_parts;
	char *data; /* value of a field with bytes that continue in the next line, or NULL */
};

static void field_finish(struct json_writer *writer)
{
	if (writer->data)
		fputs("\"}", writer->out);
	writer->data = NULL;
}

static void part_end(struct json_writer *writer)
{
	field_finish(writer);
	if (writer->in_part)
		fputs("]}", writer->out);
	writer->in_part = writer->has_fields = false;
}

static void part_begin(struct json_writer *writer, const char *name)
{
	part_end(writer);
	json_put_member(writer->out, writer->has_parts ? ",\n  {" : "\n  {", "part", name);
	fputs(", \"fields\": [", writer->out);
	writer->in_part = writer->has_parts = true;
}

/* Splits "  name   = value  # meaning"; @meaning may be NULL. Returns false for other lines. */
static bool field_split(char *line, char **name, char **value, char **meaning)
{
	char *equals = strstr(line, " = "), *end;

	if (!equals)
		return false;
	*name = line + strspn(line, " ");
	end = *name + strcspn(*name, " ");
	*value = equals + 3;
	*end = '\0';
	*meaning = strstr(*value, "  # ");
	if (*meaning) {
		**meaning = '\0';
		*meaning += 4;
	}
	return true;
}

static void field_write(struct json_writer *writer, char *line)
{
	char *name, *value, *meaning;

	if (!field_split(line, &name, &value, &meaning))
		return;
	/* Bytes have several lines with one name. */
	if (!strcmp(name, "data") && writer->data) {
		fputs(value, writer->out);
		return;
	}
	field_finish(writer);
	json_put_member(writer->out, writer->has_fields ? ", {" : "{", "name", name);
	writer->has_fields = true;
	if (!strcmp(name, "data")) {
		fprintf(writer->out, ", \"value\": \"%s", value);
		writer->data = value;
		return;
	}
	json_put_member(writer->out, ", ", "value", value);
	if (meaning)
		json_put_member(writer->out, ", ", "meaning", meaning);
	putc('}', writer->out);
}

static void notes_write(FILE *out, const char *text)
{
	const char *separator = "", *end;
	char note[512];

	for (const char *line = text; *line; line = *end ? end + 1 : end) {
		end = line + strcspn(line, "\n");
		if (strncmp(line, "# ", 2) != 0)
			continue;
		snprintf(note, sizeof(note), "%.*s", (int)(end - line - 2), line + 2);
		fputs(separator, out);
		json_put_string(out, note);
		separator = ", ";
	}
}

void decoded_print_json(FILE *out, char *text, const char *fault)
{
	struct json_writer writer = {.out = out};
	char *rest;

	fputs("{\"notes\": [", out);
	notes_write(out, text);
	fputs("],\n \"parts\": [", out);
	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		if (*line == ' ')
			field_write(&writer, line);
		else if (*line != '#')
			part_begin(&writer, line);
	}
	part_end(&writer);
	fputs("],\n \"fault\": ", out);
	if (*fault)
		json_put_string(out, fault);
	else
		fputs("null", out);
	fputs("}\n", out);
}
