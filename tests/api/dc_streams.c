/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests streams of a DCI through the ABI: mlx5dv_create_qp(3), dci_streams; mlx5dv_wr_set_dc_addr_stream(3);
 * mlx5dv_dci_stream_id_reset(3); dci_streams_caps of mlx5dv_query_device(3).
 */
#include "support/dc.h"
#include "support/program.h"

enum { KEY = 0xfeed, HERE_AT = 4096, THERE_AT = 16384, BYTES = 100 };

static struct dct target;

static int dc_open(void **state)
{
	program_open(state);
	dct_open(&target, &server, KEY);
	return 0;
}

static int dc_close(void **state)
{
	dct_close(&target);
	return program_close(state);
}

/* Opens a DCI with streams that fails after 2^@log_errored of them are in error. */
static void open_streams(struct dci *dci, uint8_t log_errored)
{
	struct dci_options options = dci_defaults();

	options.streams = true;
	options.log_streams = 3;
	options.log_errored = log_errored;
	options.retry_cnt = 1;
	options.timeout = 5;
	dci_open(dci, &client, &server, &options);
}

static void write_on(struct dci *dci, uint16_t stream, uint64_t wr_id, uint32_t lkey, uint32_t rkey)
{
	struct ibv_sge source = side_sge(&client, HERE_AT, BYTES);

	source.lkey = lkey;
	dci_write(dci, &target, stream, wr_id, source, rkey, side_address(&server, THERE_AT));
}

/* Posts a WRITE that must arrive. */
static void good(struct dci *dci, uint16_t stream, uint64_t wr_id)
{
	side_stir(&client);
	write_on(dci, stream, wr_id, client.mr->lkey, server.mr->rkey);
	for (int i = 0; i < BYTES; i++)
		server.expected[THERE_AT + i] = client.expected[HERE_AT + i];
	expect_completion(&dci->end, wr_id, IBV_WC_RDMA_WRITE);
	side_compare(&server);
}

/* Posts a WRITE that must be flushed. */
static void flushed(struct dci *dci, uint16_t stream, uint64_t wr_id)
{
	side_stir(&client);
	write_on(dci, stream, wr_id, client.mr->lkey, server.mr->rkey);
	expect_status(&dci->end, wr_id, IBV_WC_WR_FLUSH_ERR);
	side_compare(&server);
}

/* Posts a WRITE that fails at the responder if @remote, otherwise at the requester. */
static void fails(struct dci *dci, uint16_t stream, uint64_t wr_id, bool remote)
{
	write_on(dci, stream, wr_id, remote ? client.mr->lkey : 0xfffff00, remote ? 0xfffff00 : server.mr->rkey);
	expect_status(&dci->end, wr_id, remote ? IBV_WC_REM_ACCESS_ERR : IBV_WC_LOC_PROT_ERR);
}

/* "a stream_id that caused the completion with error is in error state", and no other. */
TEST(one_stream_fails)
{
	struct dci dci;

	for (int remote = 0; remote < 2; remote++) {
		open_streams(&dci, 2);
		good(&dci, 1, 1);
		fails(&dci, 1, 2, remote);
		expect_state(&dci.end, IBV_QPS_RTS);
		flushed(&dci, 1, 3);
		good(&dci, 2, 4);
		good(&dci, 0, 5);
		flushed(&dci, 1, 6);
		expect_error(mlx5dv_dci_stream_id_reset(dci.end.qp, 1), 0);
		good(&dci, 1, 7);
		dci_close(&dci);
	}
}

