/* SPDX-License-Identifier: BSD-2-Clause */
/* Doorbells of a QP, rung after an index of the doorbell record has moved. No driver lock is needed. */
#ifndef SOFTHCA_TRANSPORT_RUN_DOORBELL_H
#define SOFTHCA_TRANSPORT_RUN_DOORBELL_H

struct hca_qp;

/** For dbrec[MLX5_SND_DBR]. Executes as many WQEs as possible on this thread. */
void hca_qp_send_doorbell(struct hca_qp *qp);

/** For dbrec[MLX5_RCV_DBR]. Costs a load unless the QP is in error. */
void hca_qp_recv_doorbell(struct hca_qp *qp);

#endif
