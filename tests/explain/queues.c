/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules 400 to 445: completion queues, shared receive queues. */
#include "rule_cases.h"

enum {
	MAX_CQE = (1 << 22) - 1, /* docs/reference/limits.md */
	MAX_SRQ_WR = (1 << 15) - 1,
	MAX_SRQ_SGE = 31,
	CQE_INVALID = 0xf0,
};

static struct ibv_srq *srq;

static void cq_ex_fails(struct ibv_cq_init_attr_ex attr, int error)
{
	errno = 0;
	assert_null(ibv_create_cq_ex(client.context, &attr));
	expect_error(errno, error);
}

static void dv_cq_fails(struct mlx5dv_cq_init_attr dv)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = 4};

	errno = 0;
	assert_null(mlx5dv_create_cq(client.context, &attr, &dv));
	expect_error(errno, EINVAL);
}

RULE_CASE(CQ_CQE)
{
	errno = 0;
	assert_null(ibv_create_cq(client.context, -4, NULL, NULL, 0));
	expect_error(errno, EINVAL);
	expect_refusal(CQ_CQE, "ibv_create_cq → EINVAL: -4 CQEs are requested; a CQ has 1 to %d", MAX_CQE);
}

RULE_CASE(CQ_COMP_VECTOR)
{
	errno = 0;
	assert_null(ibv_create_cq(client.context, 4, NULL, NULL, -1));
	expect_error(errno, EINVAL);
	expect_refusal(
		CQ_COMP_VECTOR,
		"ibv_create_cq → EINVAL: completion vector -1 does not exist; the device has %d vectors, from 0 on",
		client.context->num_comp_vectors);
}

RULE_CASE(CQ_COMP_MASK)
{
	cq_ex_fails((struct ibv_cq_init_attr_ex){.cqe = 4, .comp_mask = 0x80}, EINVAL);
	expect_refusal(
		CQ_COMP_MASK,
		"ibv_create_cq_ex → EINVAL: comp_mask of struct ibv_cq_init_attr_ex is 0x80; the known bits are 0x3");
}

RULE_CASE(CQ_FLAGS)
{
	cq_ex_fails((struct ibv_cq_init_attr_ex){.cqe = 4, .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS, .flags = 0x10},
		    EINVAL);
	expect_refusal(
		CQ_FLAGS,
		"ibv_create_cq_ex → EINVAL: flags of struct ibv_cq_init_attr_ex are 0x10; the known flags are 0x3");
}

RULE_CASE(CQ_WC_FLAGS)
{
	cq_ex_fails((struct ibv_cq_init_attr_ex){.cqe = 4, .wc_flags = UINT64_C(1) << 40}, EOPNOTSUPP);
	expect_refusal(
		CQ_WC_FLAGS,
		"ibv_create_cq_ex → EOPNOTSUPP: wc_flags 0x10000000000 select fields that do not exist; the known flags are 0x%x",
		IBV_CREATE_CQ_SUP_WC_FLAGS);
}

RULE_CASE(CQ_CHANNEL)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(server.context);

	cq_ex_fails((struct ibv_cq_init_attr_ex){.cqe = 4, .channel = channel}, EBADF);
	expect_refusal(CQ_CHANNEL,
		       "ibv_create_cq_ex → EBADF: the completion channel with descriptor %d belongs to another context",
		       channel->fd);
	expect_error(ibv_destroy_comp_channel(channel), 0);
}

RULE_CASE(CQ_PARENT_DOMAIN)
{
	cq_ex_fails((struct ibv_cq_init_attr_ex){.cqe = 4,
						 .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD,
						 .parent_domain = client.pd},
		    EINVAL);
	expect_refusal(
		CQ_PARENT_DOMAIN,
		"ibv_create_cq_ex → EINVAL: IBV_CQ_INIT_ATTR_MASK_PD is set, but parent_domain is not a parent domain");
}

