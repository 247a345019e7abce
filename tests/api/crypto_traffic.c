/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests keys with a cipher, with and without signatures: mlx5dv_wr_set_mkey_crypto(3), the crypto setter of
 * mlx5dv_wr_mkey_configure(3). The server has the key; the client has plain memory, which shows the bytes of the wire. Expected
 * bytes come from the AES-XTS of tests/unit/support/xts_model.h.
 */
#include "support/crypto_keys.h"
#include "support/signed_key.h"

#include "../unit/support/xts_model.h"

#define AFTER MLX5DV_SIGNATURE_CRYPTO_ORDER_SIGNATURE_AFTER_CRYPTO_ON_TX
#define BEFORE MLX5DV_SIGNATURE_CRYPTO_ORDER_SIGNATURE_BEFORE_CRYPTO_ON_TX

static const uint32_t unit_bytes[] = {512, 520, 4048, 4096, 4160};

DOMAIN_DIF(t10dif_512, CRC, 512, 0, 0x1234, 0xfffffffe, MLX5DV_SIG_T10DIF_FLAG_REF_REMAP);
DOMAIN_DIF(t10dif_512_sum, CSUM, 512, 0xffff, 7, 9, 0);
DOMAIN_CRC(crc32c_512, CRC32C, 512, 0xffffffff);
DOMAIN_CRC(crc64_4096, CRC64_XP10, 4096, 0);

static struct layout layout;

/* ---- DEKs and keys ---------------------------------------------------------------------------------------------- */

static struct mlx5dv_dek *make_dek(enum mlx5dv_crypto_key_size size, bool tag)
{
	struct mlx5dv_dek_init_attr attr = {
		.key_size = size,
		.has_keytag = tag,
		.pd = server.pd,
		.comp_mask = MLX5DV_DEK_INIT_ATTR_CRYPTO_LOGIN,
	};
	struct mlx5dv_dek *dek;

	plain_key(attr.key, size == MLX5DV_CRYPTO_KEY_SIZE_256 ? 64 : 32);
	dek = mlx5dv_dek_create(server.context, &attr);
	assert_non_null(dek);
	return dek;
}

static struct mlx5dv_crypto_attr crypto_attr(struct mlx5dv_dek *dek, bool encrypt_on_tx,
					     enum mlx5dv_signature_crypto_order order, enum mlx5dv_block_size unit)
{
	struct mlx5dv_crypto_attr attr = {
		.encrypt_on_tx = encrypt_on_tx,
		.signature_crypto_order = order,
		.data_unit_size = unit,
		.initial_tweak = {(char)0xfe, (char)0xff, (char)0xff, (char)0xff, (char)0xff, (char)0xff, (char)0xff,
				  (char)0xff, 0x12, 0x34},
		.dek = dek,
	};

	return attr;
}

/* Creates a key for three entries. The caller owns it. */
static struct mlx5dv_mkey *make_key(uint32_t more_flags)
{
	struct mlx5dv_mkey_init_attr attr = {
		.pd = server.pd,
		.create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT | MLX5DV_MKEY_INIT_ATTR_FLAGS_CRYPTO | more_flags,
		.max_entries = 3,
	};
	struct mlx5dv_mkey *mkey = mlx5dv_create_mkey(&attr);

	assert_non_null(mkey);
	return mkey;
}

/* Replaces the pair by one with room for a layout and two BSFs in one work request. */
static void renew_pair(void)
{
	struct pair_options options = signed_options();

	options.max_inline_data = 380;
	pair_replace(&pair, &options);
}

/* Configures access rights, a split layout of @bytes, the cipher, and the signature if there is one, in one work request. */
static int configure(struct mlx5dv_mkey *mkey, size_t bytes, const struct mlx5dv_crypto_attr *crypto,
		     const struct mlx5dv_sig_block_attr *signature)
{
	struct ibv_sge pieces[3];

	cut_layout(&layout, pieces, bytes);
	configure_start(&pair.server, mkey, signature ? 4 : 3);
	mlx5dv_wr_set_mkey_access_flags(pair.server.dv, KEY_ACCESS);
	mlx5dv_wr_set_mkey_layout_list(pair.server.dv, 3, pieces);
	if (signature)
		mlx5dv_wr_set_mkey_sig_block(pair.server.dv, signature);
	mlx5dv_wr_set_mkey_crypto(pair.server.dv, crypto);
	return ibv_wr_complete(pair.server.ex);
}

#define lay(mkey, bytes, crypto, signature) lay_(HERE, mkey, bytes, crypto, signature)
static void lay_(struct place place, struct mlx5dv_mkey *mkey, size_t bytes, const struct mlx5dv_crypto_attr *crypto,
		 const struct mlx5dv_sig_block_attr *signature)
{
	expect_error_(place, "ibv_wr_complete()", configure(mkey, bytes, crypto, signature), 0);
	expect_completion_(place, &pair.server, CONFIGURE_WR_ID, IBV_WC_DRIVER1);
	expect_idle_(place, &pair.server);
}

