/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Test programs of several processes: each process opens the first device with verbs_open() and has one context, one
 * protection domain and one CQ. A check that fails ends its process with status 1. Include in one file of a program;
 * one thread per process.
 */
#ifndef SOFTHCA_TESTS_VERBS_PROCESS_H
#define SOFTHCA_TESTS_VERBS_PROCESS_H

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "verbs_connect.h"
#include "work_request.h"

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;

#define CHECK(condition)                                                                                               \
	do {                                                                                                           \
		if (!(condition)) {                                                                                    \
			fprintf(stderr, "%s:%d: process %d: check failed: %s (errno %d)\n", __FILE__, __LINE__,        \
				(int)getpid(), #condition, errno);                                                     \
			_exit(1);                                                                                      \
		}                                                                                                      \
	} while (0)

static inline void verbs_open(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	CHECK(list && list[0]);
	context = ibv_open_device(list[0]);
	CHECK(context);
	ibv_free_device_list(list);
	pd = ibv_alloc_pd(context);
	cq = ibv_create_cq(context, 64, NULL, NULL, 0);
	CHECK(pd && cq);
}

/* Returns a queue pair for a few requests of one SGE, in RESET. */
static inline struct ibv_qp *verbs_qp(enum ibv_qp_type type)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {.max_send_wr = 8, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = type,
	};
	struct ibv_qp *qp = ibv_create_qp(pd, &attr);

	CHECK(qp);
	return qp;
}

/* As verbs_qp(), in INIT and writable. */
static inline struct ibv_qp *verbs_target_qp(void)
{
	struct ibv_qp *qp = verbs_qp(IBV_QPT_RC);

	CHECK(!verbs_connect_until(qp, IBV_QPS_INIT, 0,
				   (struct ibv_qp_attr){.qp_access_flags = IBV_ACCESS_REMOTE_WRITE}));
	return qp;
}

/* Registers memory that this process and others may write. */
static inline struct ibv_mr *verbs_target(void *memory, size_t bytes)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, memory, bytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);

	CHECK(mr);
	return mr;
}

/* Posts a signalled WRITE of [@from, +@bytes). */
static inline void verbs_post_write(struct ibv_qp *qp, const void *from, uint32_t bytes, const struct ibv_mr *mr,
				    uint64_t to, uint32_t rkey)
{
	struct ibv_sge sge = {(uintptr_t)from, bytes, mr->lkey};
	struct ibv_send_wr *bad, wr = rdma_wr(0, IBV_WR_RDMA_WRITE, &sge, to, rkey);

	CHECK(!ibv_post_send(qp, &wr, &bad));
}

/* Returns the status of the next completion, which has to come within 40 s. */
static inline enum ibv_wc_status verbs_next_status(void)
{
	time_t end = time(NULL) + 40;
	struct ibv_wc wc;
	int found;

	while (!(found = ibv_poll_cq(cq, 1, &wc)))
		CHECK(time(NULL) < end);
	CHECK(found == 1);
	return wc.status;
}

#endif
