/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The destination of explanations that SOFTHCA_EXPLAIN names: one sink per process, shared by all devices. The registry
 * owns it until the process ends.
 *
 * Writing never blocks (explain/output.h). Repetitions are counted (explain/fold.h). Their count is written after a
 * second: with the next explanation, by the device thread, or when the program ends. At most LIMIT_EXPLAIN_LINES are
 * written in a second. Lines left out for that reason, or because the sink accepts nothing, are counted, and the count
 * is written later. Two kinds of refusals are held back. One that may be a step of a search for a limit: see
 * explain/search.h. One that programs commonly ignore (`ignorable`): until something else is explained, the program
 * aborts, or it ends with a status other than 0.
 *
 * Any thread may call. The lock of a sink is a leaf; a timer is armed without it.
 */
#ifndef SOFTHCA_EXPLAIN_SINK_H
#define SOFTHCA_EXPLAIN_SINK_H

#include "explain/explain.h"

struct explain_sink;
struct settings;

/*
 * The variable with the path of a file to which each process appends a byte with its first line that is not expected.
 * `softhca run --error-exitcode` makes the file, under a secret name (tool/run_errors.c), and checks it.
 */
#define EXPLAIN_MARKS "SOFTHCA_EXPLAIN_MARKS"

/**
 * Makes the sink of @settings.explain: "off", "stderr" or a path to append to, or "all" before these. A path that
 * cannot be opened is reported once on stderr. Returns NULL without memory.
 */
struct explain_sink *explain_sink_new(const struct settings *settings);

/** Returns true if the sink is not "off"; then explain_sink_finish() must be called at the end. */
bool explain_sink_is_on(const struct explain_sink *sink);

/**
 * Writes @record of the device named @device (static) as a line, or counts it. Expected ones (struct explain_subject) have no
 * line unless the sink is "all" or "all:SINK".
 */
void explain_sink_record(struct explain_sink *sink, const char *device, const struct explain_record *record);

/**
 * Reports that a queue pair was created: earlier refusals by a limit were steps of a search (explain/search.h). Any
 * thread.
 */
void explain_sink_found(struct explain_sink *sink);

/**
 * Writes a remark that is not a record: a bad setting, a summary. It does not count towards the limit of lines per
 * second.
 */
void explain_sink_note(struct explain_sink *sink, const char *text);

/**
 * Handles the end of the program with exit status @status: writes counts that are pending and, if @status is not 0, the
 * refusals that it might have ignored. Later records are not folded.
 */
void explain_sink_finish(struct explain_sink *sink, int status);

/** Handlers around fork(2): the child begins without pending lines, since the parent writes them. */
void explain_sink_before_fork(struct explain_sink *sink);
void explain_sink_after_fork(struct explain_sink *sink, bool child);

#endif
