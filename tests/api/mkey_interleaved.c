/* SPDX-License-Identifier: BSD-2-Clause */
/* mlx5dv_wr_set_mkey_layout_interleaved(3). docs/reference/promises.md names the cases. The server owns the keys. */
#include "support/key_checks.h"
#include "support/layout_cases.h"

static struct layout layout;

TEST(scatters_and_gathers)
{
	check_interleaved_scatters_and_gathers(BY_CONFIGURE);
}

TEST(layout_is_replaced)
{
	struct mlx5dv_mr_interleaved first[] = {side_interleaved(&server, 1000, 16, 16),
						side_interleaved(&server, 30000, 5, 3)};
	struct mlx5dv_mr_interleaved second[] = {side_interleaved(&server, 2, 7, 0)};
	struct ibv_sge list[] = {side_sge(&server, 9000, 200), side_sge(&server, 500, 6)};
	struct mlx5dv_mkey *mkey = side_create_mkey(&server, 4, NULL);

	expect_key_reaches(lay_list(&pair.server, BY_CONFIGURE, mkey, &layout, 2, list));
	expect_key_reaches(lay_interleaved(&pair.server, BY_CONFIGURE, mkey, &layout, 4, 2, first));
	expect_key_reaches(lay_interleaved(&pair.server, BY_CONFIGURE, mkey, &layout, 50, 1, second));
	expect_key_reaches(lay_interleaved(&pair.server, BY_CONFIGURE, mkey, &layout, 1, 2, first));
}

TEST(three_entries_by_default)
{
	check_interleaved_entries_by_default(BY_CONFIGURE);
}

TEST(more_entries_with_max_inline_data)
{
	check_interleaved_entries_with_max_inline_data(BY_CONFIGURE);
}

TEST(header_takes_an_entry)
{
	check_interleaved_header_takes_an_entry(BY_CONFIGURE);
}

TEST(repeat_count)
{
	check_interleaved_repeat_count(BY_CONFIGURE);
}

TEST(num_interleaved_counts)
{
	struct mlx5dv_mr_interleaved data[] = {side_interleaved(&server, 1000, 16, 16),
					       side_interleaved(&server, 30000, 5, 3),
					       side_interleaved(&server, 10, 33, 1)};
	struct mlx5dv_mkey *mkey = side_create_mkey(&server, 4, NULL);

	for (uint16_t count = 1; count <= 3; count++) {
		note("%u entries", count);
		expect_key_reaches(lay_interleaved(&pair.server, BY_CONFIGURE, mkey, &layout, 6, count, data));
	}
}

TEST(skipped_bytes_stay)
{
	/* The last block ends at the end of its region, and the skip after it extends beyond. */
	struct ibv_mr *exact = side_register(&server, 8192, 9 * 100 + 60, IBV_ACCESS_LOCAL_WRITE);
	struct mlx5dv_mr_interleaved data[] = {
		{side_address(&server, 8192), 60, 40, exact->lkey},
		side_interleaved(&server, INTERLEAVED_MEMORY - 9 * 32 - 10, 10, 22),
	};
	struct mlx5dv_mkey *mkey = side_create_mkey(&server, 4, NULL);

	expect_key_reaches(lay_interleaved(&pair.server, BY_CONFIGURE, mkey, &layout, 10, 2, data));
}

/* Sums of bytes_count and bytes_skip up to 65535: data and gaps are in the right places in both directions. */
TEST(widest_entries)
{
	static const struct {
		uint32_t bytes, skip, repeat;
	} rows[] = {{65535, 0, 2}, {1, 65534, 8}, {32767, 32768, 5}, {65534, 1, 2}, {40000, 25535, 4}};
	struct mlx5dv_mkey *mkey = side_create_mkey(&server, 4, NULL);

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct mlx5dv_mr_interleaved data[] = {side_interleaved(&server, 3, rows[i].bytes, rows[i].skip)};

		note("row %zu", i);
		expect_key_reaches(lay_interleaved(&pair.server, BY_CONFIGURE, mkey, &layout, rows[i].repeat, 1, data));
	}
}

/* The man page has 32 bits for each, the work request 16 for the sum: above that, the whole batch is rejected. */
static const struct mlx5dv_mr_interleaved too_wide[] = {
	{.bytes_count = 65535, .bytes_skip = 1},         {.bytes_count = 65536, .bytes_skip = 0},
	{.bytes_count = 1, .bytes_skip = 65535},         {.bytes_count = 70000, .bytes_skip = 100},
	{.bytes_count = 16, .bytes_skip = UINT32_MAX},   {.bytes_count = UINT32_MAX, .bytes_skip = 0},
	{.bytes_count = 0x10010, .bytes_skip = 0x10010}, {.bytes_count = 0, .bytes_skip = 65536},
};

TEST(wider_entries_refused)
{
	struct mlx5dv_mkey *mkey;
	struct view key;

	if (!in_profile("man", __func__))
		return;
	mkey = side_create_mkey(&server, 4, NULL);
	key = lay_sample(mkey, &layout);
	for (size_t i = 0; i < 2 * ARRAY_SIZE(too_wide); i++) {
		struct mlx5dv_mr_interleaved data[] = {side_interleaved(&server, 0, 16, 16), too_wide[i / 2]};
		bool by_mr_call = i & 1;

		note("entry %zu, by %s", i / 2, by_mr_call ? "mlx5dv_wr_mr_interleaved" : "the setter");
		data[1].addr = data[0].addr;
		data[1].lkey = data[0].lkey;
		batch_start(&pair.server, 0, 0);
		batch_send(&pair.server, 1, IBV_SEND_SIGNALED, view_memory(&server, 0, 8));
		pair.server.ex->wr_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED;
		if (by_mr_call) {
			mlx5dv_wr_mr_interleaved(pair.server.dv, mkey, KEY_ACCESS, 2, 2, data);
		} else {
			struct mlx5dv_mkey_conf_attr no_attributes = {0};

			mlx5dv_wr_mkey_configure(pair.server.dv, mkey, 1, &no_attributes);
			mlx5dv_wr_set_mkey_layout_interleaved(pair.server.dv, 2, 2, data);
		}
		expect_batch_refused(&pair.server, EINVAL);
	}
	expect_key_reaches(key);
}

