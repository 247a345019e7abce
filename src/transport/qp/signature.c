/* SPDX-License-Identifier: BSD-2-Clause */
/* Signature errors that a QP finds, and the send queue that stops at them (MLX5DV_QP_CREATE_SIG_PIPELINING). */
#include <errno.h>
#include <stddef.h>

#include "mkey/key.h"
#include "transport/qp/qp.h"

/*
 * True if @cq gets a CQE for @error: of profile connectx every CQ, as an adapter's does; of profile man, where
 * mlx5dv_mkey_check(3) asks the device, only one whose ring its program reads by itself. There each is told until the key is
 * armed.
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
 * Written at once, before the completion of the request that found it (mlx5-formats 3.5). The lock of the QP may be free:
 * its memory may be read by a transfer that another QP's thread carries out; the CQ's lock is a leaf. What does not fit
 * into a full CQ is lost, as its next completion will be, with which the QP ends.
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
