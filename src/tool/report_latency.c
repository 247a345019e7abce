/* SPDX-License-Identifier: BSD-2-Clause */
/* How long requests took, by opcode and size, from a timeline (docs/timeline.md), as rows of `softhca report`. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tool/report_html.h"
#include "tool/report_lanes.h"

#define KINDS 64
#define BUCKETS 40 /* powers of two of nanoseconds */

/* Requests of one opcode whose bytes are up to a power of two. */
struct kind {
	char name[32];
	uint64_t bytes, count, least, most;
	uint64_t bucket[BUCKETS];
};

static uint64_t number_of(const char *line, const char *key)
{
	const char *at = strstr(line, key);

	return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

static uint64_t up_to_power(uint64_t bytes)
{
	return bytes < 2 ? bytes : bytes > 1ull << 62 ? 1ull << 62 : 1ull << (64 - __builtin_clzll(bytes - 1));
}

static struct kind *find(struct kind *kinds, size_t *count, const char *name, size_t length, uint64_t bytes)
{
	for (size_t i = 0; i < *count; i++)
		if (kinds[i].bytes == bytes && strlen(kinds[i].name) == length && !memcmp(kinds[i].name, name, length))
			return &kinds[i];
	if (*count == KINDS || length >= sizeof(kinds[0].name))
		return NULL;
	kinds[*count] = (struct kind){.bytes = bytes, .least = UINT64_MAX};
	memcpy(kinds[*count].name, name, length);
	return &kinds[(*count)++];
}

/* A line with the beginning of a request, which has its end as a figure; of those whose post was recorded. */
static void take(struct kind *kinds, size_t *count, const char *line)
{
	static const char key[] = "\"name\":\"";
	const char *name = strstr(line, key);
	struct kind *kind;
	uint64_t took;

	if (!name || !strstr(line, "\"ph\":\"b\"") || !strstr(line, "\"complete_ns\":") ||
	    strstr(line, "\"posted\":false"))
		return;
	name += strlen(key);
	kind = find(kinds, count, name, strcspn(name, "\""), up_to_power(number_of(line, "\"bytes\":")));
	if (!kind)
		return;
	took = number_of(line, "\"complete_ns\":");
	kind->count++;
	kind->least = took < kind->least ? took : kind->least;
	kind->most = took > kind->most ? took : kind->most;
	kind->bucket[took < 2 ? 0 : took >> (BUCKETS - 1) ? BUCKETS - 1 : 63 - __builtin_clzll(took)]++;
}

static int median_bucket(const struct kind *kind)
{
	uint64_t seen = 0;
	int bucket = 0;

	while (bucket < BUCKETS - 1 && (seen += kind->bucket[bucket]) * 2 < kind->count)
		bucket++;
	return bucket;
}

static void put_kind(FILE *out, const struct kind *kind)
{
	uint64_t highest = 1;
	int first = 0, last = BUCKETS - 1;

	for (int i = 0; i < BUCKETS; i++)
		highest = kind->bucket[i] > highest ? kind->bucket[i] : highest;
	while (first < last && !kind->bucket[first])
		first++;
	while (last > first && !kind->bucket[last])
		last--;
	fputs("<tr class=\"row\"><td>", out);
	html_put(out, kind->name);
	fprintf(out,
		"</td><td>%" PRIu64 "</td><td>%" PRIu64 "</td><td>%" PRIu64 "</td><td>%" PRIu64 "…%" PRIu64
		"</td><td>%" PRIu64 "</td><td><span class=\"bars\">",
		kind->bytes, kind->count, kind->least, UINT64_C(1) << median_bucket(kind),
		UINT64_C(2) << median_bucket(kind), kind->most);
	for (int i = first; i <= last; i++)
		fprintf(out, "<i style=\"height:%" PRIu64 "%%\" title=\"%" PRIu64 " ns and more: %" PRIu64 "\"></i>",
			kind->bucket[i] * 100 / highest, UINT64_C(1) << i, kind->bucket[i]);
	fputs("</span></td></tr>\n", out);
}

static void put_name(struct section *section, const char *name)
{
	fputs("<h3>", section->out);
	html_put(section->out, name);
	fputs("</h3>\n", section->out);
}

void report_timeline(struct section *timeline, struct section *latency, FILE *file, const char *name)
{
	struct kind *kinds = calloc(KINDS, sizeof(*kinds));
	struct lanes *lanes = lanes_new();
	size_t count = 0, size = 0;
	char *line = NULL;

	while (kinds && getline(&line, &size, file) >= 0) {
		take(kinds, &count, line);
		lanes_take(lanes, line);
	}
	free(line);
	put_name(timeline, name);
	lanes_put(lanes, timeline);
	put_name(latency, name);
	fputs("<p class=\"soft\">From post to completion, in nanoseconds.</p>\n<table><tr><th>opcode<th>bytes up to<th>requests<th>least"
	      "<th>median<th>most<th>powers of two</tr>\n",
	      latency->out);
	for (size_t i = 0; i < count; i++)
		if (section_row(latency, REPORT_ROWS))
			put_kind(latency->out, &kinds[i]);
	fputs("</table>\n", latency->out);
	free(kinds);
}
