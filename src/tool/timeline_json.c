/* SPDX-License-Identifier: BSD-2-Clause */
/* See timeline_json.h. */
#include "tool/timeline_json.h"

#include <inttypes.h>
#include <stddef.h>

void trace_begin(struct trace *trace, FILE *out, int64_t base_ns)
{
	*trace = (struct trace){.out = out, .base_ns = base_ns};
	fprintf(out, TRACE_BEGIN "%" PRId64 TRACE_BEGUN "\n", base_ns);
}

void trace_end(struct trace *trace)
{
	fputs("\n" TRACE_END "\n", trace->out);
}

/* Microseconds with their fraction: a double has no room for ns since 1970, and not for what three digits say, either. */
static void put_us(FILE *out, int64_t ns)
{
	uint64_t size = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;

	fprintf(out, "%s%" PRIu64 ".%03" PRIu64, ns < 0 ? "-" : "", size / 1000, size % 1000);
}

void trace_event_begin(struct trace *trace, int64_t ns, uint32_t pid)
{
	if (trace->comma)
		fputs(",\n", trace->out);
	trace->comma = true;
	fputs(TRACE_EVENT, trace->out);
	put_us(trace->out, (int64_t)((uint64_t)ns - (uint64_t)trace->base_ns));
	fprintf(trace->out, ",\"pid\":%" PRIu32, pid);
}

void trace_event(struct trace *trace, char phase, int64_t ns, uint32_t pid, uint64_t tid, const char *name)
{
	trace_event_begin(trace, ns, pid);
	fprintf(trace->out, ",\"tid\":%" PRIu64 ",\"ph\":\"%c\",\"name\":\"%s\"", tid, phase, name);
}

void trace_event_end(struct trace *trace)
{
	putc('}', trace->out);
}

void trace_duration(struct trace *trace, int64_t ns)
{
	fputs(",\"dur\":", trace->out);
	put_us(trace->out, ns);
}

const char *trace_text(const char *text, char out[128])
{
	size_t i;

	for (i = 0; i < 127 && text[i]; i++)
		out[i] = text[i] < ' ' || text[i] > '~' || text[i] == '"' || text[i] == '\\' ? '?' : text[i];
	out[i] = '\0';
	return out;
}
