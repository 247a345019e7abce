/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets of a capture, as rows of `softhca report`. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tool/decoder.h"
#include "tool/input.h"
#include "tool/report_html.h"
#include "tool/tool.h"

/* The value of field @name of the base transport header in what decode prints; of one with a name, that. */
static void bth_field(const char *text, const char *name, char *out, size_t size)
{
	const char *at = strstr(text, "\nbth\n"), *end, *meaning;
	char line[32];

	*out = '\0';
	snprintf(line, sizeof(line), "\n  %s ", name);
	at = at ? strstr(at, line) : NULL;
	at = at ? strstr(at, "= ") : NULL;
	if (!at)
		return;
	at += 2;
	end = at + strcspn(at, "\n");
	meaning = memmem(at, (size_t)(end - at), "# ", 2);
	if (meaning)
		at = meaning + 2;
	snprintf(out, size, "%.*s", (int)(end - at), at);
}

static void put_packet(FILE *out, unsigned long number, const struct capture_packet *packet, const char *text)
{
	static const char *const names[] = {"opcode", "destination_qpn", "psn"};

	fprintf(out, "<tr class=\"row\"><td>%lu</td>", number);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char value[64];

		bth_field(text, names[i], value, sizeof(value));
		fputs("<td>", out);
		html_put(out, value);
		fputs("</td>", out);
	}
	fprintf(out, "<td>%zu</td><td>", packet->bytes.length);
	html_put(out, packet->comment);
	fputs("<details><summary>fields</summary><pre>", out);
	html_put(out, text);
	fputs("</pre></details></td></tr>\n", out);
}

static void add_packet(FILE *out, unsigned long number, const struct capture_packet *packet)
{
	struct decoder decoder;
	size_t length;
	char *text;
	FILE *memory = open_memstream(&text, &length);

	if (!memory)
		tool_fail(EXIT_FAILURE, "out of memory");
	/* cppcheck-suppress nullPointerRedundantCheck */
	fputc('\n', memory);
	decoder_begin(&decoder, packet->bytes.bytes, packet->bytes.length, memory);
	decode_packet(&decoder, packet_begin_of(packet->link_type));
	/* cppcheck-suppress nullPointerRedundantCheck */
	if (fclose(memory))
		tool_fail(EXIT_FAILURE, "out of memory");
	put_packet(out, number, packet, text);
	free(text);
}

/* Packet @number; false behind the last one, and behind what is damaged. */
static bool read_packet(FILE *file, unsigned long number, struct capture_packet *packet)
{
	rewind(file);
	return capture_read(file, number, packet) == CAPTURE_PACKET;
}

/* How many packets @file has, by doubling and halving: each look reads the file up to there. */
static unsigned long count_packets(FILE *file)
{
	unsigned long have = 0, beyond = 1;
	struct capture_packet packet;

	while (beyond < 1ul << 40 && read_packet(file, beyond, &packet)) {
		free(packet.bytes.bytes);
		have = beyond;
		beyond *= 2;
	}
	while (beyond - have > 1) {
		unsigned long middle = have + (beyond - have) / 2;

		if (read_packet(file, middle, &packet)) {
			free(packet.bytes.bytes);
			have = middle;
		} else {
			beyond = middle;
		}
	}
	return have;
}

void report_capture(struct section *section, FILE *file, const char *name)
{
	unsigned long count = count_packets(file), shown = 0;
	struct capture_packet packet;

	fputs("<h3>", section->out);
	html_put(section->out, name);
	fputs("</h3>\n<table><tr><th>#<th>opcode<th>to queue pair<th>PSN<th>bytes<th></tr>\n", section->out);
	while (shown < count && section->rows < REPORT_PACKETS && read_packet(file, shown + 1, &packet)) {
		section_row(section, REPORT_PACKETS);
		add_packet(section->out, ++shown, &packet);
		free(packet.bytes.bytes);
	}
	section->left_out += count - shown;
	fputs("</table>\n", section->out);
}