/* mlx5dv_wr_set_dc_addr() "are equivalent to using stream_id=0". */
TEST(plain_address_is_stream_0)
{
	struct dci dci;

	open_streams(&dci, 2);
	fails(&dci, 0, 1, false);
	ibv_wr_start(dci.end.ex);
	dci.end.ex->wr_id = 2;
	dci.end.ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_rdma_write(dci.end.ex, server.mr->rkey, side_address(&server, THERE_AT));
	mlx5dv_wr_set_dc_addr_stream(dci.end.dv, dci.ah, target.end.qp->qp_num, target.key, 0);
	ibv_wr_set_sge(dci.end.ex, client.mr->lkey, side_address(&client, HERE_AT), BYTES);
	expect_error(ibv_wr_complete(dci.end.ex), 0);
	expect_status(&dci.end, 2, IBV_WC_WR_FLUSH_ERR);
	expect_error(mlx5dv_dci_stream_id_reset(dci.end.qp, 0), 0);
	good(&dci, 0, 3);
	dci_close(&dci);
}

/* One batch: requests complete in the order of the queue, whatever their status. */
TEST(one_batch)
{
	static const struct {
		uint16_t stream;
		bool good;
		enum ibv_wc_status status;
	} requests[] = {
		{1, true, IBV_WC_SUCCESS},       {2, false, IBV_WC_REM_ACCESS_ERR}, {1, true, IBV_WC_SUCCESS},
		{2, true, IBV_WC_WR_FLUSH_ERR},  {3, false, IBV_WC_REM_ACCESS_ERR}, {3, false, IBV_WC_WR_FLUSH_ERR},
		{2, false, IBV_WC_WR_FLUSH_ERR}, {1, true, IBV_WC_SUCCESS},         {65535, true, IBV_WC_SUCCESS},
	};
	struct dci dci;

	open_streams(&dci, 2);
	ibv_wr_start(dci.end.ex);
	dci.end.ex->wr_flags = IBV_SEND_SIGNALED;
	for (size_t i = 0; i < ARRAY_SIZE(requests); i++) {
		size_t there = THERE_AT + i * BYTES;

		dci.end.ex->wr_id = i;
		ibv_wr_rdma_write(dci.end.ex, requests[i].good ? server.mr->rkey : 0xfffff00,
				  side_address(&server, there));
		ibv_wr_set_sge(dci.end.ex, client.mr->lkey, side_address(&client, HERE_AT), BYTES);
		dci_address(&dci, &target, requests[i].stream);
		if (requests[i].status == IBV_WC_SUCCESS)
			memcpy(server.expected + there, client.expected + HERE_AT, BYTES);
	}
	expect_error(ibv_wr_complete(dci.end.ex), 0);
	for (size_t i = 0; i < ARRAY_SIZE(requests); i++)
		expect_status(&dci.end, i, requests[i].status);
	side_compare(&server);
	expect_state(&dci.end, IBV_QPS_RTS);
	dci_close(&dci);
}

/* "once the number of unique stream_id in error reaches the DCI QP's log_num_errored streams"; RESET clears all errors. */
TEST(too_many_streams_fail)
{
	struct dci dci;

	for (uint8_t log_errored = 0; log_errored < 3; log_errored++) {
		open_streams(&dci, log_errored);
		for (uint16_t i = 0; i < 1 << log_errored; i++) {
			expect_state(&dci.end, IBV_QPS_RTS);
			fails(&dci, i, i, i & 1);
		}
		expect_state(&dci.end, IBV_QPS_ERR);
		flushed(&dci, 100, 100);
		dci_connect(&dci);
		good(&dci, 0, 101);
		dci_close(&dci);
	}
}

/* Without MLX5DV_QP_INIT_ATTR_MASK_DCI_STREAMS the QP fails as an RC QP does. */
TEST(no_streams)
{
	struct dci_options options = dci_defaults();
	struct dci dci;

	dci_open(&dci, &client, &server, &options);
	good(&dci, 1, 1);
	fails(&dci, 2, 2, true);
	expect_state(&dci.end, IBV_QPS_ERR);
	flushed(&dci, 3, 3);
	dci_connect(&dci);
	good(&dci, 3, 4);
	expect_error(mlx5dv_dci_stream_id_reset(dci.end.qp, 2), EINVAL);
	dci_close(&dci);
}

