/* SPDX-License-Identifier: BSD-2-Clause */
/* Helpers of the thread tests: checks that end the program, and connected QPs; no state of their own. */
#ifndef SOFTHCA_TESTS_THREADS_FIXTURE_H
#define SOFTHCA_TESTS_THREADS_FIXTURE_H

#include "verbs_connect.h"
#include "work_request.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <infiniband/mlx5dv.h>

/* Prints the message even in a thread with a pending cancellation (cancel.c): writing is a cancellation point. */
static inline void __attribute__((noreturn)) end_program(const char *file, int line, const char *condition)
{
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	fprintf(stderr, "%s:%d: not so: %s\n", file, line, condition);
	exit(1);
}

#define CHECK(condition)                                                                                               \
	do {                                                                                                           \
		if (!(condition))                                                                                      \
			end_program(__FILE__, __LINE__, #condition);                                                   \
	} while (0)

enum { ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC };

static inline struct ibv_context *open_first_device(void)
{
	struct mlx5dv_context_attr attr = {.flags = MLX5DV_CONTEXT_FLAGS_DEVX};
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context;

	CHECK(list && list[0]);
	context = mlx5dv_open_device(list[0], &attr);
	CHECK(context);
	ibv_free_device_list(list);
	return context;
}

static inline struct ibv_qp *make_qp(struct ibv_pd *pd, enum ibv_qp_type type, struct ibv_cq *send_cq,
				     struct ibv_cq *recv_cq, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = type,
		.send_cq = send_cq,
		.recv_cq = recv_cq,
		.srq = srq,
		.cap = {.max_send_wr = 64,
			.max_recv_wr = 64,
			.max_send_sge = 2,
			.max_recv_sge = 2,
			.max_inline_data = 128},
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = pd,
		.send_ops_flags = type == IBV_QPT_UD ? IBV_QP_EX_WITH_SEND : IBV_QP_EX_WITH_RDMA_WRITE,
	};
	struct mlx5dv_qp_init_attr dv = {
		.comp_mask = type == IBV_QPT_RC ? MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS : 0,
		.send_ops_flags = MLX5DV_QP_EX_WITH_MKEY_CONFIGURE,
	};
	struct ibv_qp *qp = mlx5dv_create_qp(pd->context, &attr, &dv);

	CHECK(qp);
	return qp;
}

static inline void to_init(struct ibv_qp *qp)
{
	CHECK(!verbs_connect_until(qp, IBV_QPS_INIT, 0,
				   (struct ibv_qp_attr){.qp_access_flags = ACCESS, .qkey = 0x1234}));
}

static inline void to_rts(struct ibv_qp *qp, uint32_t peer)
{
	CHECK(!verbs_connect(qp, peer, .max_dest_rd_atomic = 4, .max_rd_atomic = 4, .min_rnr_timer = 1, .timeout = 14));
}

static inline void connect_pair(struct ibv_qp *a, struct ibv_qp *b)
{
	to_init(a);
	to_init(b);
	to_rts(a, b->qp_num);
	to_rts(b, a->qp_num);
}

static inline void to_reset(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};

	CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_STATE));
}

/* Returns one completion, after at most 20 s. */
static inline struct ibv_wc wait_completion(struct ibv_cq *cq)
{
	time_t end = time(NULL) + 20;
	struct ibv_wc wc;
	int got;

	while (!(got = ibv_poll_cq(cq, 1, &wc))) {
		CHECK(time(NULL) < end);
		sched_yield();
	}
	CHECK(got == 1);
	return wc;
}

#endif
