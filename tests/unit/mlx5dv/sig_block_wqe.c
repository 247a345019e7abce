/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Signature BSFs and SET_PSV WQEs byte by byte, as mlx5dv_wr_set_mkey_sig_block(3) writes them into the ring: expected
 * bytes come from mlx5-formats 1.8, 1.11, 1.13 and 4.5, entered by hand.
 */
#include "test_case.h"

#include "../support/umr_fixture.h"

#include "../support/signature_fixture.h"

static struct fixture *fixture;

static int set_up(void **state)
{
	(void)state;
	fixture = fixture_new();
	fixture_sign(fixture);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	fixture_free(fixture);
	return 0;
}

enum {
	COPY = MLX5DV_SIG_BLOCK_ATTR_FLAG_COPY_MASK,
	REMAP = MLX5DV_SIG_T10DIF_FLAG_REF_REMAP,
	APP = MLX5DV_SIG_T10DIF_FLAG_APP_ESCAPE,
	APP_REF = MLX5DV_SIG_T10DIF_FLAG_APP_REF_ESCAPE,

	MASK_BASE = 1 << 29 | 1 << 13, /* FREE, MKEY */
	MASK_LEN = 1,
	MASK_SIG_ERR = 1 << 9,
	MASK_BSF = 1 << 12,
};

/* No signature, no section. */
#define EMPTY "00000000 00000000 00000000 00000000"

/*
 * Columns of the expected bytes: size and structure, check mask, copy mask or block of the wire, block of the memory,
 * data size; formats and PSVs of wire and memory; sections of wire and memory. The extension is zero.
 */
struct row {
	struct test_domain memory, wire;
	uint32_t flags;
	uint8_t check_mask, copy_mask;
	const char *basic, *wire_section, *memory_section;
	uint64_t memory_transient, wire_transient;
};

