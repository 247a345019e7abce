/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules 160 to 182: signatures and ciphers of keys. The server owns the keys, the client writes to them. */
#include "rule_cases.h"

#include "support/mkey.h"

enum {
	BLOCK = 512,
	FIELD = 4, /* of CRC32 */
	INLINE_ROOM = 512,
};

/* Offsets in a UMR WQE with four entries, the BSF after them, and the SET_PSV WQE after it (mlx5-formats 1.8, 1.11 to
 * 1.13). */
enum {
	BSF_OCTOWORDS = 22,
	BSF = 192,
	BSF_MEMORY_BLOCK = BSF + 3,
	BSF_RAW_SIZE = BSF + 4,
	BSF_WIRE_FORMAT = BSF + 8,
	BSF_MEMORY_FORMAT = BSF + 12,
	BSF_TRANSACTION = BSF + 16,
	BSF_MEMORY_INLINE = BSF + 48,
	CIPHER_ORDER = BSF + 1,
	CIPHER_DEK = BSF + 32,
	PSV_INDEX = 256 + 16,
};

static const struct mlx5dv_sig_crc crc32 = {.type = MLX5DV_SIG_CRC_TYPE_CRC32};
static const struct mlx5dv_sig_t10dif t10 = {
	.app_tag = 0x1234, .ref_tag = 7, .flags = MLX5DV_SIG_T10DIF_FLAG_REF_REMAP};
static const struct mlx5dv_sig_block_domain crc_domain = {
	.sig_type = MLX5DV_SIG_TYPE_CRC, .sig.crc = &crc32, .block_size = MLX5DV_BLOCK_SIZE_512};
static const struct mlx5dv_sig_block_domain t10_domain = {
	.sig_type = MLX5DV_SIG_TYPE_T10DIF, .sig.dif = &t10, .block_size = MLX5DV_BLOCK_SIZE_512};

static void make_room(void)
{
	struct pair_options options = pair_defaults(IBV_QPT_RC);

	options.max_inline_data = INLINE_ROOM;
	pair_replace(&pair, &options);
}

static struct mlx5dv_mkey *create_key(uint32_t flags)
{
	make_room();
	return side_create_mkey_with(&server, MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT | flags, 4);
}

/* Posts the configuration of @mkey to @length bytes of memory of the key @lkey, with a signature. */
static void configure_signature(struct mlx5dv_mkey *mkey, const struct mlx5dv_sig_block_domain *memory,
				const struct mlx5dv_sig_block_domain *wire, struct ibv_sge sge)
{
	struct mlx5dv_sig_block_attr attr = {.mem = memory, .wire = wire, .check_mask = 0xff};

	configure_start(&pair.server, mkey, 3);
	mlx5dv_wr_set_mkey_access_flags(pair.server.dv, KEY_ACCESS);
	mlx5dv_wr_set_mkey_layout_list(pair.server.dv, 1, &sge);
	mlx5dv_wr_set_mkey_sig_block(pair.server.dv, &attr);
	expect_error(ibv_wr_complete(pair.server.ex), 0);
}

/* Makes a key of the server with @memory and @wire, over @length bytes. */
static struct mlx5dv_mkey *signed_key(const struct mlx5dv_sig_block_domain *memory,
				      const struct mlx5dv_sig_block_domain *wire, uint32_t length)
{
	struct mlx5dv_mkey *mkey = create_key(MLX5DV_MKEY_INIT_ATTR_FLAGS_BLOCK_SIGNATURE);

	configure_signature(mkey, memory, wire, side_sge(&server, 0, length));
	expect_completion(&pair.server, CONFIGURE_WR_ID, MLX5DV_WC_UMR);
	return mkey;
}

/* As signed_key(), but posted into a stopped ring: the case changes the WQE and runs it. */
static struct mlx5dv_mkey *signed_in_ring(struct raw *raw, const struct mlx5dv_sig_block_domain *memory,
					  const struct mlx5dv_sig_block_domain *wire)
{
	struct mlx5dv_mkey *mkey = create_key(MLX5DV_MKEY_INIT_ATTR_FLAGS_BLOCK_SIGNATURE);

	*raw = raw_begin(&pair.server);
	configure_signature(mkey, memory, wire, side_sge(&server, 0, BLOCK + FIELD));
	return mkey;
}

static void write_bytes(uint32_t rkey, uint64_t address, uint32_t length)
{
	struct ibv_send_wr wr = request(IBV_WR_RDMA_WRITE, length);

	wr.wr.rdma.rkey = rkey;
	wr.wr.rdma.remote_addr = address;
	post_send(&pair.client, &wr);
}

