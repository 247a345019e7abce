/* SPDX-License-Identifier: BSD-2-Clause */
/* Records become a trace: which is of which request, what the requesters were about, and which packet arrived where. */
#ifndef SOFTHCA_TOOL_TIMELINE_TRACE_H
#define SOFTHCA_TOOL_TIMELINE_TRACE_H

#include "tool/timeline_json.h"
#include "tool/timeline_read.h"

/** Where the times of @timeline, which is in order, are counted from: the full second before the first. */
int64_t timeline_base(const struct timeline *timeline);

/** Writes all of @timeline, which is in order, as events. */
void timeline_write(const struct timeline *timeline, struct trace *trace);

#endif