/* ---- the model -------------------------------------------------------------------------------------------------- */

/* Encrypts or decrypts @bytes of data units, numbered from @first. */
static void xts(enum mlx5dv_crypto_key_size size, const struct mlx5dv_crypto_attr *crypto, bool encrypt, uint8_t *to,
		const uint8_t *from, size_t bytes)
{
	uint32_t unit = unit_bytes[crypto->data_unit_size], key_bytes = size == MLX5DV_CRYPTO_KEY_SIZE_256 ? 64 : 32;
	uint8_t key[72], tweak[16];

	plain_key(key, key_bytes);
	memcpy(tweak, crypto->initial_tweak, sizeof(tweak));
	for (size_t at = 0; at < bytes; at += unit, model_increment(tweak))
		model_unit(key, key_bytes, encrypt, tweak, to + at, from + at, bytes - at < unit ? bytes - at : unit);
}

/*
 * The data in memory and on the wire. The table of mlx5dv_wr_set_mkey_crypto(3) says: with SIGNATURE_BEFORE on encryption and
 * AFTER on decryption the signature covers the plaintext, otherwise the ciphertext. So one stream is the signed stream as it is,
 * and the other one is its result after the cipher. @data holds the blocks as they are at the signature.
 */
struct streams {
	uint8_t memory[SIGNED_LARGEST], wire[SIGNED_LARGEST];
	size_t memory_bytes, wire_bytes;
};

static void make_streams(struct streams *streams, enum mlx5dv_crypto_key_size size,
			 const struct mlx5dv_crypto_attr *crypto, const struct mlx5dv_sig_block_domain *mem,
			 const struct mlx5dv_sig_block_domain *wire, const uint8_t *data, size_t raw)
{
	static uint8_t plain[SIGNED_LARGEST];
	/* On TX the cipher follows the signature, so that the wire has its output. */
	bool on_wire = crypto->signature_crypto_order == BEFORE;

	streams->memory_bytes = domain_make_stream(mem, data, raw, streams->memory);
	streams->wire_bytes = domain_make_stream(wire, data, raw, streams->wire);
	if (on_wire) {
		memcpy(plain, streams->wire, streams->wire_bytes);
		xts(size, crypto, crypto->encrypt_on_tx, streams->wire, plain, streams->wire_bytes);
	} else {
		memcpy(plain, streams->memory, streams->memory_bytes);
		xts(size, crypto, !crypto->encrypt_on_tx, streams->memory, plain, streams->memory_bytes);
	}
}

static void make_data(uint8_t *data, size_t bytes)
{
	side_compare(&client);
	side_compare(&server);
	side_stir(&client);
	side_stir(&server);
	for (size_t i = 0; i < bytes; i++)
		data[i] = server.memory[i] ^ (uint8_t)(i / 7);
}

/* Transfers the whole key each way, by @operation. */
static void expect_transfer(enum key_operation operation, struct mlx5dv_mkey *mkey, const struct streams *streams)
{
	note("operation %d, %zu bytes of memory, %zu of wire", operation, streams->memory_bytes, streams->wire_bytes);
	if (goes_out(operation))
		key_store(&layout, 0, streams->memory, streams->memory_bytes);
	else
		plain_store(SIGNED_PLAIN, streams->wire, streams->wire_bytes);
	transfer_signed(operation, mkey->lkey, 0, SIGNED_PLAIN, (uint32_t)streams->wire_bytes);
	if (goes_out(operation))
		plain_expect(SIGNED_PLAIN, streams->wire, streams->wire_bytes);
	else
		key_expect(&layout, 0, streams->memory, streams->memory_bytes);
	side_compare(&client);
	side_compare(&server);
}

static struct streams streams;
static uint8_t data[SIGNED_LARGEST];

/* ---- rows A and F: no signature --------------------------------------------------------------------------------- */

TEST(every_unit_and_key_size)
{
	renew_pair();
	for (int size = 0; size < 2; size++) {
		struct mlx5dv_dek *dek = make_dek(size, false);

		for (int unit = 0; unit < 5; unit++) {
			for (int kind = 0; kind < 4; kind++) {
				struct mlx5dv_crypto_attr crypto =
					crypto_attr(dek, kind & 1, kind & 2 ? AFTER : BEFORE, unit);
				/* Whole units only, or a shorter last one. */
				size_t bytes = unit_bytes[unit] * 3 + (kind & 2 ? 96 + 17 * (kind & 1) : 0);
				struct mlx5dv_mkey *mkey = make_key(0);

				lay(mkey, bytes, &crypto, NULL);
				for (enum key_operation operation = 0; operation < KEY_OPERATIONS; operation++) {
					make_data(data, bytes);
					make_streams(&streams, size, &crypto, NULL, NULL, data, bytes);
					/* The order has no effect without a signature. */
					expect_transfer(operation, mkey, &streams);
				}
				expect_error(mlx5dv_destroy_mkey(mkey), 0);
			}
		}
		expect_error(mlx5dv_dek_destroy(dek), 0);
	}
}

