/* SPDX-License-Identifier: BSD-2-Clause */
/* The page of `softhca report`, see report_html.h. */
#include "tool/report_html.h"

#include <inttypes.h>

#include "tool/report_style.h"

/* Bytes of the character that @text begins with; 0: it is none of UTF-8 (RFC 3629), or a control. */
static size_t character(const unsigned char *text)
{
	size_t bytes = *text < 0x80 ? 1 : *text >= 0xc2 && *text < 0xe0 ? 2 : (*text & 0xf0) == 0xe0 ? 3 : 4;

	if (*text == 0x7f || (*text < ' ' && *text != '\n' && *text != '\t'))
		return 0;
	if (bytes == 1)
		return 1;
	if (*text < 0xc2 || *text > 0xf4)
		return 0;
	for (size_t i = 1; i < bytes; i++)
		if ((text[i] & 0xc0) != 0x80)
			return 0;
	return bytes;
}

void html_put(FILE *out, const char *text)
{
	while (*text) {
		size_t bytes = character((const unsigned char *)text);

		if (*text == '&')
			fputs("&amp;", out);
		else if (*text == '<')
			fputs("&lt;", out);
		else if (*text == '>')
			fputs("&gt;", out);
		else if (*text == '"')
			fputs("&quot;", out);
		else if (!bytes)
			fputc('?', out);
		else
			fwrite(text, 1, bytes, out);
		text += bytes ? bytes : 1;
	}
}

void html_put_base64(FILE *out, const uint8_t *bytes, size_t length)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < length; i += 3) {
		uint32_t left = (uint32_t)(length - i), group = (uint32_t)bytes[i] << 16;

		group |= left > 1 ? (uint32_t)bytes[i + 1] << 8 : 0;
		group |= left > 2 ? bytes[i + 2] : 0;
		fputc(digits[group >> 18], out);
		fputc(digits[group >> 12 & 63], out);
		fputc(left > 1 ? digits[group >> 6 & 63] : '=', out);
		fputc(left > 2 ? digits[group & 63] : '=', out);
	}
}

bool section_row(struct section *section, uint64_t most)
{
	if (section->rows < most) {
		section->rows++;
		return true;
	}
	section->left_out++;
	return false;
}

static void put_section(FILE *out, struct section *section)
{
	fprintf(out, "<section id=\"%s\">\n<h2>%s <span class=\"soft shown\">%" PRIu64 "</span></h2>\n", section->id,
		section->title, section->rows);
	fwrite(section->html, 1, section->length, out);
	if (!section->rows)
		fputs("<p class=\"soft\">None.</p>\n", out);
	if (section->left_out)
		fprintf(out, "<p class=\"soft\">… %" PRIu64 " more</p>\n", section->left_out);
	fputs("</section>\n", out);
}

void page_write(FILE *out, struct section sections[SECTIONS], const char *sources)
{
	fputs(page_head, out);
	fputs("<header><input id=\"filter\" type=\"search\" placeholder=\"filter\" aria-label=\"filter\">\n<nav>", out);
	for (int i = 0; i < SECTIONS; i++)
		fprintf(out, "<a href=\"#%s\">%s</a> <span class=\"soft\">%" PRIu64 "</span>\n", sections[i].id,
			sections[i].title, sections[i].rows + sections[i].left_out);
	fprintf(out, "</nav></header>\n<p class=\"soft\">softhca " SOFTHCA_VERSION ", from %s</p>\n", sources);
	for (int i = 0; i < SECTIONS; i++)
		put_section(out, &sections[i]);
	fputs(page_script, out);
}
