/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Drops the CQEs of a QP that was reset or is being destroyed: a completion must not outlive its QP (ibv_modify_qp(3)
 * to RESET forgets all work), and its user index may soon refer to another QP. The device no longer writes CQEs of this
 * QP, so only those in the ring are checked. An XRC SRQ has its own user index: its completions are dropped with it,
 * not with the QP that they came through.
 */
#include <string.h>

#include "verbs/queue/cqe.h"

static struct mlx5_cqe64 *purge_entry(struct user_cq *cq, uint32_t index)
{
	return cqe_at(cq->buffer, cq->cqe_count, cq->cqe_size, index);
}

/* Returns the first index that the device had not written. Entries one lap later have the other owner bit. */
static uint32_t written_end(struct user_cq *cq)
{
	uint32_t index = cq->consumer_index;

	while (cqe_is_written(purge_entry(cq, index), cq->cqe_count, index))
		index++;
	return index;
}

static bool cqe_belongs(uint32_t user_index, const struct mlx5_cqe64 *cqe)
{
	/* A signature error, which belongs to a key, has other fields in place of the user index (mlx5-formats 3.5). */
	return cqe_opcode(cqe) != MLX5_CQE_SIG_ERR && cqe_user_index(cqe) == user_index;
}

/* Moves the whole entry (inline data of 128-byte entries included), with the owner bit of its new index. */
static void cqe_move(struct user_cq *cq, uint32_t to, uint32_t from)
{
	struct mlx5_cqe64 *target = purge_entry(cq, to);
	size_t before = cq->cqe_size - sizeof(*target);

	memcpy((char *)target - before, (char *)purge_entry(cq, from) - before, cq->cqe_size);
	target->op_own = (target->op_own & ~MLX5_CQE_OWNER_MASK) | cqe_owner(cq->cqe_count, to);
}

/*
 * Walks from the newest entry to the oldest and closes the gaps, so that the free entries end up at the oldest end.
 * @srq (may be NULL) receives its entries.
 */
static void cq_purge(struct user_cq *cq, uint32_t user_index, struct ibv_srq *srq)
{
	uint32_t end = written_end(cq);
	uint32_t dropped = 0;
	uint64_t wr_id;

	for (uint32_t index = end; index-- != cq->consumer_index;) {
		const struct mlx5_cqe64 *cqe = purge_entry(cq, index);

		if (cqe_belongs(user_index, cqe)) {
			if (srq && cqe_is_responder(cqe))
				user_srq_complete(to_user_srq(srq), be16toh(cqe->wqe_counter), &wr_id);
			dropped++;
		} else if (dropped) {
			cqe_move(cq, index + dropped, index);
		}
	}
	if (!dropped)
		return;
	__atomic_store_n(&cq->consumer_index, cq->consumer_index + dropped, __ATOMIC_RELAXED);
	/* While a batch is polled (from a CQ without lock) the current CQE must stay valid; end_poll publishes. */
	if (!cq->polling)
		cq_publish_consumer(cq);
}

static void cq_purge_locked(struct user_cq *cq, uint32_t user_index, struct ibv_srq *srq)
{
	/* mlx5-formats 1.16: a program that got the ring from mlx5dv_init_obj(3) counts its entries itself. */
	if (!cq || cq->exported)
		return;
	queue_lock(&cq->lock);
	cq_purge(cq, user_index, srq);
	queue_unlock(&cq->lock);
}

void user_cq_purge_qp(struct user_qp *qp)
{
	struct user_cq *send_cq = to_user_cq(qp->base.send_cq);
	struct user_cq *recv_cq = to_user_cq(qp->base.recv_cq);

	cq_purge_locked(recv_cq, qp->user_index, qp->base.srq);
	if (send_cq != recv_cq)
		cq_purge_locked(send_cq, qp->user_index, qp->base.srq);
}

void user_cq_purge_srq(struct user_srq *srq)
{
	cq_purge_locked(srq->cq, srq->user_index, NULL);
}
