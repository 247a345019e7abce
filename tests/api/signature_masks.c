/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which bytes of a field are checked and copied, and when checks are skipped: check_mask, copy_mask and the escapes of
 * mlx5dv_wr_set_mkey_sig_block(3). One block of 512 bytes.
 */
#include "support/signed_key.h"

static struct layout layout;
static struct mlx5dv_mkey *mkey;
static uint8_t data[512];

DOMAIN_CRC(crc32, CRC32, 512, 0);
DOMAIN_CRC(crc32_ones, CRC32, 512, 0xffffffff);
DOMAIN_CRC(crc32c, CRC32C, 512, 0);
DOMAIN_CRC(crc64, CRC64_XP10, 512, 0);
DOMAIN_CRC(crc64_ones, CRC64_XP10, 512, 0xffffffffffffffff);
DOMAIN_DIF(dif, CRC, 512, 0, 0x5678, 0xf0debc9a, 0);
DOMAIN_DIF(dif_csum, CSUM, 512, 0, 0x5678, 0xf0debc9a, 0);
DOMAIN_DIF(dif_seed, CRC, 512, 0xffff, 0x5678, 0xf0debc9a, 0);
DOMAIN_DIF(dif_app, CRC, 512, 0, 0x5679, 0xf0debc9a, 0);
DOMAIN_DIF(dif_ref, CRC, 512, 0, 0x5678, 0xf1debc9a, 0);
DOMAIN_DIF(dif_remap, CRC, 512, 0, 0x5678, 0xf0debc9a, MLX5DV_SIG_T10DIF_FLAG_REF_REMAP);
DOMAIN_DIF(dif_escape, CRC, 512, 0, 0x5678, 0xf0debc9a,
	   MLX5DV_SIG_T10DIF_FLAG_APP_ESCAPE | MLX5DV_SIG_T10DIF_FLAG_APP_REF_ESCAPE);
DOMAIN_DIF(dif_all, CSUM, 512, 0, 0x1111, 0x22222222, MLX5DV_SIG_T10DIF_FLAG_REF_REMAP);

static void open_pair(void)
{
	struct pair_options options = signed_options();

	pair_replace(&pair, &options);
	mkey = side_create_signed_mkey(&server, 3);
	for (int i = 0; i < 512; i++)
		data[i] = (uint8_t)(3 * i);
}

static void lay(const struct mlx5dv_sig_block_attr *attr)
{
	lay_signed(mkey, &layout, 512 + domain_field(attr->mem), attr);
	side_stir(&client);
	side_stir(&server);
}

/* Sends a block followed by @field out of the key's memory, or into the key if @in. */
static void transfer_field(const struct mlx5dv_sig_block_attr *attr, bool in, const uint8_t *field)
{
	const struct mlx5dv_sig_block_domain *source = in ? attr->wire : attr->mem;
	uint32_t wire_bytes = 512 + domain_field(attr->wire);

	if (in) {
		plain_store(SIGNED_PLAIN, data, 512);
		plain_store(SIGNED_PLAIN + 512, field, domain_field(source));
	} else {
		key_store(&layout, 0, data, 512);
		key_store(&layout, 512, field, domain_field(source));
	}
	transfer_signed(in ? IN_RECV : OUT_SEND, mkey->lkey, 0, SIGNED_PLAIN, wire_bytes);
}

/* Checks that the other side got the data, and @field if it has one. */
static void expect_field(const struct mlx5dv_sig_block_attr *attr, bool in, const uint8_t *field)
{
	if (in) {
		key_expect(&layout, 0, data, 512);
		key_expect(&layout, 512, field, domain_field(attr->mem));
	} else {
		plain_expect(SIGNED_PLAIN, data, 512);
		plain_expect(SIGNED_PLAIN + 512, field, domain_field(attr->wire));
	}
	side_compare(&client);
	side_compare(&server);
}

static bool has_error(void)
{
	struct mlx5dv_mkey_err err;

	expect_error(mlx5dv_mkey_check(mkey, &err), 0);
	return err.err_type != MLX5DV_MKEY_NO_ERR;
}

/* ---- check_mask ------------------------------------------------------------------------------------------------- */

