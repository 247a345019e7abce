/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mlx5dv_wr_set_mkey_sig_block(3) as a call: where it may be called, which errors it has and when they are reported,
 * the effect of an aborted chain. tests/api/signature_requests.c: the work requests of a configuration.
 */
#include "support/signed_key.h"

enum { BYTES = 2 * 512 };

static struct layout layout;
static struct mlx5dv_mkey *mkey;

DOMAIN_CRC(crc32, CRC32, 512, 0);
DOMAIN_CRC(crc32c, CRC32C, 512, 0);
DOMAIN_CRC(crc32_520, CRC32, 520, 0);
DOMAIN_CRC(crc64, CRC64_XP10, 512, 0);
DOMAIN_DIF(dif, CRC, 512, 0, 0x5678, 0xf0debc9a, 0);

static const struct mlx5dv_sig_block_attr good = {.mem = &crc32, .check_mask = 0xff};

/* Opens a working key, with CRC32 in its memory. */
static void open_key(void)
{
	struct pair_options options = signed_options();

	pair_replace(&pair, &options);
	mkey = side_create_signed_mkey(&server, 3);
	lay_signed(mkey, &layout, 2 * 516, &good);
}

static void expect_key_works(void)
{
	expect_signed_transfer(OUT_SEND, mkey, &layout, &crc32, NULL, BYTES);
	expect_signed_transfer(IN_REMOTE_WRITE, mkey, &layout, &crc32, NULL, BYTES);
}

/* ---- where it may stand ----------------------------------------------------------------------------------------- */

TEST(needs_an_open_configuration)
{
	open_key();
	/* Without a preceding builder. */
	batch_start(&pair.server, 1, IBV_SEND_INLINE | IBV_SEND_SIGNALED);
	mlx5dv_wr_set_mkey_sig_block(pair.server.dv, &good);
	expect_batch_refused(&pair.server, EINVAL);
	/* After as many setters as were announced. */
	for (uint8_t setters = 0; setters < 2; setters++) {
		configure_start(&pair.server, mkey, setters);
		if (setters)
			mlx5dv_wr_set_mkey_access_flags(pair.server.dv, KEY_ACCESS);
		mlx5dv_wr_set_mkey_sig_block(pair.server.dv, &good);
		expect_batch_refused(&pair.server, EINVAL);
	}
	/* After another request. */
	configure_start(&pair.server, mkey, 1);
	batch_send(&pair.server, 2, IBV_SEND_SIGNALED, view_memory(&server, 0, 8));
	mlx5dv_wr_set_mkey_sig_block(pair.server.dv, &good);
	expect_batch_refused(&pair.server, EINVAL);
	expect_key_works();
}

TEST(belongs_to_its_qp)
{
	struct pair other;

	open_key();
	pair_open(&other, &client, &server, &pair.options);
	configure_start(&other.server, mkey, 1);
	batch_start(&pair.server, 1, IBV_SEND_INLINE);
	mlx5dv_wr_set_mkey_sig_block(pair.server.dv, &good);
	expect_batch_refused(&pair.server, EINVAL);
	mlx5dv_wr_set_mkey_sig_block(other.server.dv, &good);
	configure_complete(&other.server);
	pair_close(&other);
	expect_key_works();
}

TEST(once_per_work_request)
{
	open_key();
	configure_start(&pair.server, mkey, 3);
	mlx5dv_wr_set_mkey_sig_block(pair.server.dv, &good);
	mlx5dv_wr_set_mkey_sig_block(pair.server.dv, &good);
	expect_batch_refused(&pair.server, EINVAL);
	/* In each of two work requests of one batch. */
	configure_start(&pair.server, mkey, 1);
	mlx5dv_wr_set_mkey_sig_block(pair.server.dv, &good);
	mlx5dv_wr_mkey_configure(pair.server.dv, mkey, 1, &(struct mlx5dv_mkey_conf_attr){0});
	mlx5dv_wr_set_mkey_sig_block(pair.server.dv, &good);
	expect_error(ibv_wr_complete(pair.server.ex), 0);
	for (int i = 0; i < 2; i++)
		expect_completion(&pair.server, CONFIGURE_WR_ID, IBV_WC_DRIVER1);
	expect_idle(&pair.server);
	expect_key_works();
}

/*
 * One setter more is announced than called: the chain is rejected, or the configuration dropped, as with any other
 * setter.
 */
static void expect_too_few(int error)
{
	struct mlx5dv_sig_block_attr attr = {.wire = &dif, .check_mask = 0xff};

	open_key();
	configure_start(&pair.server, mkey, 2);
	mlx5dv_wr_set_mkey_sig_block(pair.server.dv, &attr);
	expect_batch_refused(&pair.server, error);
	/* The key in the device is as before. */
	expect_key_works();
	lay_signed(mkey, &layout, 2 * 516, &good);
	expect_key_works();
}

