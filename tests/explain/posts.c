/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules 540 to 583: posting, builders, binds. */
#include "rule_cases.h"

#include "support/mkey.h"

enum { MAX_INLINE = 60, MAX_LENGTH = 0x7fffffff };

static void send_fails(struct ibv_send_wr wr, int error)
{
	struct ibv_send_wr *bad = NULL;

	expect_error(ibv_post_send(pair.client.qp, &wr, &bad), error);
	assert_ptr_equal(bad, &wr);
}

static void receive_fails(struct ibv_recv_wr wr, int error)
{
	struct ibv_recv_wr *bad = NULL;

	expect_error(ibv_post_recv(pair.client.qp, &wr, &bad), error);
	assert_ptr_equal(bad, &wr);
}

/* Creates a QP of the client by @attr; requests go to it instead of the pair's QP until the end of the case. */
static void use_qp(struct ibv_qp_init_attr_ex attr)
{
	attr.send_cq = attr.recv_cq = pair.client.cq;
	attr.comp_mask |= IBV_QP_INIT_ATTR_PD;
	attr.pd = client.pd;
	expect_error(ibv_destroy_qp(pair.client.qp), 0);
	pair.client.qp = ibv_create_qp_ex(client.context, &attr);
	assert_non_null(pair.client.qp);
	pair.client.ex = ibv_qp_to_qp_ex(pair.client.qp);
}

static void to_rts(void)
{
	endpoint_to_init(&pair.client);
	endpoint_to_rtr(&pair.client);
	endpoint_to_rts(&pair.client);
}

RULE_CASE(SEND_OPCODE)
{
	send_fails((struct ibv_send_wr){.wr_id = 3, .opcode = IBV_WR_TSO}, EINVAL);
	expect_about_qp(SEND_OPCODE, pair.client.qp->qp_num,
			" ibv_post_send wr_id 3 → EINVAL: a QP of type RC has no operation for opcode %d of the WR",
			IBV_WR_TSO);
}

/* mlx5-formats 4.1: 2 WRs of 32 + 16 bytes are a ring of 2 blocks. */
RULE_CASE(SQ_FULL)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .next = NULL};
	struct ibv_send_wr *bad;

	use_qp((struct ibv_qp_init_attr_ex){.qp_type = IBV_QPT_RC,
					    .cap = {.max_send_wr = 2, .max_send_sge = 1},
					    .comp_mask = IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
					    .send_ops_flags = IBV_QP_EX_WITH_SEND});
	to_rts();
	for (int i = 0; i < 2; i++)
		expect_error(ibv_post_send(pair.client.qp, &wr, &bad), 0);
	wr.wr_id = 4;
	send_fails(wr, ENOMEM);
	expect_about_qp(
		SQ_FULL, pair.client.qp->qp_num,
		" ibv_post_send wr_id 4 → ENOMEM: the send queue of 2 WRs (2 blocks of 64 bytes) has no room for a "
		"WQE of up to 1 blocks");
}

RULE_CASE(SEND_BEFORE_RTS)
{
	struct pair_options options = pair_defaults(IBV_QPT_RC);

	pair_close(&pair);
	pair_create(&pair, &client, &server, &options);
	send_fails((struct ibv_send_wr){.wr_id = 5, .opcode = IBV_WR_SEND}, ENOMEM);
	expect_about_qp(SEND_BEFORE_RTS, pair.client.qp->qp_num,
			" ibv_post_send wr_id 5 → ENOMEM: the QP is in state RESET and has not been in RTS yet");
}

RULE_CASE(SEND_SGE_COUNT)
{
	struct ibv_send_wr wr = {.wr_id = 6, .opcode = IBV_WR_SEND, .num_sge = PAIR_SGES + 1};

	send_fails(wr, ENOMEM);
	expect_about_qp(SEND_SGE_COUNT, pair.client.qp->qp_num,
			" ibv_post_send wr_id 6 → ENOMEM: 5 SGEs exceed max_send_sge 4 of the QP");
}

