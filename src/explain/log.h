/* SPDX-License-Identifier: BSD-2-Clause */
/* The ring of explanation records of one device. Leaf lock; any thread. */
#ifndef SOFTHCA_EXPLAIN_LOG_H
#define SOFTHCA_EXPLAIN_LOG_H

#include <stdint.h>

#include "explain/explain.h"

struct explain_log;
struct explain_sink;

/**
 * Creates a log that also writes its records to @sink (explain/sink.h), which stays the caller's. Returns NULL without
 * memory.
 */
struct explain_log *explain_log_new(struct explain_sink *sink);

/** Lock the log around fork(2), so that a child inherits a free lock and whole records. */
void explain_log_lock(struct explain_log *log);
void explain_log_unlock(struct explain_log *log);

/**
 * Returns the counter of explain/limit.c for @rule (< EXPLAIN_LIMITED_RULES), atomic: upper half the second of the last record, lower half
 * the number of records in that second.
 */
uint64_t *explain_log_told(struct explain_log *log, enum explain_rule rule);

/** Writes a remark, for example about a bad setting, to the sink. It is not a record. */
void explain_log_note(struct explain_log *log, const char *text);

#endif
