/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * UMR work requests byte by byte, as the builders write them into the ring: expected offsets and values come from
 * mlx5-formats 1.2, 1.3 and 1.8 to 1.10, entered as numbers. The QP is made by hand, without a device queue: no doorbell
 * is rung.
 */
#include "test_case.h"

#include "../support/umr_fixture.h"

#define ADDRESS UINT64_C(0x1122334455660000)

static struct fixture *fixture;

static int set_up(void **state)
{
	(void)state;
	fixture = fixture_new();
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	fixture_free(fixture);
	return 0;
}

/* Expects bytes 0 to 127 of a UMR that differs only in @mask, @rights, @length and @octowords. */
static void expect_head(const uint8_t *wqe, uint32_t index, uint8_t fm_ce_se, uint32_t octowords, uint64_t mask,
			uint8_t rights, uint64_t length)
{
	assert_int_equal(be32_at(wqe, 0), (index & 0xffff) << 8 | 0x25);
	assert_int_equal(be32_at(wqe, 4), TEST_QPN << 8 | (8 + octowords));
	assert_int_equal(wqe[8], 0);
	assert_int_equal(wqe[9] | wqe[10], 0);
	assert_int_equal(wqe[11], fm_ce_se);
	assert_int_equal(be32_at(wqe, 12), TEST_LKEY);

	assert_int_equal(wqe[16], 0x80);
	expect_zero(wqe, 17, 20);
	assert_int_equal(be16_at(wqe, 20), octowords);
	assert_int_equal(be16_at(wqe, 22), 0);
	assert_int_equal(be64_at(wqe, 24), mask);
	expect_zero(wqe, 32, 64);

	assert_int_equal(wqe[64], 0);
	assert_int_equal(wqe[65], 0);
	assert_int_equal(wqe[66], rights);
	assert_int_equal(wqe[67], 0);
	assert_int_equal(be32_at(wqe, 68), 0xffffff00);
	expect_zero(wqe, 72, 88);
	assert_int_equal(be64_at(wqe, 88), length);
	expect_zero(wqe, 96, 128);
}

enum {
	MASK_BASE = 1 << 29 | 1 << 13,                       /* FREE, MKEY */
	MASK_RIGHTS = 1 << 18 | 1 << 19 | 1 << 20 | 1 << 21, /* LW, RR, RW, A */
	MASK_LEN = 1,
};

static uint32_t octowords_of(uint32_t entries)
{
	return (entries + 3) / 4 * 4;
}

/* ---- lists ---------------------------------------------------------------------------------------- */

