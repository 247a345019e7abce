/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Searches for a limit. Programs find the largest max_inline_data or the most scatter/gather entries by asking ibv_create_qp(3) for
 * less and less until it succeeds, so a refusal by such a limit may be a mistake or a step of a search. The first refusal is kept
 * back. A queue pair that is created then shows that it was a step: the refusal has no line, and neither have those that follow
 * within SEARCH_MS of the last step. If none is created in that time, or the program ends, its line is written.
 *
 * Owned by struct explain_sink, whose lock covers it.
 */
#ifndef SOFTHCA_EXPLAIN_SEARCH_H
#define SOFTHCA_EXPLAIN_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

#include "explain/explain.h"

struct search {
	const char *device; /* name, static; NULL: no refusal is kept back */
	struct explain_record record;
	uint64_t until_ns; /* refusals before this time are steps of a search */
};

/** Returns true if @record of @device may be a step of a search: then its line is not written now. */
bool search_takes(struct search *search, const char *device, const struct explain_record *record);

/** Records that a queue pair was created at @now_ns: the refusal that was kept back was a step. */
void search_found(struct search *search, uint64_t now_ns);

/** Takes the refusal that was kept back before @before_ns: copies it to *@record and returns its device, or NULL if there is none. */
const char *search_due(struct search *search, uint64_t before_ns, struct explain_record *record);

#endif
