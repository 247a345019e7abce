/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writing one CQE (mlx5-formats 3.1 to 3.4), compiled into those who write many: see cq.h for what it does. cq.c has the rare
 * parts.
 */
#ifndef SOFTHCA_QUEUE_CQ_WRITE_H
#define SOFTHCA_QUEUE_CQ_WRITE_H

#include <endian.h>
#include <infiniband/mlx5dv.h>

#include "core/compiler.h"
#include "queue/cq.h"

#define CQ_INDEX_MASK 0xffffffu

/** The entry of @index (free running); the 64 bytes described are the upper half of a 128-byte one (mlx5-formats 3.1). */
static inline struct mlx5_cqe64 *cq_cqe(const struct hca_cq *cq, uint32_t index)
{
	size_t slot = index & (cq->cqe_count - 1);

	return (struct mlx5_cqe64 *)(cq->buffer + (slot + 1) * cq->cqe_size - sizeof(struct mlx5_cqe64));
}

/** CQEs that the program has not consumed. The lock is held. */
static inline uint32_t cq_outstanding(const struct hca_cq *cq)
{
	uint32_t consumer = be32toh(__atomic_load_n(&cq->dbrec[0], __ATOMIC_ACQUIRE));

	return (cq->producer_index - consumer) & CQ_INDEX_MASK;
}

/** The ring seems to be full but for one entry, or full: true if it is not. Else raises IBV_EVENT_CQ_ERR, once. The lock is held. */
RARE bool cq_find_room(struct hca_cq *cq);
/** What the CQE of an error has beside what all have, or of a signature error alone. The lock is held. */
void cq_fill_error(const struct hca_cq *cq, struct mlx5_cqe64 *cqe, const struct completion *completion);
/**
 * Data in the CQE (mlx5-formats 3.2): of 64 bytes the first half of it, of 128 the half that is in front. Returns what op_own
 * says of it. The lock is held.
 */
uint8_t cq_scatter(const struct hca_cq *cq, struct mlx5_cqe64 *cqe, const struct completion *completion);

/** So many bytes of data fit into a CQE. */
static inline uint32_t cq_scatter_room(const struct hca_cq *cq)
{
	return cq->cqe_size / 2;
}

/** What cq->notes says of @cqe, which is filled but for op_own, of @opcode, and tells of no error, before it is the consumer's. The lock is held. */
void cq_note(const struct hca_cq *cq, struct mlx5_cqe64 *cqe, uint8_t opcode);
/** Handles a new CQE with @op_own of an attentive @cq, or one that raises the event even if it is not solicited (@event). The lock is held. */
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

/** hca_cq_write() while the lock is held, for those that write several. */
static inline SPECIALISED bool cq_write_locked(struct hca_cq *cq, const struct completion completion)
{
	struct completion spilled;
	struct mlx5_cqe64 *cqe;
	uint8_t op_own;

	if (unlikely(cq_outstanding(cq) >= cq->cqe_count - 1 && !cq->ignore_overrun) && !cq_find_room(cq))
		return false;
	cqe = cq_cqe(cq, cq->producer_index);
	/* The layout of a signature error is its own. */
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
	/* The owner bit last: with it the entry is the consumer's (mlx5-formats 3.1). */
	__atomic_store_n(&cqe->op_own, op_own, __ATOMIC_RELEASE);
	cq->producer_index++;
	if (unlikely(cq->attentive || completion.event))
		cq_raise_if_due(cq, op_own, completion.event);
	return true;
}

/** hca_cq_write(). */
static inline SPECIALISED bool cq_write(struct hca_cq *cq, const struct completion completion)
{
	bool written;

	queue_lock(&cq->lock);
	written = cq_write_locked(cq, completion);
	queue_unlock(&cq->lock);
	return written;
}

#endif