/* mlx5dv_dci_stream_id_reset(3), RETURN VALUE. */
TEST(reset_errors)
{
	struct dci_options options = dci_defaults();
	struct dci dci;

	open_streams(&dci, 2);
	expect_error(mlx5dv_dci_stream_id_reset(dci.end.qp, 1), EINVAL);
	fails(&dci, 1, 1, false);
	expect_error(mlx5dv_dci_stream_id_reset(dci.end.qp, 2), EINVAL);
	expect_error(mlx5dv_dci_stream_id_reset(dci.end.qp, 1), 0);
	expect_error(mlx5dv_dci_stream_id_reset(dci.end.qp, 1), EINVAL);
	expect_error(mlx5dv_dci_stream_id_reset(pair.client.qp, 1), EINVAL);
	expect_error(mlx5dv_dci_stream_id_reset(target.end.qp, 1), EOPNOTSUPP);
	dci_close(&dci);
	dci_create(&dci, &client, &server, &options);
	expect_error(mlx5dv_dci_stream_id_reset(dci.end.qp, 1), EOPNOTSUPP);
	dci_close(&dci);
}

TEST(capabilities)
{
	struct mlx5dv_context dv = {.comp_mask = MLX5DV_CONTEXT_MASK_DCI_STREAMS | MLX5DV_CONTEXT_MASK_DC_ODP_CAPS};
	const uint32_t odp = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_SRQ_RECV | IBV_ODP_SUPPORT_WRITE |
			     IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC;
	struct mlx5dv_qp_init_attr attr = {
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC | MLX5DV_QP_INIT_ATTR_MASK_DCI_STREAMS,
		.dc_init_attr.dc_type = MLX5DV_DCTYPE_DCI,
	};
	struct ibv_qp_init_attr_ex init = {
		.send_cq = target.end.cq,
		.recv_cq = target.end.cq,
		.cap = {.max_send_wr = 1},
		.qp_type = IBV_QPT_DRIVER,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = server.pd,
	};
	struct mlx5dv_dci_streams *streams = &attr.dc_init_attr.dci_streams;
	/* The structure of rdma-core 47 and later, longer than that of 44: MLX5DV_CONTEXT_MASK_MAX_DC_RD_ATOM. */
	union {
		struct mlx5dv_context context;
		struct {
			unsigned char
				older[offsetof(struct mlx5dv_context, crypto_caps) + sizeof(struct mlx5dv_crypto_caps)];
			uint64_t max_dc_rd_atom, max_dc_init_rd_atom, rest;
		} all;
	} newer = {.all.rest = UINT64_MAX};
	struct ibv_qp *qp;

	expect_error(mlx5dv_query_device(server.context, &dv), 0);
	assert_int_equal(dv.comp_mask, MLX5DV_CONTEXT_MASK_DCI_STREAMS | MLX5DV_CONTEXT_MASK_DC_ODP_CAPS);
	assert_int_equal(dv.dc_odp_caps, odp);
	newer.context.comp_mask = 1 << 14;
	expect_error(mlx5dv_query_device(server.context, &newer.context), 0);
	assert_int_equal(newer.context.comp_mask, 1 << 14);
	assert_int_equal(newer.all.max_dc_rd_atom, 16);
	assert_int_equal(newer.all.max_dc_init_rd_atom, 16);
	assert_int_equal(newer.all.rest, UINT64_MAX);
	assert_true(dv.dci_streams_caps.max_log_num_concurent > 0);
	assert_true(dv.dci_streams_caps.max_log_num_errored > 0);
	for (int i = 0; i < 4; i++) {
		streams->log_num_concurent = dv.dci_streams_caps.max_log_num_concurent + (i & 1);
		streams->log_num_errored = dv.dci_streams_caps.max_log_num_errored + (i >> 1);
		errno = 0;
		qp = mlx5dv_create_qp(server.context, &init, &attr);
		assert_int_equal(!qp, i != 0);
		if (qp)
			expect_error(ibv_destroy_qp(qp), 0);
		else
			assert_int_equal(errno, EINVAL);
	}
}

int main(void)
{
	return run_cases(.setup = dc_open, .teardown = dc_close);
}
