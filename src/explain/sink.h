/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The destination of explanations that SOFTHCA_EXPLAIN names: one sink for all devices of a process (DESIGN.md). The
 * registry owns it until the process ends.
 *
 * At most LIMIT_EXPLAIN_LINES are written in a second. Two kinds of refusals are held back: a possible step of a search
 * for a limit (explain/search.h), and one that programs commonly ignore (`ignorable`), until something else is
 * explained, the program aborts, or it ends with a status other than 0.
 *
 * Any thread may call. The lock of a sink is a leaf; a timer is armed without it.
 */
#ifndef SOFTHCA_EXPLAIN_SINK_H
#define SOFTHCA_EXPLAIN_SINK_H

#include "explain/explain.h"

struct explain_sink;
struct settings;

/*
 * Path of a file to which each process appends a byte with its first line that is not expected. `softhca run
 * --error-exitcode` makes the file, under a secret name (tool/run_errors.c), and checks it.
 */
#define EXPLAIN_MARKS "SOFTHCA_EXPLAIN_MARKS"

/**
 * @settings.explain: "off", "stderr" or a path to append to, or "all" before these. A path that cannot be opened is
 * reported once on stderr. Returns NULL without memory.
 */
struct explain_sink *explain_sink_new(const struct settings *settings);

/** If true (not "off"), explain_sink_finish() must be called at the end. */
bool explain_sink_is_on(const struct explain_sink *sink);

/**
 * Writes @record of @device (static) as a line, or counts it. Expected ones have no line unless the sink is "all" or
 * "all:SINK".
 */
void explain_sink_record(struct explain_sink *sink, const char *device, const struct explain_record *record);

/** As explain_found(). */
void explain_sink_found(struct explain_sink *sink);

/** Writes a remark, which is not a record and does not count towards the limit of lines per second. */
void explain_sink_note(struct explain_sink *sink, const char *text);

/**
 * Handles the end of the program: writes pending counts and, if @status is not 0, refusals that it might have ignored.
 * Later records are not folded.
 */
void explain_sink_finish(struct explain_sink *sink, int status);

/** For fork(2): the parent writes pending lines, so the child begins without. */
void explain_sink_before_fork(struct explain_sink *sink);
void explain_sink_after_fork(struct explain_sink *sink, bool child);

#endif
