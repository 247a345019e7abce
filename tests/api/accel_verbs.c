/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests SPDK's accel module of 24.01 and 24.05, which calls only verbs and mlx5dv. It takes the attributes of its connection from
 * a query of the fresh queue pair. For each block, a task configures a key with crypto attributes and WRITEs into it; wr_start()
 * and wr_complete() enclose all requests of a poll. The WRITE enters the key from the wire: with encrypt_on_tx the memory
 * receives the decrypted data, and without it the encrypted data (mlx5dv_wr_post(3)).
 */
#include "support/accel_model.h"
#include "support/accel_tasks.h"
#include "support/completion.h"

enum {
	BLOCK_BYTES = 512,
	BLOCKS = 8,
	BYTES = BLOCK_BYTES * BLOCKS,
	FROM = 512,
	TO = 32768,
	KEYS = 64,
	UNSUCCESSFUL = 1000
};

static const uint8_t secret[40] = "two keys of sixteen bytes, which tenant1";

static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct ibv_qp_ex *ex;
static struct mlx5dv_qp_ex *dv;
static struct mlx5dv_mkey *keys[KEYS];
static struct mlx5dv_dek *dek;

/* ---- start-up --------------------------------------------------------------------------------------------------- */

static void expect_crypto_device(void)
{
	struct mlx5dv_context attr = {.comp_mask = MLX5DV_CONTEXT_MASK_CRYPTO_OFFLOAD};
	struct ibv_device_attr device;

	expect_error(ibv_query_device(client.context, &device), 0);
	assert_int_equal(device.vendor_id, 0x2c9);
	expect_error(mlx5dv_query_device(client.context, &attr), 0);
	assert_true(attr.crypto_caps.flags & MLX5DV_CRYPTO_CAPS_CRYPTO);
	assert_true(attr.crypto_caps.crypto_engines & MLX5DV_CRYPTO_ENGINES_CAP_AES_XTS_SINGLE_BLOCK);
	assert_false(attr.crypto_caps.wrapped_import_method & MLX5DV_CRYPTO_WRAPPED_IMPORT_METHOD_CAP_AES_XTS);
}

/* Connects the queue pair; each step uses the attributes that the query of the fresh queue pair returned. */
static void connect_by_query(void)
{
	const int asked = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS | IBV_QP_PATH_MTU | IBV_QP_AV |
			  IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER |
			  IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
			  IBV_QP_MAX_QP_RD_ATOMIC;
	struct ibv_qp_attr fresh = {0}, attr = {.qp_state = IBV_QPS_INIT};
	struct ibv_qp_init_attr init = {0};
	struct ibv_port_attr port;
	union ibv_gid gid;

	expect_error(ibv_query_qp(qp, &fresh, asked, &init), 0);
	expect_error(ibv_query_port(client.context, fresh.port_num, &port), 0);
	assert_true(port.state == IBV_PORT_ARMED || port.state == IBV_PORT_ACTIVE);
	assert_int_equal(ibv_query_gid(client.context, fresh.port_num, 0, &gid), 0);
	attr.pkey_index = fresh.pkey_index;
	attr.port_num = fresh.port_num;
	attr.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
	expect_error(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), 0);
	attr.qp_state = IBV_QPS_RTR;
	attr.path_mtu = fresh.path_mtu;
	attr.dest_qp_num = qp->qp_num;
	attr.rq_psn = fresh.rq_psn;
	attr.max_dest_rd_atomic = fresh.max_dest_rd_atomic;
	attr.min_rnr_timer = fresh.min_rnr_timer;
	attr.ah_attr = fresh.ah_attr;
	attr.ah_attr.dlid = port.lid;
	attr.ah_attr.is_global = 1;
	attr.ah_attr.grh.hop_limit = 1;
	attr.ah_attr.grh.dgid = gid;
	assert_int_equal(attr.ah_attr.port_num, fresh.port_num);
	expect_error(ibv_modify_qp(qp, &attr,
				   IBV_QP_STATE | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					   IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER | IBV_QP_AV),
		     0);
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
				    .timeout = fresh.timeout,
				    .retry_cnt = fresh.retry_cnt,
				    .sq_psn = fresh.sq_psn,
				    .rnr_retry = fresh.rnr_retry,
				    .max_rd_atomic = fresh.max_rd_atomic};
	expect_error(ibv_modify_qp(qp, &attr,
				   IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_SQ_PSN | IBV_QP_RNR_RETRY |
					   IBV_QP_MAX_QP_RD_ATOMIC),
		     0);
}

