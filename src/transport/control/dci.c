/* SPDX-License-Identifier: BSD-2-Clause */
/* Commands of a DCI. */
#include <errno.h>

#include "core/epoch.h"
#include "core/thread_memory.h"
#include "transport/control/qp.h"
#include "transport/qp/dci.h"
#include "transport/run/run.h"
#include "wire/link.h"

int hca_dci_reset_stream(struct hca_qp *qp, uint16_t stream, uint32_t *errored)
{
	struct dci *dci = qp->dci;
	int error = -EINVAL;

	queue_lock(&qp->lock);
	*errored = dci->errored;
	for (uint32_t i = 0; qp->state == IBV_QPS_RTS && i < dci->errored; i++) {
		if (dci->error[i].stream != stream)
			continue;
		dci->error[i] = dci->error[--dci->errored];
		error = 0;
		break;
	}
	queue_unlock(&qp->lock);
	return error;
}

void qp_leave_target(struct hca_qp *qp)
{
	THREAD_VARIABLE(struct run, run);

	epoch_enter();
	run_begin(run);
	queue_lock(&qp->lock);
	if (qp->dci->connected && qp->dci->broken) {
		qp->dci->connected = false;
		dci_build_disconnect(qp, run_slot(run));
		if (run_slot(run)->link)
			link_send(qp->hca, run);
	}
	queue_unlock(&qp->lock);
	run_drain(run, NULL);
	run_finish(run);
	epoch_leave();
}
