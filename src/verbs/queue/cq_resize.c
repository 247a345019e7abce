/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The device ends the old ring with a RESIZE_CQ marker and continues in the new one. The CQEs not yet polled are copied
 * (mlx5-formats 3.7), under the CQ lock, so pollers see one ring or the other.
 */
#include <errno.h>
#include <string.h>

#include "abi/entry_points.h"
#include "core/limits.h"
#include "explain/explain.h"
#include "verbs/queue/cq.h"
#include "verbs/queue/cqe.h"

/* Unread CQEs and the consumer index move up by one, because the marker has an index of its own. */
void cq_continue_in(struct user_cq *cq, void *ring, uint32_t count)
{
	size_t before = cq->cqe_size - sizeof(struct mlx5_cqe64);
	uint32_t index = cq->consumer_index;
	const struct mlx5_cqe64 *source = cqe_at(cq->buffer, cq->cqe_count, cq->cqe_size, index);

	while (cqe_is_written(source, cq->cqe_count, index) && cqe_opcode(source) != MLX5_CQE_RESIZE_CQ) {
		struct mlx5_cqe64 *target = cqe_at(ring, count, cq->cqe_size, ++index);

		memcpy((char *)target - before, (const char *)source - before, cq->cqe_size);
		target->op_own = (target->op_own & ~MLX5_CQE_OWNER_MASK) | cqe_owner(count, index);
		source = cqe_at(cq->buffer, cq->cqe_count, cq->cqe_size, index);
	}
	__atomic_store_n(&cq->consumer_index, cq->consumer_index + 1, __ATOMIC_RELAXED);
	cq_set_ring(cq, ring, count);
	cq->current = NULL;
	cq->base.cqe = count - 1;
}

struct move {
	struct user_cq *cq;
	void *ring;
	uint32_t count;
};

/* The device accesses neither ring meanwhile. */
static void cq_carry_over(void *argument)
{
	const struct move *move = argument;

	cq_continue_in(move->cq, move->ring, move->count);
	cq_publish_consumer(move->cq);
}

/* The CQ lock is held. Returns 0 or -errno. */
static int cq_resize_locked(struct user_cq *cq, uint32_t count)
{
	void *old = cq->buffer;
	uint32_t old_count = cq->cqe_count;
	void *ring = cq_ring_alloc(cq->pd, count, cq->cqe_size);
	struct move move = {cq, ring, count};
	int result;

	if (!ring)
		return -REFUSE(hca_of_context(cq->base.context), "ibv_resize_cq", ENOMEM, RULE_QUEUE_MEMORY,
			       (uint64_t)count * cq->cqe_size);
	result = hca_cq_resize(cq->device, ring, count, cq_carry_over, &move);
	if (result) {
		cq_ring_free(cq->pd, ring, count, cq->cqe_size);
		return -REFUSE(hca_of_context(cq->base.context), "ibv_resize_cq", -result, RULE_CQ_UNPOLLED, count - 1);
	}
	cq_ring_free(cq->pd, old, old_count, cq->cqe_size);
	return 0;
}

int softhca_ibv_resize_cq(struct ibv_cq *base, int cqe)
{
	struct user_cq *cq = to_user_cq(base);
	uint32_t count;
	int result = 0;

	if (object_refused("ibv_resize_cq", NULL, base))
		return errno;
	if (cqe < 1 || cqe > LIMIT_MAX_CQE)
		return REFUSE(hca_of_context(base->context), "ibv_resize_cq", EINVAL, RULE_CQ_CQE, (uint64_t)cqe,
			      LIMIT_MAX_CQE);
	count = queue_entries(cqe + 1);
	queue_lock(&cq->lock);
	if (count != cq->cqe_count)
		result = cq_resize_locked(cq, count);
	queue_unlock(&cq->lock);
	return -result;
}
