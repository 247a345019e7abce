/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * EXAMPLES of mlx5dv_wr_mkey_configure(3): the code of the man page, with its open variables filled in. Names in the
 * cases are those of the page. The server owns the key, the client is the peer.
 */
#include "support/program.h"

enum { my_wr_id_1 = 0x1111 };

static struct layout layout;

/* "Create QP with MKEY configure support", and a peer with all send operations. */
static void create_qp_of_the_page(void)
{
	struct pair_options options = pair_defaults(IBV_QPT_RC);
	struct ibv_qp_init_attr_ex attr_ex = {0};
	struct mlx5dv_qp_init_attr attr_dv = {0};

	pair_close(&pair);
	pair_create(&pair, &client, &server, &options);
	expect_error(ibv_destroy_qp(pair.server.qp), 0);

	attr_ex.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	attr_ex.send_ops_flags |= IBV_QP_EX_WITH_RDMA_WRITE;

	attr_dv.comp_mask |= MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS;
	attr_dv.send_ops_flags = MLX5DV_QP_EX_WITH_MKEY_CONFIGURE;

	/* Omitted by the page. */
	attr_ex.qp_type = IBV_QPT_RC;
	attr_ex.send_cq = attr_ex.recv_cq = pair.server.cq;
	attr_ex.comp_mask |= IBV_QP_INIT_ATTR_PD;
	attr_ex.pd = server.pd;
	attr_ex.cap = (struct ibv_qp_cap){.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1};

	pair.server.qp = mlx5dv_create_qp(server.context, &attr_ex, &attr_dv);
	assert_non_null(pair.server.qp);
	pair.server.ex = ibv_qp_to_qp_ex(pair.server.qp);
	assert_non_null(pair.server.ex);
	pair.server.dv = mlx5dv_qp_ex_from_ibv_qp_ex(pair.server.ex);
	assert_non_null(pair.server.dv);
	pair_connect(&pair);
}

static struct mlx5dv_mkey *create_mkey_of_the_page(void)
{
	struct mlx5dv_mkey_init_attr mkey_attr = {.pd = server.pd, .max_entries = 3};
	struct mlx5dv_mkey *mkey;

	mkey_attr.create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT;
	mkey = mlx5dv_create_mkey(&mkey_attr);
	assert_non_null(mkey);
	return mkey;
}

/* The page requests no completion: the peer learns the key in another way, so none is needed here either. */
static void expect_peer_uses(struct view key)
{
	expect_write(&pair, view_memory(&client, 100, key.length), key, IBV_WC_SUCCESS);
	expect_read(&pair, view_memory(&client, 100, key.length), key, IBV_WC_SUCCESS);
	expect_write(&pair, view_memory(&client, 100, 1), view_part(key, (int64_t)key.length, 1),
		     IBV_WC_REM_ACCESS_ERR);
}

TEST(create_qp_and_mkey)
{
	struct mlx5dv_mkey *mkey;
	struct ibv_sge list[] = {side_sge(&server, 0, 64)};

	create_qp_of_the_page();
	mkey = create_mkey_of_the_page();
	lay_list(&pair.server, BY_CONFIGURE, mkey, &layout, 1, list);
	expect_error(mlx5dv_destroy_mkey(mkey), 0);
}

TEST(list_layout)
{
	struct ibv_mr *mr1 = side_register(&server, 5000, 64, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_mr *mr2 = side_register(&server, 300, 4096, IBV_ACCESS_LOCAL_WRITE);
	struct mlx5dv_mkey *mkey;
	struct mlx5dv_qp_ex *mqpx;
	struct ibv_qp_ex *qpx;
	int ret;

	create_qp_of_the_page();
	mkey = create_mkey_of_the_page();
	qpx = pair.server.ex;
	mqpx = pair.server.dv;

	ibv_wr_start(qpx);
	qpx->wr_id = my_wr_id_1;
	qpx->wr_flags = IBV_SEND_INLINE;

	struct mlx5dv_mkey_conf_attr mkey_attr = {};
	mlx5dv_wr_mkey_configure(mqpx, mkey, 2, &mkey_attr);
	mlx5dv_wr_set_mkey_access_flags(mqpx, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
	struct ibv_sge sgl[2];
	sgl[0].addr = (uintptr_t)mr1->addr;
	sgl[0].length = 64;
	sgl[0].lkey = mr1->lkey;
	sgl[1].addr = (uintptr_t)mr2->addr;
	sgl[1].length = 4096;
	sgl[1].lkey = mr2->lkey;
	mlx5dv_wr_set_mkey_layout_list(mqpx, 2, sgl);
	ret = ibv_wr_complete(qpx);

	expect_error(ret, 0);
	expect_idle(&pair.server);
	/* "The first 64 bytes will go to memory referenced by mr1. The next 4096 bytes … by mr2." */
	layout.length = 64 + 4096;
	for (uint32_t i = 0; i < layout.length; i++)
		layout.at[i] = i < 64 ? 5000 + i : 300 + (i - 64);
	expect_peer_uses(view_key(&server, mkey, &layout));
	expect_error(mlx5dv_destroy_mkey(mkey), 0);
}

TEST(interleaved_layout)
{
	struct ibv_mr *mr1 = side_register(&server, 5000, 1032, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_mr *mr2 = side_register(&server, 300, 16, IBV_ACCESS_LOCAL_WRITE);
	struct mlx5dv_mkey *mkey;
	struct mlx5dv_qp_ex *mqpx;
	struct ibv_qp_ex *qpx;
	int ret;

	create_qp_of_the_page();
	mkey = create_mkey_of_the_page();
	qpx = pair.server.ex;
	mqpx = pair.server.dv;

	ibv_wr_start(qpx);
	qpx->wr_id = my_wr_id_1;
	qpx->wr_flags = IBV_SEND_INLINE;

	struct mlx5dv_mkey_conf_attr mkey_attr = {};
	mlx5dv_wr_mkey_configure(mqpx, mkey, 2, &mkey_attr);
	mlx5dv_wr_set_mkey_access_flags(mqpx, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
	struct mlx5dv_mr_interleaved data[2];
	data[0].addr = (uintptr_t)mr1->addr;
	data[0].bytes_count = 512;
	data[0].bytes_skip = 4;
	data[0].lkey = mr1->lkey;
	data[1].addr = (uintptr_t)mr2->addr;
	data[1].bytes_count = 8;
	data[1].bytes_skip = 0;
	data[1].lkey = mr2->lkey;
	mlx5dv_wr_set_mkey_layout_interleaved(mqpx, 2, 2, data);
	ret = ibv_wr_complete(qpx);

	expect_error(ret, 0);
	expect_idle(&pair.server);
	/* "512 bytes … mr1 at offset 0, 8 … mr2 at offset 0, 512 … mr1 at offset 516, 8 … mr2 at offset 8" */
	layout.length = 1040;
	for (uint32_t i = 0; i < 512; i++) {
		layout.at[i] = 5000 + i;
		layout.at[520 + i] = 5000 + 516 + i;
	}
	for (uint32_t i = 0; i < 8; i++) {
		layout.at[512 + i] = 300 + i;
		layout.at[520 + 512 + i] = 300 + 8 + i;
	}
	expect_peer_uses(view_key(&server, mkey, &layout));
	expect_error(mlx5dv_destroy_mkey(mkey), 0);
}