/* Bit 7 is the first byte in memory: GUARD[1] of T10-DIF, the most significant byte of a CRC32 (mlx5-formats 4.5). */
static void expect_checked_byte_by_byte(const struct mlx5dv_sig_block_domain *domain, bool in)
{
	uint32_t bytes = domain_field(domain);
	uint8_t good[8], bad[8];

	for (int mask = 0; mask < 256; mask += mask < 16 || mask >= 240 ? 1 : 13) {
		struct mlx5dv_sig_block_attr attr = {.check_mask = (uint8_t)mask};

		*(in ? &attr.wire : &attr.mem) = domain;
		for (uint32_t byte = 0; byte <= bytes; byte++) {
			bool checked = byte < bytes && mask >> (7 - byte) & 1;

			note("type %d, in %d, mask %#x, byte %u", domain->sig_type, in, mask, byte);
			/* Configure again each time, which arms the key. */
			lay(&attr);
			domain_make_field(domain, data, 0, good);
			memcpy(bad, good, sizeof(bad));
			if (byte < bytes)
				bad[byte] ^= 0x10;
			transfer_field(&attr, in, bad);
			expect_field(&attr, in, good);
			assert_int_equal(has_error(), checked);
		}
	}
}

TEST(check_mask_of_t10dif)
{
	open_pair();
	for (int in = 0; in < 2; in++) {
		expect_checked_byte_by_byte(&dif, in);
		expect_checked_byte_by_byte(&dif_csum, in);
	}
}

TEST(check_mask_of_crc32)
{
	open_pair();
	for (int in = 0; in < 2; in++) {
		expect_checked_byte_by_byte(&crc32, in);
		expect_checked_byte_by_byte(&crc32c, in);
	}
}

TEST(check_mask_of_crc64)
{
	open_pair();
	for (int in = 0; in < 2; in++)
		expect_checked_byte_by_byte(&crc64, in);
}

/* "Common used masks are defined in enum mlx5dv_sig_mask": each covers its own part only. */
TEST(predefined_check_masks)
{
	static const struct {
		const struct mlx5dv_sig_block_domain *domain;
		uint8_t mask;
		uint32_t first, bytes;
	} row[] = {
		{&dif, MLX5DV_SIG_MASK_T10DIF_GUARD, 0, 2},  {&dif, MLX5DV_SIG_MASK_T10DIF_APPTAG, 2, 2},
		{&dif, MLX5DV_SIG_MASK_T10DIF_REFTAG, 4, 4}, {&crc32, MLX5DV_SIG_MASK_CRC32, 0, 4},
		{&crc32c, MLX5DV_SIG_MASK_CRC32C, 0, 4},     {&crc64, MLX5DV_SIG_MASK_CRC64_XP10, 0, 8},
	};
	uint8_t good[8], bad[8];

	open_pair();
	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		struct mlx5dv_sig_block_attr attr = {.mem = row[i].domain, .check_mask = row[i].mask};

		for (uint32_t byte = 0; byte < domain_field(row[i].domain); byte++) {
			note("row %zu, byte %u", i, byte);
			lay(&attr);
			domain_make_field(row[i].domain, data, 0, good);
			memcpy(bad, good, sizeof(bad));
			bad[byte] ^= 1;
			transfer_field(&attr, false, bad);
			assert_int_equal(has_error(), byte - row[i].first < row[i].bytes);
			side_stir(&client);
			side_stir(&server);
		}
	}
}

/* The mask applies to the input: the memory on the way out, the wire on the way in. */
TEST(check_mask_applies_to_the_input)
{
	struct mlx5dv_sig_block_attr attr = {.mem = &dif, .wire = &crc32c, .check_mask = 0xf0};
	uint8_t memory[8], wire[8];

	open_pair();
	for (int in = 0; in < 2; in++) {
		for (uint32_t byte = 0; byte < (in ? 4 : 8); byte++) {
			note("in %d, byte %u", in, byte);
			lay(&attr);
			domain_make_field(&dif, data, 0, memory);
			domain_make_field(&crc32c, data, 0, wire);
			(in ? wire : memory)[byte] ^= 4;
			transfer_field(&attr, in, in ? wire : memory);
			(in ? wire : memory)[byte] ^= 4;
			expect_field(&attr, in, in ? memory : wire);
			assert_int_equal(has_error(), byte < 4);
		}
	}
}

/* ---- copy_mask -------------------------------------------------------------------------------------------------- */

