/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mlx5dv_wr_memcpy of mlx5dv_wr_post(3): what it copies, through which keys, and which errors it reports. The server's
 * QP copies within the server's memory; its connection to a peer does not matter.
 */
#include "support/signed_key.h"

enum { WR_ID = 0xc0b1, LIMIT = 1 << 28 };

static struct layout one_layout, other_layout;

static void open_pair(void)
{
	struct pair_options options = signed_options();

	options.dv_send_ops |= MLX5DV_QP_EX_WITH_MEMCPY;
	pair_replace(&pair, &options);
}

static void put_copy(struct view source, struct view target, uint64_t wr_id, unsigned int flags)
{
	pair.server.ex->wr_id = wr_id;
	pair.server.ex->wr_flags = flags;
	mlx5dv_wr_memcpy(pair.server.dv, target.key, target.address, source.key, source.address, source.length);
}

static void post_copy(struct view source, struct view target)
{
	ibv_wr_start(pair.server.ex);
	put_copy(source, target, WR_ID, IBV_SEND_SIGNALED);
	expect_error(ibv_wr_complete(pair.server.ex), 0);
}

static void expect_copy(struct view source, struct view target)
{
	post_copy(source, target);
	expect_completion(&pair.server, WR_ID, MLX5DV_WC_MEMCPY);
	model_copy(&source, &target);
	side_compare(&server);
}

static struct view memory(size_t start, size_t length)
{
	return view_memory(&server, start, length);
}

/* ---- copies ------------------------------------------------------------------------------------------------------ */

TEST(lengths_and_places)
{
	open_pair();
	side_stir(&server);
	for (size_t length = 1; length <= 20000; length += 1 + length / 5)
		for (size_t shift = 0; shift < 3; shift++)
			expect_copy(memory(100 + shift, length), memory(30000 - shift * 3, length));
	expect_state(&pair.server, IBV_QPS_RTS);
}

/* Posts more requests than the queue has room for, some of them signalled. */
TEST(chains)
{
	open_pair();
	side_stir(&server);
	for (int lap = 0; lap < 20; lap++) {
		ibv_wr_start(pair.server.ex);
		for (int i = 0; i < 10; i++) {
			struct view source = memory(i * 1000, 1000), target = memory((i + 1) * 1000, 1000);

			put_copy(source, target, i, i == 9 ? IBV_SEND_SIGNALED : 0);
			model_copy(&source, &target);
		}
		expect_error(ibv_wr_complete(pair.server.ex), 0);
		expect_completion(&pair.server, 9, MLX5DV_WC_MEMCPY);
		side_compare(&server);
		side_stir(&server);
	}
	expect_idle(&pair.server);
}

/* A request that depends on the copy has IBV_SEND_FENCE and sees the copied data. */
TEST(fenced_write)
{
	open_pair();
	side_stir(&server);
	for (int i = 0; i < 100; i++) {
		struct view source = memory(i * 100, 5000), target = memory(40000, 5000);
		struct view there = view_memory(&client, 7, 5000);

		ibv_wr_start(pair.server.ex);
		put_copy(source, target, 1, 0);
		batch_write(&pair.server, 2, IBV_SEND_FENCE | IBV_SEND_SIGNALED, target, there);
		expect_error(ibv_wr_complete(pair.server.ex), 0);
		expect_completion(&pair.server, 2, IBV_WC_RDMA_WRITE);
		model_copy(&source, &target);
		model_copy(&target, &there);
		side_compare(&server);
		side_compare(&client);
	}
}

/*
 * A READ is in flight because its peer is not connected yet, and a copy of the data it reads is queued after it. With a
 * fence the copy waits, and so does everything after it.
 */
