/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests the byte order of the AES-XTS tweak in a crypto BSF that the program writes itself. SOFTHCA_CRYPTO_TWEAK, `le` or `be`,
 * selects it; meson runs this program with each value. The server configures a key with an LBA as the tweak, laid out as SPDK and
 * DPDK do for the capability that the device reports. The client then writes several blocks through the key in one request, and
 * the server's memory must hold the ciphertext that OpenSSL computes.
 */
#include <openssl/evp.h>

#include "support/devx.h"

enum { UMR = 0x25, KEY_BYTES = 32, UNIT = 512, UNITS = 5, BYTES = UNIT * UNITS, PLAIN_AT = 4096, CIPHER_AT = 20000 };
enum { SELECTOR_512 = 1, RAW_MEMORY = 3, ORDER_AT = 1, SELECTOR_AT = 8, TWEAK_AT = 16, DEK_AT = 32 };

/* The tweaks of the five blocks carry into the second byte. */
#define LBA UINT64_C(0x01020304050607fd)

static const uint8_t key_bytes[KEY_BYTES] = "sixteen bytes, and as many again";

static bool big_endian(void)
{
	const char *order = getenv("SOFTHCA_CRYPTO_TWEAK");

	return order && !strcmp(order, "be");
}

static uint32_t general_capability(size_t dword, unsigned int bit)
{
	struct command command = command_of(0x100);
	uint8_t out[4112] = {0};

	put32(command.in, 4, 1);
	expect_error(mlx5dv_devx_general_cmd(client.context, command.in, 16, out, sizeof(out)), 0);
	return get32(out, 16 + 4 * dword) >> bit & 1;
}

/* libmlx5, SPDK and the kernel write the tweak big-endian if and only if aes_xts_multi_block_be_tweak is set. */
TEST(capabilities_name_the_order)
{
	struct mlx5dv_context dv = {.comp_mask = MLX5DV_CONTEXT_MASK_CRYPTO_OFFLOAD};

	assert_int_equal(general_capability(31, 13), big_endian());
	assert_int_equal(general_capability(31, 14), !big_endian());
	assert_int_equal(general_capability(35, 23), !big_endian());
	expect_error(mlx5dv_query_device(client.context, &dv), 0);
	assert_true(dv.crypto_caps.crypto_engines & MLX5DV_CRYPTO_ENGINES_CAP_AES_XTS_MULTI_BLOCK);
}

static struct mlx5dv_devx_obj *create_dek(uint32_t *number)
{
	struct command command = command_of(0xa00);
	struct mlx5dv_devx_obj *dek;

	put32(command.in, 4, 0xc);
	put32(command.in, 24, 3);
	put32(command.in, 28, pd_number(server.pd));
	memcpy(command.in + 80, key_bytes, KEY_BYTES);
	dek = create(server.context, &command, 272);
	assert_non_null(dek);
	*number = get32(command.out, 8);
	return dek;
}

/* Creates a free key for four entries and one BSF of 64 bytes, with all rights. */
static struct mlx5dv_devx_obj *create_key(uint32_t *number)
{
	struct command command = command_of(0x200);
	struct mlx5dv_devx_obj *key;

	put32(command.in, 16, 1u << 30 | 0xbc00 | 2u << 8);
	put32(command.in, 20, 0xffffffu << 8 | 0x42);
	put32(command.in, 28, 1u << 30 | pd_number(server.pd));
	put32(command.in, 48, 4);
	put32(command.in, 68, 128);
	put32(command.in, 76, 1u << 27);
	key = create(server.context, &command, 272);
	assert_non_null(key);
	*number = created_number(&command) << 8 | 0x42;
	return key;
}

/* Stores the LBA: little-endian in bytes 0 to 7, or big-endian in bytes 8 to 15. */
static void put_lba(uint8_t tweak[16])
{
	if (big_endian()) {
		put64(tweak, 8, LBA);
	} else {
		uint64_t value = htole64(LBA);

		memcpy(tweak, &value, sizeof(value));
	}
}