RULE_CASE(SGE_LENGTH)
{
	send_fails(request(IBV_WR_SEND, 0x80000001), EINVAL);
	expect_about_qp(
		SGE_LENGTH, pair.client.qp->qp_num,
		" ibv_post_send wr_id %d → EINVAL: an SGE of 2147483649 bytes exceeds %d, the maximum of a data segment",
		WR_ID, MAX_LENGTH);
}

/* mlx5-formats 4.1: an RC QP with keys has 60 bytes for inline data without asking. */
RULE_CASE(INLINE_LENGTH)
{
	struct ibv_send_wr wr = request(IBV_WR_SEND, MAX_INLINE + 1);

	assert_int_equal(pair.client.cap.max_inline_data, MAX_INLINE);
	wr.send_flags |= IBV_SEND_INLINE;
	send_fails(wr, ENOMEM);
	expect_about_qp(
		INLINE_LENGTH, pair.client.qp->qp_num,
		" ibv_post_send wr_id %d → ENOMEM: 61 bytes or more of inline data exceed max_inline_data 60 of the "
		"QP",
		WR_ID);
}

/* Sized for SENDs of 62 SGEs, 16 + 62 * 16 = 1008 bytes; a READ has a segment of 16 more bytes. */
RULE_CASE(WQE_LENGTH)
{
	struct ibv_sge sges[62];
	struct ibv_send_wr wr = {.wr_id = 8, .opcode = IBV_WR_RDMA_READ, .sg_list = sges, .num_sge = 62};

	for (size_t i = 0; i < ARRAY_SIZE(sges); i++)
		sges[i] = side_sge(&client, 8 * i, 8);
	use_qp((struct ibv_qp_init_attr_ex){.qp_type = IBV_QPT_RC,
					    .cap = {.max_send_wr = 4, .max_send_sge = 62},
					    .comp_mask = IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
					    .send_ops_flags = IBV_QP_EX_WITH_SEND});
	to_rts();
	send_fails(wr, ENOMEM);
	expect_about_qp(WQE_LENGTH, pair.client.qp->qp_num,
			" ibv_post_send wr_id 8 → ENOMEM: the WQE would have 1024 bytes, more than 1008");
}

RULE_CASE(ATOMIC_WRITE_ALIGNMENT)
{
	struct ibv_send_wr wr = request(IBV_WR_ATOMIC_WRITE, 8);

	wr.wr.rdma.remote_addr = 0x1004;
	send_fails(wr, EINVAL);
	expect_about_qp(ATOMIC_WRITE_ALIGNMENT, pair.client.qp->qp_num,
			" ibv_post_send wr_id %d → EINVAL: the target 0x1004 of an ATOMIC WRITE is not a multiple of 8",
			WR_ID);
}

RULE_CASE(ATOMIC_WRITE_LENGTH)
{
	struct ibv_send_wr wr = request(IBV_WR_ATOMIC_WRITE, 12);

	wr.wr.rdma.remote_addr = 0x1000;
	send_fails(wr, EINVAL);
	expect_about_qp(ATOMIC_WRITE_LENGTH, pair.client.qp->qp_num,
			" ibv_post_send wr_id %d → EINVAL: the SGEs of an ATOMIC WRITE have 12 bytes, not 8", WR_ID);
}

/* ---- builders --------------------------------------------------------------------------------------------------- */

RULE_CASE(WR_BEFORE_RTS)
{
	struct pair_options options = pair_defaults(IBV_QPT_RC);

	pair_close(&pair);
	pair_create(&pair, &client, &server, &options);
	endpoint_to_init(&pair.client);
	batch_start(&pair.client, 1, 0);
	expect_error(ibv_wr_complete(pair.client.ex), EINVAL);
	expect_about_qp(
		WR_BEFORE_RTS, pair.client.qp->qp_num,
		" ibv_wr_complete → EINVAL: ibv_wr_complete in state INIT: the QP has not been in RTS since RESET");
}