/* Checks the output for a field of foreign bytes: those with their bit set are copied, the others computed. */
static void expect_copied(const struct mlx5dv_sig_block_attr *attr, bool in, uint8_t mask)
{
	static const uint8_t foreign[8] = {0x3c, 0x5a, 0x69, 0x96, 0xa5, 0xc3, 0x0f, 0x81};
	const struct mlx5dv_sig_block_domain *to = in ? attr->mem : attr->wire;
	uint8_t expected[8];

	lay(attr);
	transfer_field(attr, in, foreign);
	domain_make_field(to, data, 0, expected);
	for (uint32_t byte = 0; byte < domain_field(to); byte++)
		if (mask >> (7 - byte) & 1)
			expected[byte] = foreign[byte];
	expect_field(attr, in, expected);
	expect_key_good(mkey);
}

/* Every mask, in both directions; bits beyond the field are ignored. */
TEST(copy_mask_byte_by_byte)
{
	static const struct {
		const struct mlx5dv_sig_block_domain *mem, *wire;
	} row[] = {{&dif, &dif_all}, {&dif_all, &dif}, {&crc32, &crc32_ones}, {&crc64, &crc64_ones}};

	open_pair();
	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		for (int mask = 0; mask < 256; mask += i < 2 ? 1 : 5) {
			struct mlx5dv_sig_block_attr attr = {
				.mem = row[i].mem,
				.wire = row[i].wire,
				.flags = MLX5DV_SIG_BLOCK_ATTR_FLAG_COPY_MASK,
				.copy_mask = (uint8_t)mask,
			};

			note("row %zu, mask %#x", i, mask);
			expect_copied(&attr, mask % 2, (uint8_t)mask);
			expect_copied(&attr, mask % 2 == 0, (uint8_t)mask);
		}
	}
}

/*
 * "Otherwise, copy_mask is ignored": parts that both sides have in common are copied. Whether REF_REMAP is the same on
 * both sides is not compared by adapters' libraries (mlx5-formats 4.5). Escapes have no effect.
 */
static void expect_automatic(bool connectx)
{
	const struct {
		const struct mlx5dv_sig_block_domain *wire;
		uint8_t mask;
	} row[] = {{&dif, 0xff},        {&dif_csum, 0x3f}, {&dif_seed, 0x3f},
		   {&dif_app, 0xcf},    {&dif_ref, 0xf0},  {&dif_remap, connectx ? 0xff : 0xf0},
		   {&dif_escape, 0xff}, {&dif_all, 0}};
	struct mlx5dv_sig_block_attr attr = {.mem = &dif};

	open_pair();
	for (int in = 0; in < 2; in++) {
		for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
			note("row %zu, in %d", i, in);
			attr.wire = row[i].wire;
			attr.copy_mask = (uint8_t)~row[i].mask;
			expect_copied(&attr, in, row[i].mask);
		}
	}
	attr = (struct mlx5dv_sig_block_attr){.mem = &crc32, .wire = &crc32};
	expect_copied(&attr, false, 0xf0);
	attr.wire = &crc32_ones; /* "copied if the same signature type is configured on both domains": not the seed */
	expect_copied(&attr, true, 0xf0);
	attr.wire = &crc32c;
	expect_copied(&attr, false, 0);
	attr = (struct mlx5dv_sig_block_attr){.mem = &crc64, .wire = &crc64_ones};
	expect_copied(&attr, true, 0xff);
}

TEST(automatic_copy_mask_man)
{
	if (in_profile("man", __func__))
		expect_automatic(false);
}

TEST(automatic_copy_mask_connectx)
{
	if (in_profile("connectx", __func__))
		expect_automatic(true);
}

/*
 * Reference tags that increment on one side only: data leaving the key is right for its domain, block after block, and
 * so is data coming back through it.
 */