TEST(too_few_setters_man)
{
	if (in_profile("man", __func__))
		expect_too_few(EINVAL);
}

TEST(too_few_setters_connectx)
{
	if (in_profile("connectx", __func__))
		expect_too_few(0);
}

TEST(needs_a_signature_key)
{
	struct mlx5dv_mkey *plain;

	open_key();
	plain = side_create_mkey(&server, 4, NULL);
	configure_start(&pair.server, plain, 1);
	mlx5dv_wr_set_mkey_sig_block(pair.server.dv, &good);
	expect_batch_refused(&pair.server, EINVAL);
}

/* Any of the setters may be the last of the work request. */
TEST(any_order_of_setters)
{
	struct ibv_sge pieces[3];

	open_key();
	cut_layout(&layout, pieces, 2 * 516);
	for (int order = 0; order < 6; order++) {
		static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};

		mkey = side_create_signed_mkey(&server, 3);
		configure_start(&pair.server, mkey, 3);
		for (int i = 0; i < 3; i++) {
			if (orders[order][i] == 0)
				mlx5dv_wr_set_mkey_access_flags(pair.server.dv, KEY_ACCESS);
			else if (orders[order][i] == 1)
				mlx5dv_wr_set_mkey_layout_list(pair.server.dv, 3, pieces);
			else
				mlx5dv_wr_set_mkey_sig_block(pair.server.dv, &good);
		}
		configure_complete(&pair.server);
		expect_key_works();
	}
}

/* ---- attributes ------------------------------------------------------------------------------------------------- */

/* "This function does not return a value. In case of error, user will be notified later when completing". */
static void expect_refused(const struct mlx5dv_sig_block_attr *attr)
{
	configure_start(&pair.server, mkey, 1);
	mlx5dv_wr_set_mkey_sig_block(pair.server.dv, attr);
	expect_batch_refused(&pair.server, EINVAL);
	expect_key_works();
}

TEST(attributes_refused)
{
	open_key();
	expect_refused(&(struct mlx5dv_sig_block_attr){.check_mask = 0xff});
	for (int bit = 1; bit < 32; bit++)
		expect_refused(&(struct mlx5dv_sig_block_attr){.mem = &crc32, .flags = UINT32_C(1) << bit});
	expect_refused(&(struct mlx5dv_sig_block_attr){.mem = &crc32, .comp_mask = 1});
	expect_refused(&(struct mlx5dv_sig_block_attr){.mem = &crc32, .comp_mask = UINT64_C(1) << 63});
}

/* Checks that a bad domain fails in memory and on the wire, with a good one or alone. */
static void expect_domain_refused(const struct mlx5dv_sig_block_domain *domain)
{
	expect_refused(&(struct mlx5dv_sig_block_attr){.mem = domain});
	expect_refused(&(struct mlx5dv_sig_block_attr){.wire = domain});
	expect_refused(&(struct mlx5dv_sig_block_attr){.mem = domain, .wire = &crc32});
	expect_refused(&(struct mlx5dv_sig_block_attr){.mem = &crc32, .wire = domain});
}

TEST(domains_refused)
{
	struct mlx5dv_sig_block_domain bad = crc32;
	struct mlx5dv_sig_crc crc = {MLX5DV_SIG_CRC_TYPE_CRC64_XP10 + 1, 0};
	struct mlx5dv_sig_t10dif t10 = {MLX5DV_SIG_T10DIF_CSUM + 1, 0, 0, 0, 0};

	open_key();
	bad.block_size = MLX5DV_BLOCK_SIZE_4160 + 1;
	expect_domain_refused(&bad);
	bad.block_size = 512; /* a number of bytes */
	expect_domain_refused(&bad);
	bad = crc32;
	bad.comp_mask = 1;
	expect_domain_refused(&bad);
	bad = crc32;
	bad.sig_type = MLX5DV_SIG_TYPE_CRC + 1;
	expect_domain_refused(&bad);
	bad = crc32;
	bad.sig.crc = &crc;
	expect_domain_refused(&bad);
	bad = dif;
	bad.sig.dif = &t10;
	expect_domain_refused(&bad);
	t10 = (struct mlx5dv_sig_t10dif){MLX5DV_SIG_T10DIF_CRC, 0, 0, 0, MLX5DV_SIG_T10DIF_FLAG_APP_REF_ESCAPE << 1};
	expect_domain_refused(&bad);
	/* "The following values are supported as a seed: 0, 0xFFFF" */
	t10.flags = 0;
	for (uint32_t seed = 1; seed < UINT16_MAX; seed += 0x3ffd) {
		t10.bg = (uint16_t)seed;
		expect_domain_refused(&bad);
	}
}