TEST(fenced_copy)
{
	struct view source = view_memory(&client, 100, 64), read = memory(0, 64), copied = memory(2000, 64);
	struct view there = view_memory(&client, 9000, 64);
	struct pair_options options = pair.options;

	options.dv_send_ops |= MLX5DV_QP_EX_WITH_MEMCPY;
	pair_close(&pair);
	pair_create(&pair, &client, &server, &options);
	endpoint_to_init(&pair.client);
	endpoint_to_init(&pair.server);
	endpoint_to_rtr(&pair.server);
	endpoint_to_rts(&pair.server);
	side_stir(&server);
	side_stir(&client);
	ibv_wr_start(pair.server.ex);
	pair.server.ex->wr_flags = 0;
	ibv_wr_rdma_read(pair.server.ex, source.key, source.address);
	ibv_wr_set_sge(pair.server.ex, read.key, read.address, (uint32_t)read.length);
	put_copy(read, copied, 1, IBV_SEND_FENCE | IBV_SEND_SIGNALED);
	batch_write(&pair.server, 2, IBV_SEND_SIGNALED, copied, there);
	expect_error(ibv_wr_complete(pair.server.ex), 0);
	expect_idle(&pair.server);
	side_compare(&server); /* nothing was copied yet */
	endpoint_to_rtr(&pair.client);
	expect_completion(&pair.server, 1, MLX5DV_WC_MEMCPY);
	expect_completion(&pair.server, 2, IBV_WC_RDMA_WRITE);
	model_copy(&source, &read);
	model_copy(&read, &copied);
	model_copy(&copied, &there);
	side_compare(&server);
	side_compare(&client);
	endpoint_to_rts(&pair.client);
}

/* Copying needs no peer and no connection. */
TEST(without_a_peer)
{
	struct pair_options options = pair.options;

	options.dv_send_ops |= MLX5DV_QP_EX_WITH_MEMCPY;
	pair_replace(&pair, &options);
	endpoint_destroy_qp(&pair.client);
	expect_copy(memory(0, 1000), memory(2000, 1000));
	open_pair();
}

/* ---- keys --------------------------------------------------------------------------------------------------------- */

TEST(through_layouts)
{
	struct mlx5dv_mkey *list, *interleaved;
	struct mlx5dv_mr_interleaved records[2];
	struct ibv_sge pieces[3];
	struct view one, other;

	open_pair();
	list = side_create_mkey(&server, 4, NULL);
	interleaved = side_create_mkey(&server, 4, NULL);
	for (int i = 0; i < 3; i++)
		pieces[i] = side_sge(&server, 1000 + i * 3000, 1001);
	records[0] = side_interleaved(&server, 20000, 24, 17);
	records[1] = side_interleaved(&server, 40000, 7, 100);
	one = lay_list(&pair.server, BY_MR_CALL, list, &one_layout, 3, pieces);
	other = lay_interleaved(&pair.server, BY_MR_CALL, interleaved, &other_layout, 90, 2, records);
	side_stir(&server);
	expect_copy(view_part(one, 5, 2700), view_part(other, 3, 2700));
	expect_copy(view_part(other, 1000, 1500), view_part(one, 1200, 1500));
	expect_copy(view_part(one, 0, 3003), memory(60000, 3003));
	expect_copy(memory(60001, 2790), view_part(other, 0, 2790));
}

DOMAIN_DIF(dif, CRC, 512, 0, 0x1234, 9, MLX5DV_SIG_T10DIF_FLAG_REF_REMAP);

/*
 * mlx5-formats 6, no. 26: data moves from the memory of one key to the wire, and from there into the memory of the
 * other. One key has signature fields in memory and none on the wire: they are checked and stripped if it is the
 * source, and generated if it is the target.
 */
