/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * softhca report: one HTML page of what runs have left: drawings (--keys), explanations (--explain), counters (--counters), packets
 * (--capture), latencies (--timeline). What a file is, its first bytes say. The files may be anything: all that comes from them is
 * escaped, drawings are images, in which nothing runs, and the page may load nothing.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "explain/rules.h"
#include "tool/input.h"
#include "tool/report_html.h"
#include "tool/tool.h"

enum { MOST_RULE = 4096 };

struct report {
	struct section section[SECTIONS];
	bool rule[MOST_RULE]; /* was told of */
	FILE *sources;
	uint64_t files;
};

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* ---- drawings --------------------------------------------------------------------------------------------------- */

static bool ends_with(const char *name, const char *ending)
{
	size_t length = strlen(name), more = strlen(ending);

	return length > more && !strcmp(name + length - more, ending);
}

/* The text beside the drawing @path, or NULL; the caller's. */
static char *text_beside(const char *path)
{
	char name[4096];
	struct stat status;
	struct input text;
	FILE *file;

	if (snprintf(name, sizeof(name), "%.*s.txt", (int)(strlen(path) - 4), path) >= (int)sizeof(name))
		return NULL;
	/* Not a pipe, which would be waited for. */
	file = !stat(name, &status) && S_ISREG(status.st_mode) ? fopen(name, "re") : NULL;
	if (!file)
		return NULL;
	text = input_read(file, name);
	fclose(file);
	text.bytes[text.length] = '\0';
	return (char *)text.bytes;
}

static void add_drawing(struct report *report, const char *path, FILE *file)
{
	struct section *section = &report->section[SECTION_DRAWINGS];
	struct input svg;
	char *text;

	if (!section_row(section, REPORT_ROWS))
		return;
	svg = input_read(file, path);
	text = text_beside(path);
	fputs("<figure class=\"row\"><figcaption>", section->out);
	html_put(section->out, base_name(path));
	fputs("</figcaption><img loading=\"lazy\" alt=\"the text below\" src=\"data:image/svg+xml;base64,",
	      section->out);
	html_put_base64(section->out, svg.bytes, svg.length);
	fputs("\"><details><summary>as text</summary><pre>", section->out);
	html_put(section->out, text ? text : "");
	fputs("</pre></details></figure>\n", section->out);
	free(svg.bytes);
	free(text);
}

/* ---- lines ------------------------------------------------------------------------------------------------------ */

/* The number of the rule in "… [7 KEY_RANGE; …", or 0. @at: where it stands. */
static unsigned long rule_of(const char *line, const char **at)
{
	for (const char *open = strchr(line, '['); open; open = strchr(open + 1, '[')) {
		char *end;
		unsigned long number = isdigit((unsigned char)open[1]) ? strtoul(open + 1, &end, 10) : 0;

		if (!number || number >= MOST_RULE || *end != ' ' || !isupper((unsigned char)end[1]))
			continue;
		*at = open;
		return number;
	}
	return 0;
}

static void add_explanation(struct report *report, char *line, unsigned long rule, const char *at)
{
	struct section *section = &report->section[SECTION_EXPLANATIONS];

	report->rule[rule] = true;
	if (!section_row(section, REPORT_ROWS))
		return;
	fprintf(section->out, "<tr class=\"row\"><td><a href=\"#rule-%lu\">%lu</a></td><td>", rule, rule);
	line[at - line] = '\0';
	html_put(section->out, line);
	fputs("[", section->out);
	html_put(section->out, at + 1);
	fputs("</td></tr>\n", section->out);
}

static void add_counter(struct report *report, const char *process, const char *line)
{
	struct section *section = &report->section[SECTION_COUNTERS];
	char name[64];
	uint64_t value;

	if (sscanf(line, " %63[a-z_0-9] %" SCNu64, name, &value) != 2 || !section_row(section, REPORT_ROWS))
		return;
	fputs("<tr class=\"row\"><td>", section->out);
	html_put(section->out, process);
	fprintf(section->out, "</td><td>%s</td><td>%" PRIu64 "</td></tr>\n", name, value);
}

/* What explanations and counters are written to, together or apart. */
static void add_lines(struct report *report, FILE *file)
{
	static const char counters_of[] = "softhca: counters of ";
	char *line = NULL, process[128] = "";
	size_t size = 0;

	fputs("<table>\n", report->section[SECTION_EXPLANATIONS].out);
	fputs("<table>\n", report->section[SECTION_COUNTERS].out);
	while (getline(&line, &size, file) >= 0) {
		unsigned long rule;
		const char *at;

		line[strcspn(line, "\n")] = '\0';
		if (!strncmp(line, counters_of, strlen(counters_of))) {
			snprintf(process, sizeof(process), "%s", line + strlen(counters_of));
			continue;
		}
		rule = rule_of(line, &at);
		if (rule)
			add_explanation(report, line, rule, at);
		else if (*process && *line == ' ')
			add_counter(report, process, line);
		else
			*process = '\0';
	}
	free(line);
	fputs("</table>\n", report->section[SECTION_EXPLANATIONS].out);
	fputs("</table>\n", report->section[SECTION_COUNTERS].out);
}

