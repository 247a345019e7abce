/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests as bars, see report_lanes.h. All that a file says is escaped, and its figures are bounded before they are places. */
#include "tool/report_lanes.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tool/tool.h"

enum { LANES = 40, BARS = 600, LEVELS = 6, NAME_BYTES = 48 };

/* Longer than any run, in ns. */
#define LONGEST 1e18

struct bar {
	uint32_t lane;
	double begin, complete, poll; /* ns; the latter two since the begin, poll 0: it was not polled */
	uint64_t bytes;
	char name[NAME_BYTES], wr_id[NAME_BYTES], status[NAME_BYTES];
};

struct lane {
	char name[2 * NAME_BYTES];
	double busy_until[LEVELS];
};

struct lanes {
	struct lane lane[LANES];
	struct bar bar[BARS];
	uint32_t lanes, bars;
	uint64_t left_out;
};

struct lanes *lanes_new(void)
{
	struct lanes *lanes = calloc(1, sizeof(*lanes));

	if (!lanes)
		tool_fail(EXIT_FAILURE, "out of memory");
	return lanes;
}

/* What stands behind @key, up to its end quote; "" if the key is not there. */
static void take_string(const char *line, const char *key, char into[NAME_BYTES])
{
	const char *at = strstr(line, key);
	size_t length = 0;

	if (at) {
		at += strlen(key);
		length = strcspn(at, "\"");
		length = length < NAME_BYTES ? length : NAME_BYTES - 1;
		memcpy(into, at, length);
	}
	into[length] = '\0';
}

/* 0 if it is not there, or no time. */
static double take_number(const char *line, const char *key)
{
	const char *at = strstr(line, key);
	double number = at ? strtod(at + strlen(key), NULL) : 0;

	return number > 0 && number < LONGEST ? number : 0;
}

/* The lane of the queue that @line names, or LANES: there are too many. */
static uint32_t lane_of(struct lanes *lanes, const char *line)
{
	char queue[NAME_BYTES], name[2 * NAME_BYTES];
	uint32_t lane;

	take_string(line, "\"cat\":\"requests of ", queue);
	snprintf(name, sizeof(name), "%s, process %.0f", queue, take_number(line, "\"pid\":"));
	for (lane = 0; lane < lanes->lanes; lane++)
		if (!strcmp(lanes->lane[lane].name, name))
			return lane;
	if (lane < LANES) {
		strcpy(lanes->lane[lane].name, name);
		lanes->lanes++;
	}
	return lane;
}

void lanes_take(struct lanes *lanes, const char *line)
{
	uint32_t lane;
	struct bar *bar;

	if (!strstr(line, "\"ph\":\"b\"") || !strstr(line, "\"complete_ns\":") || strstr(line, "\"posted\":false"))
		return;
	lane = lanes->bars < BARS ? lane_of(lanes, line) : LANES;
	if (lane == LANES) {
		lanes->left_out++;
		return;
	}
	bar = &lanes->bar[lanes->bars++];
	bar->lane = lane;
	bar->begin = take_number(line, "\"ts\":") * 1e3;
	bar->complete = take_number(line, "\"complete_ns\":");
	bar->poll = take_number(line, "\"poll_ns\":");
	bar->bytes = (uint64_t)take_number(line, "\"bytes\":");
	take_string(line, "\"name\":\"", bar->name);
	take_string(line, "\"wr_id\":\"", bar->wr_id);
	take_string(line, "\"status\":\"", bar->status);
}

static double end_of(const struct bar *bar)
{
	return bar->begin + (bar->poll > bar->complete ? bar->poll : bar->complete);
}

/* Requests of a queue that overlap are below each other, as far as there are levels. */
static int level_of(struct lane *lane, const struct bar *bar)
{
	int level = 0;

	while (level < LEVELS - 1 && lane->busy_until[level] > bar->begin)
		level++;
	lane->busy_until[level] = end_of(bar);
	return level;
}

static bool failed(const struct bar *bar)
{
	return *bar->status && strcmp(bar->status, "success") != 0;
}

static void put_bar(FILE *out, struct lane *lane, const struct bar *bar, double first, double scale)
{
	double left = (bar->begin - first) * scale, width = bar->complete * scale;
	int top = level_of(lane, bar) * 7;

	if (bar->poll > bar->complete)
		fprintf(out, "<i class=\"poll\" style=\"left:%.3f%%;width:%.3f%%;top:%dpx\"></i>", left,
			bar->poll * scale, top + 2);
	fprintf(out, "<i%s style=\"left:%.3f%%;width:%.3f%%;top:%dpx\" title=\"", failed(bar) ? " class=\"bad\"" : "",
		left, width, top);
	html_put(out, bar->name);
	fputs(" wr_id ", out);
	html_put(out, bar->wr_id);
	fprintf(out, ", %" PRIu64 " bytes: completed after %.0f ns", bar->bytes, bar->complete);
	if (bar->poll > 0)
		fprintf(out, ", polled after %.0f ns", bar->poll);
	fputs(", ", out);
	html_put(out, bar->status);
	fputs("\"></i>", out);
}

/* Names of opcodes, and of what failed: what the filter can find. */
static void put_kinds(FILE *out, const struct lanes *lanes, uint32_t lane)
{
	for (uint32_t i = 0; i < lanes->bars; i++) {
		const struct bar *bar = &lanes->bar[i];
		bool known = bar->lane != lane;

		for (uint32_t before = 0; before < i && !known; before++)
			known = lanes->bar[before].lane == lane && !strcmp(lanes->bar[before].name, bar->name) &&
				!strcmp(lanes->bar[before].status, bar->status);
		if (known)
			continue;
		fputc(' ', out);
		html_put(out, bar->name);
		if (failed(bar)) {
			fputs(" (", out);
			html_put(out, bar->status);
			fputc(')', out);
		}
	}
}

static void put_lane(FILE *out, struct lanes *lanes, uint32_t lane, double first, double scale)
{
	fputs("<div class=\"row lane\"><b>", out);
	html_put(out, lanes->lane[lane].name);
	fputs("<small>", out);
	put_kinds(out, lanes, lane);
	fputs("</small></b><span>", out);
	for (uint32_t i = 0; i < lanes->bars; i++)
		if (lanes->bar[i].lane == lane)
			put_bar(out, &lanes->lane[lane], &lanes->bar[i], first, scale);
	fputs("</span></div>\n", out);
}

void lanes_put(struct lanes *lanes, struct section *section)
{
	double first = LONGEST, last = 0;

	for (uint32_t i = 0; i < lanes->bars; i++) {
		first = lanes->bar[i].begin < first ? lanes->bar[i].begin : first;
		last = end_of(&lanes->bar[i]) > last ? end_of(&lanes->bar[i]) : last;
	}
	if (lanes->bars) {
		fprintf(section->out,
			"<p class=\"soft\">%" PRIu32 " requests in %.3f µs, from post to completion, thin until polled",
			lanes->bars, (last - first) / 1e3);
		if (lanes->left_out)
			fprintf(section->out, "; %" PRIu64 " more are not drawn", lanes->left_out);
		fputs(". <code>ui.perfetto.dev</code> shows all of the trace.</p>\n<figure>\n", section->out);
	}
	for (uint32_t lane = 0; lane < lanes->lanes; lane++)
		if (section_row(section, REPORT_ROWS))
			put_lane(section->out, lanes, lane, first, last > first ? 100 / (last - first) : 0);
	if (lanes->bars)
		fputs("</figure>\n", section->out);
	free(lanes);
}
