/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A sender and a receiver for tests of CQs and SRQs: two connected RC QPs of one context over queues that the test
 * makes. Messages are 8 bytes from one registered page to itself. Failures end the test (cmocka).
 */
#ifndef SOFTHCA_TESTS_QUEUE_PAIR_H
#define SOFTHCA_TESTS_QUEUE_PAIR_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "mlx5dv_pair.h"

enum { SENDER, RECEIVER };

struct queue_pair {
	struct pair pair;  /* context, pd, gid, qp[SENDER], qp[RECEIVER]; its cq is not used */
	struct ibv_mr *mr; /* over memory[], also for a copy of the structure */
	uint32_t flow;     /* two copies with different numbers below 4 write to different places */
	uint64_t memory[512];
};

static inline struct ibv_sge words(const struct queue_pair *q, uint64_t index)
{
	return (struct ibv_sge){
		.addr = (uintptr_t)q->mr->addr + 8 * index,
		.length = 8,
		.lkey = q->mr->lkey,
	};
}

/* Opens the device; the test makes its CQs in between. */
static inline void queue_pair_open(struct queue_pair *q)
{
	memset(q, 0, sizeof(*q));
	q->pair.context = open_first_device();
	q->pair.pd = ibv_alloc_pd(q->pair.context);
	assert_non_null(q->pair.pd);
	pair_find_gid(&q->pair);
	q->mr = ibv_reg_mr(q->pair.pd, q->memory, sizeof(q->memory),
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	assert_non_null(q->mr);
}

static inline void queue_pair_connect(struct queue_pair *q, struct ibv_cq *send_cq, struct ibv_cq *recv_cq,
				      struct ibv_srq *srq)
{
	for (int i = 0; i < 2; i++) {
		struct ibv_qp_init_attr attr = {
			.send_cq = i == SENDER ? send_cq : recv_cq,
			.recv_cq = i == SENDER ? send_cq : recv_cq,
			.srq = i == RECEIVER ? srq : NULL,
			.cap = {.max_send_wr = 64, .max_recv_wr = 64, .max_send_sge = 1, .max_recv_sge = 1},
			.qp_type = IBV_QPT_RC,
		};

		q->pair.qp[i] = ibv_create_qp(q->pair.pd, &attr);
		assert_non_null(q->pair.qp[i]);
		pair_to_init(&q->pair, i);
	}
	for (int i = 0; i < 2; i++)
		pair_to_rts(&q->pair, i);
}

static inline void queue_pair_disconnect(struct queue_pair *q)
{
	for (int i = 0; i < 2; i++)
		assert_int_equal(ibv_destroy_qp(q->pair.qp[i]), 0);
}

static inline void queue_pair_close(struct queue_pair *q)
{
	assert_int_equal(ibv_dereg_mr(q->mr), 0);
	assert_int_equal(ibv_dealloc_pd(q->pair.pd), 0);
	assert_int_equal(ibv_close_device(q->pair.context), 0);
}

static inline void write_message(struct queue_pair *q, uint64_t wr_id)
{
	struct ibv_sge sge = words(q, 0);
	struct ibv_send_wr wr = {
		.wr_id = wr_id,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = {.remote_addr = words(q, 8 + q->flow).addr, .rkey = q->mr->rkey},
	};
	struct ibv_send_wr *bad;

	assert_int_equal(ibv_post_send(q->pair.qp[SENDER], &wr, &bad), 0);
}

/* @flags: IBV_SEND_SOLICITED or 0. */
static inline void send_message(struct queue_pair *q, uint64_t wr_id, unsigned int flags)
{
	struct ibv_sge sge = words(q, 0);
	struct ibv_send_wr wr = {
		.wr_id = wr_id,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED | flags,
	};
	struct ibv_send_wr *bad;

	assert_int_equal(ibv_post_send(q->pair.qp[SENDER], &wr, &bad), 0);
}

static inline void post_receive(struct queue_pair *q, uint64_t wr_id)
{
	struct ibv_sge sge = words(q, 256 + q->flow * 64 + wr_id % 64);
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;

	assert_int_equal(ibv_post_recv(q->pair.qp[RECEIVER], &wr, &bad), 0);
}

/* Returns what ibv_post_srq_recv(3) returns. */
static inline int post_to_srq(struct queue_pair *q, struct ibv_srq *srq, uint64_t wr_id)
{
	struct ibv_sge sge = words(q, 256 + q->flow * 64 + wr_id % 64);
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;

	return ibv_post_srq_recv(srq, &wr, &bad);
}

/* The next completion of @cq, within five seconds, must be the successful one of @wr_id. */
static inline void expect_completion(struct ibv_cq *cq, uint64_t wr_id)
{
	time_t end = time(NULL) + 5;
	struct ibv_wc wc;
	int found;

	do
		found = ibv_poll_cq(cq, 1, &wc);
	while (!found && time(NULL) < end);
	if (found != 1)
		fail_msg("no completion: ibv_poll_cq returns %d", found);
	if (wc.status != IBV_WC_SUCCESS || wc.wr_id != wr_id)
		fail_msg("wr_id %lu with %s, not %lu", wc.wr_id, ibv_wc_status_str(wc.status), wr_id);
}

static inline void expect_no_completion(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	assert_int_equal(ibv_poll_cq(cq, 1, &wc), 0);
}

#endif
