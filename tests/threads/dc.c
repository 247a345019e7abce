/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads with a DCI each, all sending to the same two DCTs, which share an SRQ: every request arrives once and
 * complete, a failing stream does not stop the others, and meanwhile other DCIs are created, send and are destroyed,
 * with and without requests in flight.
 */
#include "fixture.h"

enum {
	SENDERS = 3,
	ROUNDS = 3000,
	BYTES = 3000,
	KEY = 0xdc,
	STREAM = 3,
	FAILING_STREAM = 5,
	CHURNS = 400,
	RECEIVES = 512
};

struct dct {
	struct ibv_qp *qp;
	struct ibv_ah *ah;
};

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *recv_cq;
static struct ibv_srq *srq;
static struct dct dct[2];
static bool stop;

struct buffer {
	uint8_t from[BYTES], to[BYTES];
	struct ibv_mr *mr;
};

static struct buffer buffers[SENDERS + 2]; /* the last two: for short-lived DCIs, and for received data */

static struct ibv_qp *make_dci(struct ibv_cq *cq)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_DRIVER,
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {.max_send_wr = 16, .max_send_sge = 1},
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = pd,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_SEND,
	};
	struct mlx5dv_qp_init_attr dv = {
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC | MLX5DV_QP_INIT_ATTR_MASK_DCI_STREAMS,
		.dc_init_attr = {.dc_type = MLX5DV_DCTYPE_DCI, .dci_streams = {4, 4}},
	};
	struct ibv_qp_attr state = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.path_mtu = IBV_MTU_1024,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 1,
	};
	struct ibv_qp *qp = mlx5dv_create_qp(context, &attr, &dv);

	CHECK(qp);
	CHECK(!ibv_modify_qp(qp, &state, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT));
	state.qp_state = IBV_QPS_RTR;
	CHECK(!ibv_modify_qp(qp, &state, IBV_QP_STATE | IBV_QP_PATH_MTU));
	state.qp_state = IBV_QPS_RTS;
	CHECK(!ibv_modify_qp(qp, &state,
			     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				     IBV_QP_MAX_QP_RD_ATOMIC));
	return qp;
}

static void make_dct(struct dct *made)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_DRIVER,
		.send_cq = recv_cq,
		.recv_cq = recv_cq,
		.srq = srq,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = pd,
	};
	struct mlx5dv_qp_init_attr dv = {
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
		.dc_init_attr = {.dc_type = MLX5DV_DCTYPE_DCT, .dct_access_key = KEY},
	};
	struct ibv_ah_attr address = {.is_global = 1, .port_num = 1, .grh = {.hop_limit = 1}};
	struct ibv_qp_attr state = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.path_mtu = IBV_MTU_1024,
		.min_rnr_timer = 1,
		.qp_access_flags = ACCESS,
		.ah_attr = address,
	};

	made->qp = mlx5dv_create_qp(context, &attr, &dv);
	CHECK(made->qp);
	CHECK(!ibv_modify_qp(made->qp, &state, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
	state.qp_state = IBV_QPS_RTR;
	CHECK(!ibv_modify_qp(made->qp, &state, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_MIN_RNR_TIMER));
	CHECK(!ibv_query_gid(context, 1, 0, &address.grh.dgid));
	made->ah = ibv_create_ah(pd, &address);
	CHECK(made->ah);
}

static void post(struct ibv_qp *qp, const struct dct *target, uint16_t stream, const struct buffer *buffer,
		 uint32_t lkey, bool send)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);

	ibv_wr_start(ex);
	ex->wr_id = stream;
	ex->wr_flags = IBV_SEND_SIGNALED;
	if (send)
		ibv_wr_send(ex);
	else
		ibv_wr_rdma_write(ex, buffer->mr->rkey, (uintptr_t)buffer->to);
	mlx5dv_wr_set_dc_addr_stream(mlx5dv_qp_ex_from_ibv_qp_ex(ex), target->ah, target->qp->qp_num, KEY, stream);
	ibv_wr_set_sge(ex, lkey, (uintptr_t)buffer->from, send ? 64 : BYTES);
	CHECK(!ibv_wr_complete(ex));
}

static void *sender(void *argument)
{
	struct buffer *buffer = argument;
	struct ibv_cq *cq = ibv_create_cq(context, 64, NULL, NULL, 0);
	struct ibv_qp *qp = make_dci(cq);

	for (int round = 0; round < ROUNDS; round++) {
		const struct dct *target = &dct[round % 2];
		bool fails = round % 4 == 0;

		memset(buffer->from, round, BYTES);
		if (fails)
			post(qp, target, FAILING_STREAM, buffer, 0xfffff00, false);
		post(qp, target, STREAM, buffer, buffer->mr->lkey, false);
		post(qp, &dct[1], STREAM, buffer, buffer->mr->lkey, true);
		if (fails) {
			CHECK(wait_completion(cq).status == IBV_WC_LOC_PROT_ERR);
			CHECK(!mlx5dv_dci_stream_id_reset(qp, FAILING_STREAM));
		}
		for (int i = 0; i < 2; i++)
			CHECK(wait_completion(cq).status == IBV_WC_SUCCESS);
		CHECK(!memcmp(buffer->from, buffer->to, BYTES));
	}
	CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_cq(cq));
	return NULL;
}

