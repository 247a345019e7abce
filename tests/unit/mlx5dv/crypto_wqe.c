/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Crypto BSFs byte by byte, as mlx5dv_wr_set_mkey_crypto(3) writes them into the ring: expected bytes come from
 * mlx5-formats 1.8, 1.12 and 4.4, entered by hand. Also refusals of the setter, and the encryption in later
 * configurations of a key.
 */
#include "test_case.h"

#include "../support/umr_fixture.h"

#include "verbs/object/dek.h"
#include "mlx5dv/wr_crypto.h"
#include "../support/signature_fixture.h"
#include "verbs/post/wr.h"

#define AFTER MLX5DV_SIGNATURE_CRYPTO_ORDER_SIGNATURE_AFTER_CRYPTO_ON_TX
#define BEFORE MLX5DV_SIGNATURE_CRYPTO_ORDER_SIGNATURE_BEFORE_CRYPTO_ON_TX

enum {
	MASK_BASE = 1 << 29 | 1 << 13, /* FREE, MKEY */
	MASK_LEN = 1,
	MASK_SIG_ERR = 1 << 9,
	MASK_BSF = 1 << 12,
	BSF_ON = 0x40000000, /* in flags_pd */

	DEK_ID = 0xd0e0f1,
};

static struct fixture *fixture;
static struct key_crypto crypto;
static struct user_dek dek = {.id = DEK_ID};

static const struct test_domain none = NONE, crc = CRC(CRC32, 512, 0);

static int set_up(void **state)
{
	(void)state;
	fixture = fixture_new();
	memset(&crypto, 0, sizeof(crypto));
	fixture->mkey.crypto = &crypto;
	fixture->mkey.create_flags |= MLX5DV_MKEY_INIT_ATTR_FLAGS_CRYPTO;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	fixture_free(fixture);
	return 0;
}

static const struct mlx5dv_crypto_attr good = {
	.encrypt_on_tx = true,
	.signature_crypto_order = BEFORE,
	.data_unit_size = MLX5DV_BLOCK_SIZE_4096,
	.initial_tweak = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16},
	.dek = (struct mlx5dv_dek *)&dek,
	.keytag = {0x71, 0x72, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78},
};

static void configure(uint8_t setters, uint32_t flags)
{
	struct mlx5dv_mkey_conf_attr attr = {.conf_flags = flags};

	fixture_place(fixture, 0);
	wr_start(&fixture->qp.ex);
	fixture->qp.ex.wr_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED;
	mlx5dv_wr_mkey_configure(&fixture->qp.dv, &fixture->mkey.base, setters, &attr);
}

/* Calls the setter, and overwrites its arguments as soon as it returns. */
static void set_crypto(const struct mlx5dv_crypto_attr *attr)
{
	struct mlx5dv_crypto_attr copy = *attr;

	mlx5dv_wr_set_mkey_crypto(&fixture->qp.dv, &copy);
	memset(&copy, 0x77, sizeof(copy));
}

/* Expects the chain as builders write it: complete, but without a doorbell. */
static void expect_built(void)
{
	assert_int_equal(fixture->qp.builder.error, 0);
	queue_unlock(&fixture->qp.sq.lock);
}

static void expect_refused(int error)
{
	assert_int_equal(fixture->qp.builder.error, error);
	assert_int_equal(wr_complete(&fixture->qp.ex), error);
	assert_int_equal(fixture->qp.sq.cur_post, 0);
}

/* Expects the UMR at block 0: @entries of translations and @bsf octowords. Returns the BSFs. */
static const uint8_t *expect_umr(uint32_t entries, uint32_t bsf, uint64_t mask, uint32_t flags_pd)
{
	static uint8_t wqe[1024];

	fixture_read(fixture, 0, wqe, 128 + 16 * (entries + bsf));
	assert_int_equal(be32_at(wqe, 0), 0x25);
	assert_int_equal(be32_at(wqe, 4), TEST_QPN << 8 | (8 + entries + bsf));
	assert_int_equal(be16_at(wqe, 20), entries);
	assert_int_equal(be16_at(wqe, 22), bsf);
	assert_int_equal(be64_at(wqe, 24), mask);
	assert_int_equal(be32_at(wqe, 76), flags_pd);
	return wqe + 128 + 16 * entries;
}

/* ---- bytes ------------------------------------------------------------------------------------------------------ */

static void expect_bytes(const uint8_t *found, const char *hex)
{
	for (int i = 0; *hex; hex++) {
		char digits[3] = {hex[0], hex[1]};

		if (*hex == ' ')
			continue;
		if (found[i] != strtoul(digits, NULL, 16))
			fail_msg("byte %d of the BSF is %02x, not %s", i, found[i], digits);
		i++;
		hex++;
	}
}

