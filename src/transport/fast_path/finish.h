/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion of messages, for fast_path.h and keys.c. */
#ifndef SOFTHCA_TRANSPORT_FAST_PATH_FINISH_H
#define SOFTHCA_TRANSPORT_FAST_PATH_FINISH_H

#include "transport/requester/acknowledge.h"

/** Completes @wqe after its @packets and @bytes have arrived, as if it were first in the FIFO of WQEs in flight. */
static inline SPECIALISED void fast_path_finish(struct hca_qp *qp, const struct wqe *wqe, uint32_t packets,
						uint32_t bytes)
{
	struct requester *requester = &qp->requester;

	requester->next = (uint16_t)(wqe->index + wqe->blocks);
	requester->acknowledged = psn_add(requester->psn, packets - 1);
	requester->psn = requester->newest = psn_add(requester->psn, packets);
	if (WQE_COMPLETION(wqe->fm_ce_se) >= WQE_CQE_ALWAYS)
		requester_complete_send(qp, MLX5_CQE_REQ, wqe->opcode, wqe->fm_ce_se, wqe->index, bytes, 0, RULE_NONE);
}

#endif