/* ---- rows B to E and G to J ------------------------------------------------------------------------------------- */

static const struct row {
	char name;
	const struct mlx5dv_sig_block_domain *mem, *wire;
	bool encrypt_on_tx;
	enum mlx5dv_signature_crypto_order order;
} rows[] = {
	{'B', NULL, &t10dif_512, true, AFTER},
	{'B', NULL, &crc64_4096, true, AFTER},
	{'C', NULL, &t10dif_512, true, BEFORE},
	{'C', NULL, &crc32c_512, true, BEFORE},
	{'D', &t10dif_512, NULL, true, BEFORE},
	{'D', &crc64_4096, NULL, true, BEFORE},
	{'E', &t10dif_512, &crc32c_512, true, BEFORE},
	{'E', &t10dif_512, &t10dif_512, true, BEFORE},
	{'E', &t10dif_512_sum, &t10dif_512, true, BEFORE},
	{'G', NULL, &t10dif_512, false, AFTER},
	{'H', &t10dif_512, NULL, false, AFTER},
	{'H', &crc32c_512, NULL, false, AFTER},
	{'I', &t10dif_512, &crc64_4096, false, AFTER},
	{'I', &crc32c_512, &crc32c_512, false, AFTER},
	{'J', &t10dif_512, NULL, false, BEFORE},
	{'J', &crc64_4096, NULL, false, BEFORE},
	/* Not in the table: expected values follow from its rules. */
	{'b', &t10dif_512, NULL, true, AFTER},
	{'j', NULL, &t10dif_512, false, BEFORE},
};

static struct mlx5dv_sig_block_attr signature_of(const struct row *row)
{
	return (struct mlx5dv_sig_block_attr){.mem = row->mem, .wire = row->wire, .check_mask = 0xff};
}

static struct mlx5dv_mkey *signed_crypto_key(void)
{
	return make_key(MLX5DV_MKEY_INIT_ATTR_FLAGS_BLOCK_SIGNATURE);
}

TEST(every_row_of_the_table)
{
	struct mlx5dv_dek *dek = make_dek(MLX5DV_CRYPTO_KEY_SIZE_128, false);
	const size_t raw = 8 * 512 * 2;

	renew_pair();
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct mlx5dv_sig_block_attr signature = signature_of(&rows[i]);

		for (int unit = 0; unit < 5; unit++) {
			struct mlx5dv_crypto_attr crypto = crypto_attr(dek, rows[i].encrypt_on_tx, rows[i].order, unit);
			size_t wire_bytes = domain_stream_bytes(rows[i].wire, raw);
			size_t memory_bytes = domain_stream_bytes(rows[i].mem, raw);
			size_t rest = (rows[i].order == BEFORE ? wire_bytes : memory_bytes) % unit_bytes[unit];
			struct mlx5dv_mkey *mkey;

			/* AES-XTS does not allow such a unit. */
			if (rest && rest < 16)
				continue;
			mkey = signed_crypto_key();
			lay(mkey, memory_bytes, &crypto, &signature);
			for (enum key_operation operation = 0; operation < KEY_OPERATIONS; operation++) {
				make_data(data, raw);
				make_streams(&streams, MLX5DV_CRYPTO_KEY_SIZE_128, &crypto, rows[i].mem, rows[i].wire,
					     data, raw);
				expect_transfer(operation, mkey, &streams);
				note("row %c, unit %u", rows[i].name, unit_bytes[unit]);
				expect_key_good(mkey);
			}
			expect_error(mlx5dv_destroy_mkey(mkey), 0);
		}
	}
	expect_error(mlx5dv_dek_destroy(dek), 0);
}

