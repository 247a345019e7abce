/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The data path for those who want to know of it: warnings about misuse (verbs/object/lint.h) and timelines (observe/timeline.h). Where
 * neither is on, posting and polling are other functions, in the tables of contexts, queue pairs and CQs, and ask nothing.
 */
#ifndef SOFTHCA_VERBS_OBJECT_OBSERVED_H
#define SOFTHCA_VERBS_OBJECT_OBSERVED_H

#include "observe/timeline.h"
#include "verbs/object/lint.h"

static inline bool data_path_is_observed(void)
{
	return lint_is_on() || timeline_is_on();
}

/** @call posts the @count newest WRs of @qp, as the hook sends_posted of verbs/object/lint_hooks.def has it; then it calls timeline_end_call(). (verbs/post/wr_session.c) */
void sends_posted(struct user_qp *qp, uint32_t count, const char *call);

#endif