TEST(reference_tags_made_two_ways)
{
	enum { BLOCKS = 3, RAW = BLOCKS * 512, EXTENDED = BLOCKS * 520 };
	const struct mlx5dv_sig_block_domain *const domains[] = {&dif, &dif_remap};
	static uint8_t raw[RAW], memory[EXTENDED], wire[EXTENDED];

	if (!in_profile("man", __func__))
		return;
	open_pair();
	for (int i = 0; i < RAW; i++)
		raw[i] = (uint8_t)(i * 7);
	for (int counts = 0; counts < 2; counts++) {
		struct mlx5dv_sig_block_attr attr = {
			.mem = domains[counts], .wire = domains[!counts], .check_mask = 0xff};

		domain_make_stream(attr.mem, raw, RAW, memory);
		domain_make_stream(attr.wire, raw, RAW, wire);
		lay_signed(mkey, &layout, EXTENDED, &attr);
		side_stir(&client);
		side_stir(&server);
		key_store(&layout, 0, memory, EXTENDED);
		transfer_signed(OUT_SEND, mkey->lkey, 0, SIGNED_PLAIN, EXTENDED);
		plain_expect(SIGNED_PLAIN, wire, EXTENDED);
		side_compare(&client);
		expect_key_good(mkey);
		side_stir(&server);
		transfer_signed(IN_REMOTE_WRITE, mkey->lkey, 0, SIGNED_PLAIN, EXTENDED);
		key_expect(&layout, 0, memory, EXTENDED);
		side_compare(&server);
		expect_key_good(mkey);
	}
}

/* With a memory domain only there is nothing to copy to; an adapter's library ignores the flag. */
TEST(copy_mask_without_a_wire_domain_connectx)
{
	struct mlx5dv_sig_block_attr attr = {
		.mem = &crc32, .flags = MLX5DV_SIG_BLOCK_ATTR_FLAG_COPY_MASK, .copy_mask = 0xff, .check_mask = 0xff};

	if (!in_profile("connectx", __func__))
		return;
	open_pair();
	lay(&attr);
	expect_signed_transfer(OUT_SEND, mkey, &layout, &crc32, NULL, 512);
	expect_signed_transfer(IN_RECV, mkey, &layout, &crc32, NULL, 512);
}

/*
 * "When some bytes of the signature are not known in advance, hence can't be checked, but shall be preserved": here the
 * low byte of the application tag.
 */
TEST(unknown_bytes_are_preserved)
{
	struct mlx5dv_sig_block_attr attr = {
		.mem = &dif,
		.wire = &dif,
		.flags = MLX5DV_SIG_BLOCK_ATTR_FLAG_COPY_MASK,
		.check_mask = (uint8_t)~0x10,
		.copy_mask = 0xff,
	};
	uint8_t field[8];

	open_pair();
	for (int in = 0; in < 2; in++) {
		lay(&attr);
		domain_make_field(&dif, data, 0, field);
		field[3] = 0xe7;
		transfer_field(&attr, in, field);
		expect_field(&attr, in, field);
		expect_key_good(mkey);
		/* "check_mask allows validating a part of the application tag": the other byte is checked. */
		field[2] ^= 1;
		transfer_field(&attr, in, field);
		expect_field(&attr, in, field);
		expect_key_bad(mkey, MLX5DV_MKEY_SIG_BLOCK_BAD_APPTAG, &dif, 0, 0, 0x57e7, 0x5678);
	}
}

/* ---- escapes ---------------------------------------------------------------------------------------------------- */

/* Returns the error found in a tuple of these tags with a wrong guard, or which is right except for the tags. */
static enum mlx5dv_mkey_err_type found_in(uint16_t flags, bool guard_wrong, uint16_t app, uint32_t ref)
{
	struct mlx5dv_sig_t10dif t10 = {MLX5DV_SIG_T10DIF_CRC, 0, 0x5678, 0xf0debc9a, flags};
	struct mlx5dv_sig_block_domain domain = {.sig_type = MLX5DV_SIG_TYPE_T10DIF, .sig.dif = &t10};
	struct mlx5dv_sig_block_attr attr = {.wire = &domain, .check_mask = 0xff};
	struct mlx5dv_mkey_err err;
	uint8_t field[8];

	lay(&attr);
	domain_make_field(&domain, data, 0, field);
	field[0] ^= guard_wrong;
	for (int i = 0; i < 2; i++)
		field[2 + i] = (uint8_t)(app >> (8 - 8 * i));
	for (int i = 0; i < 4; i++)
		field[4 + i] = (uint8_t)(ref >> (24 - 8 * i));
	transfer_field(&attr, true, field);
	expect_field(&attr, true, field);
	expect_error(mlx5dv_mkey_check(mkey, &err), 0);
	return err.err_type;
}

enum {
	GOOD = MLX5DV_MKEY_NO_ERR,
	GUARD = MLX5DV_MKEY_SIG_BLOCK_BAD_GUARD,
	APP_TAG = MLX5DV_MKEY_SIG_BLOCK_BAD_APPTAG,
	REF_TAG = MLX5DV_MKEY_SIG_BLOCK_BAD_REFTAG,

