/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests DCIs and DCTs as objects: their states and the attributes of each transition, queries, numbers, wrong keys and missing
 * targets; mlx5dv_map_ah_to_qp(3).
 */
#include "support/dc.h"
#include "support/program.h"

enum { KEY = 0xcafe, HERE_AT = 4096, THERE_AT = 16384, BYTES = 100, RECV_ID = 0x4ec1 };

/* ---- states ---------------------------------------------------------------------------------------------------- */

enum {
	STATE = IBV_QP_STATE,
	DCT_INIT = STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
	DCT_RTR = STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_MIN_RNR_TIMER,
	DCI_INIT = STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT,
	DCI_RTR = STATE | IBV_QP_PATH_MTU,
	DCI_RTS =
		STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
};

static int modify(struct ibv_qp *qp, enum ibv_qp_state state, int mask)
{
	struct ibv_qp_attr attr = {
		.qp_state = state,
		.port_num = 1,
		.path_mtu = IBV_MTU_1024,
		.ah_attr = {.is_global = 1, .port_num = 1, .grh.sgid_index = client.gid_index},
	};

	return ibv_modify_qp(qp, &attr, mask);
}

/* Checks that the transition requires all of @mask, and refuses each attribute that is in neither @mask nor @optional. */
static void expect_attributes(struct ibv_qp *qp, enum ibv_qp_state state, int mask, int optional)
{
	for (int bit = 1; bit < IBV_QP_RATE_LIMIT; bit <<= 1) {
		if (bit == IBV_QP_STATE || bit == IBV_QP_CUR_STATE || bit & optional)
			continue;
		note("state %d, attribute %#x", state, bit);
		expect_error(modify(qp, state, mask ^ bit), EINVAL);
	}
	expect_error(modify(qp, state, mask), 0);
	assert_int_equal(qp->state, state);
}

TEST(target_states)
{
	static const enum ibv_qp_state never[] = {IBV_QPS_RESET, IBV_QPS_RTS, IBV_QPS_SQD, IBV_QPS_ERR};
	struct dct dct;

	dct_create(&dct, &client, KEY);
	assert_int_equal(dct.end.qp->qp_num, 0);
	assert_int_equal(dct.end.qp->state, IBV_QPS_RESET);
	expect_attributes(dct.end.qp, IBV_QPS_INIT, DCT_INIT, 0);
	assert_int_equal(dct.end.qp->qp_num, 0);
	expect_error(modify(dct.end.qp, IBV_QPS_INIT, DCT_INIT), EINVAL);
	expect_attributes(dct.end.qp, IBV_QPS_RTR, DCT_RTR, 0);
	assert_int_not_equal(dct.end.qp->qp_num, 0);
	for (size_t i = 0; i < ARRAY_SIZE(never); i++)
		expect_error(modify(dct.end.qp, never[i], STATE), EINVAL);
	expect_error(modify(dct.end.qp, IBV_QPS_RTR, IBV_QP_MIN_RNR_TIMER), EINVAL);
	dct_close(&dct);
}

TEST(initiator_states)
{
	struct dci_options options = dci_defaults();
	struct dci dci;

	dci_create(&dci, &client, &server, &options);
	assert_int_not_equal(dci.end.qp->qp_num, 0);
	expect_attributes(dci.end.qp, IBV_QPS_INIT, DCI_INIT, 0);
	expect_error(modify(dci.end.qp, IBV_QPS_INIT, DCI_INIT), 0);
	expect_attributes(dci.end.qp, IBV_QPS_RTR, DCI_RTR, IBV_QP_PKEY_INDEX | IBV_QP_AV);
	expect_attributes(dci.end.qp, IBV_QPS_RTS, DCI_RTS, IBV_QP_MIN_RNR_TIMER);
	expect_error(modify(dci.end.qp, IBV_QPS_RTS, STATE | IBV_QP_MIN_RNR_TIMER), 0);
	expect_error(modify(dci.end.qp, IBV_QPS_SQD, STATE), EINVAL);
	expect_error(modify(dci.end.qp, IBV_QPS_ERR, STATE), 0);
	expect_error(modify(dci.end.qp, IBV_QPS_RESET, STATE), 0);
	/* As UCX does: with a meaningless address. */
	expect_error(modify(dci.end.qp, IBV_QPS_INIT, DCI_INIT), 0);
	expect_error(modify(dci.end.qp, IBV_QPS_RTR, DCI_RTR | IBV_QP_AV), 0);
	dci_close(&dci);
}