/* Rows for both profiles. */
static const struct row rows[] = {
	/* One domain: each CRC, both seeds, each block size. The seed bit is set for seed 0. */
	{CRC(CRC32, 512, 0xffffffff), NONE, 0, 0xf0, 0, "80f00001 ffffffff 00000000 22000a0b", EMPTY, EMPTY,
	 0xffffffff00000000, 0},
	{CRC(CRC32, 520, 0), NONE, 0, 0x10, 0, "80100002 ffffffff 00000000 23000a0b", EMPTY, EMPTY, 0, 0},
	{CRC(CRC32C, 4048, 0xffffffff), NONE, 0, 0, 0, "80000006 ffffffff 00000000 42000a0b", EMPTY, EMPTY,
	 0xffffffff00000000, 0},
	{CRC(CRC32C, 4096, 0), NONE, 0, 0xff, 0, "80ff0003 ffffffff 00000000 43000a0b", EMPTY, EMPTY, 0, 0},
	{CRC(CRC64_XP10, 4160, 0xffffffffffffffff), NONE, 0, 0xff, 0, "80ff0004 ffffffff 00000000 52000a0b", EMPTY,
	 EMPTY, 0xffffffffffffffff, 0},
	{CRC(CRC64_XP10, 512, 0), NONE, 0, 0x81, 0, "80810001 ffffffff 00000000 53000a0b", EMPTY, EMPTY, 0, 0},
	{NONE, CRC(CRC32, 4160, 0), 0, 0xf0, 0, "80f00400 ffffffff 230c0d0e 00000000", EMPTY, EMPTY, 0, 0},
	{NONE, CRC(CRC32C, 512, 0xffffffff), 0, 0xf0, 0, "80f00100 ffffffff 420c0d0e 00000000", EMPTY, EMPTY, 0,
	 0xffffffff00000000},
	{NONE, CRC(CRC64_XP10, 4048, 0xffffffffffffffff), 0, 0xff, 0, "80ff0600 ffffffff 520c0d0e 00000000", EMPTY,
	 EMPTY, 0, 0xffffffffffffffff},

	/* T10-DIF: both guards, both seeds, each flag. Format 0: the section has all fields. */
	{DIF(CRC, 512, 0, 0x1234, 0x56789abc, 0), NONE, 0, 0xff, 0, "80ff0001 ffffffff 00000000 00000a0b", EMPTY,
	 "c0001234 56789abc 01800000 0000ffff", 0x0000123456789abc, 0},
	{DIF(CSUM, 4096, 0xffff, 0xfedc, 0x00000001, REMAP), NONE, 0, 0xc0, 0, "80c00003 ffffffff 00000000 00000a0b",
	 EMPTY, "c000fedc 00000001 02880000 0040ffff", 0xfffffedc00000001, 0},
	{NONE, DIF(CRC, 520, 0xffff, 0, 0xffffffff, APP), 0, 0x0f, 0, "800f0200 ffffffff 000c0d0e 00000000",
	 "c0000000 ffffffff 01880000 0001ffff", EMPTY, 0, 0xffff0000ffffffff},
	{NONE, DIF(CSUM, 4160, 0, 0xffff, 0, REMAP | APP_REF), 0, 0x30, 0, "80300400 ffffffff 000c0d0e 00000000",
	 "c000ffff 00000000 02800000 0042ffff", EMPTY, 0, 0x0000ffff00000000},
	/* Both escapes: the narrower one. */
	{NONE, DIF(CRC, 4048, 0, 1, 2, APP | APP_REF), 0, 0, 0, "80000600 ffffffff 000c0d0e 00000000",
	 "c0000001 00000002 01800000 0002ffff", EMPTY, 0, 0x0000000100000002},

	/* The same structure in both: equal bytes are copied. Seeds of CRCs do not matter, those of guards do. */
	{CRC(CRC32, 512, 0), CRC(CRC32, 512, 0xffffffff), 0, 0xf0, 0x55, "90f0f001 ffffffff 220c0d0e 23000a0b", EMPTY,
	 EMPTY, 0, 0xffffffff00000000},
	{CRC(CRC32C, 4096, 0), CRC(CRC32C, 4096, 0), 0, 0, 0, "9000f003 ffffffff 430c0d0e 43000a0b", EMPTY, EMPTY, 0,
	 0},
	{CRC(CRC64_XP10, 4160, 0xffffffffffffffff), CRC(CRC64_XP10, 4160, 0), 0, 0xff, 0,
	 "90ffff04 ffffffff 530c0d0e 52000a0b", EMPTY, EMPTY, 0xffffffffffffffff, 0},
	{DIF(CRC, 512, 0, 1, 2, 0), DIF(CSUM, 512, 0, 1, 2, 0), 0, 0xff, 0, "90ff3f01 ffffffff 000c0d0e 00000a0b",
	 "c0000001 00000002 02800000 0000ffff", "c0000001 00000002 01800000 0000ffff", 0x0000000100000002,
	 0x0000000100000002},
	{DIF(CRC, 512, 0, 1, 2, 0), DIF(CRC, 512, 0xffff, 1, 2, 0), 0, 0xff, 0, "90ff3f01 ffffffff 000c0d0e 00000a0b",
	 "c0000001 00000002 01880000 0000ffff", "c0000001 00000002 01800000 0000ffff", 0x0000000100000002,
	 0xffff000100000002},
	{DIF(CRC, 512, 0, 1, 2, 0), DIF(CRC, 512, 0, 3, 2, 0), 0, 0xff, 0, "90ffcf01 ffffffff 000c0d0e 00000a0b",
	 "c0000003 00000002 01800000 0000ffff", "c0000001 00000002 01800000 0000ffff", 0x0000000100000002,
	 0x0000000300000002},
	{DIF(CRC, 512, 0, 1, 2, 0), DIF(CRC, 512, 0, 1, 3, 0), 0, 0xff, 0, "90fff001 ffffffff 000c0d0e 00000a0b",
	 "c0000001 00000003 01800000 0000ffff", "c0000001 00000002 01800000 0000ffff", 0x0000000100000002,
	 0x0000000100000003},
	/* No byte is equal: still one structure, but nothing is copied. */
	{DIF(CRC, 512, 0, 1, 2, 0), DIF(CSUM, 512, 0, 3, 4, 0), 0, 0xff, 0, "90ff0001 ffffffff 000c0d0e 00000a0b",
	 "c0000003 00000004 02800000 0000ffff", "c0000001 00000002 01800000 0000ffff", 0x0000000100000002,
	 0x0000000300000004},

	/* Different structures: two blocks, no copying. */
	{CRC(CRC32, 512, 0), CRC(CRC32C, 512, 0), 0, 0xf0, 0xff, "80f00101 ffffffff 430c0d0e 23000a0b", EMPTY, EMPTY, 0,
	 0},
	{CRC(CRC32, 512, 0), CRC(CRC32, 4096, 0), 0, 0xf0, 0xff, "80f00301 ffffffff 230c0d0e 23000a0b", EMPTY, EMPTY, 0,
	 0},
	{CRC(CRC64_XP10, 4160, 0), CRC(CRC32, 4160, 0xffffffff), 0, 0xff, 0, "80ff0404 ffffffff 220c0d0e 53000a0b",
	 EMPTY, EMPTY, 0, 0xffffffff00000000},
	{DIF(CRC, 512, 0, 1, 2, 0), DIF(CRC, 520, 0, 1, 2, 0), 0, 0xff, 0, "80ff0201 ffffffff 000c0d0e 00000a0b",
	 "c0000001 00000002 01800000 0000ffff", "c0000001 00000002 01800000 0000ffff", 0x0000000100000002,
	 0x0000000100000002},
	{DIF(CRC, 512, 0, 1, 2, 0), CRC(CRC32C, 512, 0), 0, 0xff, 0, "80ff0101 ffffffff 430c0d0e 00000a0b", EMPTY,
	 "c0000001 00000002 01800000 0000ffff", 0x0000000100000002, 0},
	{CRC(CRC64_XP10, 4048, 0), DIF(CSUM, 4048, 0, 1, 2, 0), 0, 0xff, 0, "80ff0606 ffffffff 000c0d0e 53000a0b",
	 "c0000001 00000002 02800000 0000ffff", EMPTY, 0, 0x0000000100000002},

	/* A copy mask set by the program. */
	{CRC(CRC32, 512, 0), CRC(CRC32, 512, 0), COPY, 0xf0, 0x20, "90f02001 ffffffff 230c0d0e 23000a0b", EMPTY, EMPTY,
	 0, 0},
	{DIF(CRC, 512, 0, 1, 2, 0), DIF(CRC, 512, 0, 1, 2, 0), COPY, 0xff, 0, "90ff0001 ffffffff 000c0d0e 00000a0b",
	 "c0000001 00000002 01800000 0000ffff", "c0000001 00000002 01800000 0000ffff", 0x0000000100000002,
	 0x0000000100000002},
	{DIF(CRC, 512, 0, 1, 2, 0), DIF(CSUM, 512, 0, 3, 4, 0), COPY, 0x01, 0xff, "9001ff01 ffffffff 000c0d0e 00000a0b",
	 "c0000003 00000004 02800000 0000ffff", "c0000001 00000002 01800000 0000ffff", 0x0000000100000002,
	 0x0000000300000004},
};