/* The signature detects corrupt data, on either side of the cipher. */
TEST(broken_data_is_found)
{
	struct mlx5dv_dek *dek = make_dek(MLX5DV_CRYPTO_KEY_SIZE_256, false);
	const struct row *row;

	renew_pair();
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct mlx5dv_sig_block_attr signature = signature_of(&rows[i]);
		struct mlx5dv_crypto_attr crypto =
			crypto_attr(dek, rows[i].encrypt_on_tx, rows[i].order, MLX5DV_BLOCK_SIZE_512);
		struct mlx5dv_mkey_err err;
		struct mlx5dv_mkey *mkey;
		bool out;

		row = &rows[i];
		note("row %c (%zu)", row->name, i);
		/* Both sides consist of whole units, so that one bit breaks one unit. */
		make_data(data, 4096 * 4);
		make_streams(&streams, MLX5DV_CRYPTO_KEY_SIZE_256, &crypto, row->mem, row->wire, data, 4096 * 4);
		mkey = signed_crypto_key();
		lay(mkey, streams.memory_bytes, &crypto, &signature);
		/* The side with the checked signature sends. */
		out = row->mem;
		if (out) {
			streams.memory[5000] ^= 0x10;
			key_store(&layout, 0, streams.memory, streams.memory_bytes);
		} else {
			streams.wire[5000] ^= 0x10;
			plain_store(SIGNED_PLAIN, streams.wire, streams.wire_bytes);
		}
		transfer_signed(out ? OUT_WRITE : IN_READ, mkey->lkey, 0, SIGNED_PLAIN, (uint32_t)streams.wire_bytes);
		memset(&err, 0, sizeof(err));
		expect_error(mlx5dv_mkey_check(mkey, &err), 0);
		assert_int_equal(err.err_type, MLX5DV_MKEY_SIG_BLOCK_BAD_GUARD);
		/* The rest of the memory depends on the corrupt data: copied, not compared. */
		memcpy(client.expected, client.memory, client.bytes);
		memcpy(server.expected, server.memory, server.bytes);
		expect_error(mlx5dv_destroy_mkey(mkey), 0);
	}
	expect_error(mlx5dv_dek_destroy(dek), 0);
}

/* ---- examples of the man page ----------------------------------------------------------------------------------- */

/*
 * Example 1: "memory data is encrypted … wire data is in plaintext. encrypt_on_tx is set to false, and because signature is
 * not configured, signature_crypto_order value doesn't matter. A SEND is issued using the MKey as a local key." 1.1: "a
 * RECV is issued with the same MKey".
 */
TEST(examples_1)
{
	struct mlx5dv_dek *dek = make_dek(MLX5DV_CRYPTO_KEY_SIZE_128, false);
	struct mlx5dv_crypto_attr crypto = crypto_attr(dek, false, AFTER, MLX5DV_BLOCK_SIZE_512);
	struct mlx5dv_mkey *mkey = make_key(0);

	renew_pair();
	lay(mkey, 2048, &crypto, NULL);
	for (int receive = 0; receive < 2; receive++) {
		make_data(data, 2048);
		memcpy(streams.wire, data, 2048);
		xts(MLX5DV_CRYPTO_KEY_SIZE_128, &crypto, true, streams.memory, data, 2048);
		streams.memory_bytes = streams.wire_bytes = 2048;
		expect_transfer(receive ? IN_RECV : OUT_SEND, mkey, &streams);
	}
	expect_error(mlx5dv_dek_destroy(dek), 0);
	expect_error(mlx5dv_destroy_mkey(mkey), 0);
}

/*
 * Example 2: "memory data is in plaintext. Wire signature domain is configured for T10DIF every 512 Bytes block, and wire
 * data (including the T10DIF) is encrypted. encrypt_on_tx is set to true and signature_crypto_order … BEFORE_CRYPTO_ON_TX.
 * data_unit_size is set to MLX5DV_BLOCK_SIZE_520. The MKey is sent to a remote node that issues a RDMA_READ to this MKey."
 * 2.1: "remote node issues a RDMA_WRITE".
 */
TEST(examples_2)
{
	struct mlx5dv_dek *dek = make_dek(MLX5DV_CRYPTO_KEY_SIZE_128, false);
	struct mlx5dv_crypto_attr crypto = crypto_attr(dek, true, BEFORE, MLX5DV_BLOCK_SIZE_520);
	struct mlx5dv_sig_block_attr signature = {.wire = &t10dif_512, .check_mask = MLX5DV_SIG_MASK_T10DIF_GUARD};
	struct mlx5dv_mkey *mkey = signed_crypto_key();

	renew_pair();
	lay(mkey, 2048, &crypto, &signature);
	for (int write = 0; write < 2; write++) {
		uint8_t wire[4 * 520];

		make_data(data, 2048);
		memcpy(streams.memory, data, 2048);
		assert_int_equal(domain_make_stream(&t10dif_512, data, 2048, wire), sizeof(wire));
		xts(MLX5DV_CRYPTO_KEY_SIZE_128, &crypto, true, streams.wire, wire, sizeof(wire));
		streams.memory_bytes = 2048;
		streams.wire_bytes = sizeof(wire);
		expect_transfer(write ? IN_REMOTE_WRITE : OUT_REMOTE_READ, mkey, &streams);
		expect_key_good(mkey);
	}
	expect_error(mlx5dv_dek_destroy(dek), 0);
	expect_error(mlx5dv_destroy_mkey(mkey), 0);
}

