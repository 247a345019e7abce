/* SPDX-License-Identifier: BSD-2-Clause */
/* What the page of `softhca report` is made of: text and bytes as HTML, and its sections. One thread. */
#ifndef SOFTHCA_TOOL_REPORT_HTML_H
#define SOFTHCA_TOOL_REPORT_HTML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Rows of each kind that a page has; the others are counted. */
#define REPORT_ROWS 1000u
#define REPORT_PACKETS 300u

/* One kind of what there is to see; its rows are collected until all files are read. */
struct section {
	const char *id, *title;
	FILE *out; /* to the next two */
	char *html;
	size_t length;
	uint64_t rows, left_out;
};

enum {
	SECTION_DRAWINGS,
	SECTION_EXPLANATIONS,
	SECTION_RULES,
	SECTION_TIMELINE,
	SECTION_LATENCY,
	SECTION_COUNTERS,
	SECTION_PACKETS,
	SECTIONS
};

/** Text of which nothing is obeyed: markup is escaped, and what is no UTF-8 or a control is a question mark. */
void html_put(FILE *out, const char *text);

/** @bytes in base64. */
void html_put_base64(FILE *out, const uint8_t *bytes, size_t length);

/** One more row of @section, of at most @most: false if it is only counted. */
bool section_row(struct section *section, uint64_t most);

/** Writes the whole page, with @sources, HTML that says what it was made from. */
void page_write(FILE *out, struct section sections[SECTIONS], const char *sources);

/* Readers; each takes all of @file, whose name is @name. */
void report_capture(struct section *section, FILE *file, const char *name);
/** The requests into @timeline, how long they took into @latency. */
void report_timeline(struct section *timeline, struct section *latency, FILE *file, const char *name);

#endif
