/* SPDX-License-Identifier: BSD-2-Clause */
/* Schedules QPs in a run. */
#include "transport/qp/schedule.h"

void run_schedule_requester(struct run *run, struct hca_qp *qp)
{
	qp->requester_due = true;
	run_schedule(run, qp);
}

void run_schedule(struct run *run, struct hca_qp *qp)
{
	if (qp->scheduled)
		return;
	qp->scheduled = true;
	qp->next_scheduled = run->scheduled;
	run->scheduled = qp;
}
