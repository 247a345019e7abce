/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Measures the latency from a store to a doorbell until it is noticed, and the cost of polling for stores while there are none.
 * A WRITE of 8 bytes to the queue pair itself is rung by stores and posted by calls in turn, and timed from the ring to the
 * CQE. The program runs on one CPU, the polling thread on another, inherited from the program at its start. The excess over
 * calls is the cost of noticing.
 *
 *     softhca-bench-doorbell [PROGRAM'S CPU [THREAD'S CPU]]
 */
#include <endian.h>
#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { SAMPLES = 20000, DEPTH = 64, SILENCE_S = 3 };

struct world {
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	struct mlx5dv_qp ring;
	struct mlx5dv_cq cq;
	uint32_t posted, consumed;
	uint8_t memory[4096];
};

static void must(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void stay_on(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	must(!sched_setaffinity(0, sizeof(set), &set), "sched_setaffinity");
}

static void connect_to_itself(struct ibv_context *context, struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};

	must(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS), "INIT");
	attr.qp_state = IBV_QPS_RTR;
	attr.path_mtu = IBV_MTU_1024;
	attr.dest_qp_num = qp->qp_num;
	attr.max_dest_rd_atomic = 1;
	attr.min_rnr_timer = 12;
	attr.ah_attr = (struct ibv_ah_attr){.is_global = 1, .port_num = 1, .grh.hop_limit = 64};
	must(!ibv_query_gid(context, 1, 0, &attr.ah_attr.grh.dgid), "GID");
	must(!ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				    IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
	     "RTR");
	attr.qp_state = IBV_QPS_RTS;
	attr.timeout = 14;
	attr.retry_cnt = attr.rnr_retry = 7;
	attr.max_rd_atomic = 1;
	must(!ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				    IBV_QP_MAX_QP_RD_ATOMIC),
	     "RTS");
}