RULE_CASE(CQ_CQE_SIZE)
{
	dv_cq_fails((struct mlx5dv_cq_init_attr){.comp_mask = MLX5DV_CQ_INIT_ATTR_MASK_CQE_SIZE, .cqe_size = 96});
	expect_refusal(CQ_CQE_SIZE, "mlx5dv_create_cq → EINVAL: CQEs of 96 bytes are requested; they have 64 or 128");
}

RULE_CASE(CQ_DV_COMP_MASK)
{
	dv_cq_fails((struct mlx5dv_cq_init_attr){.comp_mask = 0x100});
	expect_refusal(
		CQ_DV_COMP_MASK,
		"mlx5dv_create_cq → EINVAL: comp_mask of struct mlx5dv_cq_init_attr is 0x100; the known bits are 0x7");
}

RULE_CASE(CQ_DV_FLAGS)
{
	dv_cq_fails((struct mlx5dv_cq_init_attr){.comp_mask = MLX5DV_CQ_INIT_ATTR_MASK_FLAGS, .flags = 8});
	expect_refusal(
		CQ_DV_FLAGS,
		"mlx5dv_create_cq → EINVAL: flags of struct mlx5dv_cq_init_attr are 0x8; the known flags are 0x1");
}

RULE_CASE(CQ_PADDING)
{
	dv_cq_fails((struct mlx5dv_cq_init_attr){.comp_mask = MLX5DV_CQ_INIT_ATTR_MASK_FLAGS,
						 .flags = MLX5DV_CQ_INIT_ATTR_FLAGS_CQE_PAD});
	expect_refusal(
		CQ_PADDING,
		"mlx5dv_create_cq → EINVAL: padding is requested for CQEs of 64 bytes, but only those of 128 bytes can be padded");
}

RULE_CASE(POLL_COMP_MASK)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = 4};
	struct ibv_cq_ex *cq = ibv_create_cq_ex(client.context, &attr);
	struct ibv_poll_cq_attr poll = {.comp_mask = 2};

	assert_non_null(cq);
	expect_error(ibv_start_poll(cq, &poll), EINVAL);
	expect_refusal(
		POLL_COMP_MASK,
		"ibv_start_poll → EINVAL: comp_mask of struct ibv_poll_cq_attr is 0x2; it is reserved and must be 0");
	expect_error(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

/* A completion of a request (opcode 0) that was never posted, written into the ring: mlx5-formats 3.2. */
RULE_CASE(CQE_OF_NO_QP)
{
	struct ibv_cq *cq = ibv_create_cq(client.context, 3, NULL, NULL, 0);
	struct mlx5dv_cq out = {0};
	struct mlx5dv_obj object = {.cq = {.in = cq, .out = &out}};
	struct mlx5_cqe64 *cqe;
	struct ibv_wc wc;

	expect_error(mlx5dv_init_obj(&object, MLX5DV_OBJ_CQ), 0);
	cqe = out.buf;
	assert_int_equal(cqe->op_own, CQE_INVALID);
	cqe->srqn_uidx = htobe32(0xfedcb);
	cqe->sop_drop_qpn = htobe32(0x0a << 24 | 0x123456);
	cqe->wqe_counter = htobe16(77);
	cqe->op_own = 0;
	assert_int_equal(ibv_poll_cq(cq, 1, &wc), -2);
	expect_about_qp(
		CQE_OF_NO_QP, 0x123456,
		" ibv_poll_cq: the CQE with opcode 0 for QP 0x123456, user index 0xfedcb, counter 77 does not belong to a queue of this context");
	expect_error(ibv_destroy_cq(cq), 0);
}

RULE_CASE(CQ_MODIFY_MASK)
{
	struct ibv_modify_cq_attr attr = {.attr_mask = 6};

	expect_error(ibv_modify_cq(pair.client.cq, &attr), EINVAL);
	expect_refusal(CQ_MODIFY_MASK,
		       "ibv_modify_cq → EINVAL: attr_mask of struct ibv_modify_cq_attr is 0x6; it must be "
		       "IBV_CQ_ATTR_MODERATE (1)");
}

RULE_CASE(CQ_PERIOD)
{
	struct ibv_modify_cq_attr attr = {.attr_mask = IBV_CQ_ATTR_MODERATE, .moderate = {.cq_period = 0x1000}};

	expect_error(ibv_modify_cq(pair.client.cq, &attr), EINVAL);
	expect_refusal(
		CQ_PERIOD,
		"ibv_modify_cq → EINVAL: a moderation period of 4096 microseconds is requested; at most 4095 are possible");
}

RULE_CASE(CQ_IN_USE)
{
	expect_error(ibv_destroy_cq(pair.client.cq), EBUSY);
	expect_refusal(CQ_IN_USE, "ibv_destroy_cq → EBUSY: QPs or SRQs still use CQ 0x%x", pair.client.cq->handle);
}

/* Two completions wait; a ring for one has two entries, the last of which holds the mark of the resize. */
RULE_CASE(CQ_UNPOLLED)
{
	for (int i = 0; i < 2; i++)
		write_to(server.mr->rkey, side_address(&server, 0));
	memcpy(server.expected, client.memory, BYTES);
	expect_error(ibv_resize_cq(pair.client.cq, 1), EINVAL);
	expect_refusal(
		CQ_UNPOLLED,
		"ibv_resize_cq → EINVAL: completions that wait to be polled leave no room for new ones in a ring of 1 CQEs");
}

/* ---- shared receive queues -------------------------------------------------------------------------------------- */

static struct ibv_srq *create_srq(uint32_t max_wr, uint32_t max_sge)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = max_wr, .max_sge = max_sge}};

	errno = 0;
	return srq = ibv_create_srq(client.pd, &attr);
}