static int try_seed(enum mlx5dv_sig_crc_type type, uint64_t seed)
{
	struct mlx5dv_sig_crc crc = {type, seed};
	struct mlx5dv_sig_block_domain domain = {.sig_type = MLX5DV_SIG_TYPE_CRC, .sig.crc = &crc};
	struct mlx5dv_sig_block_attr attr = {.mem = &domain, .check_mask = 0xff};
	int error;

	configure_start(&pair.server, mkey, 1);
	mlx5dv_wr_set_mkey_sig_block(pair.server.dv, &attr);
	error = ibv_wr_complete(pair.server.ex);
	if (error)
		return error;
	expect_completion(&pair.server, CONFIGURE_WR_ID, IBV_WC_DRIVER1);
	/* A CRC64 field is 4 bytes longer. */
	if (type == MLX5DV_SIG_CRC_TYPE_CRC64_XP10)
		return 0;
	crc.seed = (uint32_t)seed;
	expect_signed_transfer(OUT_SEND, mkey, &layout, &domain, NULL, BYTES);
	return 0;
}

/* "Bits not relevant to the CRC type are ignored … only the following values are supported". */
static const struct {
	uint64_t seed;
	int man_32, connectx_32, both_64;
} seeds[] = {
	{0, 0, 0, 0},
	{1, EINVAL, EINVAL, EINVAL},
	{0xffffffff, 0, 0, EINVAL},
	{0x80000000, EINVAL, EINVAL, EINVAL},
	{0x100000000, 0, EINVAL, EINVAL},
	{0xffffffffffffffff, 0, EINVAL, 0},
	{0xffffffff00000000, 0, EINVAL, EINVAL},
};

static void expect_seeds(bool connectx)
{
	open_key();
	for (size_t i = 0; i < ARRAY_SIZE(seeds); i++) {
		int expected = connectx ? seeds[i].connectx_32 : seeds[i].man_32;

		note("seed %#lx", seeds[i].seed);
		expect_error(try_seed(MLX5DV_SIG_CRC_TYPE_CRC32, seeds[i].seed), expected);
		expect_error(try_seed(MLX5DV_SIG_CRC_TYPE_CRC32C, seeds[i].seed), expected);
		expect_error(try_seed(MLX5DV_SIG_CRC_TYPE_CRC64_XP10, seeds[i].seed), seeds[i].both_64);
	}
}

TEST(seeds_man)
{
	if (in_profile("man", __func__))
		expect_seeds(false);
}

TEST(seeds_connectx)
{
	if (in_profile("connectx", __func__))
		expect_seeds(true);
}

/*
 * "The MKEY configuration will fail if MLX5DV_SIG_BLOCK_ATTR_FLAG_COPY_MASK is set but the domains have different
 * signature structures": another type, another block size, or no signature. Equal structures pass.
 */
static void expect_copy_masks(bool connectx)
{
	static const struct mlx5dv_sig_block_domain *const domains[] = {&crc32, &crc32c, &crc32_520,
									&dif,   &crc64,  NULL};

	open_key();
	for (size_t m = 0; m < ARRAY_SIZE(domains); m++) {
		for (size_t w = 0; w < ARRAY_SIZE(domains); w++) {
			struct mlx5dv_sig_block_attr attr = {.mem = domains[m],
							     .wire = domains[w],
							     .flags = MLX5DV_SIG_BLOCK_ATTR_FLAG_COPY_MASK,
							     .copy_mask = 0xf0};

			note("memory %zu, wire %zu", m, w);
			if (m != w && !(connectx && !domains[w])) {
				expect_refused(&attr);
			} else if (domains[m]) {
				lay_signed(mkey, &layout, 2 * 528, &attr);
				lay_signed(mkey, &layout, 2 * 516, &good);
			}
		}
	}
}

TEST(copy_mask_needs_equal_structures_man)
{
	if (in_profile("man", __func__))
		expect_copy_masks(false);
}

TEST(copy_mask_needs_equal_structures_connectx)
{
	if (in_profile("connectx", __func__))
		expect_copy_masks(true);
}

/* The program may reuse everything that the attributes point to when the setter returns. */
TEST(attributes_are_copied)
{
	struct mlx5dv_sig_crc crc = *crc32.sig.crc;
	struct mlx5dv_sig_block_domain domain = {.sig_type = MLX5DV_SIG_TYPE_CRC, .sig.crc = &crc};
	struct mlx5dv_sig_block_attr attr = {.mem = &domain, .check_mask = 0xff};

	open_key();
	configure_start(&pair.server, mkey, 2);
	mlx5dv_wr_set_mkey_sig_block(pair.server.dv, &attr);
	memset(&crc, 0xff, sizeof(crc));
	memset(&domain, 0xff, sizeof(domain));
	memset(&attr, 0xff, sizeof(attr));
	mlx5dv_wr_set_mkey_access_flags(pair.server.dv, KEY_ACCESS);
	configure_complete(&pair.server);
	expect_key_works();
}

