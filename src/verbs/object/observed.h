/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Data path with observers: warnings about misuse (verbs/object/lint.h) and timelines (observe/timeline.h). Without
 * them, the function tables of contexts, QPs and CQs point to functions without any test.
 */
#ifndef SOFTHCA_VERBS_OBJECT_OBSERVED_H
#define SOFTHCA_VERBS_OBJECT_OBSERVED_H

#include "observe/timeline.h"
#include "verbs/object/lint.h"

static inline bool data_path_is_observed(void)
{
	return lint_is_on() || timeline_is_on();
}

/**
 * Reports the @count newest WRs of @qp, which @call posts, to the hook sends_posted (verbs/object/lint_hooks.def) and
 * to the timeline. The caller then calls timeline_end_call(). (verbs/post/wr_session.c)
 */
void sends_posted(struct user_qp *qp, uint32_t count, const char *call);

#endif