static void srq_ex_fails(struct ibv_srq_init_attr_ex attr, int error)
{
	attr.attr = (struct ibv_srq_attr){.max_wr = 4, .max_sge = 1};
	errno = 0;
	assert_null(ibv_create_srq_ex(client.context, &attr));
	expect_error(errno, error);
}

static int post_to_srq(uint64_t wr_id, int num_sge)
{
	struct ibv_recv_wr wr = {.wr_id = wr_id, .num_sge = num_sge}, *bad;

	return ibv_post_srq_recv(srq, &wr, &bad);
}

static void destroy_srq(void)
{
	expect_error(ibv_destroy_srq(srq), 0);
}

RULE_CASE(SRQ_MAX_WR)
{
	assert_null(create_srq(MAX_SRQ_WR + 1, 1));
	expect_error(errno, EINVAL);
	expect_refusal(SRQ_MAX_WR,
		       "ibv_create_srq → EINVAL: an SRQ for 32768 WRs is requested; at most 32767 are possible");
}

RULE_CASE(SRQ_MAX_SGE)
{
	assert_null(create_srq(4, MAX_SRQ_SGE + 1));
	expect_error(errno, EINVAL);
	expect_refusal(SRQ_MAX_SGE,
		       "ibv_create_srq → EINVAL: an SRQ with 32 SGEs per WR is requested; at most 31 are possible");
}

RULE_CASE(SRQ_COMP_MASK)
{
	srq_ex_fails((struct ibv_srq_init_attr_ex){.comp_mask = 0x100, .pd = client.pd}, EOPNOTSUPP);
	expect_refusal(
		SRQ_COMP_MASK,
		"ibv_create_srq_ex → EOPNOTSUPP: comp_mask of struct ibv_srq_init_attr_ex is 0x100; the known bits are 0x%x",
		IBV_SRQ_INIT_ATTR_RESERVED - 1);
}

RULE_CASE(SRQ_TYPE)
{
	srq_ex_fails((struct ibv_srq_init_attr_ex){.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
						   .srq_type = IBV_SRQT_TM,
						   .pd = client.pd},
		     EOPNOTSUPP);
	expect_refusal(SRQ_TYPE, "ibv_create_srq_ex → EOPNOTSUPP: srq_type 2 is not supported; basic SRQs (0) and XRC "
				 "SRQs (1) are");
}

