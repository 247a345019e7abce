/* SPDX-License-Identifier: BSD-2-Clause */
/* The ring of explanation records of one device. Leaf lock; any thread. */
#ifndef SOFTHCA_EXPLAIN_LOG_H
#define SOFTHCA_EXPLAIN_LOG_H

#include <stdint.h>

#include "explain/explain.h"

struct explain_log;
struct explain_sink;

/** Makes a log, whose records are written to @sink as well (explain/sink.h; stays the caller's). NULL without memory. */
struct explain_log *explain_log_new(struct explain_sink *sink);

/** Around fork(2): a child inherits the log with its lock free and no record half written. */
void explain_log_lock(struct explain_log *log);
void explain_log_unlock(struct explain_log *log);

/**
 * Of explain/limit.c, by rule, atomic: the second in which it was told last in the upper half, and how many times in it in the
 * lower. @rule is below EXPLAIN_LIMITED_RULES.
 */
uint64_t *explain_log_told(struct explain_log *log, enum explain_rule rule);

/** Writes a remark that is no record (a bad setting) to the sink. */
void explain_log_note(struct explain_log *log, const char *text);

#endif
