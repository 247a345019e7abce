/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs of the driver in a forked child, see inherited.h. */
#include "verbs/post/inherited.h"

#include <errno.h>

#include "explain/explain.h"
#include "verbs/object/objects.h"
#include "verbs/post/wqe_builder.h"
#include "verbs/post/wr.h"

void user_qp_inherit(const void *object)
{
	struct user_qp *qp = to_user_qp((struct ibv_qp *)object);

	qp->inherited = true;
	qp->sq.max_gs = -1;
	sq_update_short(&qp->sq);
	rq_set_limit(&qp->rq, -1);
	wr_set_state(qp, IBV_QPS_RESET);
}

int refuse_inherited(const struct user_qp *qp, const char *call, uint64_t wr_id)
{
	EXPLAIN(hca_of_context(qp->base.context),
		(&(const struct explain_subject){.call = call, .qpn = qp->base.qp_num, .wr_id = wr_id, .error = EBADF}),
		RULE_QP_OF_PARENT, qp->base.qp_num);
	return EBADF;
}