RULE_CASE(SRQ_PD)
{
	srq_ex_fails((struct ibv_srq_init_attr_ex){.comp_mask = IBV_SRQ_INIT_ATTR_TYPE, .srq_type = IBV_SRQT_BASIC},
		     EINVAL);
	expect_refusal(SRQ_PD, "ibv_create_srq_ex → EINVAL: comp_mask 0x1 does not give the SRQ a PD of its context");
}

RULE_CASE(SRQ_SGES)
{
	create_srq(4, 1);
	expect_error(post_to_srq(0x99, -1), EINVAL);
	expect_refusal(SRQ_SGES,
		       "ibv_post_srq_recv → EINVAL: the receive WR has -1 SGEs; the SRQ takes 0 to 1 (wr_id 0x99)");
	destroy_srq();
}

/* max_wr 3 fits a list of 4 entries (mlx5-formats 2.2). */
RULE_CASE(SRQ_FULL)
{
	create_srq(3, 1);
	for (uint64_t i = 0; i < 3; i++)
		expect_error(post_to_srq(i, 0), 0);
	expect_error(post_to_srq(0x98, 0), ENOMEM);
	expect_refusal(SRQ_FULL,
		       "ibv_post_srq_recv → ENOMEM: 3 receives are posted and not yet polled, as many as the SRQ "
		       "holds (wr_id 0x98)");
	destroy_srq();
}

static void srq_modify_fails(struct ibv_srq_attr attr, int mask)
{
	expect_error(ibv_modify_srq(srq, &attr, mask), EINVAL);
}

RULE_CASE(SRQ_MODIFY_MASK)
{
	create_srq(3, 1);
	srq_modify_fails((struct ibv_srq_attr){0}, 0xc);
	expect_refusal(
		SRQ_MODIFY_MASK,
		"ibv_modify_srq → EINVAL: srq_attr_mask is 0xc; its only bits are IBV_SRQ_MAX_WR (1) and IBV_SRQ_LIMIT (2)");
	destroy_srq();
}

RULE_CASE(SRQ_SHRINK)
{
	create_srq(3, 1);
	for (uint64_t i = 0; i < 2; i++)
		expect_error(post_to_srq(i, 0), 0);
	srq_modify_fails((struct ibv_srq_attr){.max_wr = 1}, IBV_SRQ_MAX_WR);
	expect_refusal(SRQ_SHRINK,
		       "ibv_modify_srq → EINVAL: max_wr is to become 1, but 2 receives are posted or not yet polled");
	destroy_srq();
}

RULE_CASE(SRQ_LIMIT)
{
	create_srq(3, 1);
	srq_modify_fails((struct ibv_srq_attr){.srq_limit = 4}, IBV_SRQ_LIMIT);
	expect_refusal(SRQ_LIMIT, "ibv_modify_srq → EINVAL: srq_limit 4 exceeds max_wr 3");
	destroy_srq();
}

RULE_CASE(SRQ_IN_USE)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = pair.client.cq, .recv_cq = pair.client.cq, .srq = create_srq(3, 1), .qp_type = IBV_QPT_RC};
	struct ibv_qp *qp = ibv_create_qp(client.pd, &attr);

	assert_non_null(qp);
	expect_error(ibv_destroy_srq(srq), EBUSY);
	expect_refusal(SRQ_IN_USE, "ibv_destroy_srq → EBUSY: QPs still use SRQ 0x%x", srq->handle);
	expect_error(ibv_destroy_qp(qp), 0);
	destroy_srq();
}

RULE_CASE(CQ_COMPRESSION)
{
	dv_cq_fails((struct mlx5dv_cq_init_attr){.comp_mask = MLX5DV_CQ_INIT_ATTR_MASK_COMPRESSED_CQE,
						 .cqe_comp_res_format = 3});
	expect_refusal(CQ_COMPRESSION,
		       "mlx5dv_create_cq → EINVAL: cqe_comp_res_format is 0x3; it must be one format of 0x%x",
		       MLX5DV_CQE_RES_FORMAT_HASH | MLX5DV_CQE_RES_FORMAT_CSUM | MLX5DV_CQE_RES_FORMAT_CSUM_STRIDX);
}
