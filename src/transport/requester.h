/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the three files of the requester share: starting and sending (requester.c), responses and time
 * (requester_response.c), completing and flushing (requester_complete.c). All of it under the QP's lock.
 */
#ifndef SOFTHCA_TRANSPORT_REQUESTER_H
#define SOFTHCA_TRANSPORT_REQUESTER_H

#include "transport/transport.h"

/** The WQE at @position (free running, between requester.first and last) of the in-flight FIFO. */
static inline struct inflight *inflight_at(struct requester *requester, uint32_t position)
{
	return &requester->inflight[position & (requester->block_count - 1)];
}

/** Completes from the front of the FIFO what is done, in the order of the ring (IBTA C10-105). */
void requester_complete_front(struct hca_qp *qp);

/**
 * A failed WQE: its error completion, then the QP goes to ERR (reliable) or SQE (IBTA 10.3.1), which flushes the rest.
 * Nothing is in flight before it.
 */
void requester_fail(struct hca_qp *qp, uint16_t index, uint8_t opcode, uint8_t fm_ce_se, uint8_t syndrome,
		    const struct refusal *why);

/** The same for the front of the FIFO. */
void requester_fail_front(struct hca_qp *qp, uint8_t syndrome, const struct refusal *why);

/** Neither an acknowledgement nor a receiver is waited for any more. */
void requester_stop_timer(struct hca_qp *qp);

#endif
