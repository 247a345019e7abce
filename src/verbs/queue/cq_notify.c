/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The arm word contains the consumer index that the program has reached and, in two bits, the number of events that it
 * had taken. The device ignores a request if its event was already raised (mlx5-formats 3.6).
 */
#include <endian.h>

#include "progress/progress.h"
#include "verbs/queue/cq.h"
#include "verbs/object/lint.h"
#include "verbs/object/ops.h"

enum {
	ARM_SOLICITED = 1 << 24,
	ARM_SN_SHIFT = 28,
};

int softhca_ibv_req_notify_cq(struct ibv_cq *base, int solicited_only)
{
	struct user_cq *cq = to_user_cq(base);
	uint32_t sn = __atomic_load_n(&cq->arm_sn, __ATOMIC_RELAXED) & 3;
	uint32_t word = sn << ARM_SN_SHIFT | (solicited_only ? ARM_SOLICITED : 0) |
			(__atomic_load_n(&cq->consumer_index, __ATOMIC_RELAXED) & 0xffffff);

	__atomic_store_n(&cq->dbrec[1], htobe32(word), __ATOMIC_RELEASE);
	hca_cq_request(cq->device, word);
	if (__atomic_load_n(&progress_pollers, __ATOMIC_RELAXED))
		progress_before_sleep();
	return 0;
}

int req_notify_cq_observed(struct ibv_cq *cq, int solicited_only)
{
	int error = softhca_ibv_req_notify_cq(cq, solicited_only);

	LINT(cq_armed, to_user_cq(cq));
	return error;
}

void cq_event_taken(struct user_cq *cq)
{
	__atomic_fetch_add(&cq->arm_sn, 1, __ATOMIC_RELAXED);
}