struct victim {
	struct ibv_qp *qp;
	const struct buffer *buffer;
};

static void *post_to_the_end(void *argument)
{
	const struct victim *victim = argument;

	for (int i = 0; i < 8; i++)
		post(victim->qp, &dct[i % 2], STREAM, victim->buffer, i == 4 ? 0xfffff00 : victim->buffer->mr->lkey,
		     false);
	return NULL;
}

/* Short-lived DCIs that another thread stops at any time; each request completes with some status. */
static void *come_and_go(void *argument)
{
	struct ibv_cq *cq = ibv_create_cq(context, 64, NULL, NULL, 0);

	for (int round = 0; round < CHURNS; round++) {
		struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
		struct victim victim = {make_dci(cq), argument};
		pthread_t thread;

		CHECK(!pthread_create(&thread, NULL, post_to_the_end, &victim));
		if (round % 2)
			CHECK(!ibv_modify_qp(victim.qp, &error, IBV_QP_STATE));
		CHECK(!pthread_join(thread, NULL));
		if (round % 3)
			for (int i = 0; i < 8; i++)
				wait_completion(cq);
		CHECK(!ibv_destroy_qp(victim.qp));
	}
	CHECK(!ibv_destroy_cq(cq));
	return NULL;
}

static void post_receive(struct ibv_sge *sge)
{
	struct ibv_recv_wr wr = {.sg_list = sge, .num_sge = 1}, *bad;

	CHECK(!ibv_post_srq_recv(srq, &wr, &bad));
}

/* Reposts consumed receives until all senders are done. */
static void *receiver(void *argument)
{
	const struct buffer *buffer = argument;
	struct ibv_sge sge = {(uintptr_t)buffer->to, BYTES, buffer->mr->lkey};
	intptr_t received = 0;
	struct ibv_wc wc;

	for (int i = 0; i < RECEIVES / 4; i++)
		post_receive(&sge);
	for (;;) {
		bool last = __atomic_load_n(&stop, __ATOMIC_ACQUIRE);

		while (ibv_poll_cq(recv_cq, 1, &wc) == 1) {
			CHECK(wc.status == IBV_WC_SUCCESS && wc.byte_len == 64);
			received++;
			post_receive(&sge);
		}
		if (last)
			return (void *)received;
		sched_yield();
	}
}

static void make_all(void)
{
	struct ibv_srq_init_attr srq_attr = {.attr = {.max_wr = RECEIVES, .max_sge = 1}};

	context = open_first_device();
	pd = ibv_alloc_pd(context);
	recv_cq = ibv_create_cq(context, 2 * RECEIVES, NULL, NULL, 0);
	srq = ibv_create_srq(pd, &srq_attr);
	CHECK(pd && recv_cq && srq);
	for (size_t i = 0; i < SENDERS + 2; i++) {
		buffers[i].mr = ibv_reg_mr(pd, &buffers[i], sizeof(buffers[i]), ACCESS);
		CHECK(buffers[i].mr);
	}
	for (int i = 0; i < 2; i++)
		make_dct(&dct[i]);
}

static void destroy_all(void)
{
	for (int i = 0; i < 2; i++)
		CHECK(!ibv_destroy_ah(dct[i].ah) && !ibv_destroy_qp(dct[i].qp));
	for (size_t i = 0; i < SENDERS + 2; i++)
		CHECK(!ibv_dereg_mr(buffers[i].mr));
	CHECK(!ibv_destroy_srq(srq) && !ibv_destroy_cq(recv_cq));
	CHECK(!ibv_dealloc_pd(pd) && !ibv_close_device(context));
}

int main(void)
{
	pthread_t senders[SENDERS], churn, receive;
	void *received;

	make_all();
	CHECK(!pthread_create(&receive, NULL, receiver, &buffers[SENDERS + 1]));
	for (int i = 0; i < SENDERS; i++)
		CHECK(!pthread_create(&senders[i], NULL, sender, &buffers[i]));
	CHECK(!pthread_create(&churn, NULL, come_and_go, &buffers[SENDERS]));
	for (int i = 0; i < SENDERS; i++)
		CHECK(!pthread_join(senders[i], NULL));
	CHECK(!pthread_join(churn, NULL));
	__atomic_store_n(&stop, true, __ATOMIC_RELEASE);
	CHECK(!pthread_join(receive, &received));
	CHECK((intptr_t)received == SENDERS * ROUNDS);
	destroy_all();
	return 0;
}
