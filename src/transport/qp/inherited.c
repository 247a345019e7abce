/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs in a forked child. */
#include "transport/qp/inherited.h"

#include "explain/explain.h"
#include "transport/qp/qp.h"

void qps_after_fork(void)
{
	struct id_table *qps = &the_registry.qps;
	struct hca_qp *qp;

	for (uint32_t number = 0; (qp = id_table_next(qps, &number)); number++) {
		qp->inherited = true;
		/* In this state the data path leaves the rings alone. */
		qp->requester.state = REQUESTER_IDLE;
		id_table_unpublish(qps, number);
	}
}

void inherited_qp_explain(const struct hca_qp *qp)
{
	EXPLAIN(qp->hca, (&(const struct explain_subject){.qpn = qp->number}), RULE_QP_OF_PARENT, qp->number);
}
