/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Heap memory of an idle RC QP: all except its rings, which have separate pages. A program may have 10^5 QPs. The bounds
 * are those of docs/inside/benchmarks.md; additional memory of a QP is allocated on first use, or in ibv_modify_qp(3).
 */
#include <malloc.h>
#include <pthread.h>
#include "test_case.h"

#include "abi/entry_points.h"
#include "transport/qp/qp.h"
#include "verbs/object/objects.h"

/* The first half is not counted: it includes tables that grow in steps (numbers, indices of the driver). */
enum { QPS = 256, COUNTED = QPS / 2 };

/*
 * Bytes of an idle QP, and of its doorbell record: 64 bytes, aligned to as many. What the heap loses by that depends on its
 * layout before, and so on the host's addresses and paths: 2137 to 2144 bytes in all were seen.
 *
 * That is for the mutex of 40 bytes that struct ibv_qp has on x86-64. Eight bytes more, as on aarch64, take 16 of the heap,
 * which may move the record by as many.
 */
enum { MUTEX = 4 * (sizeof(pthread_mutex_t) - 40), IDLE = 2048 + MUTEX, RECORD = 104 };

struct world {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp[QPS];
};

static struct ibv_qp *idle_qp(const struct world *world, uint8_t reads)
{
	struct ibv_qp_init_attr init = {
		.send_cq = world->cq,
		.recv_cq = world->cq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
	};
	struct ibv_qp *qp = softhca_ibv_create_qp(world->pd, &init);
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};

	assert_non_null(qp);
	assert_int_equal(softhca_ibv_modify_qp(qp, &attr,
					       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
			 0);
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = qp->qp_num,
		.max_dest_rd_atomic = reads,
		.ah_attr = {.is_global = 1, .port_num = 1},
	};
	assert_int_equal(softhca_ibv_query_gid(world->context, 1, 0, &attr.ah_attr.grh.dgid), 0);
	assert_int_equal(softhca_ibv_modify_qp(qp, &attr,
					       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
						       IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
						       IBV_QP_MIN_RNR_TIMER),
			 0);
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = reads};
	assert_int_equal(softhca_ibv_modify_qp(qp, &attr,
					       IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
						       IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC),
			 0);
	return qp;
}

static void make(struct world *world, int from, int to, uint8_t reads)
{
	for (int i = from; i < to; i++)
		world->qp[i] = idle_qp(world, reads);
}

/* Returns the heap bytes for each QP of the second half, with its doorbell record. */
static size_t bytes_each(uint8_t reads)
{
	struct ibv_device **list = softhca_ibv_get_device_list(NULL);
	struct world world;
	size_t before, bytes;

	assert_non_null(list);
	world.context = softhca_ibv_open_device(list[0]);
	assert_non_null(world.context);
	softhca_ibv_free_device_list(list);
	world.pd = softhca_ibv_alloc_pd(world.context);
	world.cq = softhca_ibv_create_cq(world.context, 4, NULL, NULL, 0);
	make(&world, 0, QPS - COUNTED, reads);
	before = mallinfo2().uordblks;
	make(&world, QPS - COUNTED, QPS, reads);
	bytes = (mallinfo2().uordblks - before) / COUNTED;
	for (int i = 0; i < QPS; i++)
		assert_int_equal(softhca_ibv_destroy_qp(world.qp[i]), 0);
	assert_int_equal(softhca_ibv_destroy_cq(world.cq), 0);
	assert_int_equal(softhca_ibv_dealloc_pd(world.pd), 0);
	assert_int_equal(softhca_ibv_close_device(world.context), 0);
	print_message("%zu bytes: hca_qp %zu, user_qp %zu, each in flight %zu\n", bytes, sizeof(struct hca_qp),
		      offsetof(struct user_qp, base) + sizeof(struct ibv_qp), sizeof(struct inflight));
	return bytes;
}

TEST(with_one_read)
{
	assert_in_range(bytes_each(1), 1, IDLE + RECORD);
}

/* Each answer kept for duplicates takes 16 bytes. */
TEST(with_all_reads)
{
	assert_in_range(bytes_each(LIMIT_MAX_RD_ATOMIC), 1, IDLE + RECORD + (LIMIT_MAX_RD_ATOMIC - 1) * 16);
}

TEST(without_reads)
{
	assert_in_range(bytes_each(0), 1, IDLE + RECORD - 16);
}
