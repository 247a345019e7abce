/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The JSON trace event format, written: one event in each line, which begins with its time and its process, so that traces can be
 * put together line by line. Times are microseconds behind a base of whole seconds that the first line names; as numbers they
 * have a fraction of three digits.
 */
#ifndef SOFTHCA_TOOL_TIMELINE_JSON_H
#define SOFTHCA_TOOL_TIMELINE_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* What a first line begins with; the base in ns and the rest follow. */
#define TRACE_BEGIN "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"made by\":\"softhca timeline\",\"base_ns\":\""
#define TRACE_BEGUN "\"},\"traceEvents\":["
#define TRACE_END "]}"
#define TRACE_EVENT "{\"ts\":"

struct trace {
	FILE *out;
	int64_t base_ns;
	bool comma; /* an event has been written */
};

/** The first line. */
void trace_begin(struct trace *trace, FILE *out, int64_t base_ns);
/** The last one. */
void trace_end(struct trace *trace);

/** The first two members of an event, behind which the caller puts all others, and its end. */
void trace_event_begin(struct trace *trace, int64_t ns, uint32_t pid);

/**
 * Begins the event of @phase at @ns, of track @tid, and leaves it open: members that follow begin with a comma. @name: the text
 * of a constant, or made safe by trace_text().
 */
void trace_event(struct trace *trace, char phase, int64_t ns, uint32_t pid, uint64_t tid, const char *name);
/** Ends it. */
void trace_event_end(struct trace *trace);
/** ,"dur":… of so many ns. */
void trace_duration(struct trace *trace, int64_t ns);

/** @text as part of a JSON string: what has to be escaped, and what is no plain ASCII, is replaced by '?'. @out: 128 bytes. */
const char *trace_text(const char *text, char out[128]);

#endif
