/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Examples 1, 1.1, 2 and 2.1 of mlx5dv_wr_set_mkey_sig_block(3), quoted, with open details filled in. The server owns
 * the key, the client is the peer and remote node. Three blocks in each.
 */
#include "support/signed_key.h"

enum { BLOCKS = 3, SEND_ID = 0x51, RECV_ID = 0x4e };

static struct layout layout;
static uint8_t data[BLOCKS * 4096], extended[BLOCKS * (4096 + 8)];

DOMAIN_CRC(crc32_every_512, CRC32, 512, 0xffffffff);
DOMAIN_DIF(t10dif_every_4k, CRC, 4096, 0, 0x1234, 0xfffffffe, MLX5DV_SIG_T10DIF_FLAG_REF_REMAP);

static void make_data(size_t bytes)
{
	side_stir(&client);
	side_stir(&server);
	for (size_t i = 0; i < bytes; i++)
		data[i] = (uint8_t)(i * 7 + i / 256);
}

/* "Memory signature domain is configured for CRC32 every 512B block. Wire signature domain is … no signature." */
static struct mlx5dv_mkey *key_of_example_1(void)
{
	struct mlx5dv_sig_block_attr attr = {.mem = &crc32_every_512, .check_mask = MLX5DV_SIG_MASK_CRC32};
	struct pair_options options = signed_options();
	struct mlx5dv_mkey *mkey;

	pair_replace(&pair, &options);
	mkey = side_create_signed_mkey(&server, 3);
	lay_signed(mkey, &layout, BLOCKS * (512 + 4), &attr);
	make_data(BLOCKS * 512);
	return mkey;
}

/* "A SEND is issued using the MKEY as a local key." */
TEST(example_1)
{
	struct mlx5dv_mkey *mkey = key_of_example_1();
	struct ibv_sge sge = {.addr = 0, .length = BLOCKS * 512, .lkey = mkey->lkey};
	struct ibv_send_wr wr = send_wr(SEND_ID, IBV_WR_SEND, &sge);
	struct ibv_sge receive = side_sge(&client, 100, BLOCKS * 512);

	for (int broken = 0; broken < 2; broken++) {
		make_data(BLOCKS * 512);
		domain_make_stream(&crc32_every_512, data, BLOCKS * 512, extended);
		if (broken)
			extended[516 + 512] ^= 0x80; /* "validate each CRC32 against the previous 512 bytes of data" */
		key_store(&layout, 0, extended, BLOCKS * 516);
		post_receive(&pair.client, RECV_ID, &receive, 1);
		post_send(&pair.server, &wr);
		expect_completion(&pair.server, SEND_ID, IBV_WC_SEND);
		assert_int_equal(expect_completion(&pair.client, RECV_ID, IBV_WC_RECV).byte_len, BLOCKS * 512);
		/* "strip the CRC32 field, and transmit only 512 bytes of data to the wire" */
		plain_expect(100, data, BLOCKS * 512);
		side_compare(&client);
		side_compare(&server);
		if (broken)
			expect_key_bad(mkey, MLX5DV_MKEY_SIG_BLOCK_BAD_GUARD, &crc32_every_512, 1, 512,
				       (uint64_t)extended[516 + 512] << 24 | extended[516 + 513] << 16 |
					       extended[516 + 514] << 8 | extended[516 + 515],
				       (uint64_t)(extended[516 + 512] ^ 0x80) << 24 | extended[516 + 513] << 16 |
					       extended[516 + 514] << 8 | extended[516 + 515]);
		else
			expect_key_good(mkey);
	}
}

/* "Same as above, but a RECV is issued with the same key, and RX happens." */
TEST(example_1_1)
{
	struct mlx5dv_mkey *mkey = key_of_example_1();
	struct ibv_sge sge = {.addr = 0, .length = BLOCKS * 512, .lkey = mkey->lkey};
	struct ibv_sge send = side_sge(&client, 100, BLOCKS * 512);
	struct ibv_send_wr wr = send_wr(SEND_ID, IBV_WR_SEND, &send);

	plain_store(100, data, BLOCKS * 512);
	post_receive(&pair.server, RECV_ID, &sge, 1);
	post_send(&pair.client, &wr);
	expect_completion(&pair.client, SEND_ID, IBV_WC_SEND);
	assert_int_equal(expect_completion(&pair.server, RECV_ID, IBV_WC_RECV).byte_len, BLOCKS * 512);
	/* "generating and scattering additional CRC32 field after every 512 bytes that are scattered" */
	domain_make_stream(&crc32_every_512, data, BLOCKS * 512, extended);
	key_expect(&layout, 0, extended, BLOCKS * 516);
	side_compare(&client);
	side_compare(&server);
	expect_key_good(mkey);
}

/* "Memory signature domain is configured for no signature. Wire signature domain is … T10DIF every 4K block." */
static struct mlx5dv_mkey *key_of_example_2(void)
{
	struct mlx5dv_sig_block_attr attr = {.wire = &t10dif_every_4k, .check_mask = 0xff};
	struct pair_options options = signed_options();
	struct mlx5dv_mkey *mkey;

	pair_replace(&pair, &options);
	mkey = side_create_signed_mkey(&server, 3);
	lay_signed(mkey, &layout, BLOCKS * 4096, &attr);
	make_data(BLOCKS * 4096);
	domain_make_stream(&t10dif_every_4k, data, BLOCKS * 4096, extended);
	return mkey;
}

static void post_by_remote_node(enum ibv_wr_opcode opcode, const struct mlx5dv_mkey *mkey)
{
	struct ibv_sge sge = side_sge(&client, 100, BLOCKS * 4104);
	struct ibv_send_wr wr = rdma_wr(SEND_ID, opcode, &sge, 0, mkey->rkey);

	post_send(&pair.client, &wr);
	expect_completion(&pair.client, SEND_ID, opcode == IBV_WR_RDMA_READ ? IBV_WC_RDMA_READ : IBV_WC_RDMA_WRITE);
	expect_idle(&pair.server);
}

/* "The MKEY is sent to a remote node that issues a RDMA_READ to this MKEY." */
TEST(example_2)
{
	struct mlx5dv_mkey *mkey = key_of_example_2();

	key_store(&layout, 0, data, BLOCKS * 4096);
	post_by_remote_node(IBV_WR_RDMA_READ, mkey);
	/* "transmit it to the wire while generating an additional T10DIF field every 4K of data" */
	plain_expect(100, extended, BLOCKS * 4104);
	side_compare(&client);
	side_compare(&server);
	expect_key_good(mkey);
}

/* "Same as above, but remote node issues a RDMA_WRITE to this MKEY." */
TEST(example_2_1)
{
	struct mlx5dv_mkey *mkey = key_of_example_2();

	for (int broken = 0; broken < 2; broken++) {
		make_data(BLOCKS * 4096);
		if (broken)
			extended[2 * 4104 + 4096 + 7] ^=
				1; /* "validate each T10DIF field against the previous 4K of data" */
		plain_store(100, extended, BLOCKS * 4104);
		post_by_remote_node(IBV_WR_RDMA_WRITE, mkey);
		/* "strip the T10DIF field, and scatter the data alone to the MKEY" */
		key_expect(&layout, 0, data, BLOCKS * 4096);
		side_compare(&client);
		side_compare(&server);
		if (broken)
			expect_key_bad(mkey, MLX5DV_MKEY_SIG_BLOCK_BAD_REFTAG, &t10dif_every_4k, 2, 2 * 4104, 1, 0);
		else
			expect_key_good(mkey);
	}
}