/* Expects the 64 bytes: the first 16 as given, tweak, DEK, key tag. */
static void expect_crypto_bsf(const uint8_t *bsf, const char *first)
{
	expect_bytes(bsf, first);
	expect_bytes(bsf + 16, "01020304 05060708 090a0b0c 0d0e0f10"
			       "00d0e0f1 00000000 71727374 75767778"
			       "00000000 00000000 00000000 00000000");
}

TEST(every_order_and_unit)
{
	static const struct {
		bool encrypt_on_tx;
		enum mlx5dv_signature_crypto_order order;
		const char *alone, *after; /* up to the order */
	} orders[] = {
		{true, BEFORE, "8100", "c100"},
		{false, AFTER, "8101", "c101"},
		{true, AFTER, "8102", "c102"},
		{false, BEFORE, "8103", "c103"},
	};
	static const struct {
		enum mlx5dv_block_size size;
		const char *selector;
	} units[] = {
		{MLX5DV_BLOCK_SIZE_512, "01"},  {MLX5DV_BLOCK_SIZE_520, "02"},  {MLX5DV_BLOCK_SIZE_4048, "06"},
		{MLX5DV_BLOCK_SIZE_4096, "03"}, {MLX5DV_BLOCK_SIZE_4160, "04"},
	};

	for (int i = 0; i < 4; i++) {
		for (int u = 0; u < 5; u++) {
			struct mlx5dv_crypto_attr attr = good;
			char first[64];

			attr.encrypt_on_tx = orders[i].encrypt_on_tx;
			attr.signature_crypto_order = orders[i].order;
			attr.data_unit_size = units[u].size;

			fixture->mkey.signature = NULL;
			fixture->mkey.crypto_state = BLOCK_INIT;
			configure(1, 0);
			set_crypto(&attr);
			snprintf(first, sizeof(first), "%s0000 ffffffff %s000000 00000000", orders[i].alone,
				 units[u].selector);
			expect_crypto_bsf(expect_umr(0, 4, MASK_BASE | MASK_BSF, BSF_ON), first);
			assert_int_equal(fixture->qp.builder.count, 1);
			fixture_expect_untouched(fixture, 3, TEST_BLOCKS - 3);
			expect_built();

			/* A key that can have a signature has its BSF first, even if that is empty. */
			fixture_sign(fixture);
			fixture->mkey.crypto_state = BLOCK_INIT;
			configure(1, 0);
			set_crypto(&attr);
			snprintf(first, sizeof(first), "%s0000 ffffffff %s000000 00000000", orders[i].after,
				 units[u].selector);
			expect_bytes(expect_umr(0, 8, MASK_BASE | MASK_BSF | MASK_SIG_ERR, BSF_ON | 0x04000000),
				     "c0000000 ffffffff 00000000 00000000"
				     "00000000 00000000 00000000 00000000"
				     "00000000 00000000 00000000 00000000"
				     "00000000 00000000 00000000 00000000");
			expect_crypto_bsf(
				expect_umr(0, 8, MASK_BASE | MASK_BSF | MASK_SIG_ERR, BSF_ON | 0x04000000) + 64, first);
			expect_built();
		}
	}
}

/* With a signature, in either order of the setters, after a layout; SET_PSVs follow. */
TEST(after_a_signature)
{
	struct ibv_sge sge[5] = {{.addr = 4096, .length = 512, .lkey = 0x5500}};

	for (int i = 1; i < 5; i++)
		sge[i] = sge[0];
	for (int order = 0; order < 3; order++) {
		const uint8_t *bsf;

		fixture_sign(fixture);
		fixture->mkey.crypto_state = BLOCK_INIT;
		configure(3, 0);
		if (order == 0)
			set_crypto(&good);
		fixture_set_signature(fixture, &none, &crc, 0, 0xf0, 0);
		if (order == 1)
			set_crypto(&good);
		mlx5dv_wr_set_mkey_layout_list(&fixture->qp.dv, 5, sge);
		if (order == 2)
			set_crypto(&good);
		bsf = expect_umr(8, 8, MASK_BASE | MASK_BSF | MASK_SIG_ERR | MASK_LEN, BSF_ON | 0x04000000);
		expect_bytes(bsf, "c0f00100 ffffffff 230c0d0e 00000000");
		expect_crypto_bsf(bsf + 64, "c1000000 ffffffff 03000000 00000000");
		assert_int_equal(fixture->qp.builder.count, 2);
		expect_built();
	}
}

