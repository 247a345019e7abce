/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Signatures as a property of a key: kept and reset by mlx5dv_wr_mkey_configure(3), combined with other features, over
 * each layout of a key, as an element of another key, on a UD QP; creating and destroying such keys.
 */
#include "support/signed_key.h"

enum { RAW = 2 * 512 };

static struct layout layout;
static struct mlx5dv_mkey *mkey;

DOMAIN_CRC(crc32c, CRC32C, 512, 0xffffffff);
DOMAIN_DIF(dif, CRC, 512, 0, 0x5678, 0xf0debc9a, MLX5DV_SIG_T10DIF_FLAG_REF_REMAP);

static const struct mlx5dv_sig_block_attr in_memory = {.mem = &crc32c, .check_mask = 0xff};

static void open_key(void)
{
	struct pair_options options = signed_options();

	pair_replace(&pair, &options);
	mkey = side_create_signed_mkey(&server, 8);
	lay_signed(mkey, &layout, 2 * 516, &in_memory);
}

static void expect_transfers(const struct mlx5dv_sig_block_domain *mem, const struct mlx5dv_sig_block_domain *wire)
{
	for (enum key_operation o = 0; o < KEY_OPERATIONS; o++) {
		note("operation %d", o);
		expect_signed_transfer(o, mkey, &layout, mem, wire, RAW);
	}
}

static void configure_flags(uint32_t flags, uint8_t setters)
{
	struct mlx5dv_mkey_conf_attr attr = {.conf_flags = flags};

	batch_start(&pair.server, CONFIGURE_WR_ID, IBV_SEND_INLINE | IBV_SEND_SIGNALED);
	mlx5dv_wr_mkey_configure(pair.server.dv, mkey, setters, &attr);
}

/* ---- kept, reset, replaced -------------------------------------------------------------------------------------- */

/* "If not set, previously configured signature attributes will be kept": by the builder alone, and with other setters. */
TEST(kept_by_other_configurations)
{
	struct ibv_sge other[] = {side_sge(&server, 20000, 700), side_sge(&server, 30000, 332)};

	open_key();
	configure_flags(0, 0);
	configure_complete(&pair.server);
	expect_transfers(&crc32c, NULL);
	configure_flags(0, 1);
	mlx5dv_wr_set_mkey_access_flags(pair.server.dv, KEY_ACCESS);
	configure_complete(&pair.server);
	expect_transfers(&crc32c, NULL);
	configure_flags(0, 1);
	mlx5dv_wr_set_mkey_layout_list(pair.server.dv, 2, other);
	configure_complete(&pair.server);
	layout_of_list(&layout, &server, 2, other);
	expect_transfers(&crc32c, NULL);
	expect_error(configure_list(&pair.server, BY_MR_CALL, mkey, KEY_ACCESS, 2, other), 0);
	expect_completion(&pair.server, CONFIGURE_WR_ID, IBV_WC_DRIVER1);
	expect_transfers(&crc32c, NULL);
}

/* RESET_SIG_ATTR: fields become data; layout and rights stay, and the key is not invalidated. */
TEST(reset_by_the_flag)
{
	uint32_t lkey;

	open_key();
	lkey = mkey->lkey;
	configure_flags(MLX5DV_MKEY_CONF_FLAG_RESET_SIG_ATTR, 0);
	configure_complete(&pair.server);
	assert_int_equal(mkey->lkey, lkey);
	for (enum key_operation o = 0; o < KEY_OPERATIONS; o++)
		expect_signed_transfer(o, mkey, &layout, NULL, NULL, 2 * 516);
	/* It stays reset. */
	configure_flags(0, 0);
	configure_complete(&pair.server);
	expect_signed_transfer(OUT_SEND, mkey, &layout, NULL, NULL, 2 * 516);
	/* It can be set again. */
	configure_flags(0, 1);
	mlx5dv_wr_set_mkey_sig_block(pair.server.dv, &in_memory);
	configure_complete(&pair.server);
	expect_transfers(&crc32c, NULL);
}

/* Reset and set in one work request: set. */
TEST(reset_and_set_at_once)
{
	struct mlx5dv_sig_block_attr on_wire = {.wire = &dif, .check_mask = 0xff};

	open_key();
	configure_flags(MLX5DV_MKEY_CONF_FLAG_RESET_SIG_ATTR, 1);
	mlx5dv_wr_set_mkey_sig_block(pair.server.dv, &on_wire);
	configure_complete(&pair.server);
	expect_transfers(NULL, &dif);
}

