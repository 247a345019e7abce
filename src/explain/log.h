/* SPDX-License-Identifier: BSD-2-Clause */
/* Explanation records of a device. Leaf lock; any thread. */
#ifndef SOFTHCA_EXPLAIN_LOG_H
#define SOFTHCA_EXPLAIN_LOG_H

#include <stdint.h>

#include "explain/explain.h"

struct explain_log;
struct explain_sink;

/** The caller owns @sink, to which records are also written. Returns NULL without memory. */
struct explain_log *explain_log_new(struct explain_sink *sink);

/** For fork(2): a child must inherit a free lock and whole records. */
void explain_log_lock(struct explain_log *log);
void explain_log_unlock(struct explain_log *log);

/**
 * Returns the atomic counter of explain/limit.c for @rule (< EXPLAIN_LIMITED_RULES): upper half the second of the last
 * record, lower half the number of records in it.
 */
uint64_t *explain_log_told(struct explain_log *log, enum explain_rule rule);

/** Writes a remark to the sink, which is not a record. */
void explain_log_note(struct explain_log *log, const char *text);

#endif