/* ---- the amount of data ----------------------------------------------------------------------------------------- */

/*
 * NOTES: "1. job_size % data_unit_size == 0, 2. (job_size % 16 == 0) && (job_size % data_unit_size <= data_unit_size - 16)". The
 * key is longer than the job.
 */
TEST(job_sizes)
{
	static const struct {
		enum mlx5dv_block_size unit;
		size_t bytes;
	} jobs[] = {
		{MLX5DV_BLOCK_SIZE_512, 512},
		{MLX5DV_BLOCK_SIZE_512, 128},
		{MLX5DV_BLOCK_SIZE_512, 16},
		{MLX5DV_BLOCK_SIZE_512, 496},
		{MLX5DV_BLOCK_SIZE_512, 1024 + 496},
		{MLX5DV_BLOCK_SIZE_520, 520},
		{MLX5DV_BLOCK_SIZE_520, 496},
		{MLX5DV_BLOCK_SIZE_520, 16},
		{MLX5DV_BLOCK_SIZE_520, 520 + 504 - 8},
		{MLX5DV_BLOCK_SIZE_4096, 4080},
		{MLX5DV_BLOCK_SIZE_4160, 4160 + 64},
	};
	struct mlx5dv_dek *dek = make_dek(MLX5DV_CRYPTO_KEY_SIZE_256, false);

	renew_pair();
	for (size_t i = 0; i < ARRAY_SIZE(jobs); i++) {
		for (int kind = 0; kind < 4; kind++) {
			struct mlx5dv_crypto_attr crypto =
				crypto_attr(dek, kind & 1, kind & 2 ? AFTER : BEFORE, jobs[i].unit);
			struct mlx5dv_mkey *mkey = make_key(0);

			lay(mkey, unit_bytes[jobs[i].unit] * 4, &crypto, NULL);
			for (enum key_operation operation = 0; operation < KEY_OPERATIONS; operation++) {
				make_data(data, jobs[i].bytes);
				make_streams(&streams, MLX5DV_CRYPTO_KEY_SIZE_256, &crypto, NULL, NULL, data,
					     jobs[i].bytes);
				/* The rest of the unit after the job belongs to the key, and is unchanged. */
				expect_transfer(operation, mkey, &streams);
			}
			expect_error(mlx5dv_destroy_mkey(mkey), 0);
		}
	}
	expect_error(mlx5dv_dek_destroy(dek), 0);
}

/* Tests job sizes with a signature before or after the cipher: the job is counted on the cipher's side. */
TEST(job_sizes_with_a_signature)
{
	struct mlx5dv_dek *dek = make_dek(MLX5DV_CRYPTO_KEY_SIZE_128, false);
	size_t jobs = 0;

	renew_pair();
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct mlx5dv_sig_block_attr signature = signature_of(&rows[i]);

		for (int unit = 0; unit < 5; unit++) {
			struct mlx5dv_crypto_attr crypto = crypto_attr(dek, rows[i].encrypt_on_tx, rows[i].order, unit);
			bool on_wire = rows[i].order == BEFORE;

			for (size_t raw = 512; raw <= 4096; raw += 512) {
				size_t job = domain_stream_bytes(on_wire ? rows[i].wire : rows[i].mem, raw);
				/* Bytes of the last unit, not of the job: they differ if a unit is not a multiple of 16. */
				size_t inside = job % unit_bytes[unit];
				struct mlx5dv_mkey *mkey;

				if (inside % 16 || inside > unit_bytes[unit] - 16)
					continue;
				mkey = signed_crypto_key();
				lay(mkey, 3 * 4160, &crypto, &signature);
				for (int in = 0; in < 2; in++) {
					make_data(data, raw);
					make_streams(&streams, MLX5DV_CRYPTO_KEY_SIZE_128, &crypto, rows[i].mem,
						     rows[i].wire, data, raw);
					expect_transfer(in ? IN_REMOTE_WRITE : OUT_SEND, mkey, &streams);
					expect_key_good(mkey);
				}
				expect_error(mlx5dv_destroy_mkey(mkey), 0);
				jobs++;
			}
		}
	}
	assert_true(jobs > 100);
	expect_error(mlx5dv_dek_destroy(dek), 0);
}

/* ---- attributes of a key ---------------------------------------------------------------------------------------- */