/* "If the MKEY is already configured with the signature attributes, the setter overrides the previous value." */
TEST(replaced_by_the_setter)
{
	static const struct mlx5dv_sig_block_attr attrs[] = {
		{.wire = &crc32c, .check_mask = 0xff},
		{.wire = &dif, .check_mask = 0xff},
		{.mem = &crc32c, .wire = &dif, .check_mask = 0xff},
		{.mem = &crc32c, .check_mask = 0xff},
	};

	open_key();
	for (size_t i = 0; i < ARRAY_SIZE(attrs); i++) {
		note("attributes %zu", i);
		configure_flags(0, 1);
		mlx5dv_wr_set_mkey_sig_block(pair.server.dv, &attrs[i]);
		configure_complete(&pair.server);
		expect_transfers(attrs[i].mem, attrs[i].wire);
	}
}

/* A key that never had a signature, or rights and layout only, is an ordinary indirect key. */
TEST(never_configured_with_one)
{
	struct ibv_sge list[] = {side_sge(&server, 20000, 700), side_sge(&server, 30000, 332)};

	open_key();
	mkey = side_create_signed_mkey(&server, 4);
	lay_list(&pair.server, BY_CONFIGURE, mkey, &layout, 2, list);
	for (enum key_operation o = 0; o < KEY_OPERATIONS; o++)
		expect_signed_transfer(o, mkey, &layout, NULL, NULL, 1032);
}

/* An invalidated key gives no access until it is fully configured again. */
TEST(invalidated_and_configured_again)
{
	struct ibv_send_wr wr = {
		.wr_id = 4, .opcode = IBV_WR_LOCAL_INV, .send_flags = IBV_SEND_SIGNALED, .invalidate_rkey = 0};
	struct ibv_send_wr write = {.wr_id = 5, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED};
	struct ibv_sge plain = side_sge(&client, 0, 8);

	open_key();
	wr.invalidate_rkey = mkey->rkey;
	post_send(&pair.server, &wr);
	expect_completion(&pair.server, 4, IBV_WC_LOCAL_INV);
	write.sg_list = &plain;
	write.num_sge = 1;
	write.wr.rdma.rkey = mkey->rkey;
	post_send(&pair.client, &write);
	expect_status(&pair.client, 5, IBV_WC_REM_ACCESS_ERR);
	pair_renew(&pair);
	lay_signed(mkey, &layout, 2 * 516, &in_memory);
	expect_transfers(&crc32c, NULL);
}

/* "To clear configuration of mkey": with rights and layout alone it is a key without a signature. */
TEST(cleared_by_local_inv)
{
	struct ibv_send_wr wr = send_wr(4, IBV_WR_LOCAL_INV, NULL);
	struct ibv_sge list[] = {side_sge(&server, 20000, 700), side_sge(&server, 30000, 332)};

	if (!in_profile("man", __func__))
		return;
	for (int by_call = 0; by_call < 2; by_call++) {
		open_key();
		wr.invalidate_rkey = mkey->rkey;
		if (by_call) {
			batch_start(&pair.server, 4, IBV_SEND_SIGNALED);
			ibv_wr_local_inv(pair.server.ex, mkey->rkey);
			expect_error(ibv_wr_complete(pair.server.ex), 0);
		} else {
			post_send(&pair.server, &wr);
		}
		expect_completion(&pair.server, 4, IBV_WC_LOCAL_INV);
		lay_list(&pair.server, BY_CONFIGURE, mkey, &layout, 2, list);
		for (enum key_operation o = 0; o < KEY_OPERATIONS; o++)
			expect_signed_transfer(o, mkey, &layout, NULL, NULL, 1032);
	}
}

/* ---- layouts ---------------------------------------------------------------------------------------------------- */

static void set_signature(const struct mlx5dv_sig_block_attr *attr)
{
	configure_flags(0, 1);
	mlx5dv_wr_set_mkey_sig_block(pair.server.dv, attr);
	configure_complete(&pair.server);
}

/* Data in one place, tuples in another, as in a block layer. */
TEST(interleaved_data_and_tuples)
{
	struct mlx5dv_sig_block_attr attr = {.mem = &dif, .check_mask = 0xff};
	struct mlx5dv_mr_interleaved data[] = {side_interleaved(&server, 1000, 512, 0),
					       side_interleaved(&server, 40000, 8, 0)};

	open_key();
	lay_interleaved(&pair.server, BY_CONFIGURE, mkey, &layout, 2, 2, data);
	set_signature(&attr);
	expect_transfers(&dif, NULL);
	/* With gaps, and all in one work request. */
	data[0].bytes_skip = 11;
	data[1].bytes_skip = 3;
	mkey = side_create_signed_mkey(&server, 8);
	configure_start(&pair.server, mkey, 3);
	mlx5dv_wr_set_mkey_access_flags(pair.server.dv, KEY_ACCESS);
	mlx5dv_wr_set_mkey_layout_interleaved(pair.server.dv, 2, 2, data);
	mlx5dv_wr_set_mkey_sig_block(pair.server.dv, &attr);
	configure_complete(&pair.server);
	layout_of_interleaved(&layout, &server, 2, 2, data);
	expect_transfers(&dif, NULL);
}