RULE_CASE(WR_SETTERS_MISSING)
{
	struct mlx5dv_mkey *mkey = side_create_mkey(&client, 4, NULL);
	struct mlx5dv_mkey_conf_attr attr = {0};

	batch_start(&pair.client, 0x51, IBV_SEND_INLINE);
	mlx5dv_wr_mkey_configure(pair.client.dv, mkey, 2, &attr);
	mlx5dv_wr_set_mkey_access_flags(pair.client.dv, IBV_ACCESS_LOCAL_WRITE);
	expect_error(ibv_wr_complete(pair.client.ex), EINVAL);
	expect_about_qp(
		WR_SETTERS_MISSING, pair.client.qp->qp_num,
		" ibv_wr_complete → EINVAL: the mkey configuration with wr_id 0x51 announced 2 setters, but 1 were called");
}

RULE_CASE(WR_DATA_MISSING)
{
	batch_start(&pair.client, 0x52, 0);
	ibv_wr_send(pair.client.ex);
	expect_error(ibv_wr_complete(pair.client.ex), EINVAL);
	expect_about_qp(WR_DATA_MISSING, pair.client.qp->qp_num,
			" ibv_wr_complete → EINVAL: the work request with wr_id 0x52 has no data");
}

RULE_CASE(WR_ADDRESS_MISSING)
{
	struct pair_options options = pair_defaults(IBV_QPT_UD);

	pair_replace(&pair, &options);
	batch_start(&pair.client, 0x52, 0);
	ibv_wr_send(pair.client.ex);
	ibv_wr_set_sge(pair.client.ex, client.mr->lkey, side_address(&client, 0), 8);
	expect_error(ibv_wr_complete(pair.client.ex), EINVAL);
	expect_about_qp(
		WR_ADDRESS_MISSING, pair.client.qp->qp_num,
		" ibv_wr_complete → EINVAL: the work request with wr_id 0x52 of a QP of type UD has no address");
}

/* Dropped without an error, as by libmlx5 (mlx5-formats 4.2). */
RULE_CASE(WR_DROPPED, .profile = "connectx")
{
	batch_start(&pair.client, 0x52, 0);
	ibv_wr_send(pair.client.ex);
	expect_error(ibv_wr_complete(pair.client.ex), 0);
	expect_about_qp(
		WR_DROPPED, pair.client.qp->qp_num,
		" ibv_wr_complete wr_id 82: the work request with wr_id 0x52 was dropped, because setters 0x1 were not called (1 data, 2 address, 4 mkey)");
}

RULE_CASE(WR_SETTER_UNEXPECTED)
{
	batch_start(&pair.client, 1, 0);
	ibv_wr_set_sge(pair.client.ex, client.mr->lkey, side_address(&client, 0), 8);
	expect_error(ibv_wr_complete(pair.client.ex), EINVAL);
	expect_about_qp(
		WR_SETTER_UNEXPECTED, pair.client.qp->qp_num,
		" ibv_wr_set_sge → EINVAL: no work request waits for this setter; the open one waits for 0x0 (0 none "
		"is open, 1 data, 2 address, 4 mkey)");
}

RULE_CASE(WR_NOT_OF_TYPE)
{
	struct pair_options options = pair_defaults(IBV_QPT_UD);

	pair_replace(&pair, &options);
	batch_start(&pair.client, 1, 0);
	ibv_wr_rdma_write(pair.client.ex, 0, 0);
	expect_error(ibv_wr_complete(pair.client.ex), EOPNOTSUPP);
	expect_about_qp(WR_NOT_OF_TYPE, pair.client.qp->qp_num,
			" ibv_wr_rdma_write → EOPNOTSUPP: a QP of type UD does not have this operation or setter");
}

/* ---- binds ------------------------------------------------------------------------------------------------------ */

static int bind(struct ibv_mr *mr, uint64_t length, unsigned int access)
{
	struct ibv_mw *mw = side_alloc_mw(&client, IBV_MW_TYPE_1);
	struct ibv_mw_bind request = {
		.wr_id = 7,
		.bind_info = {.mr = mr, .addr = side_address(&client, 0), .length = length, .mw_access_flags = access}};

	return ibv_bind_mw(pair.client.qp, mw, &request);
}