static void build_list(uint32_t count)
{
	struct ibv_sge sge[64];

	for (uint32_t i = 0; i < count; i++)
		sge[i] = (struct ibv_sge){.addr = ADDRESS + i, .length = 0x1000 + i, .lkey = 0xabcd0000 + i};
	fixture_start(fixture, IBV_SEND_INLINE | IBV_SEND_SIGNALED);
	mlx5dv_wr_mkey_configure(&fixture->qp.dv, &fixture->mkey.base, 2, &no_attributes);
	mlx5dv_wr_set_mkey_access_flags(&fixture->qp.dv, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
	mlx5dv_wr_set_mkey_layout_list(&fixture->qp.dv, count, sge);
}

static void expect_list(uint32_t index, uint32_t count)
{
	uint32_t octowords = octowords_of(count);
	uint8_t wqe[1024];
	uint64_t length = 0;

	fixture_read(fixture, index, wqe, 128 + octowords * 16);
	for (uint32_t i = 0; i < count; i++) {
		const uint8_t *entry = wqe + 128 + 16 * i;

		assert_int_equal(be32_at(entry, 0), 0x1000 + i);
		assert_int_equal(be32_at(entry, 4), 0xabcd0000 + i);
		assert_int_equal(be64_at(entry, 8), ADDRESS + i);
		length += 0x1000 + i;
	}
	expect_zero(wqe, 128 + 16 * count, 128 + 16 * octowords);
	expect_head(wqe, index, 0x08, octowords, MASK_BASE | MASK_RIGHTS | MASK_LEN, 0x08 | 0x10, length);
}

/* Every number of entries at every block of the ring: the ring's end falls on every possible place. */
TEST(list_at_every_place)
{
	for (uint32_t start = 0; start < TEST_BLOCKS; start++) {
		for (uint32_t count = 0; count <= 52; count++) {
			uint32_t blocks = 2 + octowords_of(count) / 4;

			fixture_place(fixture, start);
			build_list(count);
			assert_int_equal(fixture->qp.builder.error, 0);
			assert_int_equal(fixture->qp.builder.count, 1);
			assert_int_equal(fixture->qp.sq.cur_post, start + blocks);
			expect_list(start, count);
			fixture_expect_untouched(fixture, start + blocks, TEST_BLOCKS - blocks);
		}
	}
}

/* The producer index in the WQE has 16 bits; the counter is wider. */
TEST(index_wraps_at_16_bits)
{
	for (uint32_t start = 0xfff0; start < 0x10010; start++) {
		fixture_place(fixture, start);
		build_list(5);
		expect_list(start, 5);
		assert_int_equal(fixture->qp.sq.cur_post, start + 4);
	}
	fixture_place(fixture, UINT32_MAX - 1);
	build_list(5);
	expect_list(UINT32_MAX - 1, 5);
	assert_int_equal(fixture->qp.sq.cur_post, 2);
}

/* Four pieces of nearly 4 GiB: a sum of 32 bits, signed or not, is wrong. */
TEST(list_longer_than_32_bits)
{
	struct ibv_sge sge[4];
	uint8_t wqe[192];

	for (int i = 0; i < 4; i++)
		sge[i] = (struct ibv_sge){.addr = ADDRESS, .length = UINT32_MAX, .lkey = 1};
	fixture_start(fixture, IBV_SEND_INLINE);
	mlx5dv_wr_mkey_configure(&fixture->qp.dv, &fixture->mkey.base, 1, &no_attributes);
	mlx5dv_wr_set_mkey_layout_list(&fixture->qp.dv, 4, sge);
	fixture_read(fixture, 0, wqe, sizeof(wqe));
	assert_int_equal(be64_at(wqe, 88), UINT64_C(0x3fffffffc));
	assert_int_equal(be32_at(wqe, 128), UINT32_MAX);

	/* One bit beyond 2 GiB, where a signed sum would turn negative. */
	sge[0].length = UINT32_C(0x80000000);
	fixture_place(fixture, 0);
	fixture_start(fixture, IBV_SEND_INLINE);
	mlx5dv_wr_mkey_configure(&fixture->qp.dv, &fixture->mkey.base, 1, &no_attributes);
	mlx5dv_wr_set_mkey_layout_list(&fixture->qp.dv, 1, sge);
	fixture_read(fixture, 0, wqe, sizeof(wqe));
	assert_int_equal(be64_at(wqe, 88), UINT64_C(0x80000000));
}

/* A translation entry of 0 bytes would mean 2 GiB: pieces without bytes leave no entry. */
TEST(empty_pieces_leave_no_entry)
{
	struct ibv_sge sge[4] = {
		{.addr = 1, .length = 0, .lkey = 1},
		{.addr = 2, .length = 7, .lkey = 2},
		{.addr = 3, .length = 0, .lkey = 3},
		{.addr = 4, .length = 9, .lkey = 4},
	};
	uint8_t wqe[192];

	fixture_start(fixture, IBV_SEND_INLINE);
	mlx5dv_wr_mkey_configure(&fixture->qp.dv, &fixture->mkey.base, 1, &no_attributes);
	mlx5dv_wr_set_mkey_layout_list(&fixture->qp.dv, 4, sge);
	fixture_read(fixture, 0, wqe, sizeof(wqe));
	expect_head(wqe, 0, 0, 4, MASK_BASE | MASK_LEN, 0, 16);
	assert_int_equal(be32_at(wqe, 128), 7);
	assert_int_equal(be64_at(wqe, 136), 2);
	assert_int_equal(be32_at(wqe, 144), 9);
	assert_int_equal(be64_at(wqe, 152), 4);
	expect_zero(wqe, 160, 192);
}

/* ---- interleaved layouts -------------------------------------------------------------------------- */

static void build_interleaved(uint32_t count, uint32_t repeat)
{
	struct mlx5dv_mr_interleaved data[64];

	for (uint32_t i = 0; i < count; i++)
		data[i] = (struct mlx5dv_mr_interleaved){
			.addr = ADDRESS + i, .bytes_count = 64 + i, .bytes_skip = 3 * i, .lkey = 0x5500 + i};
	fixture_start(fixture, IBV_SEND_INLINE);
	mlx5dv_wr_mkey_configure(&fixture->qp.dv, &fixture->mkey.base, 1, &no_attributes);
	mlx5dv_wr_set_mkey_layout_interleaved(&fixture->qp.dv, repeat, count, data);
}

static void expect_interleaved(uint32_t index, uint32_t count, uint32_t repeat)
{
	uint32_t octowords = octowords_of(1 + count);
	uint8_t wqe[1024];
	uint64_t bytes = 0;

	fixture_read(fixture, index, wqe, 128 + octowords * 16);
	for (uint32_t i = 0; i < count; i++) {
		const uint8_t *entry = wqe + 144 + 16 * i;

		assert_int_equal(be16_at(entry, 0), 64 + 4 * i);
		assert_int_equal(be16_at(entry, 2), 64 + i);
		assert_int_equal(be32_at(entry, 4), 0x5500 + i);
		assert_int_equal(be64_at(entry, 8), ADDRESS + i);
		bytes += 64 + i;
	}
	assert_int_equal(be32_at(wqe, 128), bytes);
	assert_int_equal(be32_at(wqe, 132), 0x400);
	assert_int_equal(be32_at(wqe, 136), repeat);
	assert_int_equal(be16_at(wqe, 140), 0);
	assert_int_equal(be16_at(wqe, 142), count);
	expect_zero(wqe, 144 + 16 * count, 128 + 16 * octowords);
	expect_head(wqe, index, 0, octowords, MASK_BASE | MASK_LEN, 0, bytes * repeat);
}

TEST(interleaved_at_every_place)
{
	for (uint32_t start = 0; start < TEST_BLOCKS; start++) {
		for (uint32_t count = 0; count <= 51; count++) {
			uint32_t blocks = 2 + octowords_of(1 + count) / 4;

			fixture_place(fixture, start);
			build_interleaved(count, count * 1000);
			assert_int_equal(fixture->qp.builder.error, 0);
			assert_int_equal(fixture->qp.sq.cur_post, start + blocks);
			expect_interleaved(start, count, count * 1000);
			fixture_expect_untouched(fixture, start + blocks, TEST_BLOCKS - blocks);
		}
	}
}

TEST(interleaved_length_has_64_bits)
{
	uint8_t wqe[256];

	build_interleaved(2, UINT32_MAX);
	fixture_read(fixture, 0, wqe, sizeof(wqe));
	assert_int_equal(be64_at(wqe, 88), UINT64_C(129) * UINT32_MAX);
	expect_interleaved(0, 2, UINT32_MAX);
}

static void set_profile(enum setting_PROFILE profile)
{
	((struct settings *)hca_settings(hca_device(0)))->profile = profile;
}

/* Profile connectx: the two 16-bit fields are truncated, header and key length are not; the record reports it. */
TEST(interleaved_truncates_to_16_bits)
{
	static const struct {
		uint32_t count, skip;
		uint16_t stride, bytes;
		bool told;
	} row[] = {
		{65535, 0, 65535, 65535, false},
		{1, 65534, 65535, 1, false},
		{1, 65535, 0, 1, true},
		{65536, 0, 0, 0, true},
		{65600, 8, 72, 64, true},
		{UINT32_MAX, 1, 0, 65535, true},
		{UINT32_MAX, UINT32_MAX, 65534, 65535, true},
	};

	set_profile(PROFILE_CONNECTX);
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct mlx5dv_mr_interleaved data = {
			.addr = ADDRESS, .bytes_count = row[i].count, .bytes_skip = row[i].skip, .lkey = 9};
		uint64_t before = fixture_last_serial();
		uint8_t wqe[192];

		fixture_place(fixture, 0);
		fixture_start(fixture, IBV_SEND_INLINE);
		mlx5dv_wr_mkey_configure(&fixture->qp.dv, &fixture->mkey.base, 1, &no_attributes);
		mlx5dv_wr_set_mkey_layout_interleaved(&fixture->qp.dv, 3, 1, &data);
		assert_int_equal(fixture->qp.builder.error, 0);
		fixture_read(fixture, 0, wqe, sizeof(wqe));
		assert_int_equal(be32_at(wqe, 128), row[i].count);
		assert_int_equal(be64_at(wqe, 88), 3 * (uint64_t)row[i].count);
		assert_int_equal(be16_at(wqe, 144), row[i].stride);
		assert_int_equal(be16_at(wqe, 146), row[i].bytes);
		if (row[i].told)
			expect_record(before, RULE_MKEY_INTERLEAVED_WIDE);
		else
			assert_int_equal(fixture_last_serial(), before);
	}
	set_profile(PROFILE_MAN);
}