/* A reference tag that counts on one side only is not copied: mlx5dv_wr_set_mkey_sig_block(3), copy_mask. */
static const struct row man_rows[] = {
	{DIF(CRC, 512, 0, 1, 2, 0), DIF(CRC, 512, 0, 1, 2, REMAP), 0, 0xff, 0, "90fff001 ffffffff 000c0d0e 00000a0b",
	 "c0000001 00000002 01800000 0040ffff", "c0000001 00000002 01800000 0000ffff", 0x0000000100000002,
	 0x0000000100000002},
};

/* mlx5-formats 4.5: flags are not compared; without a wire domain COPY_MASK has no effect. */
static const struct row connectx_rows[] = {
	{DIF(CRC, 512, 0, 1, 2, 0), DIF(CRC, 512, 0, 1, 2, REMAP), 0, 0xff, 0, "90ffff01 ffffffff 000c0d0e 00000a0b",
	 "c0000001 00000002 01800000 0040ffff", "c0000001 00000002 01800000 0000ffff", 0x0000000100000002,
	 0x0000000100000002},
	{CRC(CRC32, 512, 0), NONE, COPY, 0xf0, 0xf0, "80f00001 ffffffff 00000000 23000a0b", EMPTY, EMPTY, 0, 0},
};

/* Appends the bytes given by @hex. */
static uint8_t *spell(uint8_t *out, const char *hex)
{
	for (; *hex; hex += 2) {
		char digits[3] = {hex[0], hex[1]};

		if (*hex == ' ') {
			hex--;
			continue;
		}
		*out++ = (uint8_t)strtoul(digits, NULL, 16);
	}
	return out;
}