/* A repeated pattern unrelated to block boundaries. */
TEST(interleaved_across_blocks)
{
	struct mlx5dv_sig_block_attr attr = {.mem = &dif, .wire = &crc32c, .check_mask = 0xff};
	struct mlx5dv_mr_interleaved data[] = {side_interleaved(&server, 1000, 7, 6),
					       side_interleaved(&server, 30000, 6, 1)};

	open_key();
	lay_interleaved(&pair.server, BY_CONFIGURE, mkey, &layout, 80, 2, data);
	set_signature(&attr);
	expect_transfers(&dif, &crc32c);
}

/* The key's memory is another indirect key. */
TEST(over_another_key)
{
	struct mlx5dv_sig_block_attr attr = {.mem = &dif, .check_mask = 0xff};
	struct ibv_sge inner_list[] = {side_sge(&server, 20000, 513), side_sge(&server, 30000, 600)}, list[2];
	static struct layout inner_layout;
	struct mlx5dv_mkey *inner;

	open_key();
	inner = side_create_mkey(&server, 4, NULL);
	lay_list(&pair.server, BY_CONFIGURE, inner, &inner_layout, 2, inner_list);
	list[0] = (struct ibv_sge){.addr = 3, .length = 1000, .lkey = inner->lkey};
	list[1] = side_sge(&server, 40000, 40);
	expect_error(configure_signed(mkey, 2, list, &attr), 0);
	expect_completion(&pair.server, CONFIGURE_WR_ID, IBV_WC_DRIVER1);
	layout.length = 0;
	for (uint32_t i = 0; i < 1040; i++)
		layout.at[layout.length++] = i < 1000 ? inner_layout.at[3 + i] : 40000 + (i - 1000);
	expect_transfers(&dif, NULL);
}

/* As an element of another key it is addressed by its wire side (mlx5-formats 6, no. 27). */
TEST(inside_another_key)
{
	static uint8_t data[RAW], stream[2 * 516], expected[RAW + 10];
	struct mlx5dv_mkey *outer;
	struct ibv_sge list[3];

	open_key();
	outer = side_create_mkey(&server, 4, NULL);
	list[0] = side_sge(&server, 40000, 5);
	list[1] = (struct ibv_sge){.addr = 0, .length = RAW, .lkey = mkey->lkey};
	list[2] = side_sge(&server, 41000, 5);
	expect_error(configure_list(&pair.server, BY_CONFIGURE, outer, KEY_ACCESS, 3, list), 0);
	expect_completion(&pair.server, CONFIGURE_WR_ID, IBV_WC_DRIVER1);
	for (enum key_operation o = 0; o < KEY_OPERATIONS; o++) {
		note("operation %d", o);
		side_stir(&client);
		side_stir(&server);
		for (int i = 0; i < RAW; i++)
			data[i] = (uint8_t)(i * 11 + o);
		domain_make_stream(&crc32c, data, RAW, stream);
		memcpy(expected, server.memory + 40000, 5);
		memcpy(expected + 5, data, RAW);
		memcpy(expected + 5 + RAW, server.memory + 41000, 5);
		if (goes_out(o)) {
			key_store(&layout, 0, stream, sizeof(stream));
		} else {
			memset(expected, 0x11, 5);
			plain_store(SIGNED_PLAIN, expected, sizeof(expected));
			key_expect(&layout, 0, stream, sizeof(stream));
			memcpy(server.expected + 40000, expected, 5);
			memcpy(server.expected + 41000, expected + 5 + RAW, 5);
		}
		transfer_signed(o, outer->lkey, 0, SIGNED_PLAIN, sizeof(expected));
		plain_expect(SIGNED_PLAIN, expected, sizeof(expected));
		side_compare(&client);
		side_compare(&server);
		expect_key_good(mkey);
	}
}