/* "Must be configured with crypto attributes before the MKey can be used": until then every access fails. */
TEST(unusable_before_the_setter)
{
	struct mlx5dv_mkey *mkey = make_key(0);
	struct mlx5dv_dek *dek = make_dek(MLX5DV_CRYPTO_KEY_SIZE_128, false);
	struct mlx5dv_crypto_attr crypto = crypto_attr(dek, true, AFTER, MLX5DV_BLOCK_SIZE_512);
	struct ibv_sge pieces[3];
	struct view key;

	renew_pair();
	cut_layout(&layout, pieces, 1024);
	key = lay_list(&pair.server, BY_CONFIGURE, mkey, &layout, 3, pieces);
	expect_write(&pair, view_memory(&client, 0, 512), view_part(key, 0, 512), IBV_WC_REM_ACCESS_ERR);
	expect_read(&pair, view_memory(&client, 0, 512), view_part(key, 0, 512), IBV_WC_REM_ACCESS_ERR);
	expect_write(&pair, view_part(key, 0, 512), view_memory(&client, 0, 512), IBV_WC_LOC_PROT_ERR);
	renew_pair();
	/* The setter alone: the layout is already configured. */
	configure_start(&pair.server, mkey, 1);
	mlx5dv_wr_set_mkey_crypto(pair.server.dv, &crypto);
	configure_complete(&pair.server);
	make_data(data, 1024);
	make_streams(&streams, MLX5DV_CRYPTO_KEY_SIZE_128, &crypto, NULL, NULL, data, 1024);
	expect_transfer(OUT_SEND, mkey, &streams);
	expect_error(mlx5dv_dek_destroy(dek), 0);
	expect_error(mlx5dv_destroy_mkey(mkey), 0);
}

/* "If the MKey is already configured with crypto attributes, the setter overrides the previous value." */
TEST(the_setter_overrides)
{
	struct mlx5dv_dek *small = make_dek(MLX5DV_CRYPTO_KEY_SIZE_128, false);
	struct mlx5dv_dek *large = make_dek(MLX5DV_CRYPTO_KEY_SIZE_256, false);
	struct mlx5dv_mkey *mkey = make_key(0);
	struct mlx5dv_crypto_attr crypto = crypto_attr(small, true, AFTER, MLX5DV_BLOCK_SIZE_512);

	renew_pair();
	lay(mkey, 2080, &crypto, NULL);
	for (int i = 0; i < 4; i++) {
		enum mlx5dv_crypto_key_size size = i & 1;

		if (i) {
			crypto = crypto_attr(size ? large : small, i & 2, BEFORE,
					     i & 2 ? MLX5DV_BLOCK_SIZE_520 : MLX5DV_BLOCK_SIZE_512);
			crypto.initial_tweak[15] = (char)i;
			configure_start(&pair.server, mkey, 1);
			mlx5dv_wr_set_mkey_crypto(pair.server.dv, &crypto);
			configure_complete(&pair.server);
		}
		for (int in = 0; in < 2; in++) {
			make_data(data, 2080);
			make_streams(&streams, size, &crypto, NULL, NULL, data, 2080);
			expect_transfer(in ? IN_RECV : OUT_WRITE, mkey, &streams);
		}
	}
	expect_error(mlx5dv_dek_destroy(small), 0);
	expect_error(mlx5dv_dek_destroy(large), 0);
	expect_error(mlx5dv_destroy_mkey(mkey), 0);
}

/* The cipher survives another layout and the removal of the signature. */
TEST(the_cipher_stays)
{
	struct mlx5dv_dek *dek = make_dek(MLX5DV_CRYPTO_KEY_SIZE_128, false);
	struct mlx5dv_crypto_attr crypto = crypto_attr(dek, true, BEFORE, MLX5DV_BLOCK_SIZE_512);
	struct mlx5dv_sig_block_attr signature = {.wire = &t10dif_512, .check_mask = 0xff};
	struct mlx5dv_mkey_conf_attr reset = {.conf_flags = MLX5DV_MKEY_CONF_FLAG_RESET_SIG_ATTR};
	struct mlx5dv_mkey *mkey = signed_crypto_key();
	struct ibv_sge pieces[3];

	renew_pair();
	lay(mkey, 4096, &crypto, &signature);
	for (int step = 0; step < 3; step++) {
		const struct mlx5dv_sig_block_domain *wire = step < 2 ? &t10dif_512 : NULL;

		if (step == 1) {
			cut_layout(&layout, pieces, 2048);
			lay_list(&pair.server, BY_CONFIGURE, mkey, &layout, 3, pieces);
		} else if (step == 2) {
			batch_start(&pair.server, CONFIGURE_WR_ID, IBV_SEND_INLINE | IBV_SEND_SIGNALED);
			mlx5dv_wr_mkey_configure(pair.server.dv, mkey, 0, &reset);
			configure_complete(&pair.server);
		}
		for (int in = 0; in < 2; in++) {
			make_data(data, layout.length);
			make_streams(&streams, MLX5DV_CRYPTO_KEY_SIZE_128, &crypto, NULL, wire, data, layout.length);
			expect_transfer(in ? IN_REMOTE_WRITE : OUT_REMOTE_READ, mkey, &streams);
		}
	}
	expect_error(mlx5dv_dek_destroy(dek), 0);
	expect_error(mlx5dv_destroy_mkey(mkey), 0);
}