/* ---- rights, attributes of the work request ------------------------------------------------------- */

TEST(rights_in_the_bits_of_the_format)
{
	static const struct {
		uint32_t access;
		uint8_t rights;
	} row[] = {
		{0, 0},
		{IBV_ACCESS_LOCAL_WRITE, 0x08},
		{IBV_ACCESS_REMOTE_READ, 0x10},
		{IBV_ACCESS_REMOTE_WRITE, 0x20},
		{IBV_ACCESS_REMOTE_ATOMIC, 0x40},
		{IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC,
		 0x78},
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		uint8_t wqe[128];

		fixture_place(fixture, TEST_BLOCKS - 1); /* the mkey context is at the ring's beginning */
		fixture_start(fixture, IBV_SEND_INLINE);
		mlx5dv_wr_mkey_configure(&fixture->qp.dv, &fixture->mkey.base, 1, &no_attributes);
		mlx5dv_wr_set_mkey_access_flags(&fixture->qp.dv, row[i].access);
		fixture_read(fixture, TEST_BLOCKS - 1, wqe, sizeof(wqe));
		expect_head(wqe, TEST_BLOCKS - 1, 0, 0, MASK_BASE | MASK_RIGHTS, row[i].rights, 0);
	}
}

TEST(no_setter_at_all)
{
	struct mlx5dv_mkey_conf_attr reset = {.conf_flags = MLX5DV_MKEY_CONF_FLAG_RESET_SIG_ATTR};
	uint8_t wqe[128];

	fixture_start(fixture, IBV_SEND_INLINE);
	mlx5dv_wr_mkey_configure(&fixture->qp.dv, &fixture->mkey.base, 0, &reset);
	assert_int_equal(fixture->qp.builder.count, 1);
	assert_int_equal(fixture->qp.sq.cur_post, 2);
	fixture_read(fixture, 0, wqe, sizeof(wqe));
	expect_head(wqe, 0, 0, 0, MASK_BASE, 0, 0);
}