static void expect_bsf(const uint8_t *found, const struct row *row, size_t number)
{
	uint8_t expected[64], *end = spell(expected, row->basic);

	end = spell(end, EMPTY);
	end = spell(end, row->wire_section);
	end = spell(end, row->memory_section);
	assert_int_equal(end - expected, 64);
	for (int i = 0; i < 64; i++)
		if (found[i] != expected[i])
			fail_msg("row %zu: byte %d of the BSF is %02x, not %02x", number, i, found[i], expected[i]);
}

static void expect_psv(uint32_t index, uint8_t fm_ce_se, uint32_t psv, uint64_t transient)
{
	uint8_t wqe[32];

	fixture_read(fixture, index, wqe, sizeof(wqe));
	assert_int_equal(be32_at(wqe, 0), (index & 0xffff) << 8 | 0x20);
	assert_int_equal(be32_at(wqe, 4), TEST_QPN << 8 | 2);
	expect_zero(wqe, 8, 11);
	assert_int_equal(wqe[11], fm_ce_se);
	assert_int_equal(be32_at(wqe, 12), 0);
	assert_int_equal(be32_at(wqe, 16), psv);
	assert_int_equal(be32_at(wqe, 20), 0);
	assert_int_equal(be64_at(wqe, 24), transient);
	assert_int_equal(fixture->wc_opcode[index % TEST_BLOCKS], IBV_WC_DRIVER1);
}

/* Expects the UMR without entries at @index, and its BSF after the mkey context. */
static void expect_umr(uint32_t index, uint8_t fm_ce_se, uint64_t mask, uint32_t flags_pd, const struct row *row,
		       size_t number)
{
	uint8_t wqe[192];

	fixture_read(fixture, index, wqe, sizeof(wqe));
	assert_int_equal(be32_at(wqe, 0), (index & 0xffff) << 8 | 0x25);
	assert_int_equal(be32_at(wqe, 4), TEST_QPN << 8 | 12);
	assert_int_equal(wqe[11], fm_ce_se);
	assert_int_equal(be32_at(wqe, 12), TEST_LKEY);
	assert_int_equal(be16_at(wqe, 20), 0);
	assert_int_equal(be16_at(wqe, 22), 4);
	assert_int_equal(be64_at(wqe, 24), mask);
	assert_int_equal(be32_at(wqe, 76), flags_pd);
	expect_bsf(wqe + 128, row, number);
}

static void set_profile(enum setting_PROFILE profile)
{
	((struct settings *)hca_settings(hca_device(0)))->profile = profile;
}

static void expect_row(const struct row *row, size_t number)
{
	uint32_t psvs = !row->memory.none + !row->wire.none, index = 3;

	fixture_sign(fixture);
	fixture_place(fixture, 0);
	fixture_start(fixture, IBV_SEND_INLINE | IBV_SEND_SIGNALED);
	mlx5dv_wr_mkey_configure(&fixture->qp.dv, &fixture->mkey.base, 1, &no_attributes);
	fixture_set_signature(fixture, &row->memory, &row->wire, row->flags, row->check_mask, row->copy_mask);
	if (fixture->qp.builder.error)
		fail_msg("row %zu: %s", number, strerror(fixture->qp.builder.error));
	expect_umr(0, 0, MASK_BASE | MASK_BSF | MASK_SIG_ERR, 0x44000000, row, number);
	assert_int_equal(fixture->qp.builder.count, 1 + psvs);
	assert_int_equal(fixture->qp.sq.cur_post, 3 + psvs);
	if (!row->memory.none)
		expect_psv(index++, psvs == 2 ? 0x20 : 0x28, TEST_MEMORY_PSV, row->memory_transient);
	if (!row->wire.none)
		expect_psv(index, 0x28, TEST_WIRE_PSV, row->wire_transient);
	fixture_expect_untouched(fixture, 3 + psvs, TEST_BLOCKS - 3 - psvs);
}

TEST(every_permutation)
{
	for (int connectx = 0; connectx < 2; connectx++) {
		const struct row *more = connectx ? connectx_rows : man_rows;
		size_t count = connectx ? sizeof(connectx_rows) : sizeof(man_rows);

		set_profile(connectx ? PROFILE_CONNECTX : PROFILE_MAN);
		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
			expect_row(&rows[i], i);
		for (size_t i = 0; i < count / sizeof(struct row); i++)
			expect_row(&more[i], 1000 + i);
	}
	set_profile(PROFILE_MAN);
}