static struct mlx5dv_dek *create_dek(struct ibv_pd *pd, bool has_keytag)
{
	struct mlx5dv_dek_init_attr attr = {
		.key_size = MLX5DV_CRYPTO_KEY_SIZE_128,
		.has_keytag = has_keytag,
		.key_purpose = MLX5DV_CRYPTO_KEY_PURPOSE_AES_XTS,
		.pd = pd,
		.comp_mask = MLX5DV_DEK_INIT_ATTR_CRYPTO_LOGIN, /* without a login: plaintext */
	};
	struct mlx5dv_dek *dek;

	for (size_t i = 0; i < 40; i++)
		attr.key[i] = (char)(i + 1);
	dek = mlx5dv_dek_create(server.context, &attr);
	assert_non_null(dek);
	return dek;
}

static void configure_cipher(struct mlx5dv_mkey *mkey, struct mlx5dv_dek *dek, uint32_t length)
{
	struct mlx5dv_crypto_attr attr = {
		.crypto_standard = MLX5DV_CRYPTO_STANDARD_AES_XTS,
		.data_unit_size = MLX5DV_BLOCK_SIZE_512,
		.dek = dek,
	};
	struct ibv_sge sge = side_sge(&server, 0, length);

	configure_start(&pair.server, mkey, 3);
	mlx5dv_wr_set_mkey_access_flags(pair.server.dv, KEY_ACCESS);
	mlx5dv_wr_set_mkey_layout_list(pair.server.dv, 1, &sge);
	mlx5dv_wr_set_mkey_crypto(pair.server.dv, &attr);
	expect_error(ibv_wr_complete(pair.server.ex), 0);
}

/* ---- configuring ------------------------------------------------------------------------------------------------ */

RULE_CASE(BSF_SIZE)
{
	struct raw raw;
	struct mlx5dv_mkey *mkey = signed_in_ring(&raw, &crc_domain, NULL);

	raw_put16(&raw, BSF_OCTOWORDS, 1);
	raw_run(&raw);
	expect_failure(&pair.server, CONFIGURE_WR_ID, MW_BIND_ERR, BSF_SIZE, "UMR",
		       "the block setup of key 0x%x has 1 octowords; one of size code 2 takes 4", mkey->lkey);
}

RULE_CASE(BSF_BLOCK)
{
	struct raw raw;
	struct mlx5dv_mkey *mkey = signed_in_ring(&raw, &crc_domain, NULL);

	raw_put8(&raw, BSF_MEMORY_BLOCK, 7);
	raw_run(&raw);
	expect_failure(
		&pair.server, CONFIGURE_WR_ID, MW_BIND_ERR, BSF_BLOCK, "UMR",
		"the block setup of key 0x%x has the codes of block sizes 7 (memory) and 0 (wire), an unknown combination",
		mkey->lkey);
}

RULE_CASE(BSF_FORMAT)
{
	struct raw raw;
	struct mlx5dv_mkey *mkey = signed_in_ring(&raw, &crc_domain, NULL);

	raw_put8(&raw, BSF_MEMORY_FORMAT, 0x7f);
	raw_run(&raw);
	expect_failure(&pair.server, CONFIGURE_WR_ID, MW_BIND_ERR, BSF_FORMAT, "UMR",
		       "the block setup of key 0x%x selects the unknown block format 0x7f", mkey->lkey);
}

RULE_CASE(BSF_INLINE)
{
	struct raw raw;
	struct mlx5dv_mkey *mkey = signed_in_ring(&raw, &t10_domain, NULL);

	raw_put16(&raw, BSF_MEMORY_INLINE, 0);
	raw_run(&raw);
	expect_failure(&pair.server, CONFIGURE_WR_ID, MW_BIND_ERR, BSF_INLINE, "UMR",
		       "the block setup of key 0x%x has a T10-DIF domain without a valid inline section (flags 0x0, "
		       "guard type 1)",
		       mkey->lkey);
}

static uint32_t pd_number(struct ibv_pd *pd)
{
	struct mlx5dv_pd out = {0};
	struct mlx5dv_obj object = {.pd = {.in = pd, .out = &out}};

	expect_error(mlx5dv_init_obj(&object, MLX5DV_OBJ_PD), 0);
	return out.pdn;
}