/*
 * mlx5-formats 6, no. 42: 65600 and 65608 are truncated modulo 65536 in the layout; the key's length is not truncated.
 */
TEST(wider_entries_cut_by_connectx)
{
	struct mlx5dv_mr_interleaved data[] = {{0}}, cut[] = {{0}};
	struct mlx5dv_mkey *mkey;
	struct view key;

	if (!in_profile("connectx", __func__))
		return;
	data[0] = side_interleaved(&server, 0, 65600, 8);
	cut[0] = side_interleaved(&server, 0, 64, 72 - 64);
	mkey = side_create_mkey(&server, 4, NULL);
	layout_of_interleaved(&layout, &server, 3, 1, cut);
	expect_error(configure_interleaved(&pair.server, BY_CONFIGURE, mkey, KEY_ACCESS, 3, 1, data), 0);
	expect_completion(&pair.server, CONFIGURE_WR_ID, IBV_WC_DRIVER1);
	key = view_key(&server, mkey, &layout);
	expect_write(&pair, client_memory(3 * 64), key, IBV_WC_SUCCESS);
	expect_read(&pair, client_memory(3 * 64), key, IBV_WC_SUCCESS);
	expect_write(&pair, client_memory(3 * 64 + 1), view_part(key, 0, 3 * 64 + 1), IBV_WC_REM_ACCESS_ERR);
}

/* Checks that neither end can use the key, and that the good entry before the bad one is not accessed either. */
static void expect_unusable(struct mlx5dv_mkey *mkey, struct mlx5dv_mr_interleaved *data)
{
	struct view key = lay_interleaved(&pair.server, BY_CONFIGURE, mkey, &layout, 4, 2, data);

	expect_send(&pair, key, client_memory(key.length), IBV_WC_LOC_PROT_ERR, IBV_WC_SUCCESS);
	expect_write(&pair, client_memory(key.length), key, IBV_WC_REM_ACCESS_ERR);
	expect_read(&pair, key, client_memory(key.length), IBV_WC_LOC_PROT_ERR);
	/* Access within the good entry succeeds. */
	expect_write(&pair, client_memory(10), view_part(key, 0, 10), IBV_WC_SUCCESS);
}

TEST(lkey_per_entry)
{
	const unsigned int access = IBV_ACCESS_LOCAL_WRITE;
	struct ibv_mr *good = side_register(&server, 1000, 1000, access);
	struct ibv_mr *second = side_register(&server, 30000, 1000, access);
	struct ibv_mr *gone = side_register(&server, 30000, 1000, access);
	struct mlx5dv_mr_interleaved data[] = {{side_address(&server, 1000), 16, 16, good->lkey},
					       {side_address(&server, 30000), 5, 3, second->lkey}};
	struct mlx5dv_mkey *mkey = side_create_mkey(&server, 4, NULL);
	struct ibv_pd *other_pd = ibv_alloc_pd(server.context);
	struct ibv_mr *foreign;

	assert_non_null(other_pd);
	foreign = ibv_reg_mr(other_pd, server.memory + 30000, 1000, access);
	assert_non_null(foreign);
	expect_key_reaches(lay_interleaved(&pair.server, BY_CONFIGURE, mkey, &layout, 4, 2, data));
	data[1].lkey = good->lkey; /* this region does not contain the address */
	note("lkey of the other region");
	expect_unusable(mkey, data);
	data[1].lkey = foreign->lkey;
	note("lkey of another PD");
	expect_unusable(mkey, data);
	data[1].lkey = second->lkey ^ 0xff;
	note("lkey with another tag");
	expect_unusable(mkey, data);
	data[1].lkey = 0xffffff00;
	note("lkey of no key");
	expect_unusable(mkey, data);
	data[1].lkey = gone->lkey;
	side_deregister(&server, gone);
	note("lkey of a deregistered MR");
	expect_unusable(mkey, data);
	expect_error(ibv_dereg_mr(foreign), 0);
	expect_error(ibv_dealloc_pd(other_pd), 0);
}

TEST(arguments_are_copied)
{
	struct mlx5dv_mr_interleaved data[] = {side_interleaved(&server, 1000, 16, 16),
					       side_interleaved(&server, 30000, 5, 3)};
	struct mlx5dv_mkey *mkey = side_create_mkey(&server, 4, NULL);

	layout_of_interleaved(&layout, &server, 4, 2, data);
	configure_start(&pair.server, mkey, 2);
	mlx5dv_wr_set_mkey_layout_interleaved(pair.server.dv, 4, 2, data);
	memset(data, 0, sizeof(data));
	mlx5dv_wr_set_mkey_access_flags(pair.server.dv, KEY_ACCESS);
	memset(data, 0xff, sizeof(data));
	configure_complete(&pair.server);
	expect_key_reaches(view_key(&server, mkey, &layout));
}

int main(void)
{
	program_memory(INTERLEAVED_MEMORY);
	return run_program();
}