TEST(through_signatures)
{
	enum { RAW = 4 * 512 };
	const struct mlx5dv_sig_block_attr attr = {.mem = &dif, .check_mask = 0xff};
	struct mlx5dv_mkey *mkey;
	static uint8_t stream[SIGNED_LARGEST];
	struct view plain = memory(50000, RAW), key;
	size_t bytes;

	open_pair();
	mkey = side_create_signed_mkey(&server, 3);
	lay_signed(mkey, &one_layout, domain_stream_bytes(&dif, RAW), &attr);
	side_stir(&server);
	key = (struct view){.side = &server, .key = mkey->lkey, .length = RAW};
	/* Copy into the key. */
	bytes = domain_make_stream(&dif, server.memory + 50000, RAW, stream);
	post_copy(plain, key);
	expect_completion(&pair.server, WR_ID, MLX5DV_WC_MEMCPY);
	key_expect(&one_layout, 0, stream, bytes);
	side_compare(&server);
	expect_key_good(mkey);
	/* Copy out of it to another place. */
	plain = memory(53000, RAW);
	post_copy(key, plain);
	expect_completion(&pair.server, WR_ID, MLX5DV_WC_MEMCPY);
	memcpy(server.expected + 53000, server.expected + 50000, RAW);
	side_compare(&server);
	expect_key_good(mkey);
	/* A field is wrong: the copy succeeds, and the key reports the block. */
	key_store(&one_layout, 2 * 520 + 100, (const uint8_t[]){(uint8_t)~stream[2 * 520 + 100]}, 1);
	post_copy(key, plain);
	expect_completion(&pair.server, WR_ID, MLX5DV_WC_MEMCPY);
	server.expected[53000 + 2 * 512 + 100] ^= 0xff;
	side_compare(&server);
	{
		uint8_t field[8];

		domain_make_field(&dif, server.memory + 53000 + 1024, 2, field);
		expect_key_bad(mkey, MLX5DV_MKEY_SIG_BLOCK_BAD_GUARD, &dif, 2, 2 * 512,
			       (uint64_t)stream[2 * 520 + 512] << 8 | stream[2 * 520 + 513],
			       (uint64_t)field[0] << 8 | field[1]);
	}
}

/* ---- refused ------------------------------------------------------------------------------------------------------ */

TEST(lengths_refused)
{
	struct mlx5dv_context attr = {.comp_mask = MLX5DV_CONTEXT_MASK_WR_MEMCPY_LENGTH};
	static const size_t bad[] = {0, LIMIT + 1, UINT32_MAX, (size_t)1 << 32, (size_t)-1};

	expect_error(mlx5dv_query_device(client.context, &attr), 0);
	assert_int_equal(attr.comp_mask, MLX5DV_CONTEXT_MASK_WR_MEMCPY_LENGTH);
	assert_int_equal(attr.max_wr_memcpy_length, LIMIT);
	open_pair();
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		note("%zu bytes", bad[i]);
		batch_start(&pair.server, WR_ID, IBV_SEND_SIGNALED);
		mlx5dv_wr_memcpy(pair.server.dv, server.mr->lkey, side_address(&server, 0), server.mr->lkey,
				 side_address(&server, 100), bad[i]);
		expect_batch_refused(&pair.server, EINVAL);
	}
	/* The maximum length is posted, and exceeds the region. */
	batch_start(&pair.server, WR_ID, IBV_SEND_SIGNALED);
	mlx5dv_wr_memcpy(pair.server.dv, server.mr->lkey, side_address(&server, 0), server.mr->lkey,
			 side_address(&server, 100), LIMIT);
	expect_error(ibv_wr_complete(pair.server.ex), 0);
	expect_status(&pair.server, WR_ID, IBV_WC_LOC_PROT_ERR);
	open_pair();
}

static void expect_refused(struct view source, struct view target)
{
	post_copy(source, target);
	expect_status(&pair.server, WR_ID, IBV_WC_LOC_PROT_ERR);
	expect_state(&pair.server, IBV_QPS_ERR);
	side_compare(&server);
	pair_renew(&pair);
}

