/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs of the driver in a forked child: they belong to the parent (transport/qp/inherited.h). Calls that post to
 * them or change them fail with EBADF and rule 236. The data path does not test for this: an inherited QP has the
 * limits of a QP that may not post yet, and the functions that explain a refusal determine the reason.
 */
#ifndef SOFTHCA_VERBS_POST_INHERITED_H
#define SOFTHCA_VERBS_POST_INHERITED_H

#include <stdint.h>

#include "core/compiler.h"

struct user_qp;

/** Marks the QP of the struct ibv_qp @object as inherited. For a forked child, which has one thread. */
void user_qp_inherit(const void *object);

/** Explains that @call is refused because @qp is inherited. @wr_id: of the refused request, or 0. Returns EBADF. */
RARE int refuse_inherited(const struct user_qp *qp, const char *call, uint64_t wr_id);

#endif