static void open_qp(void)
{
	struct mlx5dv_qp_init_attr dv_attr = {.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS,
					      .send_ops_flags = MLX5DV_QP_EX_WITH_MKEY_CONFIGURE};
	struct ibv_qp_init_attr_ex attr = {.qp_type = IBV_QPT_RC,
					   .pd = client.pd,
					   .send_cq = cq,
					   .recv_cq = cq,
					   .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
					   .send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_SEND |
							     IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_BIND_MW,
					   .cap = {.max_send_wr = ACCEL_WRS,
						   .max_send_sge = ACCEL_SGES,
						   .max_inline_data = ACCEL_SGES * sizeof(struct ibv_sge)}};

	qp = mlx5dv_create_qp(client.context, &attr, &dv_attr);
	assert_non_null(qp);
	ex = ibv_qp_to_qp_ex(qp);
	dv = mlx5dv_qp_ex_from_ibv_qp_ex(ex);
	assert_non_null(dv);
	connect_by_query();
}

static void open_accel(bool tagged)
{
	struct mlx5dv_dek_init_attr dek_attr = {.key_size = MLX5DV_CRYPTO_KEY_SIZE_128,
						.has_keytag = tagged,
						.key_purpose = MLX5DV_CRYPTO_KEY_PURPOSE_AES_XTS,
						.pd = client.pd,
						.comp_mask = MLX5DV_DEK_INIT_ATTR_CRYPTO_LOGIN};
	struct mlx5dv_mkey_init_attr key_attr = {.pd = client.pd,
						 .max_entries = ACCEL_SGES,
						 .create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT |
								 MLX5DV_MKEY_INIT_ATTR_FLAGS_CRYPTO};
	struct mlx5dv_dek_attr state = {0};

	expect_crypto_device();
	memcpy(dek_attr.key, secret, tagged ? 40 : 32);
	dek = mlx5dv_dek_create(client.context, &dek_attr);
	assert_non_null(dek);
	expect_error(mlx5dv_dek_query(dek, &state), 0);
	assert_int_equal(state.state, MLX5DV_DEK_STATE_READY);
	for (size_t i = 0; i < KEYS; i++) {
		keys[i] = mlx5dv_create_mkey(&key_attr);
		assert_non_null(keys[i]);
	}
	cq = ibv_create_cq(client.context, ACCEL_WRS, NULL, NULL, 0);
	assert_non_null(cq);
	open_qp();
}

static void close_accel(void)
{
	expect_error(ibv_destroy_qp(qp), 0);
	expect_error(ibv_destroy_cq(cq), 0);
	for (size_t i = 0; i < KEYS; i++)
		expect_error(mlx5dv_destroy_mkey(keys[i]), 0);
	expect_error(mlx5dv_dek_destroy(dek), 0);
}

/* ---- tasks ------------------------------------------------------------------------------------------------------ */

struct task {
	struct accel_list from, to;
	bool on_tx, tagged;
	uint64_t lba;
};