/* Mask bits that a type does not have are passed on, in both masks. */
TEST(masks_go_in_as_they_are)
{
	static const struct test_domain crc = CRC(CRC32, 512, 0);
	uint8_t wqe[192];

	for (int mask = 0; mask < 256; mask++) {
		fixture_sign(fixture);
		fixture_place(fixture, 0);
		fixture_start(fixture, IBV_SEND_INLINE);
		mlx5dv_wr_mkey_configure(&fixture->qp.dv, &fixture->mkey.base, 1, &no_attributes);
		fixture_set_signature(fixture, &crc, &crc, COPY, (uint8_t)mask, (uint8_t)~mask);
		fixture_read(fixture, 0, wqe, sizeof(wqe));
		assert_int_equal(wqe[129], mask);
		assert_int_equal(wqe[130], 255 - mask);
	}
}

/* mlx5dv_wr_set_mkey_sig_block(3): only the low 32 bits of a seed count for a 32-bit CRC. */
TEST(upper_bits_of_a_32_bit_seed)
{
	static const struct test_domain ones = CRC(CRC32, 512, 0xabcdef00ffffffff),
					zero = CRC(CRC32C, 512, 0xffffffff00000000);
	uint8_t wqe[192];

	fixture_start(fixture, IBV_SEND_INLINE);
	mlx5dv_wr_mkey_configure(&fixture->qp.dv, &fixture->mkey.base, 1, &no_attributes);
	fixture_set_signature(fixture, &ones, &zero, 0, 0, 0);
	assert_int_equal(fixture->qp.builder.error, 0);
	fixture_read(fixture, 0, wqe, sizeof(wqe));
	assert_int_equal(wqe[128 + 12], 0x22);
	assert_int_equal(wqe[128 + 8], 0x43);
	expect_psv(3, 0x20, TEST_MEMORY_PSV, 0xffffffff00000000);
	expect_psv(4, 0x20, TEST_WIRE_PSV, 0);
}

/* The BSF follows the padded entries, wherever the ring ends. */
TEST(after_a_layout_at_every_place)
{
	static const struct row *row = &rows[18]; /* two sections */
	struct ibv_sge sge[64];
	uint8_t wqe[1024];

	for (uint32_t i = 0; i < 64; i++)
		sge[i] = (struct ibv_sge){.addr = 4096 * i, .length = 1 + i, .lkey = 0x5500 + i};
	for (uint32_t start = 0; start < TEST_BLOCKS; start++) {
		for (uint32_t count = 0; count <= 48; count++) {
			uint32_t entries = (count + 3) / 4 * 4, blocks = 2 + entries / 4 + 1;

			fixture_sign(fixture);
			fixture_place(fixture, start);
			fixture_start(fixture, IBV_SEND_INLINE);
			mlx5dv_wr_mkey_configure(&fixture->qp.dv, &fixture->mkey.base, 2, &no_attributes);
			/* In either order: the BSF is written when both are known. */
			if (count % 2)
				mlx5dv_wr_set_mkey_layout_list(&fixture->qp.dv, count, sge);
			fixture_set_signature(fixture, &row->memory, &row->wire, row->flags, row->check_mask,
					      row->copy_mask);
			if (count % 2 == 0)
				mlx5dv_wr_set_mkey_layout_list(&fixture->qp.dv, count, sge);
			assert_int_equal(fixture->qp.builder.error, 0);
			fixture_read(fixture, start, wqe, 128 + 16 * entries + 64);
			assert_int_equal(be32_at(wqe, 4), TEST_QPN << 8 | (8 + entries + 4));
			assert_int_equal(be16_at(wqe, 20), entries);
			assert_int_equal(be16_at(wqe, 22), 4);
			assert_int_equal(be64_at(wqe, 24), MASK_BASE | MASK_BSF | MASK_SIG_ERR | MASK_LEN);
			for (uint32_t i = 0; i < count; i++)
				assert_int_equal(be32_at(wqe, 128 + 16 * i), 1 + i);
			expect_zero(wqe, 128 + 16 * count, 128 + 16 * entries);
			expect_bsf(wqe + 128 + 16 * entries, row, 18);
			expect_psv(start + blocks, 0x20, TEST_MEMORY_PSV, row->memory_transient);
			expect_psv(start + blocks + 1, 0x20, TEST_WIRE_PSV, row->wire_transient);
			assert_int_equal(fixture->qp.sq.cur_post, start + blocks + 2);
			fixture_expect_untouched(fixture, start + blocks + 2, TEST_BLOCKS - blocks - 2);
		}
	}
}

