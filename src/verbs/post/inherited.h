/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The driver's queue pairs in a forked child: they belong to the parent (transport/inherited.h), and calls that post to them or
 * change them fail with EBADF and rule 236. The data path makes no test for this: a QP of the parent has the limits of a QP
 * that may not post yet, and the functions that explain the refusal find out why.
 */
#ifndef SOFTHCA_VERBS_POST_INHERITED_H
#define SOFTHCA_VERBS_POST_INHERITED_H

#include <stdint.h>

#include "core/compiler.h"

struct user_qp;

/** Marks the QP that is the struct ibv_qp @object as inherited. In a forked child that has one thread. */
void user_qp_inherit(const void *object);

/** Explains that @call is refused because @qp is inherited, and returns EBADF. @wr_id: of the refused request, or 0. */
RARE int refuse_inherited(const struct user_qp *qp, const char *call, uint64_t wr_id);

#endif