/* Several signed pieces gathered by one request, plain memory between them. */
TEST(gathered_with_others)
{
	static uint8_t data[RAW], stream[2 * 516];
	struct ibv_sge list[] = {side_sge(&server, 40000, 3),
				 {.addr = 0, .length = 512},
				 side_sge(&server, 41000, 9),
				 {.addr = 512, .length = 512}};
	struct ibv_send_wr wr = {.wr_id = 1,
				 .sg_list = list,
				 .num_sge = 4,
				 .opcode = IBV_WR_RDMA_WRITE,
				 .send_flags = IBV_SEND_SIGNALED,
				 .wr.rdma = {.remote_addr = side_address(&client, 1000), .rkey = client.mr->rkey}};

	open_key();
	list[1].lkey = list[3].lkey = mkey->lkey;
	side_stir(&client);
	side_stir(&server);
	for (int i = 0; i < RAW; i++)
		data[i] = (uint8_t)(i * 3);
	domain_make_stream(&crc32c, data, RAW, stream);
	key_store(&layout, 0, stream, sizeof(stream));
	post_send(&pair.server, &wr);
	expect_completion(&pair.server, 1, IBV_WC_RDMA_WRITE);
	plain_expect(1000, server.memory + 40000, 3);
	plain_expect(1003, data, 512);
	plain_expect(1003 + 512, server.memory + 41000, 9);
	plain_expect(1003 + 521, data + 512, 512);
	side_compare(&client);
	side_compare(&server);
	expect_key_good(mkey);
}

/* ---- other QPs -------------------------------------------------------------------------------------------------- */

/* Configured on an RC QP, used on a UD QP of the same PD (mlx5-formats 6, no. 25). */
TEST(datagrams)
{
	enum { GRH = 40 };
	struct pair_options options = pair_defaults(IBV_QPT_UD);
	static uint8_t data[RAW], stream[2 * 516];
	struct ibv_sge plain = side_sge(&client, 1000, GRH + RAW), key = {.addr = 0, .length = RAW};
	struct ibv_sge header_and_key[2] = {side_sge(&server, 50000, GRH)};
	struct ibv_send_wr wr = send_wr(1, IBV_WR_SEND, &key);
	struct pair ud;

	open_key();
	pair_open(&ud, &client, &server, &options);
	key.lkey = mkey->lkey;
	header_and_key[1] = key;
	side_stir(&client);
	side_stir(&server);
	for (int i = 0; i < RAW; i++)
		data[i] = (uint8_t)(i * 3);
	domain_make_stream(&crc32c, data, RAW, stream);
	key_store(&layout, 0, stream, sizeof(stream));
	post_receive(&ud.client, 2, &plain, 1);
	post_send(&ud.server, &wr);
	expect_completion(&ud.server, 1, IBV_WC_SEND);
	expect_completion(&ud.client, 2, IBV_WC_RECV);
	memcpy(client.expected + 1000, client.memory + 1000, GRH);
	plain_expect(1000 + GRH, data, RAW);
	side_compare(&client);
	side_compare(&server);

	/* In the other direction: the header first, then the data for which the key generates fields. */
	memset(data, 0x3d, sizeof(data));
	domain_make_stream(&crc32c, data, RAW, stream);
	plain_store(1000, data, RAW);
	plain.length = RAW;
	post_receive(&ud.server, 3, header_and_key, 2);
	wr.sg_list = &plain;
	post_send(&ud.client, &wr);
	expect_completion(&ud.client, 1, IBV_WC_SEND);
	expect_completion(&ud.server, 3, IBV_WC_RECV);
	memcpy(server.expected + 50000, server.memory + 50000, GRH);
	key_expect(&layout, 0, stream, sizeof(stream));
	side_compare(&client);
	side_compare(&server);
	expect_key_good(mkey);
	pair_close(&ud);
}

/* ---- making them ------------------------------------------------------------------------------------------------ */

/* PSVs and table entries are freed: creates far more keys than can exist at once. */
TEST(created_and_destroyed)
{
	enum { KEYS = 300, ROUNDS = 20 };
	static struct mlx5dv_mkey *keys[KEYS];

	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < KEYS; i++) {
			struct mlx5dv_mkey_init_attr attr = {
				.pd = server.pd,
				.create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_BLOCK_SIGNATURE,
				.max_entries = 3,
			};

			keys[i] = mlx5dv_create_mkey(&attr);
			assert_non_null(keys[i]);
			assert_int_equal(attr.max_entries, 4);
			expect_key_good(keys[i]);
		}
		for (int i = 0; i < KEYS; i++)
			expect_error(mlx5dv_destroy_mkey(keys[(i * 7 + round) % KEYS]), 0);
	}
}

/* A key keeps its PD alone alive, as any key does. */
TEST(pd_in_use)
{
	struct ibv_pd *pd = ibv_alloc_pd(server.context);
	struct mlx5dv_mkey_init_attr attr = {
		.pd = pd, .create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_BLOCK_SIGNATURE, .max_entries = 4};
	struct mlx5dv_mkey *key = mlx5dv_create_mkey(&attr);

	assert_non_null(key);
	expect_error(ibv_dealloc_pd(pd), EBUSY);
	expect_error(mlx5dv_destroy_mkey(key), 0);
	expect_error(ibv_dealloc_pd(pd), 0);
}