/*
 * mlx5-formats 4.5: the UMR never completes, the last SET_PSV does if that is requested. If all requests complete, so
 * does, in profile connectx, the first SET_PSV of two.
 */
static void expect_completion_and_fence_bits(bool connectx)
{
	static const struct test_domain none = NONE, crc = CRC(CRC32, 512, 0);
	const uint8_t first_of_all = connectx ? 0x28 : 0x20;
	const struct {
		unsigned int flags;
		bool signal_all;
		uint8_t umr, first_of_two, last;
	} row[] = {
		{0, false, 0x00, 0x20, 0x20},
		{IBV_SEND_SIGNALED, false, 0x00, 0x20, 0x28},
		{0, true, 0x00, first_of_all, 0x28},
		{IBV_SEND_SIGNALED, true, 0x00, first_of_all, 0x28},
		{IBV_SEND_SIGNALED | IBV_SEND_FENCE, false, 0x80, 0x80, 0x88},
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		for (int domains = 1; domains <= 3; domains++) {
			const struct test_domain *memory = domains & 1 ? &crc : &none;
			const struct test_domain *wire = domains & 2 ? &crc : &none;
			uint32_t last = domains == 3 ? 4 : 3;
			uint8_t wqe[16];

			fixture_sign(fixture);
			fixture_place(fixture, 0);
			fixture->qp.sq_sig_all = row[i].signal_all;
			send_queue_derive(&fixture->qp);
			fixture_start(fixture, IBV_SEND_INLINE | row[i].flags);
			mlx5dv_wr_mkey_configure(&fixture->qp.dv, &fixture->mkey.base, 1, &no_attributes);
			fixture_set_signature(fixture, memory, wire, 0, 0, 0);
			assert_int_equal(fixture->qp.ex.wr_flags, IBV_SEND_INLINE | row[i].flags);
			fixture_read(fixture, 0, wqe, sizeof(wqe));
			assert_int_equal(wqe[11], row[i].umr);
			fixture_read(fixture, 3, wqe, sizeof(wqe));
			assert_int_equal(wqe[11], domains == 3 ? row[i].first_of_two : row[i].last);
			fixture_read(fixture, last, wqe, sizeof(wqe));
			assert_int_equal(wqe[11], row[i].last);
			assert_int_equal(fixture->qp.sq.fence_cache, 0x20);
		}
	}
}

TEST(completion_and_fence_bits)
{
	expect_completion_and_fence_bits(false);
	set_profile(PROFILE_CONNECTX);
	expect_completion_and_fence_bits(true);
	set_profile(PROFILE_MAN);
}

/* mlx5-formats 4.2: the UMR takes wr_id and wr_flags of the builder, the SET_PSVs those of the last setter. */
TEST(attributes_are_sampled_twice)
{
	static const struct test_domain crc = CRC(CRC32, 512, 0);
	uint8_t wqe[16];

	fixture_start(fixture, IBV_SEND_INLINE);
	fixture->qp.ex.wr_id = 77;
	mlx5dv_wr_mkey_configure(&fixture->qp.dv, &fixture->mkey.base, 1, &no_attributes);
	fixture->qp.ex.wr_id = 78;
	fixture->qp.ex.wr_flags = IBV_SEND_SIGNALED;
	fixture_set_signature(fixture, &crc, &crc, 0, 0, 0);
	assert_int_equal(fixture->qp.builder.count, 3);
	for (uint32_t i = 0; i < 3; i++) {
		static const uint32_t slots[] = {0, 3, 4};

		assert_int_equal(fixture->wr_id[slots[i]], i ? 78 : 77);
		assert_int_equal(fixture->wc_opcode[slots[i]], IBV_WC_DRIVER1);
		assert_int_equal(fixture->wqe_head[slots[i]], i);
	}
	fixture_read(fixture, 4, wqe, sizeof(wqe));
	assert_int_equal(wqe[11], 0x28);
}

int main(void)
{
	return run_cases(.setup = set_up, .teardown = tear_down);
}
