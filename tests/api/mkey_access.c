/* SPDX-License-Identifier: BSD-2-Clause */
/* mlx5dv_wr_set_mkey_access_flags(3). docs/reference/promises.md names the cases. The server owns the keys. */
#include "support/key_checks.h"

/* All of enum ibv_access_flags of verbs.h. */
enum {
	ALL_FLAGS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
		    IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_ON_DEMAND |
		    IBV_ACCESS_HUGETLB | IBV_ACCESS_RELAXED_ORDERING,
};

static struct layout layout;

static int set_access(struct mlx5dv_mkey *mkey, uint32_t access)
{
	configure_start(&pair.server, mkey, 1);
	mlx5dv_wr_set_mkey_access_flags(pair.server.dv, access);
	return ibv_wr_complete(pair.server.ex);
}

static void must_set_access(struct mlx5dv_mkey *mkey, uint32_t access)
{
	expect_error(set_access(mkey, access), 0);
	expect_completion(&pair.server, CONFIGURE_WR_ID, IBV_WC_DRIVER1);
}

/* Each access by the peer needs its own right; LOCAL_WRITE applies to the key's own side. */
static enum ibv_wc_status remote_status(uint32_t access, uint32_t right)
{
	return access & right ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR;
}

static void expect_rights(struct view key, uint32_t access)
{
	struct view memory = client_memory(key.length);

	note("rights %#x", access);
	if (access & IBV_ACCESS_LOCAL_WRITE) {
		expect_send(&pair, memory, key, IBV_WC_SUCCESS, IBV_WC_SUCCESS);
		expect_read(&pair, key, memory, IBV_WC_SUCCESS);
	} else {
		expect_send(&pair, memory, key, IBV_WC_REM_OP_ERR, IBV_WC_LOC_PROT_ERR);
		expect_read(&pair, key, memory, IBV_WC_LOC_PROT_ERR);
	}
	expect_write(&pair, memory, key, remote_status(access, IBV_ACCESS_REMOTE_WRITE));
	expect_read(&pair, memory, key, remote_status(access, IBV_ACCESS_REMOTE_READ));
	expect_fetch_add(&pair, client_memory(8), view_part(key, 8, 8),
			 remote_status(access, IBV_ACCESS_REMOTE_ATOMIC));
	/* Local read needs no right. */
	expect_send(&pair, key, memory, IBV_WC_SUCCESS, IBV_WC_SUCCESS);
	expect_write(&pair, key, memory, IBV_WC_SUCCESS);
}

TEST(rights_are_those_given)
{
	struct mlx5dv_mkey *mkey = side_create_mkey(&server, 4, NULL);
	struct view key = lay_sample(mkey, &layout);

	for (uint32_t access = 0; access <= KEY_ACCESS; access++) {
		must_set_access(mkey, access);
		expect_rights(key, access);
	}
}

TEST(second_setter_replaces_rights)
{
	struct mlx5dv_mkey *mkey = side_create_mkey(&server, 4, NULL);
	struct view key = lay_sample(mkey, &layout);

	must_set_access(mkey, IBV_ACCESS_REMOTE_READ);
	must_set_access(mkey, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE);
	expect_rights(key, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE);
	must_set_access(mkey, IBV_ACCESS_REMOTE_READ);
	expect_rights(key, IBV_ACCESS_REMOTE_READ);
}

TEST(zero_is_local_read_only)
{
	struct mlx5dv_mkey *mkey = side_create_mkey(&server, 4, NULL);
	struct view key = lay_sample(mkey, &layout);

	must_set_access(mkey, 0);
	expect_rights(key, 0);
}

TEST(bits_outside_of_the_enum_refused)
{
	struct mlx5dv_mkey *mkey;
	struct view key;

	if (!in_profile("man", __func__))
		return;
	mkey = side_create_mkey(&server, 4, NULL);
	key = lay_sample(mkey, &layout);
	must_set_access(mkey, IBV_ACCESS_REMOTE_READ);
	for (int bit = 0; bit < 32; bit++) {
		uint32_t flag = UINT32_C(1) << bit;

		if (flag & ALL_FLAGS)
			continue;
		note("flag %#x", flag);
		expect_error(set_access(mkey, flag), EINVAL);
		expect_nothing_posted(&pair.server);
		expect_error(set_access(mkey, flag | ALL_FLAGS), EINVAL);
		expect_nothing_posted(&pair.server);
	}
	expect_rights(key, IBV_ACCESS_REMOTE_READ);
}

/* Each flag of the enum alone, with those that are rights, and all together; the other flags change no rights. */
TEST(every_flag_of_the_enum)
{
	static const uint32_t others[] = {IBV_ACCESS_MW_BIND,          IBV_ACCESS_ZERO_BASED,
					  IBV_ACCESS_ON_DEMAND,        IBV_ACCESS_HUGETLB,
					  IBV_ACCESS_RELAXED_ORDERING, ALL_FLAGS & ~(uint32_t)KEY_ACCESS};
	static const uint32_t rights[] = {0, IBV_ACCESS_REMOTE_READ, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
					  KEY_ACCESS};
	struct mlx5dv_mkey *mkey;
	struct view key;

	if (!in_profile("man", __func__))
		return;
	mkey = side_create_mkey(&server, 4, NULL);
	key = lay_sample(mkey, &layout);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		for (size_t j = 0; j < ARRAY_SIZE(rights); j++) {
			note("flags %#x", others[i] | rights[j]);
			must_set_access(mkey, others[i] | rights[j]);
			expect_rights(key, rights[j]);
		}
}

/* The driver of an adapter accepts rights only (mlx5-formats 4.4). */
TEST(rights_alone_in_connectx)
{
	static const uint32_t flags[] = {IBV_ACCESS_MW_BIND, IBV_ACCESS_ZERO_BASED, IBV_ACCESS_ON_DEMAND,
					 IBV_ACCESS_HUGETLB, IBV_ACCESS_RELAXED_ORDERING};
	struct mlx5dv_mkey *mkey;

	if (!in_profile("connectx", __func__))
		return;
	mkey = side_create_mkey(&server, 4, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		note("flag %#x", flags[i]);
		expect_error(set_access(mkey, flags[i] | KEY_ACCESS), EINVAL);
		expect_nothing_posted(&pair.server);
	}
	must_set_access(mkey, KEY_ACCESS);
}