RULE_CASE(BSF_PSV)
{
	struct raw raw;
	struct mlx5dv_mkey *mkey = signed_in_ring(&raw, &crc_domain, NULL);

	raw_put32(&raw, BSF_MEMORY_FORMAT, 0x23ffffff);
	raw_run(&raw);
	expect_failure(&pair.server, CONFIGURE_WR_ID, MW_BIND_ERR, BSF_PSV, "UMR",
		       "the block setup of key 0x%x names PSV 0xffffff, which does not exist in protection domain 0x%x",
		       mkey->lkey, pd_number(server.pd));
}

RULE_CASE(BSF_TRANSACTION)
{
	struct raw raw;
	struct mlx5dv_mkey *mkey = signed_in_ring(&raw, &crc_domain, NULL);

	raw_put32(&raw, BSF_TRANSACTION, 1 << 24);
	raw_run(&raw);
	expect_failure(
		&pair.server, CONFIGURE_WR_ID, MW_BIND_ERR, BSF_TRANSACTION, "UMR",
		"the block setup of key 0x%x selects a transaction signature with flags 0x1000000 and format 0x0 over 4294967295 bytes, an unknown combination",
		mkey->lkey);
}

RULE_CASE(BSF_SAME)
{
	struct raw raw;
	struct mlx5dv_mkey *mkey = signed_in_ring(&raw, &crc_domain, &crc_domain);

	raw_put8(&raw, BSF_WIRE_FORMAT, 0x53);
	raw_run(&raw);
	expect_failure(
		&pair.server, CONFIGURE_WR_ID, MW_BIND_ERR, BSF_SAME, "UMR",
		"the block setup of key 0x%x says that both domains have the same structure, but their formats are CRC32 and CRC64",
		mkey->lkey);
}

RULE_CASE(PSV_UNKNOWN)
{
	struct raw raw;

	signed_in_ring(&raw, &crc_domain, NULL);
	raw_put32(&raw, PSV_INDEX, 0xffffff);
	raw_run(&raw);
	expect_failure(&pair.server, CONFIGURE_WR_ID, MW_BIND_ERR, PSV_UNKNOWN, "SET_PSV",
		       "PSV 0xffffff does not exist in protection domain 0x%x", pd_number(server.pd));
}

RULE_CASE(BSF_CIPHER)
{
	struct mlx5dv_mkey *mkey = create_key(MLX5DV_MKEY_INIT_ATTR_FLAGS_CRYPTO);
	struct mlx5dv_dek *dek = create_dek(server.pd, false);
	struct raw raw = raw_begin(&pair.server);

	configure_cipher(mkey, dek, BLOCK);
	raw_put8(&raw, CIPHER_ORDER, 9);
	raw_run(&raw);
	expect_failure(&pair.server, CONFIGURE_WR_ID, MW_BIND_ERR, BSF_CIPHER, "UMR",
		       "the cipher of key 0x%x has standard 0, order 9 and data unit code 1, an unknown combination",
		       mkey->lkey);
	expect_error(mlx5dv_dek_destroy(dek), 0);
}

RULE_CASE(BSF_DEK)
{
	struct mlx5dv_mkey *mkey = create_key(MLX5DV_MKEY_INIT_ATTR_FLAGS_CRYPTO);
	struct mlx5dv_dek *dek = create_dek(server.pd, false);
	struct raw raw = raw_begin(&pair.server);

	configure_cipher(mkey, dek, BLOCK);
	raw_put32(&raw, CIPHER_DEK, 0xabcdef);
	raw_run(&raw);
	expect_failure(&pair.server, CONFIGURE_WR_ID, MW_BIND_ERR, BSF_DEK, "UMR",
		       "the cipher of key 0x%x names DEK 0xabcdef, which does not exist", mkey->lkey);
	expect_error(mlx5dv_dek_destroy(dek), 0);
}

RULE_CASE(BSF_DEK_DOMAIN)
{
	struct mlx5dv_mkey *mkey = create_key(MLX5DV_MKEY_INIT_ATTR_FLAGS_CRYPTO);
	struct ibv_pd *other = ibv_alloc_pd(server.context);
	struct mlx5dv_dek *dek = create_dek(other, false);
	struct raw raw = raw_begin(&pair.server);
	uint32_t id;

	configure_cipher(mkey, dek, BLOCK);
	id = raw_get32(&raw, CIPHER_DEK) & 0xffffff;
	raw_run(&raw);
	expect_failure(
		&pair.server, CONFIGURE_WR_ID, MW_BIND_ERR, BSF_DEK_DOMAIN, "UMR",
		"the cipher of key 0x%x names DEK 0x%x of protection domain 0x%x; the queue pair is in domain 0x%x",
		mkey->lkey, id, pd_number(other), pd_number(server.pd));
	expect_error(mlx5dv_dek_destroy(dek), 0);
	expect_error(ibv_dealloc_pd(other), 0);
}

