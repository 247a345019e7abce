/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads that ring doorbells themselves, each in short-lived rings: contexts are opened and closed, QPs created and
 * destroyed, with a doorbell pending that no thread waits for, while the device polls all rings. Each WQE completes, in
 * order; pauses let the device go to sleep.
 */
#include "fixture.h"

enum { THREADS = 4, LIVES = 12, RINGS = 60, BLOCK = 64 };

struct rings {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct mlx5dv_qp out_qp;
	struct mlx5dv_cq out_cq;
	uint32_t producer, consumer;
};

static void make(struct rings *rings)
{
	struct mlx5dv_obj object = {.qp.out = &rings->out_qp, .cq.out = &rings->out_cq};

	*rings = (struct rings){.context = open_first_device()};
	CHECK((rings->pd = ibv_alloc_pd(rings->context)));
	CHECK((rings->cq = ibv_create_cq(rings->context, 100, NULL, NULL, 0)));
	rings->qp = make_qp(rings->pd, IBV_QPT_RC, rings->cq, rings->cq, NULL);
	to_init(rings->qp);
	to_rts(rings->qp, rings->qp->qp_num);
	object.qp.in = rings->qp;
	object.cq.in = rings->cq;
	CHECK(!mlx5dv_init_obj(&object, MLX5DV_OBJ_QP | MLX5DV_OBJ_CQ));
}

static void destroy(struct rings *rings)
{
	CHECK(!ibv_destroy_qp(rings->qp));
	CHECK(!ibv_destroy_cq(rings->cq));
	CHECK(!ibv_dealloc_pd(rings->pd));
	CHECK(!ibv_close_device(rings->context));
}

static void ring_nop(struct rings *rings)
{
	uint8_t *wqe = (uint8_t *)rings->out_qp.sq.buf + rings->producer % rings->out_qp.sq.wqe_cnt * BLOCK;
	uint64_t first;

	mlx5dv_set_ctrl_seg((struct mlx5_wqe_ctrl_seg *)wqe, (uint16_t)rings->producer, MLX5_OPCODE_NOP, 0,
			    rings->qp->qp_num, MLX5_WQE_CTRL_CQ_UPDATE, 1, 0, 0);
	memcpy(&first, wqe, sizeof(first));
	rings->producer++;
	__atomic_store_n(&rings->out_qp.dbrec[MLX5_SND_DBR], htobe32(rings->producer & 0xffff), __ATOMIC_RELEASE);
	__atomic_store_n((uint64_t *)rings->out_qp.bf.reg, first, __ATOMIC_RELEASE);
}

static void take_cqe(struct rings *rings)
{
	uint32_t count = rings->out_cq.cqe_cnt;
	struct mlx5_cqe64 *cqe = (struct mlx5_cqe64 *)rings->out_cq.buf + rings->consumer % count;
	time_t end = time(NULL) + 20;
	uint8_t op_own;

	do {
		CHECK(time(NULL) < end);
		sched_yield();
		op_own = __atomic_load_n(&cqe->op_own, __ATOMIC_ACQUIRE);
	} while (op_own >> 4 == MLX5_CQE_INVALID || (op_own & 1) != !!(rings->consumer & count));
	CHECK(op_own >> 4 == MLX5_CQE_REQ);
	CHECK(be16toh(cqe->wqe_counter) == (rings->consumer & 0xffff));
	rings->consumer++;
	__atomic_store_n(&rings->out_cq.dbrec[0], htobe32(rings->consumer & 0xffffff), __ATOMIC_RELEASE);
}

static void *live(void *argument)
{
	uint32_t number = *(uint32_t *)argument;

	for (uint32_t life = 0; life < LIVES; life++) {
		const struct timespec pause = {.tv_nsec = (long)(number + life) % 5 * 6000000};
		struct rings rings;

		make(&rings);
		for (uint32_t i = 0; i < RINGS; i++) {
			if (i % 20 == 10)
				nanosleep(&pause, NULL);
			for (uint32_t k = 0; k <= i % 3; k++)
				ring_nop(&rings);
			while (rings.consumer != rings.producer)
				take_cqe(&rings);
		}
		if (life % 2)
			ring_nop(&rings);
		destroy(&rings);
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[THREADS];
	uint32_t numbers[THREADS];

	for (uint32_t i = 0; i < THREADS; i++) {
		numbers[i] = i;
		CHECK(!pthread_create(&threads[i], NULL, live, &numbers[i]));
	}
	for (uint32_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