/* mlx5-formats 1.3: the WQE after a UMR gets the small fence, IBV_SEND_FENCE the strong one. */
TEST(completion_and_fence_bits)
{
	static const struct {
		unsigned int flags;
		bool signal_all;
		uint8_t first, second;
	} row[] = {
		{0, false, 0x00, 0x20},
		{IBV_SEND_SIGNALED, false, 0x08, 0x28},
		{0, true, 0x08, 0x28},
		{IBV_SEND_FENCE, false, 0x80, 0x80},
		{IBV_SEND_SOLICITED | IBV_SEND_SIGNALED, false, 0x0a, 0x2a},
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		uint8_t wqe[128];

		fixture_place(fixture, 0);
		fixture->qp.sq_sig_all = row[i].signal_all;
		send_queue_derive(&fixture->qp);
		fixture_start(fixture, IBV_SEND_INLINE | row[i].flags);
		mlx5dv_wr_mkey_configure(&fixture->qp.dv, &fixture->mkey.base, 0, &no_attributes);
		mlx5dv_wr_mkey_configure(&fixture->qp.dv, &fixture->mkey.base, 0, &no_attributes);
		fixture_read(fixture, 0, wqe, sizeof(wqe));
		assert_int_equal(wqe[11], row[i].first);
		fixture_read(fixture, 2, wqe, sizeof(wqe));
		assert_int_equal(wqe[11], row[i].second);
	}
}