	APP = MLX5DV_SIG_T10DIF_FLAG_APP_ESCAPE,
	APP_REF = MLX5DV_SIG_T10DIF_FLAG_APP_REF_ESCAPE,
};

/* "Do not check block guard if application tag is 0xFFFF", "… and reference tag is 0xFFFFFFFF". */
static const struct {
	uint16_t flags, app;
	uint32_t ref;
	bool guard_wrong;
	int man, connectx;
} escapes[] = {
	{0, 0xffff, 0xffffffff, true, GUARD, GUARD},
	{0, 0xffff, 0xffffffff, false, APP_TAG, APP_TAG},
	/* The man page: the guard is not checked, the tags are. An adapter checks nothing. */
	{APP, 0xffff, 0xf0debc9a, true, APP_TAG, GOOD},
	{APP, 0xffff, 0xf0debc9a, false, APP_TAG, GOOD},
	{APP, 0xffff, 0, true, APP_TAG, GOOD},
	{APP, 0xfffe, 0xf0debc9a, true, GUARD, GUARD},
	{APP, 0x5678, 0xffffffff, true, GUARD, GUARD},
	{APP, 0x5678, 0xffffffff, false, REF_TAG, REF_TAG},
	{APP_REF, 0xffff, 0xffffffff, true, APP_TAG, GOOD},
	{APP_REF, 0xffff, 0xfffffffe, true, GUARD, GUARD},
	{APP_REF, 0xfffe, 0xffffffff, true, GUARD, GUARD},
	{APP_REF, 0xffff, 0xf0debc9a, false, APP_TAG, APP_TAG},
	/* Both: that of both tags (mlx5-formats 4.7). */
	{APP | APP_REF, 0xffff, 0xf0debc9a, true, GUARD, GUARD},
	{APP | APP_REF, 0xffff, 0xffffffff, true, APP_TAG, GOOD},
};

static void expect_escapes(bool connectx)
{
	open_pair();
	for (size_t i = 0; i < ARRAY_SIZE(escapes); i++) {
		note("row %zu", i);
		assert_int_equal(found_in(escapes[i].flags, escapes[i].guard_wrong, escapes[i].app, escapes[i].ref),
				 connectx ? escapes[i].connectx : escapes[i].man);
	}
}

TEST(escapes_man)
{
	if (in_profile("man", __func__))
		expect_escapes(false);
}

TEST(escapes_connectx)
{
	if (in_profile("connectx", __func__))
		expect_escapes(true);
}

/* A program that escapes does not check the tags it escapes by: then nothing is wrong in either profile. */
TEST(escape_with_the_tags_unchecked)
{
	struct mlx5dv_sig_t10dif t10 = {MLX5DV_SIG_T10DIF_CRC, 0, 0x5678, 0xf0debc9a, APP};
	struct mlx5dv_sig_block_domain domain = {.sig_type = MLX5DV_SIG_TYPE_T10DIF, .sig.dif = &t10};
	struct mlx5dv_sig_block_attr attr = {.wire = &domain, .check_mask = MLX5DV_SIG_MASK_T10DIF_GUARD};
	static const uint8_t escaped[8] = {0x12, 0x34, 0xff, 0xff, 0, 0, 0, 0}, plain[8] = {0x12, 0x34, 0xff, 0xfe};

	open_pair();
	lay(&attr);
	transfer_field(&attr, true, escaped);
	expect_field(&attr, true, escaped);
	expect_key_good(mkey);
	transfer_field(&attr, true, plain);
	expect_field(&attr, true, plain);
	assert_true(has_error());
}

/* Fields are generated whatever the tags: an escape applies to input (mlx5-formats 6, no. 20). */
TEST(escapes_do_not_generate)
{
	DOMAIN_DIF(escaping, CRC, 512, 0, 0xffff, 0xffffffff,
		   MLX5DV_SIG_T10DIF_FLAG_APP_ESCAPE | MLX5DV_SIG_T10DIF_FLAG_APP_REF_ESCAPE);
	struct mlx5dv_sig_block_attr attr = {.wire = &escaping, .check_mask = 0xff};

	open_pair();
	lay(&attr);
	expect_signed_transfer(OUT_SEND, mkey, &layout, NULL, &escaping, 512);
}
