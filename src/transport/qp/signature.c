/* SPDX-License-Identifier: BSD-2-Clause */
/* Reports signature errors that a QP finds. */
#include <errno.h>
#include <stddef.h>

#include "mkey/key.h"
#include "transport/qp/qp.h"

/*
 * Returns true if @cq gets a CQE. In profile connectx every CQ does. In profile man, where mlx5dv_mkey_check(3) queries
 * the device, only a CQ whose program reads the ring itself does, for every error until the key is armed.
 */
static bool cq_reports_errors(const struct hca_cq *cq, const struct signature_error *error)
{
	if (!cq)
		return false;
	if (cq->context->hca->settings.profile == PROFILE_CONNECTX)
		return true;
	return __atomic_load_n(&cq->ring_exported, __ATOMIC_RELAXED) && mkey_claim_error_report(error->holder);
}

/*
 * Writes the CQE before the completion of the request that found the error (mlx5-formats 3.5). The QP's lock may be
 * free, because a thread of another QP may read its memory; the CQ's lock is a leaf. If the CQ is full, the next
 * completion is lost as well and ends the QP.
 */
static void write_error(const struct hca_qp *qp, struct hca_cq *cq, const struct signature_error *error)
{
	struct completion completion = {.opcode = MLX5_CQE_SIG_ERR, .qpn = qp->number, .signature = error};

	if (cq_reports_errors(cq, error))
		hca_cq_write(cq, &completion);
}

static void received_error(struct signature_observer *observer, const struct signature_error *error)
{
	struct hca_qp *qp = (struct hca_qp *)((char *)observer - offsetof(struct hca_qp, received_error));

	write_error(qp, __atomic_load_n(&qp->signature_cq, __ATOMIC_RELAXED), error);
}

static void sent_error(struct signature_observer *observer, const struct signature_error *error)
{
	struct hca_qp *qp = (struct hca_qp *)((char *)observer - offsetof(struct hca_qp, sent_error));

	write_error(qp, qp->send_cq, error);
	__atomic_store_n(&qp->requester.signature_error, true, __ATOMIC_RELEASE);
}

void qp_observe_signatures(struct hca_qp *qp)
{
	qp->signature_cq = qp->recv_cq;
	qp->received_error.report = received_error;
	qp->sent_error.report = sent_error;
	qp->access.progress = &qp->responder.progress;
	qp->access.observer = &qp->received_error;
	qp->send_access = qp->access;
	qp->send_access.progress = &qp->requester.progress;
	qp->send_access.observer = &qp->sent_error;
}
