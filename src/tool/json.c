/* SPDX-License-Identifier: BSD-2-Clause */
/* See json.h. */
#include "tool/json.h"

void json_put_string(FILE *out, const char *text)
{
	putc('"', out);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			fprintf(out, "\\%c", *text);
		else if ((unsigned char)*text < ' ')
			fprintf(out, "\\u%04x", (unsigned char)*text);
		else
			putc(*text, out);
	}
	putc('"', out);
}

void json_put_member(FILE *out, const char *separator, const char *name, const char *text)
{
	fprintf(out, "%s\"%s\": ", separator, name);
	json_put_string(out, text);
}