RULE_CASE(BIND_LENGTH)
{
	expect_error(bind(client.mr, 0x80000001, IBV_ACCESS_REMOTE_READ), EOPNOTSUPP);
	expect_about_qp(BIND_LENGTH, pair.client.qp->qp_num,
			" ibv_post_send → EOPNOTSUPP: a window of 2147483649 bytes exceeds 2147483648");
}

RULE_CASE(BIND_NO_MR)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_BIND_MW,
				 .bind_mw = {.mw = side_alloc_mw(&client, IBV_MW_TYPE_2), .bind_info = {.length = 64}}};

	send_fails(wr, EINVAL);
	expect_about_qp(BIND_NO_MR, pair.client.qp->qp_num,
			" ibv_post_send → EINVAL: a window of 64 bytes was to be bound without an MR");
}

RULE_CASE(BIND_ZERO_BASED, .profile = "connectx")
{
	expect_error(bind(client.mr, 64, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ZERO_BASED), EINVAL);
	expect_about_qp(
		BIND_ZERO_BASED, pair.client.qp->qp_num,
		" ibv_bind_mw → EINVAL: mw_access_flags REMOTE_READ|ZERO_BASED request a zero-based window, which a ConnectX adapter refuses");
}

RULE_CASE(BIND_NULL_MR)
{
	struct ibv_mr *mr = ibv_alloc_null_mr(client.pd);

	expect_error(bind(mr, 64, IBV_ACCESS_REMOTE_READ), ENOTSUP);
	expect_about_qp(BIND_NULL_MR, pair.client.qp->qp_num,
			" ibv_bind_mw → EOPNOTSUPP: the window was to be bound to the null MR 0x%x", mr->lkey);
	expect_error(ibv_dereg_mr(mr), 0);
}

RULE_CASE(BIND_ZERO_BASED_MR)
{
	struct ibv_mr *mr = side_register(&client, 0, 64, IBV_ACCESS_ZERO_BASED | IBV_ACCESS_MW_BIND);

	expect_error(bind(mr, 64, IBV_ACCESS_REMOTE_READ), EINVAL);
	expect_about_qp(BIND_ZERO_BASED_MR, pair.client.qp->qp_num,
			" ibv_bind_mw → EINVAL: the window was to be bound to the zero-based MR 0x%x", mr->lkey);
}

RULE_CASE(BIND_IMPORTED_MR)
{
	struct ibv_mr *mr = ibv_import_mr(client.pd, client.mr->handle);

	expect_error(bind(mr, 64, IBV_ACCESS_REMOTE_READ), ENOTSUP);
	expect_about_qp(BIND_IMPORTED_MR, pair.client.qp->qp_num,
			" ibv_bind_mw → EOPNOTSUPP: the window was to be bound to the imported MR 0x%x", mr->lkey);
	ibv_unimport_mr(mr);
}

RULE_CASE(BIND_QP_TYPE)
{
	struct pair_options options = pair_defaults(IBV_QPT_UD);

	pair_replace(&pair, &options);
	expect_error(bind(client.mr, 64, IBV_ACCESS_REMOTE_READ), EINVAL);
	expect_about_qp(BIND_QP_TYPE, pair.client.qp->qp_num,
			" ibv_bind_mw → EINVAL: a queue pair of type UD cannot bind windows; RC, UC and XRC_SEND can");
}

RULE_CASE(BIND_SEND_FLAGS)
{
	struct ibv_mw *mw = side_alloc_mw(&client, IBV_MW_TYPE_1);
	struct ibv_mw_bind request = {.send_flags = IBV_SEND_SIGNALED | IBV_SEND_SOLICITED};

	expect_error(ibv_bind_mw(pair.client.qp, mw, &request), EINVAL);
	expect_about_qp(BIND_SEND_FLAGS, pair.client.qp->qp_num,
			" ibv_bind_mw → EINVAL: send_flags is 0x6; a bind may have 0x3 only");
}

