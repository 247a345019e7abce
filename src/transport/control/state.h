/* SPDX-License-Identifier: BSD-2-Clause */
/* State transitions of a QP and the attributes that ibv_modify_qp(3) may set with them (states.def). */
#ifndef SOFTHCA_TRANSPORT_CONTROL_STATE_H
#define SOFTHCA_TRANSPORT_CONTROL_STATE_H

#include <infiniband/verbs.h>

#include "mkey/walk.h"

/**
 * Checks transition and attribute mask. Returns 0, or -EINVAL with @why filled. Without IBV_QP_STATE in @mask, @to must
 * be @from.
 */
int qp_transition_check(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to, int mask,
			struct refusal *why);

#endif