RULE_CASE(BSF_KEYTAG)
{
	struct mlx5dv_mkey *mkey = create_key(MLX5DV_MKEY_INIT_ATTR_FLAGS_CRYPTO);
	struct mlx5dv_dek *dek = create_dek(server.pd, true);
	struct raw raw = raw_begin(&pair.server);
	uint32_t id;

	/* The attributes hold a tag of zeros. */
	configure_cipher(mkey, dek, BLOCK);
	id = raw_get32(&raw, CIPHER_DEK) & 0xffffff;
	raw_run(&raw);
	expect_failure(&pair.server, CONFIGURE_WR_ID, MW_BIND_ERR, BSF_KEYTAG, "UMR",
		       "the key tag for the cipher of key 0x%x differs from that of DEK 0x%x", mkey->lkey, id);
	expect_error(mlx5dv_dek_destroy(dek), 0);
}

/* ---- using ------------------------------------------------------------------------------------------------------ */

RULE_CASE(STAGE_RANGE)
{
	struct mlx5dv_mkey *mkey = signed_key(&crc_domain, NULL, BLOCK + FIELD);

	write_bytes(mkey->rkey, 0, 2 * BLOCK);
	expect_failure(
		&pair.client, WR_ID, REM_ACCESS_ERR, STAGE_RANGE, "RDMA_WRITE",
		"the request covers [0x0, +1024) on the wire of key 0x%x, which needs bytes 0 to 1032 of its memory, "
		"and the memory has 516 bytes",
		mkey->rkey);
}

RULE_CASE(STAGE_NESTED)
{
	struct mlx5dv_mkey *inner = signed_key(&crc_domain, NULL, BLOCK + FIELD);
	struct mlx5dv_mkey *outer = side_create_mkey_with(
		&server, MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT | MLX5DV_MKEY_INIT_ATTR_FLAGS_BLOCK_SIGNATURE, 4);

	configure_signature(outer, NULL, &crc_domain, (struct ibv_sge){.length = BLOCK, .lkey = inner->lkey});
	expect_completion(&pair.server, CONFIGURE_WR_ID, MLX5DV_WC_UMR);
	write_bytes(outer->rkey, 0, BLOCK + FIELD);
	expect_failure(&pair.client, WR_ID, REM_ACCESS_ERR, STAGE_NESTED, "RDMA_WRITE",
		       "key 0x%x, which has a signature or a cipher, is part of the layout of another key that has one",
		       inner->lkey);
}

RULE_CASE(STAGE_ATOMIC)
{
	struct mlx5dv_mkey *mkey = signed_key(&crc_domain, NULL, BLOCK + FIELD);
	struct ibv_send_wr wr = request(IBV_WR_ATOMIC_FETCH_AND_ADD, 8);

	wr.wr.atomic.rkey = mkey->rkey;
	wr.wr.atomic.compare_add = 1;
	post_send(&pair.client, &wr);
	expect_failure(&pair.client, WR_ID, REM_ACCESS_ERR, STAGE_ATOMIC, "ATOMIC_FA",
		       "an atomic was posted for key 0x%x, which has a signature or a cipher", mkey->rkey);
}

RULE_CASE(STAGE_LIMIT)
{
	struct raw raw;
	struct mlx5dv_mkey *mkey = signed_in_ring(&raw, &crc_domain, NULL);

	raw_put32(&raw, BSF_RAW_SIZE, 256);
	raw_run(&raw);
	expect_completion(&pair.server, CONFIGURE_WR_ID, MLX5DV_WC_UMR);
	write_bytes(mkey->rkey, 0, BLOCK);
	expect_failure(&pair.client, WR_ID, REM_ACCESS_ERR, STAGE_LIMIT, "RDMA_WRITE",
		       "the request covers [0x0, +512) on the wire of key 0x%x; its signature was set up for 256 bytes "
		       "of data",
		       mkey->rkey);
}