static void add_rules(struct report *report)
{
	struct section *section = &report->section[SECTION_RULES];

	for (int number = 1; number < MOST_RULE; number++) {
		const struct rule_text *rule = rule_text((enum explain_rule)number);

		if (!report->rule[number] || !strcmp(rule->name, rule_text(RULE_NONE)->name))
			continue;
		section_row(section, REPORT_ROWS);
		fprintf(section->out, "<div class=\"row\" id=\"rule-%d\"><p><b>%d %s</b> ", number, number, rule->name);
		html_put(section->out, rule->text);
		fputs("<br>", section->out);
		html_put(section->out, rule->advice);
		fputs("<br><span class=\"soft\">", section->out);
		html_put(section->out, rule->source);
		fputs("</span></p></div>\n", section->out);
	}
}

/* ---- files ------------------------------------------------------------------------------------------------------ */

static bool begins_with(FILE *file, const char *text)
{
	char begin[16] = "";
	size_t length = fread(begin, 1, strlen(text), file);

	rewind(file);
	return length == strlen(text) && !memcmp(begin, text, length);
}

static bool is_capture(FILE *file)
{
	struct capture_packet packet;
	enum capture_result result = capture_read(file, 1, &packet);

	rewind(file);
	if (result == CAPTURE_PACKET || result == CAPTURE_NONE)
		free(packet.bytes.bytes);
	return result != CAPTURE_NONE;
}

static void add_file(struct report *report, const char *path)
{
	FILE *file = input_open(path);

	if (begins_with(file, "<svg "))
		add_drawing(report, path, file);
	else if (begins_with(file, "{") || begins_with(file, "[\n"))
		report_timeline(&report->section[SECTION_TIMELINE], &report->section[SECTION_LATENCY], file,
				base_name(path));
	else if (is_capture(file))
		report_capture(&report->section[SECTION_PACKETS], file, base_name(path));
	else
		add_lines(report, file);
	fclose(file);
	report->files++;
}

static int is_wanted(const struct dirent *entry)
{
	/* The text of a drawing is shown with it. */
	return *entry->d_name != '.' && !ends_with(entry->d_name, ".txt");
}

static void add_directory(struct report *report, const char *path)
{
	struct dirent **entries;
	int count = scandir(path, &entries, is_wanted, versionsort);

	if (count < 0)
		tool_fail(EXIT_FAILURE, "cannot read %s: %m", path);
	for (int i = 0; i < count; i++) {
		struct stat status;
		char name[4096];

		if (snprintf(name, sizeof(name), "%s/%s", path, entries[i]->d_name) < (int)sizeof(name) &&
		    !stat(name, &status) && S_ISREG(status.st_mode))
			add_file(report, name);
		free(entries[i]);
	}
	free(entries);
}

static void begin_report(struct report *report, char **sources, size_t *length)
{
	static const char *const names[SECTIONS][2] = {
		[SECTION_DRAWINGS] = {"keys", "Keys"},      [SECTION_EXPLANATIONS] = {"explanations", "Explanations"},
		[SECTION_RULES] = {"rules", "Rules"},       [SECTION_TIMELINE] = {"timeline", "Timeline"},
		[SECTION_LATENCY] = {"latency", "Latency"}, [SECTION_COUNTERS] = {"counters", "Counters"},
		[SECTION_PACKETS] = {"packets", "Packets"},
	};

	for (int i = 0; i < SECTIONS; i++) {
		struct section *section = &report->section[i];

		section->id = names[i][0];
		section->title = names[i][1];
		section->out = open_memstream(&section->html, &section->length);
		if (!section->out)
			tool_fail(EXIT_FAILURE, "out of memory");
	}
	report->sources = open_memstream(sources, length);
	if (!report->sources)
		tool_fail(EXIT_FAILURE, "out of memory");
}

static void write_page(struct report *report, const char *path, char **sources)
{
	FILE *out = path ? fopen(path, "we") : stdout;

	for (int i = 0; i < SECTIONS; i++)
		fclose(report->section[i].out);
	fclose(report->sources);
	if (!out)
		tool_fail(EXIT_FAILURE, "cannot write %s: %m", path);
	page_write(out, report->section, *sources);
	/* cppcheck-suppress nullPointerRedundantCheck */
	if (ferror(out) || fflush(out))
		tool_fail(EXIT_FAILURE, "cannot write %s: %m", path ? path : "the page");
	if (path)
		fclose(out);
	for (int i = 0; i < SECTIONS; i++)
		free(report->section[i].html);
	free(*sources);
}

int command_report(int argc, char **argv)
{
	const char *own[OWN_OPTION_COUNT] = {0};
	struct report *report = calloc(1, sizeof(*report));
	int count = own_options_parse(COMMAND_REPORT, argc, argv, own);
	char *sources;
	size_t length;

	if (!count)
		tool_fail(EXIT_WRONG_USE, "report: no file given (try softhca report --help)");
	if (!report)
		tool_fail(EXIT_FAILURE, "out of memory");
	begin_report(report, &sources, &length);
	for (int i = 1; i <= count; i++) {
		struct stat status;

		if (!stat(argv[i], &status) && S_ISDIR(status.st_mode))
			add_directory(report, argv[i]);
		else
			add_file(report, argv[i]);
		fputs(i > 1 ? ", " : "", report->sources);
		html_put(report->sources, argv[i]);
	}
	add_rules(report);
	write_page(report, own[OPTION_REPORT_OUTPUT], &sources);
	free(report);
	return EXIT_SUCCESS;
}
