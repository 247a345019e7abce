/* SPDX-License-Identifier: BSD-2-Clause */
/* Repeated lines, see fold.h. */
#include "explain/fold.h"

#include <string.h>

static bool same_call(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

static bool fold_matches(const struct fold *fold, const char *device, const struct explain_record *record)
{
	const struct explain_subject *a = &fold->record.subject, *b = &record->subject;

	return fold->device == device && fold->record.rule == record->rule && a->qpn == b->qpn &&
	       a->receive == b->receive && same_call(a->call, b->call) &&
	       (a->qpn || !memcmp(fold->record.args, record->args, sizeof(record->args)));
}

bool folds_repeats(struct folds *folds, const char *device, const struct explain_record *record)
{
	for (size_t i = 0; i < LIMIT_EXPLAIN_FOLDS; i++)
		if (fold_matches(&folds->table[i], device, record)) {
			folds->table[i].more++;
			return true;
		}
	return false;
}

struct fold *folds_place(struct folds *folds)
{
	struct fold *place = &folds->table[0];

	for (size_t i = 0; i < LIMIT_EXPLAIN_FOLDS && place->device; i++)
		if (!folds->table[i].device || folds->table[i].since_ns < place->since_ns)
			place = &folds->table[i];
	return place;
}

void folds_enter(struct fold *place, const char *device, const struct explain_record *record)
{
	*place = (struct fold){.device = device, .record = *record, .since_ns = record->time_ns};
}

bool folds_counting(const struct folds *folds)
{
	for (size_t i = 0; i < LIMIT_EXPLAIN_FOLDS; i++)
		if (folds->table[i].device && folds->table[i].more)
			return true;
	return false;
}

struct fold *folds_due(struct folds *folds, uint64_t before_ns)
{
	for (size_t i = 0; i < LIMIT_EXPLAIN_FOLDS; i++) {
		struct fold *fold = &folds->table[i];

		if (!fold->device || fold->since_ns >= before_ns)
			continue;
		if (fold->more)
			return fold;
		fold->device = NULL;
	}
	return NULL;
}
