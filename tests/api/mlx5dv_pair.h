/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two connected QPs with what they need, for tests of mlx5dv calls: one context, one PD, one CQ for both.
 * Failures end the test (cmocka). Include after cmocka.h.
 */
#ifndef SOFTHCA_TESTS_MLX5DV_PAIR_H
#define SOFTHCA_TESTS_MLX5DV_PAIR_H

#include <string.h>
#include <time.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

struct pair {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp[2];
	struct ibv_qp_ex *ex[2];
	struct mlx5dv_qp_ex *dv[2];
	union ibv_gid gid;
	int gid_index;
};

static inline struct ibv_context *open_first_device(void)
{
	struct mlx5dv_context_attr attr = {.flags = MLX5DV_CONTEXT_FLAGS_DEVX};
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context;

	assert_non_null(list);
	assert_non_null(list[0]);
	assert_true(mlx5dv_is_supported(list[0]));
	context = mlx5dv_open_device(list[0], &attr);
	ibv_free_device_list(list);
	assert_non_null(context);
	return context;
}

static inline void pair_find_gid(struct pair *pair)
{
	struct ibv_gid_entry entry;

	for (pair->gid_index = 0; pair->gid_index < 64; pair->gid_index++) {
		if (ibv_query_gid_ex(pair->context, 1, (uint32_t)pair->gid_index, &entry, 0) ||
		    entry.gid_type != IBV_GID_TYPE_ROCE_V2)
			continue;
		pair->gid = entry.gid;
		return;
	}
	fail_msg("no GID of RoCE v2");
}

static inline void pair_create_qp(struct pair *pair, int i, enum ibv_qp_type type, uint64_t dv_send_ops,
				  uint32_t max_inline)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = pair->cq,
		.recv_cq = pair->cq,
		.cap = {.max_send_wr = 16,
			.max_recv_wr = 16,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline_data = max_inline},
		.qp_type = type,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = pair->pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
	};
	struct mlx5dv_qp_init_attr dv = {
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS,
		.send_ops_flags = dv_send_ops,
	};

	if (type == IBV_QPT_RC)
		attr.send_ops_flags |=
			IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_LOCAL_INV;
	pair->qp[i] = mlx5dv_create_qp(pair->context, &attr, &dv);
	assert_non_null(pair->qp[i]);
	pair->ex[i] = ibv_qp_to_qp_ex(pair->qp[i]);
	pair->dv[i] = mlx5dv_qp_ex_from_ibv_qp_ex(pair->ex[i]);
}

static inline void pair_to_init(struct pair *pair, int i)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags =
			IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC,
	};

	assert_int_equal(ibv_modify_qp(pair->qp[i], &attr,
				       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
			 0);
}

static inline void pair_to_rts(struct pair *pair, int i)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = pair->qp[1 - i]->qp_num,
		.rq_psn = 100,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 12,
		.ah_attr = {.is_global = 1, .port_num = 1},
	};

	attr.ah_attr.grh.dgid = pair->gid;
	attr.ah_attr.grh.sgid_index = (uint8_t)pair->gid_index;
	attr.ah_attr.grh.hop_limit = 1;
	assert_int_equal(ibv_modify_qp(pair->qp[i], &attr,
				       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
					       IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
					       IBV_QP_MIN_RNR_TIMER),
			 0);
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS,
		.sq_psn = 100,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 4,
	};
	assert_int_equal(ibv_modify_qp(pair->qp[i], &attr,
				       IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
					       IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC),
			 0);
}

/* Connected and ready RC QPs. @dv_send_ops, @max_inline: of both. */
static inline void pair_open(struct pair *pair, uint64_t dv_send_ops, uint32_t max_inline)
{
	memset(pair, 0, sizeof(*pair));
	pair->context = open_first_device();
	pair->pd = ibv_alloc_pd(pair->context);
	assert_non_null(pair->pd);
	pair->cq = ibv_create_cq(pair->context, 64, NULL, NULL, 0);
	assert_non_null(pair->cq);
	pair_find_gid(pair);
	for (int i = 0; i < 2; i++)
		pair_create_qp(pair, i, IBV_QPT_RC, dv_send_ops, max_inline);
	for (int i = 0; i < 2; i++)
		pair_to_init(pair, i);
	for (int i = 0; i < 2; i++)
		pair_to_rts(pair, i);
}

/* Fails if anything is still in use. */
static inline void pair_close(struct pair *pair)
{
	for (int i = 0; i < 2; i++)
		assert_int_equal(ibv_destroy_qp(pair->qp[i]), 0);
	assert_int_equal(ibv_destroy_cq(pair->cq), 0);
	assert_int_equal(ibv_dealloc_pd(pair->pd), 0);
	assert_int_equal(ibv_close_device(pair->context), 0);
}

/* The next completion, within five seconds. */
static inline struct ibv_wc pair_poll(struct pair *pair)
{
	time_t end = time(NULL) + 5;
	struct ibv_wc wc;
	int found;

	do
		found = ibv_poll_cq(pair->cq, 1, &wc);
	while (!found && time(NULL) < end);
	if (found != 1)
		fail_msg("no completion: ibv_poll_cq returns %d", found);
	return wc;
}

static inline void pair_expect(struct pair *pair, uint64_t wr_id, enum ibv_wc_opcode opcode)
{
	struct ibv_wc wc = pair_poll(pair);

	if (wc.status != IBV_WC_SUCCESS)
		fail_msg("wr_id %lu: %s, vendor_err %u", wc.wr_id, ibv_wc_status_str(wc.status),
			 wc.vendor_err);
	assert_int_equal(wc.wr_id, wr_id);
	assert_int_equal(wc.opcode, opcode);
}

static inline void pair_expect_error(struct pair *pair, uint64_t wr_id, enum ibv_wc_status status)
{
	struct ibv_wc wc = pair_poll(pair);

	assert_int_equal(wc.wr_id, wr_id);
	if (wc.status != status)
		fail_msg("%s, not %s", ibv_wc_status_str(wc.status), ibv_wc_status_str(status));
}

#endif