RULE_CASE(CIPHER_MISSING)
{
	struct mlx5dv_mkey *mkey = create_key(MLX5DV_MKEY_INIT_ATTR_FLAGS_CRYPTO);
	struct ibv_sge sge = side_sge(&server, 0, BLOCK);

	expect_error(configure_list(&pair.server, BY_MR_CALL, mkey, KEY_ACCESS, 1, &sge), 0);
	expect_completion(&pair.server, CONFIGURE_WR_ID, MLX5DV_WC_UMR);
	write_bytes(mkey->rkey, 0, BLOCK);
	expect_failure(&pair.client, WR_ID, REM_ACCESS_ERR, CIPHER_MISSING, "RDMA_WRITE",
		       "key 0x%x was created for a cipher and has not been configured with one", mkey->rkey);
}

/* Posts a WRITE of @length bytes at @address of a key of @bytes with data units of 512; it is refused. */
static struct mlx5dv_mkey *write_ciphered(uint32_t bytes, uint64_t address, uint32_t length)
{
	struct mlx5dv_mkey *mkey = create_key(MLX5DV_MKEY_INIT_ATTR_FLAGS_CRYPTO);
	struct mlx5dv_dek *dek = create_dek(server.pd, false);

	configure_cipher(mkey, dek, bytes);
	expect_completion(&pair.server, CONFIGURE_WR_ID, MLX5DV_WC_UMR);
	expect_error(mlx5dv_dek_destroy(dek), 0);
	write_bytes(mkey->rkey, address, length);
	return mkey;
}

RULE_CASE(CIPHER_CUT)
{
	struct mlx5dv_mkey *mkey = write_ciphered(2 * BLOCK, 256, BLOCK);

	expect_failure(
		&pair.client, WR_ID, REM_ACCESS_ERR, CIPHER_CUT, "RDMA_WRITE",
		"the data that arrives through key 0x%x covers bytes 256 to 768 of its cipher's input; data units have 512 bytes, the key 1024",
		mkey->rkey);
}

RULE_CASE(CIPHER_SHORT_UNIT)
{
	struct mlx5dv_mkey *mkey = write_ciphered(BLOCK + 8, 0, BLOCK + 8);

	expect_failure(
		&pair.client, WR_ID, REM_ACCESS_ERR, CIPHER_SHORT_UNIT, "RDMA_WRITE",
		"key 0x%x ends after 520 bytes; with data units of 512 the last one has 8, and AES-XTS needs at least 16",
		mkey->rkey);
}

/* ---- signature errors ------------------------------------------------------------------------------------------- */

/* Writes a block of zeros with this tuple to a key that expects application tag 0x1234 and reference tag 7. */
static struct mlx5dv_mkey *write_tuple(uint16_t guard, uint16_t app, uint32_t ref)
{
	struct mlx5dv_mkey *mkey = signed_key(NULL, &t10_domain, BLOCK);
	__be16 wire_guard = htobe16(guard), wire_app = htobe16(app);
	__be32 wire_ref = htobe32(ref);

	memset(client.memory, 0, BLOCK);
	memcpy(client.memory + BLOCK, &wire_guard, sizeof(wire_guard));
	memcpy(client.memory + BLOCK + 2, &wire_app, sizeof(wire_app));
	memcpy(client.memory + BLOCK + 4, &wire_ref, sizeof(wire_ref));
	side_accept(&client);
	write_bytes(mkey->rkey, 0, BLOCK + 8);
	expect_completion(&pair.client, WR_ID, IBV_WC_RDMA_WRITE);
	side_accept(&server);
	return mkey;
}

RULE_CASE(BLOCK_GUARD)
{
	struct mlx5dv_mkey *mkey = write_tuple(0xbad0, 0x1234, 7);

	expect_about_qp(BLOCK_GUARD, pair.server.qp->qp_num,
			": block 0 of key 0x%x (wire) has a wrong guard: 0x0 was computed from the data, 0xbad0 "
			"was found in the signature field; the block ends at byte 519",
			mkey->rkey);
}

RULE_CASE(BLOCK_APP_TAG)
{
	struct mlx5dv_mkey *mkey = write_tuple(0, 0x5678, 7);

	expect_about_qp(
		BLOCK_APP_TAG, pair.server.qp->qp_num,
		": block 0 of key 0x%x (wire) has a wrong application tag: 0x1234 was expected, 0x5678 was found in "
		"the signature field; the block ends at byte 519",
		mkey->rkey);
}

RULE_CASE(BLOCK_REF_TAG)
{
	struct mlx5dv_mkey *mkey = write_tuple(0, 0x1234, 8);

	expect_about_qp(BLOCK_REF_TAG, pair.server.qp->qp_num,
			": block 0 of key 0x%x (wire) has a wrong reference tag: 0x7 was expected, 0x8 was found in "
			"the signature field; the block ends at byte 519",
			mkey->rkey);
}
