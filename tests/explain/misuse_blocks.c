/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules 900 to 949, continued: transfers through keys with signatures that end inside a block. */
#include "rule_cases.h"
#include "support/signed_key.h"

enum { BLOCK = 512, FIELD = 8, BLOCKS = 2 };

DOMAIN_DIF(dif, CRC, 512, 0, 1, 2, 0);

static const struct mlx5dv_sig_block_attr in_memory = {.mem = &dif}, on_wire = {.wire = &dif};

/* Returns a key of BLOCKS blocks of the server's memory, with @attr. */
static struct mlx5dv_mkey *new_key(const struct mlx5dv_sig_block_attr *attr)
{
	struct mlx5dv_mkey_init_attr create = {
		.pd = server.pd,
		.create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT | MLX5DV_MKEY_INIT_ATTR_FLAGS_BLOCK_SIGNATURE,
		.max_entries = 4,
	};
	struct mlx5dv_mkey *mkey = mlx5dv_create_mkey(&create);
	struct layout layout;

	assert_non_null(mkey);
	lay_signed(mkey, &layout, BLOCKS * (attr->mem ? BLOCK + FIELD : BLOCK), attr);
	return mkey;
}

static void check(struct mlx5dv_mkey *mkey)
{
	struct mlx5dv_mkey_err error;

	expect_error(mlx5dv_mkey_check(mkey, &error), 0);
}

/* Whole blocks, also by several transfers, and a part of a block whose signature is removed without a check. */
static void whole_blocks(void)
{
	struct mlx5dv_mkey *mkey = new_key(&in_memory);

	transfer_signed(IN_REMOTE_WRITE, mkey->rkey, 0, SIGNED_PLAIN, BLOCKS * BLOCK);
	check(mkey);
	transfer_signed(IN_REMOTE_WRITE, mkey->rkey, 0, SIGNED_PLAIN, BLOCK / 2);
	transfer_signed(IN_REMOTE_WRITE, mkey->rkey, BLOCK / 2, SIGNED_PLAIN, BLOCK / 2);
	check(mkey);
	transfer_signed(OUT_WRITE, mkey->lkey, 0, SIGNED_PLAIN, BLOCK / 2);
	check(mkey);
	expect_error(mlx5dv_destroy_mkey(mkey), 0);

	mkey = new_key(&on_wire);
	transfer_signed(OUT_WRITE, mkey->lkey, 0, SIGNED_PLAIN, BLOCK + FIELD);
	expect_error(mlx5dv_destroy_mkey(mkey), 0);
}

RULE_CASE(BLOCK_CUT, .lint = "on")
{
	struct pair_options options = signed_options();
	struct mlx5dv_mkey *mkey;
	uint32_t number;

	pair_replace(&pair, &options);
	whole_blocks();
	expect_no_misuse(BLOCK_CUT);

	mkey = new_key(&in_memory);
	transfer_signed(IN_REMOTE_WRITE, mkey->rkey, 0, SIGNED_PLAIN, BLOCK + 188);
	check(mkey);
	expect_misuse(
		BLOCK_CUT,
		"mlx5dv_mkey_check: the last transfer through mkey 0x%x ended 188 bytes into a block that has 512 on "
		"the wire: the block was neither checked nor given a signature",
		mkey->lkey);
	expect_error(mlx5dv_destroy_mkey(mkey), 0);

	/* The data of a block without its field. */
	mkey = new_key(&on_wire);
	number = mkey->lkey;
	transfer_signed(OUT_WRITE, number, 0, SIGNED_PLAIN, BLOCK);
	expect_error(mlx5dv_destroy_mkey(mkey), 0);
	expect_misuse(
		BLOCK_CUT,
		"mlx5dv_destroy_mkey: the last transfer through mkey 0x%x ended 512 bytes into a block that has 520 on "
		"the wire: the block was neither checked nor given a signature",
		number);
	side_accept(&client);
	side_accept(&server);
}