/* The ring ends between the two BSFs, before them, after them, among the entries. */
TEST(at_every_place)
{
	struct ibv_sge sge[48];
	uint8_t wqe[1024];

	for (uint32_t i = 0; i < 48; i++)
		sge[i] = (struct ibv_sge){.addr = 4096 * i, .length = 512 + i, .lkey = 0x5500 + i};
	for (uint32_t start = 0; start < TEST_BLOCKS; start++) {
		for (uint32_t count = 0; count <= 44; count++) {
			uint32_t entries = (count + 3) / 4 * 4;

			fixture_sign(fixture);
			fixture->mkey.crypto_state = BLOCK_INIT;
			fixture_place(fixture, start);
			fixture_start(fixture, IBV_SEND_INLINE);
			mlx5dv_wr_mkey_configure(&fixture->qp.dv, &fixture->mkey.base, 2, &no_attributes);
			mlx5dv_wr_set_mkey_layout_list(&fixture->qp.dv, count, sge);
			set_crypto(&good);
			assert_int_equal(fixture->qp.builder.error, 0);
			fixture_read(fixture, start, wqe, 128 + 16 * entries + 128);
			assert_int_equal(be32_at(wqe, 4), TEST_QPN << 8 | (8 + entries + 8));
			for (uint32_t i = 0; i < count; i++)
				assert_int_equal(be32_at(wqe, 128 + 16 * i), 512 + i);
			expect_bytes(wqe + 128 + 16 * entries, "c0000000 ffffffff 00000000 00000000");
			expect_crypto_bsf(wqe + 128 + 16 * entries + 64, "c1000000 ffffffff 03000000 00000000");
			fixture_expect_untouched(fixture, start + 4 + entries / 4, TEST_BLOCKS - 4 - entries / 4);
		}
	}
}

/* ---- refusals --------------------------------------------------------------------------------------------------- */

static void expect_setter_refused(const struct mlx5dv_crypto_attr *attr, enum explain_rule rule)
{
	uint64_t before;

	fixture->mkey.crypto_state = BLOCK_INIT;
	memset(&crypto, 0, sizeof(crypto));
	configure(1, 0);
	before = fixture_last_serial();
	set_crypto(attr);
	expect_record(before, rule);
	/* A refused setter sets nothing. */
	assert_int_equal(fixture->mkey.crypto_state, BLOCK_INIT);
	assert_int_equal(crypto.dek, 0);
	expect_refused(EINVAL);
}

TEST(bad_attributes)
{
	struct mlx5dv_crypto_attr attr;

#define BAD(member, value)                                                                                             \
	do {                                                                                                           \
		attr = good;                                                                                           \
		attr.member = value;                                                                                   \
		expect_setter_refused(&attr, RULE_MKEY_CRYPTO_ATTR);                                                   \
	} while (0)
	BAD(comp_mask, 1);
	BAD(comp_mask, UINT64_C(1) << 63);
	BAD(crypto_standard, 1);
	BAD(signature_crypto_order, 2);
	BAD(signature_crypto_order, (enum mlx5dv_signature_crypto_order) - 1);
	BAD(data_unit_size, 5);
	BAD(data_unit_size, (enum mlx5dv_block_size) - 1);
#undef BAD
	attr = good;
	attr.dek = NULL;
	expect_setter_refused(&attr, RULE_MKEY_CRYPTO_DEK);
	attr.comp_mask = 1;
	expect_setter_refused(&attr, RULE_MKEY_CRYPTO_ATTR);
	fixture->mkey.crypto = NULL;
	expect_setter_refused(&attr, RULE_MKEY_CRYPTO_FLAG);
}

TEST(twice_or_not_open)
{
	uint64_t before;

	configure(2, 0);
	set_crypto(&good);
	before = fixture_last_serial();
	set_crypto(&good);
	expect_record(before, RULE_MKEY_CRYPTO_TWICE);
	expect_refused(EINVAL);

	configure(0, 0);
	before = fixture_last_serial();
	set_crypto(&good);
	expect_record(before, RULE_MKEY_SETTER_NOT_OPEN);
	expect_refused(EINVAL);

	/* An earlier error stays. */
	configure(2, 0);
	mlx5dv_wr_set_mkey_access_flags(&fixture->qp.dv, 0x80000000);
	before = fixture_last_serial();
	set_crypto(&good);
	assert_int_equal(fixture_last_serial(), before);
	expect_refused(EINVAL);
}