static void configure(uint32_t key, uint32_t dek)
{
	union {
		struct mlx5_wqe_ctrl_seg ctrl;
		uint8_t bytes[256];
	} wqe = {0};
	uint8_t *bsf = wqe.bytes + 192;

	put32(wqe.bytes, 0, UMR);
	put32(wqe.bytes, 4, pair.server.qp->qp_num << 8 | sizeof(wqe) / 16);
	put32(wqe.bytes, 8, MLX5_WQE_CTRL_CQ_UPDATE);
	put32(wqe.bytes, 12, key);
	wqe.bytes[16] = 0x80; /* inline */
	wqe.bytes[21] = 4;
	wqe.bytes[23] = 4;
	put64(wqe.bytes, 24, 1 | 1 << 29); /* LEN, FREE */
	put64(wqe.bytes, 64 + 24, BYTES);
	put_data(wqe.bytes, 128, BYTES, server.mr->lkey, side_address(&server, CIPHER_AT));
	bsf[0] = 2 << 6 | 1;
	bsf[ORDER_AT] = RAW_MEMORY;
	put32(bsf, 4, UINT32_MAX);
	bsf[SELECTOR_AT] = SELECTOR_512;
	put_lba(bsf + TWEAK_AT);
	put32(bsf, DEK_AT, dek);
	ibv_wr_start(pair.server.ex);
	pair.server.ex->wr_id = 1;
	pair.server.ex->wr_flags = 0;
	mlx5dv_wr_raw_wqe(pair.server.dv, &wqe);
	expect_error(ibv_wr_complete(pair.server.ex), 0);
	expect_completion(&pair.server, 1, MLX5DV_WC_RAW_WQE);
}

/* Encrypts the blocks with OpenSSL. The tweak is the block number as a little-endian array (IEEE 1619, 5.1). */
static void openssl_encrypt(uint8_t *to, const uint8_t *from)
{
	EVP_CIPHER_CTX *evp = EVP_CIPHER_CTX_new();
	int written;

	for (uint64_t i = 0; i < UNITS; i++) {
		uint64_t tweak[2] = {htole64(LBA + i), 0};

		assert_int_equal(EVP_EncryptInit_ex(evp, EVP_aes_128_xts(), NULL, key_bytes, (uint8_t *)tweak), 1);
		assert_int_equal(EVP_EncryptUpdate(evp, to + i * UNIT, &written, from + i * UNIT, UNIT), 1);
		assert_int_equal(written, UNIT);
	}
	EVP_CIPHER_CTX_free(evp);
}

static void transfer(enum ibv_wr_opcode opcode, uint32_t key, size_t offset)
{
	struct ibv_sge sge = side_sge(&client, offset, BYTES);
	struct ibv_send_wr wr = {.wr_id = 2,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = opcode,
				 .send_flags = IBV_SEND_SIGNALED,
				 .wr.rdma.rkey = key};

	post_send(&pair.client, &wr);
	expect_completion(&pair.client, 2, opcode == IBV_WR_RDMA_WRITE ? IBV_WC_RDMA_WRITE : IBV_WC_RDMA_READ);
}

TEST(blocks_of_a_peer)
{
	struct pair_options options = pair_defaults(IBV_QPT_RC);
	struct mlx5dv_devx_obj *dek, *key;
	uint32_t dek_number, key_number;

	options.dv_send_ops |= MLX5DV_QP_EX_WITH_RAW_WQE;
	pair_replace(&pair, &options);
	side_stir(&client);
	side_stir(&server);
	dek = create_dek(&dek_number);
	key = create_key(&key_number);
	configure(key_number, dek_number);
	transfer(IBV_WR_RDMA_WRITE, key_number, PLAIN_AT);
	openssl_encrypt(server.expected + CIPHER_AT, client.expected + PLAIN_AT);
	side_compare(&server);
	/* The READ decrypts. */
	transfer(IBV_WR_RDMA_READ, key_number, PLAIN_AT + BYTES);
	memcpy(client.expected + PLAIN_AT + BYTES, client.expected + PLAIN_AT, BYTES);
	side_compare(&client);
	expect_error(mlx5dv_devx_obj_destroy(key), 0);
	expect_error(mlx5dv_devx_obj_destroy(dek), 0);
}
