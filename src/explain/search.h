/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Searches for a limit. Programs find the largest max_inline_data or number of scatter/gather entries by calling
 * ibv_create_qp(3) with smaller and smaller values until it succeeds. So a refusal by such a limit may be a mistake or
 * a step of a search. The first refusal is held back. If a queue pair is then created, it was a step: no line is
 * written for it, nor for refusals that follow within SEARCH_MS of the last step. If no queue pair is created in that
 * time, or the program ends, the line is written.
 *
 * Owned by struct explain_sink and covered by its lock.
 */
#ifndef SOFTHCA_EXPLAIN_SEARCH_H
#define SOFTHCA_EXPLAIN_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

#include "explain/explain.h"

struct search {
	const char *device; /* name, static; NULL: no refusal is held back */
	struct explain_record record;
	uint64_t until_ns; /* refusals before this time are steps of a search */
};

/** Returns true if @record of @device may be a step of a search, so that its line must not be written now. */
bool search_takes(struct search *search, const char *device, const struct explain_record *record);

/** Records that a queue pair was created at @now_ns, so the refusal that was held back was a step. */
void search_found(struct search *search, uint64_t now_ns);

/**
 * Takes the refusal that was held back before @before_ns: copies it to *@record and returns its device, or returns NULL
 * if there is none.
 */
const char *search_due(struct search *search, uint64_t before_ns, struct explain_record *record);

#endif
