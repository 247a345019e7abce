/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writing one CQE (mlx5-formats 3.1 to 3.4). The lock of the CQ is held, except for cq_write() and cq_scatter_room().
 */
#ifndef SOFTHCA_QUEUE_CQ_WRITE_H
#define SOFTHCA_QUEUE_CQ_WRITE_H

#include <endian.h>
#include <infiniband/mlx5dv.h>

#include "core/compiler.h"
#include "queue/cq.h"

#define CQ_INDEX_MASK 0xffffffu

/** Returns entry @index (free running); of 128 bytes the upper half, which has the fields (mlx5-formats 3.1). */
static inline struct mlx5_cqe64 *cq_cqe(const struct hca_cq *cq, uint32_t index)
{
	size_t slot = index & (cq->cqe_count - 1);

	return (struct mlx5_cqe64 *)(cq->buffer + (slot + 1) * cq->cqe_size - sizeof(struct mlx5_cqe64));
}

/** Returns the number of unconsumed CQEs. */
static inline uint32_t cq_outstanding(const struct hca_cq *cq)
{
	uint32_t consumer = be32toh(__atomic_load_n(&cq->dbrec[0], __ATOMIC_ACQUIRE));

	return (cq->producer_index - consumer) & CQ_INDEX_MASK;
}

/**
 * Checks a ring that seems to have at most one entry left. Returns true if it has room; otherwise raises
 * IBV_EVENT_CQ_ERR, once.
 */
RARE bool cq_find_room(struct hca_cq *cq);
/** Fills in the fields of error CQEs, or the CQE of a signature error. */
void cq_fill_error(const struct hca_cq *cq, struct mlx5_cqe64 *cqe, const struct completion *completion);
/**
 * Puts data into the first half of a 64-byte CQE or the lower half of a 128-byte one (mlx5-formats 3.2). Returns its
 * bits of op_own.
 */
uint8_t cq_scatter(const struct hca_cq *cq, struct mlx5_cqe64 *cqe, const struct completion *completion);

static inline uint32_t cq_scatter_room(const struct hca_cq *cq)
{
	return cq->cqe_size / 2;
}

/** Performs the actions of cq->notes for @cqe: not an error, complete except for op_own. */
void cq_note(const struct hca_cq *cq, struct mlx5_cqe64 *cqe, uint8_t opcode);
/** Handles a new CQE with @op_own if @cq is attentive, or if @event: raise even if not solicited. */
void cq_raise_if_due(struct hca_cq *cq, uint8_t op_own, bool event);

static inline SPECIALISED void cq_fill(struct mlx5_cqe64 *cqe, const struct completion *completion)
{
	cqe->flags_rqpn =
		htobe32((uint32_t)completion->grh << 28 | (uint32_t)completion->sl << 24 | completion->remote_qpn);
	cqe->srqn_uidx = htobe32(completion->user_index);
	cqe->imm_inval_pkey = completion->immediate;
	cqe->byte_cnt = htobe32(completion->byte_count);
	cqe->sop_drop_qpn = htobe32((uint32_t)completion->send_opcode << 24 | completion->qpn);
	cqe->wqe_counter = htobe16(completion->wqe_counter);
	cqe->signature = 0;
}

/** As hca_cq_write(), for several CQEs. */
static inline SPECIALISED bool cq_write_locked(struct hca_cq *cq, const struct completion completion)
{
	struct completion spilled;
	struct mlx5_cqe64 *cqe;
	uint8_t op_own;

	if (unlikely(cq_outstanding(cq) >= cq->cqe_count - 1 && !cq->ignore_overrun) && !cq_find_room(cq))
		return false;
	cqe = cq_cqe(cq, cq->producer_index);
	/* A signature error has another layout. */
	if (likely(completion.opcode != MLX5_CQE_SIG_ERR))
		cq_fill(cqe, &completion);
	if (unlikely(completion.opcode == MLX5_CQE_REQ_ERR || completion.opcode == MLX5_CQE_RESP_ERR ||
		     completion.opcode == MLX5_CQE_SIG_ERR))
		cq_fill_error(cq, cqe, SPILL(&spilled, &completion));
	else if (unlikely(cq->notes))
		cq_note(cq, cqe, completion.opcode);
	op_own = (uint8_t)(completion.opcode << 4 | completion.solicited << 1 | !!(cq->producer_index & cq->cqe_count));
	if (unlikely(completion.scattered != NULL))
		op_own |= cq_scatter(cq, cqe, SPILL(&spilled, &completion));
	/* The owner bit is last: it hands over the entry (mlx5-formats 3.1). */
	__atomic_store_n(&cqe->op_own, op_own, __ATOMIC_RELEASE);
	cq->producer_index++;
	if (unlikely(cq->attentive || completion.event))
		cq_raise_if_due(cq, op_own, completion.event);
	return true;
}

/** As hca_cq_write(), compiled into the caller. */
static inline SPECIALISED bool cq_write(struct hca_cq *cq, const struct completion completion)
{
	bool written;

	queue_lock(&cq->lock);
	written = cq_write_locked(cq, completion);
	queue_unlock(&cq->lock);
	return written;
}

#endif
