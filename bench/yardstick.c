/* SPDX-License-Identifier: BSD-2-Clause */
/* References that the library is compared with, see bench.h. */
#include "bench.h"

#include <endian.h>
#include <pthread.h>
#include <string.h>

void copy_pieces(void *subject, uint64_t count)
{
	const struct copies *copies = subject;

	while (count--) {
		for (uint64_t i = 0; i < copies->pieces; i++)
			memcpy(copies->to + i * copies->to_stride, copies->from + i * copies->from_stride,
			       copies->bytes);
		memory_barrier_of_compiler();
	}
}

void copy_records(void *subject, uint64_t count)
{
	const struct copies *copies = subject;

	while (count--) {
		for (uint64_t i = 0; i < copies->pieces; i++)
			memcpy(copies->to + i * copies->to_stride, copies->from + i * copies->from_stride, 64);
		memory_barrier_of_compiler();
	}
}

/*
 * The bare model: an RDMA WRITE of 8 bytes as a WQE in a ring, executed and answered by a CQE in a ring, without checks. The
 * two functions are called through pointers, as verbs are.
 */
#define MODEL_ENTRIES 1024u

struct model_wqe {
	struct mlx5_wqe_ctrl_seg ctrl;
	struct mlx5_wqe_raddr_seg remote;
	struct mlx5_wqe_data_seg data;
	uint8_t unused[16];
};

static struct model {
	struct model_wqe sq[MODEL_ENTRIES] __attribute__((aligned(64)));
	struct mlx5_cqe64 cq[MODEL_ENTRIES] __attribute__((aligned(64)));
	uint64_t wr_id[MODEL_ENTRIES];
	uint32_t producer, executed, consumer;
	pthread_spinlock_t sq_lock, cq_lock;
	uint64_t source, target;
} model = {.source = 1};

static void model_build(const struct ibv_send_wr *wr)
{
	struct model_wqe *wqe = &model.sq[model.producer % MODEL_ENTRIES];

	wqe->ctrl.opmod_idx_opcode = htobe32((model.producer & 0xffff) << 8 | MLX5_OPCODE_RDMA_WRITE);
	wqe->ctrl.qpn_ds = htobe32(0x40 << 8 | 3);
	wqe->ctrl.fm_ce_se = MLX5_WQE_CTRL_CQ_UPDATE;
	wqe->remote.raddr = htobe64(wr->wr.rdma.remote_addr);
	wqe->remote.rkey = htobe32(wr->wr.rdma.rkey);
	wqe->data.byte_count = htobe32(wr->sg_list->length);
	wqe->data.lkey = htobe32(wr->sg_list->lkey);
	wqe->data.addr = htobe64(wr->sg_list->addr);
	model.wr_id[model.producer % MODEL_ENTRIES] = wr->wr_id;
	model.producer++;
}

static void model_execute(void)
{
	const struct model_wqe *wqe = &model.sq[model.executed % MODEL_ENTRIES];
	struct mlx5_cqe64 *cqe = &model.cq[model.executed % MODEL_ENTRIES];

	memcpy((void *)(uintptr_t)be64toh(wqe->remote.raddr), (const void *)(uintptr_t)be64toh(wqe->data.addr),
	       be32toh(wqe->data.byte_count));
	cqe->sop_drop_qpn = wqe->ctrl.qpn_ds;
	cqe->wqe_counter = htobe16((uint16_t)model.executed);
	cqe->byte_cnt = wqe->data.byte_count;
	__atomic_store_n(&cqe->op_own, !(model.executed / MODEL_ENTRIES & 1), __ATOMIC_RELEASE);
	model.executed++;
}

static bool model_take(struct ibv_wc *wc)
{
	const struct mlx5_cqe64 *cqe = &model.cq[model.consumer % MODEL_ENTRIES];

	if (__atomic_load_n(&cqe->op_own, __ATOMIC_ACQUIRE) != !(model.consumer / MODEL_ENTRIES & 1))
		return false;
	wc->wr_id = model.wr_id[be16toh(cqe->wqe_counter) % MODEL_ENTRIES];
	wc->status = IBV_WC_SUCCESS;
	wc->opcode = IBV_WC_RDMA_WRITE;
	wc->byte_len = be32toh(cqe->byte_cnt);
	wc->qp_num = be32toh(cqe->sop_drop_qpn) >> 8;
	model.consumer++;
	return true;
}

static __attribute__((noinline)) int model_post_locked(const struct ibv_send_wr *wr)
{
	pthread_spin_lock(&model.sq_lock);
	model_build(wr);
	pthread_spin_unlock(&model.sq_lock);
	model_execute();
	return 0;
}

static __attribute__((noinline)) int model_poll_locked(int count, struct ibv_wc *wc)
{
	int polled = 0;

	pthread_spin_lock(&model.cq_lock);
	while (polled < count && model_take(&wc[polled]))
		polled++;
	pthread_spin_unlock(&model.cq_lock);
	return polled;
}

static __attribute__((noinline)) int model_post_list(const struct ibv_send_wr *wr)
{
	for (; wr; wr = wr->next)
		model_build(wr);
	while (model.executed != model.producer)
		model_execute();
	return 0;
}

static __attribute__((noinline)) int model_poll(int count, struct ibv_wc *wc)
{
	int polled = 0;

	while (polled < count && model_take(&wc[polled]))
		polled++;
	return polled;
}

static int (*volatile model_post_pointer)(const struct ibv_send_wr *) = model_post_locked;
static int (*volatile model_poll_pointer)(int, struct ibv_wc *) = model_poll_locked;
static int (*volatile model_post_list_pointer)(const struct ibv_send_wr *) = model_post_list;
static int (*volatile model_poll_list_pointer)(int, struct ibv_wc *) = model_poll;

static void model_message(struct ibv_send_wr *wr, struct ibv_sge *sge, struct ibv_send_wr *next)
{
	*sge = (struct ibv_sge){.addr = (uintptr_t)&model.source, .length = sizeof(model.source), .lkey = 1};
	*wr = (struct ibv_send_wr){.sg_list = sge, .num_sge = 1, .next = next};
	wr->wr.rdma.remote_addr = (uintptr_t)&model.target;
}

void bare_model(void *unused, uint64_t count)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct ibv_wc wc;

	(void)unused;
	pthread_spin_init(&model.sq_lock, PTHREAD_PROCESS_PRIVATE);
	pthread_spin_init(&model.cq_lock, PTHREAD_PROCESS_PRIVATE);
	model_message(&wr, &sge, NULL);
	while (count--) {
		wr.wr_id = count;
		model_post_pointer(&wr);
		model_poll_pointer(1, &wc);
	}
}

void bare_model_list(void *unused, uint64_t count)
{
	struct ibv_send_wr list[LIST_LENGTH];
	struct ibv_wc wc[LIST_LENGTH];
	struct ibv_sge sge;

	(void)unused;
	for (uint32_t i = 0; i < LIST_LENGTH; i++)
		model_message(&list[i], &sge, i + 1 < LIST_LENGTH ? &list[i + 1] : NULL);
	while (count--) {
		model_post_list_pointer(list);
		model_poll_list_pointer(LIST_LENGTH, wc);
	}
}