/* ibv_query_qp(3): a DCT can be queried in RTR, for the attributes that it has. */
TEST(queries)
{
	const int known = IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PORT | IBV_QP_MIN_RNR_TIMER | IBV_QP_AV |
			  IBV_QP_PATH_MTU | IBV_QP_PKEY_INDEX;
	struct dci_options options = dci_defaults();
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct dct dct;
	struct dci dci;

	dct_create(&dct, &client, KEY);
	expect_error(ibv_query_qp(dct.end.qp, &attr, IBV_QP_STATE, &init), EINVAL);
	expect_error(dct_to_init(&dct, SIDE_REMOTE), 0);
	expect_error(ibv_query_qp(dct.end.qp, &attr, IBV_QP_STATE, &init), EINVAL);
	expect_error(dct_to_rtr(&dct), 0);
	expect_error(ibv_query_qp(dct.end.qp, &attr, known | IBV_QP_CAP, &init), EINVAL);
	expect_error(ibv_query_qp(dct.end.qp, &attr, known, &init), 0);
	assert_int_equal(attr.qp_state, IBV_QPS_RTR);
	assert_int_equal(attr.qp_access_flags, SIDE_REMOTE);
	assert_int_equal(attr.port_num, 1);
	assert_int_equal(attr.path_mtu, IBV_MTU_1024);
	assert_int_equal(attr.min_rnr_timer, 1);
	assert_int_equal(attr.ah_attr.grh.sgid_index, client.gid_index);
	assert_int_equal(attr.ah_attr.grh.hop_limit, 1);
	assert_ptr_equal(init.srq, dct.srq);
	assert_int_equal(init.qp_type, IBV_QPT_DRIVER);
	dct_close(&dct);

	dci_open(&dci, &client, &server, &options);
	expect_error(ibv_query_qp(dci.end.qp, &attr, IBV_QP_STATE | IBV_QP_CAP | IBV_QP_TIMEOUT, &init), 0);
	assert_int_equal(attr.qp_state, IBV_QPS_RTS);
	assert_int_equal(attr.timeout, options.timeout);
	assert_memory_equal(&attr.cap, &dci.end.cap, sizeof(attr.cap));
	dci_close(&dci);
}

/* mlx5dv_create_qp(3) for a DCI: all builders of RC (mlx5dv_wr_post(3)), and no others. */
TEST(dv_operations)
{
	struct ibv_qp_init_attr_ex init = {
		.send_cq = pair.client.cq,
		.recv_cq = pair.client.cq,
		.cap = {.max_send_wr = 1},
		.qp_type = IBV_QPT_DRIVER,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = client.pd,
	};
	struct mlx5dv_qp_init_attr attr = {
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC | MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS,
		.dc_init_attr.dc_type = MLX5DV_DCTYPE_DCI,
	};

	for (uint64_t bit = 1; bit <= 1 << 5; bit <<= 1) {
		struct ibv_qp *qp;

		attr.send_ops_flags = bit;
		errno = 0;
		qp = mlx5dv_create_qp(client.context, &init, &attr);
		if (bit & (DV_KEY_OPS | MLX5DV_QP_EX_WITH_RAW_WQE | MLX5DV_QP_EX_WITH_MEMCPY)) {
			assert_non_null(qp);
			expect_error(ibv_destroy_qp(qp), 0);
		} else {
			assert_null(qp);
			assert_int_equal(errno, EOPNOTSUPP);
		}
	}
}

/* ---- destinations of requests ---------------------------------------------------------------------------------- */

/*
 * A wrong access key is refused without consuming a receive; the DCT keeps serving other DCIs, and this one with the right key.
 */
TEST(wrong_key)
{
	struct dci_options options = dci_defaults();
	struct ibv_sge sink = side_sge(&server, THERE_AT, BYTES), source;
	struct dct dct, guess;
	struct dci dci, other;

	source = side_sge(&client, HERE_AT, BYTES);
	dct_open(&dct, &server, KEY);
	guess = dct;
	dci_open(&dci, &client, &server, &options);
	dci_open(&other, &client, &server, &options);
	dct_receive(&dct, RECV_ID, &sink, 1);
	for (int bit = 0; bit < 64; bit += 21) {
		guess.key = KEY ^ UINT64_C(1) << bit;
		dci_send(&dci, &guess, 0, 1, source);
		expect_status(&dci.end, 1, IBV_WC_REM_ACCESS_ERR);
		expect_state(&dci.end, IBV_QPS_ERR);
		dci_connect(&dci);
		dci_write(&dci, &guess, 0, 2, source, server.mr->rkey, side_address(&server, THERE_AT));
		expect_status(&dci.end, 2, IBV_WC_REM_ACCESS_ERR);
		dci_connect(&dci);
		expect_idle(&dct.end);
		side_compare(&server);
	}
	dci_send(&other, &dct, 0, 3, source);
	expect_completion(&other.end, 3, IBV_WC_SEND);
	expect_completion(&dct.end, RECV_ID, IBV_WC_RECV);
	for (int i = 0; i < BYTES; i++)
		server.expected[THERE_AT + i] = client.expected[HERE_AT + i];
	dci_write(&dci, &dct, 0, 4, source, server.mr->rkey, side_address(&server, THERE_AT));
	expect_completion(&dci.end, 4, IBV_WC_RDMA_WRITE);
	dci_close(&dci);
	dci_close(&other);
	dct_close(&dct);
}

