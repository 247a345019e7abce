/* SPDX-License-Identifier: BSD-2-Clause */
/* The ring of explanation records of one device, and the sink that SOFTHCA_EXPLAIN names. Leaf lock; any thread. */
#ifndef SOFTHCA_EXPLAIN_LOG_H
#define SOFTHCA_EXPLAIN_LOG_H

struct explain_log;

/**
 * Makes a log. @device: name used in texts, copied. @sink: "off", "stderr" or a path to append to; a path that cannot be
 * opened is reported once on stderr, since explanations were asked for. NULL without memory.
 */
struct explain_log *explain_log_new(const char *device, const char *sink);

/** Around fork(2): a child inherits the log with its lock free and no record half written. */
void explain_log_lock(struct explain_log *log);
void explain_log_unlock(struct explain_log *log);

/** Writes a remark that is no record (a bad setting) to the sink. */
void explain_log_note(struct explain_log *log, const char *text);

#endif
