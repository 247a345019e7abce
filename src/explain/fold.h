/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What repeats is written once and then counted: explanations by the same rule about the same queue pair; where there is no
 * queue pair, those that also have the same figures. A short table has the last that were written, since those of several
 * queue pairs come mixed. Only what is written is folded: the records of a device (softhca.h) stay whole.
 *
 * Owned by struct explain_sink, whose lock covers it.
 */
#ifndef SOFTHCA_EXPLAIN_FOLD_H
#define SOFTHCA_EXPLAIN_FOLD_H

#include "core/limits.h"
#include "explain/explain.h"

/* For that long repetitions are counted, and then written as one line. */
#define FOLD_NS UINT64_C(1000000000)

struct fold {
	const char *device; /* name, static; NULL: the place is empty */
	struct explain_record record;
	uint64_t since_ns; /* when a line was written of it */
	uint64_t more;     /* that came since then */
};

struct folds {
	struct fold table[LIMIT_EXPLAIN_FOLDS];
};

/** Counts @record of @device if it repeats one of the table. Returns whether it does: then it is not to be written. */
bool folds_repeats(struct folds *folds, const char *device, const struct explain_record *record);

/**
 * The place for something that is to be written now: empty, or else the one of which a line was written the longest ago, and
 * whose count, if there is one, is to be written first. Never NULL.
 */
struct fold *folds_place(struct folds *folds);

/** Notes at @place that @record of @device was written. */
void folds_enter(struct fold *place, const char *device, const struct explain_record *record);

/** True if one has counted. */
bool folds_counting(const struct folds *folds);

/** One that has counted and was last written of before @before_ns; NULL: there is none. Forgets those that did not repeat. */
struct fold *folds_due(struct folds *folds, uint64_t before_ns);

#endif
