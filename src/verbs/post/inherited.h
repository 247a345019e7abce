/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * QPs of the driver in a forked child: they belong to the parent (transport/qp/inherited.h). Calls that post to them or
 * change them fail with EBADF and rule 236. The data path has no test for this: an inherited QP has the limits of a QP
 * that may not post yet, and the functions that explain a refusal determine the reason.
 */
#ifndef SOFTHCA_VERBS_POST_INHERITED_H
#define SOFTHCA_VERBS_POST_INHERITED_H

#include <stdint.h>

#include "core/compiler.h"

struct user_qp;

/** Marks the QP of @object, a struct ibv_qp. For a forked child, which has one thread. */
void user_qp_inherit(const void *object);

/** Explains why @call is refused. @wr_id: of the refused request, or 0. Returns EBADF. */
RARE int refuse_inherited(const struct user_qp *qp, const char *call, uint64_t wr_id);

#endif