/* No target responds: a destroyed DCT, one that is not ready, a QP of another type, an address without an owner. */
TEST(no_target)
{
	struct dci_options options = dci_defaults();
	struct ibv_ah_attr nowhere = {
		.is_global = 1,
		.port_num = 1,
		.grh = {.dgid.raw = {0xfe, 0x80, [15] = 0x77}, .sgid_index = client.gid_index, .hop_limit = 1},
	};
	struct ibv_sge source = side_sge(&client, HERE_AT, BYTES);
	struct dct dct, gone, unready, foreign;
	struct ibv_ah *ah;
	struct dci dci;

	options.timeout = 1;
	options.retry_cnt = 2;
	dci_open(&dci, &client, &server, &options);
	dct_open(&dct, &server, KEY);
	dct_open(&gone, &server, KEY);
	dct_create(&unready, &server, KEY);
	expect_error(dct_to_init(&unready, SIDE_REMOTE), 0);
	foreign = dct;
	foreign.end.qp = pair.server.qp;
	{
		struct ibv_qp number = {.qp_num = gone.end.qp->qp_num};
		struct dct absent = {.end.qp = &number, .key = KEY};

		dct_close(&gone);
		dci_send(&dci, &absent, 0, 1, source);
		expect_status(&dci.end, 1, IBV_WC_RETRY_EXC_ERR);
	}
	dci_connect(&dci);
	dci_send(&dci, &unready, 0, 2, source);
	expect_status(&dci.end, 2, IBV_WC_RETRY_EXC_ERR);
	dci_connect(&dci);
	dci_send(&dci, &foreign, 0, 3, source);
	expect_status(&dci.end, 3, IBV_WC_RETRY_EXC_ERR);
	dci_connect(&dci);
	ah = dci.ah;
	dci.ah = ibv_create_ah(client.pd, &nowhere);
	if (dci.ah) {
		dci_send(&dci, &dct, 0, 4, source);
		expect_status(&dci.end, 4, IBV_WC_RETRY_EXC_ERR);
		expect_error(ibv_destroy_ah(dci.ah), 0);
	} else {
		/* The address is on a link where no neighbour has it. */
		assert_int_equal(errno, ETIMEDOUT);
	}
	dci.ah = ah;
	dct_close(&dct);
	dct_close(&unready);
	dci_close(&dci);
}

/* ibv_modify_qp(3), qp_access_flags of the DCT. */
TEST(access_flags)
{
	struct dci_options options = dci_defaults();
	struct ibv_sge source = side_sge(&client, HERE_AT, BYTES);
	struct dct dct;
	struct dci dci;

	dct_create(&dct, &server, KEY);
	expect_error(dct_to_init(&dct, IBV_ACCESS_REMOTE_READ), 0);
	expect_error(dct_to_rtr(&dct), 0);
	dci_open(&dci, &client, &server, &options);
	dci_write(&dci, &dct, 0, 1, source, server.mr->rkey, side_address(&server, THERE_AT));
	expect_status(&dci.end, 1, IBV_WC_REM_INV_REQ_ERR);
	dci_connect(&dci);
	ibv_wr_start(dci.end.ex);
	dci.end.ex->wr_id = 2;
	ibv_wr_rdma_read(dci.end.ex, server.mr->rkey, side_address(&server, THERE_AT));
	ibv_wr_set_sge(dci.end.ex, source.lkey, source.addr, source.length);
	dci_address(&dci, &dct, 0);
	expect_error(ibv_wr_complete(dci.end.ex), 0);
	expect_completion(&dci.end, 2, IBV_WC_RDMA_READ);
	for (int i = 0; i < BYTES; i++)
		client.expected[HERE_AT + i] = server.expected[THERE_AT + i];
	dci_close(&dci);
	dct_close(&dct);
}

/* ---- mlx5dv_map_ah_to_qp(3) ------------------------------------------------------------------------------------ */

TEST(map_address)
{
	struct dci_options options = dci_defaults();
	struct dct dct;
	struct dci dci;

	dct_open(&dct, &server, KEY);
	dci_open(&dci, &client, &server, &options);
	expect_error(mlx5dv_map_ah_to_qp(dci.ah, 0xffffff), EINVAL);
	expect_error(mlx5dv_map_ah_to_qp(dci.ah, dci.end.qp->qp_num), 0);
	/* "A duplicate mapping to the same address handle is ignored": it succeeds with any number. */
	expect_error(mlx5dv_map_ah_to_qp(dci.ah, 0xffffff), 0);
	dci_write(&dci, &dct, 0, 1, side_sge(&client, HERE_AT, BYTES), server.mr->rkey,
		  side_address(&server, THERE_AT));
	expect_completion(&dci.end, 1, IBV_WC_RDMA_WRITE);
	for (int i = 0; i < BYTES; i++)
		server.expected[THERE_AT + i] = client.expected[HERE_AT + i];
	dci_close(&dci);
	dct_close(&dct);
}
