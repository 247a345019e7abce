/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Folds repeated lines (DESIGN.md). A short table holds the last ones, because lines of several queue pairs may
 * alternate. Records (softhca.h) are not folded.
 *
 * Owned by struct explain_sink and covered by its lock.
 */
#ifndef SOFTHCA_EXPLAIN_FOLD_H
#define SOFTHCA_EXPLAIN_FOLD_H

#include "core/limits.h"
#include "explain/explain.h"

/* Time before the count of repetitions is written. */
#define FOLD_NS UINT64_C(1000000000)

struct fold {
	const char *device; /* static; NULL: the place is empty */
	struct explain_record record;
	uint64_t since_ns; /* time of its last line */
	uint64_t more;     /* repetitions since then */
};

struct folds {
	struct fold table[LIMIT_EXPLAIN_FOLDS];
};

/** Returns true, after counting it, if @record repeats one of the table: it is not written. */
bool folds_repeats(struct folds *folds, const char *device, const struct explain_record *record);

/** Returns an empty place, or the one with the oldest last line, whose count, if any, the caller must write first. */
struct fold *folds_place(struct folds *folds);

/** Enters a line that was written. */
void folds_enter(struct fold *place, const char *device, const struct explain_record *record);

/** Returns true if an entry has a count. */
bool folds_counting(const struct folds *folds);

/** Returns an entry with a count and no line since @before_ns, or NULL. Removes entries that did not repeat. */
struct fold *folds_due(struct folds *folds, uint64_t before_ns);

#endif
