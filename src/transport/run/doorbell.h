/* SPDX-License-Identifier: BSD-2-Clause */
/* Doorbells of a QP, called after an index of the doorbell record has moved. No driver lock is needed. */
#ifndef SOFTHCA_TRANSPORT_RUN_DOORBELL_H
#define SOFTHCA_TRANSPORT_RUN_DOORBELL_H

struct hca_qp;

/** Rings the send doorbell after dbrec[MLX5_SND_DBR] has moved. Executes WQEs on this thread, as many as possible. */
void hca_qp_send_doorbell(struct hca_qp *qp);

/** Rings the receive doorbell after dbrec[MLX5_RCV_DBR] has moved. Costs a load unless the QP is in the error state. */
void hca_qp_recv_doorbell(struct hca_qp *qp);

#endif