/*
 * mlx5dv_wr_mkey_configure(3): IBV_WR_LOCAL_INV clears cipher and signature. Afterwards the key has only those of the next
 * configuration.
 */
TEST(cleared_by_local_inv)
{
	const size_t bytes = 8 * 512;
	struct mlx5dv_dek *dek;
	struct mlx5dv_crypto_attr crypto;
	struct mlx5dv_mkey *mkey;
	struct mlx5dv_sig_block_attr signature = signature_of(&rows[5]);

	if (!in_profile("man", __func__))
		return;
	renew_pair();
	dek = make_dek(MLX5DV_CRYPTO_KEY_SIZE_128, false);
	crypto = crypto_attr(dek, rows[5].encrypt_on_tx, rows[5].order, MLX5DV_BLOCK_SIZE_512);
	for (int by_call = 0; by_call < 2; by_call++) {
		struct ibv_send_wr wr = send_wr(4, IBV_WR_LOCAL_INV, NULL);

		mkey = signed_crypto_key();
		lay(mkey, domain_stream_bytes(rows[5].mem, bytes), &crypto, &signature);
		wr.invalidate_rkey = mkey->rkey;
		if (by_call) {
			batch_start(&pair.server, 4, IBV_SEND_SIGNALED);
			ibv_wr_local_inv(pair.server.ex, mkey->rkey);
			expect_error(ibv_wr_complete(pair.server.ex), 0);
		} else {
			post_send(&pair.server, &wr);
		}
		expect_completion(&pair.server, 4, IBV_WC_LOCAL_INV);
		lay(mkey, bytes, &crypto, NULL);
		for (enum key_operation operation = 0; operation < KEY_OPERATIONS; operation++) {
			make_data(data, bytes);
			make_streams(&streams, MLX5DV_CRYPTO_KEY_SIZE_128, &crypto, NULL, NULL, data, bytes);
			expect_transfer(operation, mkey, &streams);
		}
		expect_error(mlx5dv_destroy_mkey(mkey), 0);
	}
	expect_error(mlx5dv_dek_destroy(dek), 0);
}

/* mlx5dv_dek_create(3), has_keytag: "comparing the keytag … and failing the operation if they are different". */
TEST(key_tags)
{
	struct mlx5dv_dek *tagged = make_dek(MLX5DV_CRYPTO_KEY_SIZE_128, true);
	struct mlx5dv_dek *plain = make_dek(MLX5DV_CRYPTO_KEY_SIZE_128, false);
	struct mlx5dv_crypto_attr crypto = crypto_attr(tagged, true, AFTER, MLX5DV_BLOCK_SIZE_512);
	struct mlx5dv_mkey *mkey = make_key(0);

	renew_pair();
	/* No tag, and a tag that differs in its last bit. */
	for (int i = 0; i < 2; i++) {
		if (i) {
			memcpy(crypto.keytag, PLAIN_TAG, 8);
			crypto.keytag[7] ^= 1;
		}
		expect_error(configure(mkey, 1024, &crypto, NULL), 0);
		expect_status(&pair.server, CONFIGURE_WR_ID, IBV_WC_MW_BIND_ERR);
		renew_pair();
	}
	crypto.keytag[7] ^= 1;
	lay(mkey, 1024, &crypto, NULL);
	make_data(data, 1024);
	make_streams(&streams, MLX5DV_CRYPTO_KEY_SIZE_128, &crypto, NULL, NULL, data, 1024);
	expect_transfer(OUT_SEND, mkey, &streams);
	/* A DEK without a tag accepts any. */
	crypto.dek = plain;
	lay(mkey, 1024, &crypto, NULL);
	make_data(data, 1024);
	make_streams(&streams, MLX5DV_CRYPTO_KEY_SIZE_128, &crypto, NULL, NULL, data, 1024);
	expect_transfer(IN_RECV, mkey, &streams);
	expect_error(mlx5dv_dek_destroy(tagged), 0);
	expect_error(mlx5dv_dek_destroy(plain), 0);
	expect_error(mlx5dv_destroy_mkey(mkey), 0);
}

/* A key keeps using a destroyed DEK until it is configured anew. */
TEST(destroyed_dek)
{
	struct mlx5dv_dek *dek = make_dek(MLX5DV_CRYPTO_KEY_SIZE_128, false);
	struct mlx5dv_crypto_attr crypto = crypto_attr(dek, false, AFTER, MLX5DV_BLOCK_SIZE_512);
	struct mlx5dv_mkey *mkey = make_key(0);

	renew_pair();
	lay(mkey, 1024, &crypto, NULL);
	expect_error(mlx5dv_dek_destroy(dek), 0);
	for (int in = 0; in < 2; in++) {
		make_data(data, 1024);
		make_streams(&streams, MLX5DV_CRYPTO_KEY_SIZE_128, &crypto, NULL, NULL, data, 1024);
		expect_transfer(in ? IN_RECV : OUT_SEND, mkey, &streams);
	}
	expect_error(mlx5dv_destroy_mkey(mkey), 0);
}

