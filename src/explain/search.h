/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Searches for a limit. Programs find the largest max_inline_data or number of scatter/gather entries by calling
 * ibv_create_qp(3) with ever smaller values. So the first refusal by such a limit is held back. If a queue pair is then
 * created, it was a step: neither it nor refusals within SEARCH_MS of the last step get a line. Otherwise the line is
 * written after that time, or at the end of the program.
 *
 * Owned by struct explain_sink and covered by its lock.
 */
#ifndef SOFTHCA_EXPLAIN_SEARCH_H
#define SOFTHCA_EXPLAIN_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

#include "explain/explain.h"

struct search {
	const char *device; /* static; NULL: no refusal is held back */
	struct explain_record record;
	uint64_t until_ns; /* refusals before this are steps of a search */
};

/** Returns true if @record may be a step of a search: its line must not be written now. */
bool search_takes(struct search *search, const char *device, const struct explain_record *record);

/** A queue pair was created at @now_ns, so the refusal that was held back was a step. */
void search_found(struct search *search, uint64_t now_ns);

/** Takes the refusal that was held back before @before_ns. Returns its device, or NULL if there is none. */
const char *search_due(struct search *search, uint64_t before_ns, struct explain_record *record);

#endif