static void open_world(struct world *world)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = list && list[0] ? ibv_open_device(list[0]) : NULL;
	struct ibv_qp_init_attr init = {
		.cap = {.max_send_wr = DEPTH, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};
	struct ibv_pd *pd;

	must(context != NULL, "no device");
	pd = ibv_alloc_pd(context);
	init.send_cq = init.recv_cq = ibv_create_cq(context, DEPTH, NULL, NULL, 0);
	must(pd && init.send_cq, "PD and CQ");
	world->mr =
		ibv_reg_mr(pd, world->memory, sizeof(world->memory), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	world->qp = ibv_create_qp(pd, &init);
	must(world->mr && world->qp, "MR and QP");
	connect_to_itself(context, world->qp);
}

static void give_rings(struct world *world)
{
	struct mlx5dv_obj object = {
		.qp = {.in = world->qp, .out = &world->ring},
		.cq = {.in = world->qp->send_cq, .out = &world->cq},
	};

	must(!mlx5dv_init_obj(&object, MLX5DV_OBJ_QP | MLX5DV_OBJ_CQ), "mlx5dv_init_obj");
}

static void put32(uint8_t *at, uint32_t value)
{
	value = htobe32(value);
	memcpy(at, &value, sizeof(value));
}

static void put64(uint8_t *at, uint64_t value)
{
	value = htobe64(value);
	memcpy(at, &value, sizeof(value));
}

/* Both methods use the producer index of the ring. */
static void by_stores(struct world *world)
{
	uint8_t *wqe = (uint8_t *)world->ring.sq.buf + (size_t)(world->posted % world->ring.sq.wqe_cnt) * 64;

	put32(wqe, (world->posted & 0xffff) << 8 | MLX5_OPCODE_RDMA_WRITE);
	put32(wqe + 4, world->qp->qp_num << 8 | 3);
	put32(wqe + 8, MLX5_WQE_CTRL_CQ_UPDATE);
	put32(wqe + 12, 0);
	put64(wqe + 16, (uintptr_t)world->memory + 64);
	put32(wqe + 24, world->mr->rkey);
	put32(wqe + 28, 0);
	put32(wqe + 32, 8);
	put32(wqe + 36, world->mr->lkey);
	put64(wqe + 40, (uintptr_t)world->memory);
	world->posted++;
	__atomic_store_n(&world->ring.dbrec[MLX5_SND_DBR], htobe32(world->posted & 0xffff), __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	*(volatile uint64_t *)world->ring.bf.reg = 1;
}

static void await(struct world *world)
{
	const uint8_t *cqe = (const uint8_t *)world->cq.buf +
			     (size_t)(world->consumed % world->cq.cqe_cnt + 1) * world->cq.cqe_size - 1;
	uint8_t owner = !!(world->consumed & world->cq.cqe_cnt);

	while (__atomic_load_n(cqe, __ATOMIC_ACQUIRE) != (MLX5_CQE_REQ << 4 | owner))
		;
	world->consumed++;
	__atomic_store_n(&world->cq.dbrec[0], htobe32(world->consumed & 0xffffff), __ATOMIC_RELEASE);
}

static int by_value(const void *a, const void *b)
{
	uint64_t one = *(const uint64_t *)a, other = *(const uint64_t *)b;

	return one < other ? -1 : one > other;
}

/* Prints percentiles of @count samples, each taken after a pause. */
static void measure(struct world *world, uint32_t count, uint64_t pause_ns, const char *name)
{
	static uint64_t samples[SAMPLES];

	for (uint32_t i = 0; i < count; i++) {
		uint64_t start = now_ns();

		while (now_ns() - start < pause_ns)
			;
		start = now_ns();
		by_stores(world);
		await(world);
		samples[i] = now_ns() - start;
	}
	qsort(samples, count, sizeof(samples[0]), by_value);
	printf("%-34s %7lu %7lu %7lu %7lu\n", name, samples[count / 100], samples[count / 2], samples[count * 9 / 10],
	       samples[count * 99 / 100]);
}

static void measure_calls(struct world *world)
{
	static uint64_t samples[SAMPLES];
	struct ibv_sge sge = {(uintptr_t)world->memory, 8, world->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE}, *bad;
	struct ibv_wc wc;

	wr.wr.rdma.remote_addr = (uintptr_t)world->memory + 64;
	wr.wr.rdma.rkey = world->mr->rkey;
	for (uint32_t i = 0; i < SAMPLES; i++) {
		uint64_t start = now_ns();

		must(!ibv_post_send(world->qp, &wr, &bad), "ibv_post_send");
		while (!ibv_poll_cq(world->qp->send_cq, 1, &wc))
			;
		samples[i] = now_ns() - start;
	}
	world->posted = world->consumed = SAMPLES;
	qsort(samples, SAMPLES, sizeof(samples[0]), by_value);
	printf("%-34s %7lu %7lu %7lu %7lu\n", "posted and polled by calls", samples[SAMPLES / 100],
	       samples[SAMPLES / 2], samples[SAMPLES * 9 / 10], samples[SAMPLES * 99 / 100]);
}

static double processor_seconds(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

int main(int argc, char **argv)
{
	int program = argc > 1 ? atoi(argv[1]) : 0, thread = argc > 2 ? atoi(argv[2]) : 1;
	static struct world world;
	double before;

	stay_on(program);
	open_world(&world);
	printf("%-34s %7s %7s %7s %7s\n", "ns from the ring to the CQE", "1 %", "median", "90 %", "99 %");
	measure_calls(&world);
	stay_on(thread);
	give_rings(&world);
	stay_on(program);
	measure(&world, SAMPLES, 0, "rung by stores");
	measure(&world, SAMPLES, 2000, "  2 us apart");
	measure(&world, SAMPLES, 20000, "  20 us apart");
	measure(&world, 2000, 500000, "  500 us apart");
	measure(&world, 50, 20000000, "  20 ms apart");
	before = processor_seconds();
	sleep(SILENCE_S);
	printf("of a processor in %d s of silence: %.2f %%\n", SILENCE_S,
	       100 * (processor_seconds() - before) / SILENCE_S);
	return 0;
}