/* Builds one request for the pieces of one block. */
static void put_block(struct task *task, size_t number)
{
	struct mlx5dv_mkey *key = keys[number % KEYS];
	struct mlx5dv_mkey_conf_attr conf = {0};
	struct mlx5dv_crypto_attr crypto = {.dek = dek,
					    .crypto_standard = MLX5DV_CRYPTO_STANDARD_AES_XTS,
					    .data_unit_size = MLX5DV_BLOCK_SIZE_512,
					    .encrypt_on_tx = task->on_tx};
	struct ibv_sge from[ACCEL_SGES], to[ACCEL_SGES];
	size_t from_count = accel_take(&task->from, BLOCK_BYTES, from);
	size_t to_count = accel_take(&task->to, BLOCK_BYTES, to);
	uint64_t iv = task->lba++;

	memcpy(crypto.initial_tweak, &iv, sizeof(iv));
	if (task->tagged)
		memcpy(crypto.keytag, secret + 32, 8);
	ex->wr_flags = IBV_SEND_INLINE;
	ex->wr_id = UNSUCCESSFUL + number;
	mlx5dv_wr_mkey_configure(dv, key, 3, &conf);
	mlx5dv_wr_set_mkey_access_flags(dv, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	mlx5dv_wr_set_mkey_layout_list(dv, (uint16_t)to_count, to);
	mlx5dv_wr_set_mkey_crypto(dv, &crypto);
	ex->wr_flags = IBV_SEND_SIGNALED;
	ex->wr_id = number;
	ibv_wr_rdma_write(ex, key->rkey, 0);
	ibv_wr_set_sge_list(ex, from_count, from);
}

static void expect_writes(size_t first, size_t count)
{
	double end = seconds_now() + 20;
	struct ibv_wc wc;

	for (size_t i = 0; i < count; i++) {
		while (!ibv_poll_cq(cq, 1, &wc))
			assert_true(seconds_now() < end);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_int_equal(wc.wr_id, first + i);
		assert_int_equal(wc.opcode, IBV_WC_RDMA_WRITE);
	}
}

/* Runs tasks of eight blocks: up to 15 pieces, in place and not, both directions, eight requests per wr_complete(). */
static void run_tasks(bool tagged)
{
	struct ibv_sge from[ACCEL_SGES], to[ACCEL_SGES];
	uint8_t before[BYTES], after[BYTES];
	size_t number = 0;

	open_accel(tagged);
	for (size_t round = 0; round < 60; round++) {
		bool in_place = round % 3 == 2;
		size_t from_count = 1 + round % 15, to_count = 1 + round * 7 % 15;
		struct task task = {.on_tx = round & 1, .tagged = tagged, .lba = UINT32_MAX - 5 + round};
		uint64_t lba = task.lba;

		accel_cut(&client, FROM + round, BYTES, from_count, from);
		accel_cut(&client, TO + round * 2, BYTES, to_count, to);
		task.from = (struct accel_list){.sges = from, .count = from_count};
		task.to = in_place ? task.from : (struct accel_list){.sges = to, .count = to_count};
		model_gather(&client, from, from_count, before);
		ibv_wr_start(ex);
		for (size_t i = 0; i < BLOCKS; i++)
			put_block(&task, number + i);
		expect_error(ibv_wr_complete(ex), 0);
		expect_writes(number, BLOCKS);
		number += BLOCKS;
		for (size_t i = 0; i < BLOCKS; i++)
			model_xts(!task.on_tx, secret, 32, lba + i, after + i * BLOCK_BYTES, before + i * BLOCK_BYTES,
				  BLOCK_BYTES);
		model_scatter(&client, in_place ? from : to, in_place ? from_count : to_count, after);
		side_compare(&client);
	}
	close_accel();
}

TEST(tasks)
{
	run_tasks(false);
}

TEST(tasks_with_a_key_tag)
{
	run_tasks(true);
}

/* Aborts a task that turns out to be impossible to describe: requests built since wr_start() have no effect. */
TEST(requests_are_aborted)
{
	struct ibv_sge from = side_sge(&client, FROM, BYTES), to = side_sge(&client, TO, BYTES);
	struct task task = {.from = {.sges = &from, .count = 1}, .to = {.sges = &to, .count = 1}, .lba = 9};
	struct task again = task;
	uint8_t after[BLOCK_BYTES];

	open_accel(false);
	ibv_wr_start(ex);
	put_block(&task, 1);
	put_block(&task, 2);
	ibv_wr_abort(ex);
	ibv_wr_start(ex);
	put_block(&again, 3);
	expect_error(ibv_wr_complete(ex), 0);
	expect_writes(3, 1);
	model_xts(true, secret, 32, 9, after, client.expected + FROM, BLOCK_BYTES);
	memcpy(client.expected + TO, after, BLOCK_BYTES);
	side_compare(&client);
	close_accel();
}