TEST(rights_and_domains)
{
	struct ibv_mr *read_only, *foreign;
	struct ibv_pd *pd;
	struct mlx5dv_mkey *mkey;
	struct ibv_sge sge = side_sge(&server, 5000, 1000);

	open_pair();
	read_only = side_register(&server, 0, 4096, IBV_ACCESS_REMOTE_READ);
	pd = ibv_alloc_pd(server.context);
	foreign = ibv_reg_mr(pd, server.memory, 4096, SIDE_ACCESS);
	assert_non_null(foreign);
	side_stir(&server);
	expect_copy(view_with_key(&server, read_only->lkey, 0, 512), memory(9000, 512));
	expect_refused(memory(9000, 512), view_with_key(&server, read_only->lkey, 0, 512));
	expect_refused(view_with_key(&server, read_only->lkey, 4000, 97), memory(9000, 97));
	expect_refused(view_with_key(&server, foreign->lkey, 0, 512), memory(9000, 512));
	expect_refused(memory(9000, 512), view_with_key(&server, foreign->lkey, 0, 512));
	expect_refused(memory(9000, 512), view_with_key(&server, 0x12345600, 0, 512));
	/* Creates a key without write access. */
	mkey = side_create_mkey(&server, 4, NULL);
	expect_error(configure_list(&pair.server, BY_MR_CALL, mkey, IBV_ACCESS_REMOTE_WRITE, 1, &sge), 0);
	expect_completion(&pair.server, CONFIGURE_WR_ID, MLX5DV_WC_UMR);
	layout_of_list(&one_layout, &server, 1, &sge);
	expect_copy(view_key(&server, mkey, &one_layout), memory(30000, 1000));
	expect_refused(memory(30000, 1000), view_key(&server, mkey, &one_layout));
	expect_error(ibv_dereg_mr(foreign), 0);
	expect_error(ibv_dealloc_pd(pd), 0);
}

static struct ibv_qp *create(enum ibv_qp_type type, struct ibv_pd *pd, uint32_t comp_mask)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = pair.server.cq,
		.recv_cq = pair.server.cq,
		.cap = {.max_send_wr = 4, .max_send_sge = 1},
		.qp_type = type,
		.comp_mask = comp_mask | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
	};
	struct mlx5dv_qp_init_attr dv = {.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS,
					 .send_ops_flags = MLX5DV_QP_EX_WITH_MEMCPY};

	return mlx5dv_create_qp(server.context, &attr, &dv);
}

/*
 * The PD keeps resources for all QPs that copy; they are freed with the last of these QPs and of the PD's other
 * objects.
 */
TEST(creation)
{
	struct ibv_pd *pd = ibv_alloc_pd(server.context);
	struct ibv_parent_domain_init_attr attr = {.pd = pd};
	struct ibv_pd *parent = ibv_alloc_parent_domain(server.context, &attr);
	struct ibv_qp *qps[3];

	expect_null(create(IBV_QPT_RC, pd, 0), EINVAL);
	expect_null(create(IBV_QPT_UC, pd, IBV_QP_INIT_ATTR_PD), EOPNOTSUPP);
	expect_null(create(IBV_QPT_UD, pd, IBV_QP_INIT_ATTR_PD), EOPNOTSUPP);
	for (int i = 0; i < 3; i++) {
		qps[i] = create(IBV_QPT_RC, i == 1 ? parent : pd, IBV_QP_INIT_ATTR_PD);
		assert_non_null(qps[i]);
	}
	expect_error(ibv_dealloc_pd(pd), EBUSY);
	for (int i = 0; i < 3; i++)
		expect_error(ibv_destroy_qp(qps[i]), 0);
	expect_error(ibv_dealloc_pd(parent), 0);
	expect_error(ibv_dealloc_pd(pd), 0);
	/* This QP was created without the memcpy flag. */
	pair_renew(&pair);
	batch_start(&pair.server, WR_ID, IBV_SEND_SIGNALED);
	mlx5dv_wr_memcpy(pair.server.dv, server.mr->lkey, side_address(&server, 0), server.mr->lkey,
			 side_address(&server, 100), 8);
	expect_batch_refused(&pair.server, EOPNOTSUPP);
}