/* wr_id and wr_flags are read by the builder, not by the setters; the completion is DRIVER1. */
TEST(attributes_are_sampled_at_the_builder)
{
	uint8_t wqe[128];

	fixture_start(fixture, IBV_SEND_INLINE | IBV_SEND_SIGNALED);
	fixture->qp.ex.wr_id = 77;
	mlx5dv_wr_mkey_configure(&fixture->qp.dv, &fixture->mkey.base, 1, &no_attributes);
	fixture->qp.ex.wr_id = 78;
	fixture->qp.ex.wr_flags = 0;
	mlx5dv_wr_set_mkey_access_flags(&fixture->qp.dv, 0);
	fixture_read(fixture, 0, wqe, sizeof(wqe));
	assert_int_equal(wqe[11], 0x08);
	assert_int_equal(fixture->qp.sq.wr_id[0], 77);
	assert_int_equal(fixture->qp.sq.wc_opcode[0], IBV_WC_DRIVER1);
}

/* A key with an updatable tag: the new tag is in imm and in the context. */
TEST(tag_of_an_update_tag_key)
{
	uint8_t wqe[128];

	fixture->mkey.create_flags |= MLX5DV_MKEY_INIT_ATTR_FLAGS_UPDATE_TAG;
	fixture->mkey.base.lkey |= 0x5a;
	fixture_start(fixture, IBV_SEND_INLINE);
	mlx5dv_wr_mkey_configure(&fixture->qp.dv, &fixture->mkey.base, 0, &no_attributes);
	assert_int_equal(fixture->qp.builder.error, 0);
	fixture_read(fixture, 0, wqe, sizeof(wqe));
	assert_int_equal(be32_at(wqe, 12), TEST_LKEY | 0x5a);
	assert_int_equal(be32_at(wqe, 68), 0xffffff5a);
}

/* mlx5dv_wr_mr_list and mlx5dv_wr_mr_interleaved build the same WQE as configure and two setters. */
TEST(mr_builders_equal_two_setters)
{
	struct ibv_sge sge[3];
	struct mlx5dv_mr_interleaved data[2] = {
		{.addr = ADDRESS, .bytes_count = 64, .lkey = 0x5500},
		{.addr = ADDRESS + 1, .bytes_count = 65, .bytes_skip = 3, .lkey = 0x5501},
	};
	uint8_t wqe[192];

	for (uint32_t i = 0; i < 3; i++)
		sge[i] = (struct ibv_sge){.addr = ADDRESS + i, .length = 0x1000 + i, .lkey = 0xabcd0000 + i};
	fixture_start(fixture, IBV_SEND_INLINE | IBV_SEND_SIGNALED);
	mlx5dv_wr_mr_list(&fixture->qp.dv, &fixture->mkey.base, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ, 3,
			  sge);
	assert_int_equal(fixture->qp.builder.error, 0);
	assert_int_equal(fixture->qp.builder.count, 1);
	expect_list(0, 3);

	fixture_place(fixture, 0);
	fixture_start(fixture, IBV_SEND_INLINE);
	mlx5dv_wr_mr_interleaved(&fixture->qp.dv, &fixture->mkey.base, IBV_ACCESS_REMOTE_WRITE, 5, 2, data);
	fixture_read(fixture, 0, wqe, sizeof(wqe));
	expect_head(wqe, 0, 0, 4, MASK_BASE | MASK_RIGHTS | MASK_LEN, 0x20, 5 * 129);
	assert_int_equal(be16_at(wqe, 160), 68);
}

/* No state of a work request affects the next one of the chain. */
TEST(each_of_a_chain_starts_afresh)
{
	uint8_t wqe[128];

	build_list(4);
	mlx5dv_wr_mkey_configure(&fixture->qp.dv, &fixture->mkey.base, 0, &no_attributes);
	assert_int_equal(fixture->qp.builder.count, 2);
	assert_int_equal(fixture->qp.sq.cur_post, 3 + 2);
	fixture_read(fixture, 3, wqe, sizeof(wqe));
	expect_head(wqe, 3, 0x28, 0, MASK_BASE, 0, 0);
}

int main(void)
{
	return run_cases(.setup = set_up, .teardown = tear_down);
}