/* Orders 2 and 3 with signatures in both domains; all orders with one. */
TEST(two_signatures)
{
	for (int order = 0; order < 4; order++) {
		struct mlx5dv_crypto_attr attr = good;
		bool allowed = order == 0 || order == 3;

		attr.encrypt_on_tx = order < 2;
		attr.signature_crypto_order = order & 1 ? AFTER : BEFORE;
		for (int domains = 0; domains < 4; domains++) {
			/* order: encrypt+before, encrypt+after, decrypt+before, decrypt+after */
			fixture_sign(fixture);
			fixture->mkey.crypto_state = BLOCK_INIT;
			configure(domains ? 2 : 1, 0);
			set_crypto(&attr);
			if (domains)
				fixture_set_signature(fixture, domains & 1 ? &crc : &none, domains & 2 ? &crc : &none,
						      0, 0xf0, 0);
			if (domains == 3 && !allowed)
				expect_refused(EINVAL);
			else
				expect_built();
		}
	}
}

TEST(room_and_length)
{
	struct ibv_sge sge[64], large[2] = {{0, 0xffffffff, 1}, {0, 1, 1}};
	uint32_t room = (TEST_MAX_INLINE + 4) / 16; /* 52 octowords */

	for (uint32_t i = 0; i < 64; i++)
		sge[i] = (struct ibv_sge){.addr = i, .length = 16, .lkey = 1};
	for (uint32_t count = 40; count <= room; count++) {
		fixture->mkey.crypto_state = BLOCK_INIT;
		configure(2, 0);
		mlx5dv_wr_set_mkey_layout_list(&fixture->qp.dv, count, sge);
		set_crypto(&good);
		if ((count + 3) / 4 * 4 + 4 <= room)
			expect_built();
		else
			expect_refused(ENOMEM);
	}
	/* raw_data_size has 32 bits. */
	for (int count = 1; count <= 2; count++) {
		fixture->mkey.crypto_state = BLOCK_INIT;
		configure(2, 0);
		mlx5dv_wr_set_mkey_layout_list(&fixture->qp.dv, count, large);
		set_crypto(&good);
		if (count == 1)
			expect_built();
		else
			expect_refused(EINVAL);
	}
}

/* ---- later configurations --------------------------------------------------------------------------------------- */

TEST(kept_until_set_again)
{
	struct mlx5dv_crypto_attr other = good;
	const uint8_t *bsf;

	configure(1, 0);
	set_crypto(&good);
	expect_built();
	/* Without the setter, the cipher is omitted: the device keeps it. */
	for (int i = 0; i < 2; i++) {
		configure(0, 0);
		expect_umr(0, 0, MASK_BASE, 0);
		expect_built();
		assert_int_equal(fixture->mkey.crypto_state, BLOCK_SET);
	}
	other.encrypt_on_tx = false;
	configure(1, 0);
	set_crypto(&other);
	expect_crypto_bsf(expect_umr(0, 4, MASK_BASE | MASK_BSF, BSF_ON), "81030000 ffffffff 03000000 00000000");
	expect_built();
	/* The signature is reset or set: both BSFs are written, that of the cipher unchanged. */
	fixture_sign(fixture);
	configure(0, MLX5DV_MKEY_CONF_FLAG_RESET_SIG_ATTR);
	bsf = expect_umr(0, 8, MASK_BASE | MASK_BSF | MASK_SIG_ERR, BSF_ON | 0x04000000);
	expect_bytes(bsf, "c0000000 ffffffff 00000000 00000000");
	expect_crypto_bsf(bsf + 64, "c1030000 ffffffff 03000000 00000000");
	expect_built();
	configure(1, 0);
	fixture_set_signature(fixture, &none, &crc, 0, 0xf0, 0);
	bsf = expect_umr(0, 8, MASK_BASE | MASK_BSF, BSF_ON);
	expect_bytes(bsf, "c0f00100 ffffffff 230c0d0e 00000000");
	expect_crypto_bsf(bsf + 64, "c1030000 ffffffff 03000000 00000000");
	expect_built();
}

/* A key that can be encrypted, before the first call of the setter, has no crypto BSF. */
TEST(never_set)
{
	configure(0, 0);
	expect_umr(0, 0, MASK_BASE, 0);
	expect_built();
	fixture_sign(fixture);
	configure(1, 0);
	fixture_set_signature(fixture, &none, &crc, 0, 0xf0, 0);
	expect_bytes(expect_umr(0, 4, MASK_BASE | MASK_BSF | MASK_SIG_ERR, BSF_ON | 0x04000000),
		     "80f00100 ffffffff 230c0d0e 00000000");
	expect_built();
}

int main(void)
{
	return run_cases(.setup = set_up, .teardown = tear_down);
}
