/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Folds repeated lines: an explanation by the same rule about the same queue pair is written once and then counted.
 * Explanations without a queue pair must also have the same figures. A short table holds the last lines, because lines
 * of several queue pairs may alternate. Records (softhca.h) are not folded.
 *
 * Owned by struct explain_sink and covered by its lock.
 */
#ifndef SOFTHCA_EXPLAIN_FOLD_H
#define SOFTHCA_EXPLAIN_FOLD_H

#include "core/limits.h"
#include "explain/explain.h"

/* Time for which repetitions are counted before their count is written. */
#define FOLD_NS UINT64_C(1000000000)

struct fold {
	const char *device; /* name, static; NULL: the place is empty */
	struct explain_record record;
	uint64_t since_ns; /* time of its last line */
	uint64_t more;     /* repetitions since then */
};

struct folds {
	struct fold table[LIMIT_EXPLAIN_FOLDS];
};

/** Counts @record of @device if it repeats one of the table. Returns true in that case: it is not written. */
bool folds_repeats(struct folds *folds, const char *device, const struct explain_record *record);

/**
 * Returns the place for a new line: an empty one, otherwise the one with the oldest last line. If it has a count, the
 * caller must write that first. Never NULL.
 */
struct fold *folds_place(struct folds *folds);

/** Records at @place that @record of @device was written. */
void folds_enter(struct fold *place, const char *device, const struct explain_record *record);

/** Returns true if an entry has counted repetitions. */
bool folds_counting(const struct folds *folds);

/**
 * Returns an entry with a count and a last line older than @before_ns, or NULL. Removes entries that did not repeat.
 */
struct fold *folds_due(struct folds *folds, uint64_t before_ns);

#endif