RULE_CASE(BIND_ACCESS)
{
	expect_error(bind(client.mr, 64, IBV_ACCESS_REMOTE_READ | 0x4000), EINVAL);
	expect_about_qp(
		BIND_ACCESS, pair.client.qp->qp_num,
		" ibv_bind_mw → EINVAL: mw_access_flags is REMOTE_READ|0x4000; the existing flags are LOCAL_WRITE|REMOTE_WRITE|REMOTE_READ|REMOTE_ATOMIC|MW_BIND|ZERO_BASED|ON_DEMAND|HUGETLB|RELAXED_ORDERING");
}

/* ---- receives --------------------------------------------------------------------------------------------------- */

RULE_CASE(RQ_FULL)
{
	for (int i = 0; i < PAIR_WRS; i++)
		post_receive(&pair.client, 0, NULL, 0);
	receive_fails((struct ibv_recv_wr){.wr_id = 9}, ENOMEM);
	expect_about_qp(RQ_FULL, pair.client.qp->qp_num,
			" ibv_post_recv wr_id 9 → ENOMEM: the receive queue is full with 64 WRs");
}

RULE_CASE(RECV_ON_SRQ)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 3, .max_sge = 1}};
	struct ibv_srq *srq = ibv_create_srq(client.pd, &attr);
	uint32_t number;

	use_qp((struct ibv_qp_init_attr_ex){
		.qp_type = IBV_QPT_RC, .srq = srq, .cap = {.max_send_wr = 1, .max_send_sge = 1}});
	endpoint_to_init(&pair.client);
	receive_fails((struct ibv_recv_wr){.wr_id = 10}, ENOMEM);
	expect_error(ibv_get_srq_num(srq, &number), 0);
	expect_about_qp(
		RECV_ON_SRQ, pair.client.qp->qp_num,
		" ibv_post_recv wr_id 10 → ENOMEM: the QP takes its receives from SRQ 0x%x and has no receive queue",
		number);
	use_qp((struct ibv_qp_init_attr_ex){.qp_type = IBV_QPT_RC, .cap = {.max_send_wr = 1, .max_send_sge = 1}});
	expect_error(ibv_destroy_srq(srq), 0);
}

RULE_CASE(RECV_IN_RESET)
{
	struct pair_options options = pair_defaults(IBV_QPT_RC);

	pair_close(&pair);
	pair_create(&pair, &client, &server, &options);
	receive_fails((struct ibv_recv_wr){.wr_id = 11}, EINVAL);
	expect_about_qp(RECV_IN_RESET, pair.client.qp->qp_num,
			" ibv_post_recv wr_id 11 → EINVAL: the QP is in state RESET and has not been in INIT yet");
}

RULE_CASE(RECV_SGE_COUNT)
{
	receive_fails((struct ibv_recv_wr){.wr_id = 12, .num_sge = PAIR_SGES + 1}, EINVAL);
	expect_about_qp(RECV_SGE_COUNT, pair.client.qp->qp_num,
			" ibv_post_recv wr_id 12 → EINVAL: 5 SGEs exceed max_recv_sge 4 of the QP");
}

RULE_CASE(MEMCPY_LENGTH)
{
	struct pair_options options = pair_defaults(IBV_QPT_RC);

	options.dv_send_ops = MLX5DV_QP_EX_WITH_MEMCPY;
	pair_replace(&pair, &options);
	ibv_wr_start(pair.client.ex);
	mlx5dv_wr_memcpy(pair.client.dv, client.mr->lkey, side_address(&client, 0), client.mr->lkey,
			 side_address(&client, 64), (1u << 28) + 1);
	expect_error(ibv_wr_complete(pair.client.ex), EINVAL);
	expect_about_qp(MEMCPY_LENGTH, pair.client.qp->qp_num,
			" mlx5dv_wr_memcpy → EINVAL: the copy has 268435457 bytes; it must have 1 to 268435456");
}