/* A DEK of another protection domain fails. */
TEST(foreign_dek)
{
	struct ibv_pd *foreign = ibv_alloc_pd(server.context);
	struct mlx5dv_dek_init_attr attr = {.pd = foreign, .comp_mask = MLX5DV_DEK_INIT_ATTR_CRYPTO_LOGIN};
	struct mlx5dv_mkey *mkey = make_key(0);
	struct mlx5dv_crypto_attr crypto;

	renew_pair();
	plain_key(attr.key, 32);
	crypto = crypto_attr(mlx5dv_dek_create(server.context, &attr), true, AFTER, MLX5DV_BLOCK_SIZE_512);
	assert_non_null(crypto.dek);
	expect_error(configure(mkey, 1024, &crypto, NULL), 0);
	expect_status(&pair.server, CONFIGURE_WR_ID, IBV_WC_MW_BIND_ERR);
	renew_pair();
	expect_error(mlx5dv_dek_destroy(crypto.dek), 0);
	expect_error(ibv_dealloc_pd(foreign), 0);
	expect_error(mlx5dv_destroy_mkey(mkey), 0);
}

/* The library refuses rows that the table does not have. */
TEST(two_signatures_in_raw_orders)
{
	struct mlx5dv_dek *dek = make_dek(MLX5DV_CRYPTO_KEY_SIZE_128, false);
	struct mlx5dv_sig_block_attr signature = {.mem = &t10dif_512, .wire = &t10dif_512, .check_mask = 0xff};
	struct mlx5dv_mkey *mkey = signed_crypto_key();

	renew_pair();
	for (int encrypt = 0; encrypt < 2; encrypt++) {
		struct mlx5dv_crypto_attr crypto =
			crypto_attr(dek, encrypt, encrypt ? AFTER : BEFORE, MLX5DV_BLOCK_SIZE_512);

		expect_error(configure(mkey, 4160, &crypto, &signature), EINVAL);
	}
	expect_error(mlx5dv_dek_destroy(dek), 0);
	expect_error(mlx5dv_destroy_mkey(mkey), 0);
}

/* ---- wrapped keys ----------------------------------------------------------------------------------------------- */

/* An unwrapped key yields the same ciphertext as the plain one. */
TEST(wrapped_keys_are_unwrapped)
{
	static const struct {
		enum mlx5dv_crypto_key_size size;
		bool tag;
		const char *hex;
	} keys[] = {
		{MLX5DV_CRYPTO_KEY_SIZE_128, false, wrapped_128},
		{MLX5DV_CRYPTO_KEY_SIZE_128, true, wrapped_128_tag},
		{MLX5DV_CRYPTO_KEY_SIZE_256, false, wrapped_256},
		{MLX5DV_CRYPTO_KEY_SIZE_256, true, wrapped_256_tag},
	};
	struct mlx5dv_crypto_login_attr session = {0};

	if (!in_setting("SOFTHCA_CRYPTO", "wrapped", "plaintext", __func__))
		return;
	renew_pair();
	bytes_of_hex(session.credential, built_in_credential);
	expect_error(mlx5dv_crypto_login(server.context, &session), 0);
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		struct mlx5dv_dek_init_attr attr = {
			.key_size = keys[i].size, .has_keytag = keys[i].tag, .pd = server.pd};
		struct mlx5dv_mkey *mkey = make_key(0);
		struct mlx5dv_crypto_attr crypto;

		bytes_of_hex(attr.key, keys[i].hex);
		crypto = crypto_attr(mlx5dv_dek_create(server.context, &attr), true, AFTER, MLX5DV_BLOCK_SIZE_512);
		assert_non_null(crypto.dek);
		memcpy(crypto.keytag, PLAIN_TAG, 8);
		lay(mkey, 1024, &crypto, NULL);
		/* "To use the created DEK in a MKey, a valid crypto login … is not needed." */
		expect_error(mlx5dv_crypto_logout(server.context), 0);
		make_data(data, 1024);
		make_streams(&streams, keys[i].size, &crypto, NULL, NULL, data, 1024);
		expect_transfer(OUT_SEND, mkey, &streams);
		expect_error(mlx5dv_crypto_login(server.context, &session), 0);
		expect_error(mlx5dv_dek_destroy(crypto.dek), 0);
		expect_error(mlx5dv_destroy_mkey(mkey), 0);
	}
}
