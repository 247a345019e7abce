/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * QUERY_QP and QUERY_CQ return the context that the object was created with: what CREATE wrote there, for queue pairs and completion
 * queues by command; what ibv_create_qp(3) was given, for those of verbs (rdma-core's test_devx_async_query looks for log_rq_size).
 */
#include "support/devx.h"

enum { CONTEXT_BYTES = 272 };

static void query_qp(struct ibv_qp *verbs, const struct own *own, uint8_t out[CONTEXT_BYTES])
{
	struct command command = command_of(0x50b);

	memset(out, 0xa5, CONTEXT_BYTES);
	put32(command.in, 8, verbs ? verbs->qp_num : own->qpn);
	assert_int_equal(verbs ? mlx5dv_devx_qp_query(verbs, command.in, 16, out, CONTEXT_BYTES)
			       : mlx5dv_devx_obj_query(own->qp, command.in, 16, out, CONTEXT_BYTES),
			 0);
}

static void qp_by_command(void **state)
{
	/* Byte of a word of the context, and the bits that CREATE set there and that are not of the QP's state. */
	static const struct {
		size_t byte;
		uint32_t bits;
	} words[] = {
		{24, 0x00ff1800},  /* st, pm_state */
		{28, 0x04ffffff},  /* drain_sigerr, pd */
		{32, 0x007ff800},  /* log_rq_size, log_rq_stride, no_sq, log_sq_size */
		{40, 0x00ffffff},  /* user_index */
		{148, 0xffffff},   /* cqn_snd */
		{180, 0xffffff},   /* cqn_rcv */
		{196, 0x07000000}, /* rq_type */
		{220, 0x0000ff00}, /* cs_req */
	};
	struct own own;
	struct command command;
	uint8_t out[CONTEXT_BYTES];

	(void)state;
	own_open_cq(&own, &client);
	command = qp_command(&own, 0);
	put32(command.in, 28, 1u << 26 | own.pdn);
	put32(command.in, 32, 3u << 19 | 2u << 16 | 5u << 11);
	put32(command.in, 40, 0x123456);
	put32(command.in, 220, 0x1100);
	own.qp = create(client.context, &command, CONTEXT_BYTES);
	assert_non_null(own.qp);
	own.qpn = created_number(&command);
	query_qp(NULL, &own, out);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		assert_int_equal(get32(out, words[i].byte) & words[i].bits,
				 get32(command.in, words[i].byte) & words[i].bits);
	own_close(&own);
}

static uint32_t cq_number(struct ibv_cq *cq)
{
	struct mlx5dv_cq dv = {0};
	struct mlx5dv_obj object = {.cq = {cq, &dv}};

	assert_int_equal(mlx5dv_init_obj(&object, MLX5DV_OBJ_CQ), 0);
	return dv.cqn;
}

static uint32_t srq_number(struct ibv_srq *srq)
{
	struct mlx5dv_srq dv = {.comp_mask = MLX5DV_SRQ_MASK_SRQN};
	struct mlx5dv_obj object = {.srq = {srq, &dv}};

	assert_int_equal(mlx5dv_init_obj(&object, MLX5DV_OBJ_SRQ), 0);
	assert_true(dv.comp_mask & MLX5DV_SRQ_MASK_SRQN);
	return dv.srqn;
}

static void qp_of_verbs(void **state)
{
	struct ibv_cq *send_cq = ibv_create_cq(client.context, 16, NULL, NULL, 0);
	struct ibv_cq *recv_cq = ibv_create_cq(client.context, 16, NULL, NULL, 0);
	struct ibv_qp_init_attr init = {
		.send_cq = send_cq,
		.recv_cq = recv_cq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 16, .max_recv_wr = 64, .max_send_sge = 1, .max_recv_sge = 1},
	};
	struct ibv_qp *qp = ibv_create_qp(client.pd, &init);
	uint8_t out[CONTEXT_BYTES];

	(void)state;
	assert_non_null(qp);
	query_qp(qp, NULL, out);
	assert_int_equal(get32(out, 32) >> 19 & 15, 6); /* log_rq_size */
	assert_int_equal(get32(out, 32) >> 16 & 7, 0);  /* log_rq_stride: 16 bytes */
	assert_true(1u << (get32(out, 32) >> 11 & 15) >= 16);
	assert_int_equal(get32(out, 28) & 0xffffff, pd_number(client.pd));
	assert_int_equal(get32(out, 148) & 0xffffff, cq_number(send_cq));
	assert_int_equal(get32(out, 180) & 0xffffff, cq_number(recv_cq));
	assert_int_equal(get32(out, 196) >> 24 & 7, 0); /* rq_type: a queue of its own */
	expect_error(ibv_destroy_qp(qp), 0);
	expect_error(ibv_destroy_cq(recv_cq), 0);
	expect_error(ibv_destroy_cq(send_cq), 0);
}

static void qp_with_an_srq(void **state)
{
	struct ibv_srq_init_attr shared = {.attr = {.max_wr = 16, .max_sge = 1}};
	struct ibv_srq *srq = ibv_create_srq(client.pd, &shared);
	struct ibv_qp_init_attr init = {
		.send_cq = pair.client.cq,
		.recv_cq = pair.client.cq,
		.srq = srq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 16, .max_send_sge = 1},
	};
	struct ibv_qp *qp = ibv_create_qp(client.pd, &init);
	uint8_t out[CONTEXT_BYTES];

	(void)state;
	assert_non_null(qp);
	query_qp(qp, NULL, out);
	assert_int_equal(get32(out, 196) >> 24 & 7, 1); /* rq_type: shared */
	assert_int_equal(get32(out, 196) & 0xffffff, srq_number(srq));
	expect_error(ibv_destroy_qp(qp), 0);
	expect_error(ibv_destroy_srq(srq), 0);
}

static void cq_by_command(void **state)
{
	struct command query = command_of(0x402);
	uint8_t out[CONTEXT_BYTES];
	struct command command;
	struct own own;

	(void)state;
	own_open_cq(&own, &client);
	command = cq_command(&own);
	put32(query.in, 8, own.cqn);
	assert_int_equal(mlx5dv_devx_obj_query(own.cq, query.in, 16, out, sizeof(out)), 0);
	assert_int_equal(get32(out, 28) >> 24 & 0x1f, get32(command.in, 28) >> 24 & 0x1f); /* log_cq_size */
	assert_int_equal(get32(out, 16) >> 21 & 7, get32(command.in, 16) >> 21 & 7);       /* cqe_sz */
	own_close(&own);
}

int main(void)
{
	const struct CMUnitTest cases[] = {
		API_CASE(qp_by_command),
		API_CASE(qp_of_verbs),
		API_CASE(qp_with_an_srq),
		API_CASE(cq_by_command),
	};

	return run_cases("devx_queries", cases);
}