/* ---- later requests, and chains that fail ------------------------------------------------------------------------- */

/* Configured and used in one batch, without a completion in between. */
TEST(used_without_waiting)
{
	static uint8_t data[BYTES], stream[2 * 516];
	struct view key = {.side = &server, .length = BYTES};
	struct ibv_sge pieces[3];

	open_key();
	mkey = side_create_signed_mkey(&server, 3);
	key.key = mkey->lkey;
	cut_layout(&layout, pieces, 2 * 516);
	side_stir(&client);
	side_stir(&server);
	for (int i = 0; i < BYTES; i++)
		data[i] = (uint8_t)i;
	domain_make_stream(&crc32, data, BYTES, stream);
	key_store(&layout, 0, stream, sizeof(stream));
	batch_start(&pair.server, 1, IBV_SEND_INLINE);
	mlx5dv_wr_mkey_configure(pair.server.dv, mkey, 3, &(struct mlx5dv_mkey_conf_attr){0});
	mlx5dv_wr_set_mkey_access_flags(pair.server.dv, KEY_ACCESS);
	mlx5dv_wr_set_mkey_layout_list(pair.server.dv, 3, pieces);
	mlx5dv_wr_set_mkey_sig_block(pair.server.dv, &good);
	batch_write(&pair.server, 2, IBV_SEND_SIGNALED, key, view_memory(&client, SIGNED_PLAIN, BYTES));
	expect_error(ibv_wr_complete(pair.server.ex), 0);
	expect_completion(&pair.server, 2, IBV_WC_RDMA_WRITE);
	expect_idle(&pair.server);
	plain_expect(SIGNED_PLAIN, data, BYTES);
	side_compare(&client);
	side_compare(&server);
	expect_key_good(mkey);
}

/* ---- chains that fail ------------------------------------------------------------------------------------------- */

/* Sets a signature in a chain that is then dropped. */
static void drop_a_chain(bool abort)
{
	struct mlx5dv_sig_block_attr attr = {.mem = &dif, .wire = &crc32c, .check_mask = 0xff};

	configure_start(&pair.server, mkey, 1);
	mlx5dv_wr_set_mkey_sig_block(pair.server.dv, &attr);
	if (abort) {
		ibv_wr_abort(pair.server.ex);
		expect_nothing_posted(&pair.server);
	} else {
		mlx5dv_wr_set_mkey_sig_block(pair.server.dv, &attr);
		expect_batch_refused(&pair.server, EINVAL);
	}
}

/* "The next configuration of it should not assume any previous state": whether set or reset, it works as any key. */
TEST(configured_after_a_failed_chain)
{
	struct mlx5dv_mkey_conf_attr reset = {.conf_flags = MLX5DV_MKEY_CONF_FLAG_RESET_SIG_ATTR};

	open_key();
	for (int abort = 0; abort < 2; abort++) {
		for (int again = 0; again < 2; again++) {
			note("abort %d, set again %d", abort, again);
			drop_a_chain(abort);
			if (again) {
				lay_signed(mkey, &layout, 2 * 516, &good);
				expect_key_works();
				continue;
			}
			batch_start(&pair.server, CONFIGURE_WR_ID, IBV_SEND_INLINE | IBV_SEND_SIGNALED);
			mlx5dv_wr_mkey_configure(pair.server.dv, mkey, 0, &reset);
			configure_complete(&pair.server);
			expect_signed_transfer(OUT_SEND, mkey, &layout, NULL, NULL, 2 * 516);
			expect_signed_transfer(IN_RECV, mkey, &layout, NULL, NULL, 2 * 516);
		}
	}
}

/* Errors are found again after one was polled and the chain that would have re-armed the key failed. */
static void expect_errors_after_a_failed_chain(void)
{
	struct mlx5dv_mkey_err err;

	open_key();
	for (int abort = 0; abort < 2; abort++) {
		for (int round = 0; round < 2; round++) {
			lay_signed(mkey, &layout, 2 * 516, &good);
			side_stir(&client);
			side_stir(&server);
			transfer_signed(OUT_SEND, mkey->lkey, 0, SIGNED_PLAIN, 512); /* of stirred memory */
			memcpy(client.expected, client.memory, client.bytes);
			expect_error(mlx5dv_mkey_check(mkey, &err), 0);
			assert_int_equal(err.err_type, MLX5DV_MKEY_SIG_BLOCK_BAD_GUARD);
			drop_a_chain(abort);
		}
	}
}

TEST(errors_after_a_failed_chain_man)
{
	if (in_profile("man", __func__))
		expect_errors_after_a_failed_chain();
}

TEST(errors_after_a_failed_chain_connectx)
{
	if (in_profile("connectx", __func__))
		expect_errors_after_a_failed_chain();
}
