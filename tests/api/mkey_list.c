/* SPDX-License-Identifier: BSD-2-Clause */
/* mlx5dv_wr_set_mkey_layout_list(3). docs/reference/promises.md names the cases. The server owns the keys. */
#include "support/key_checks.h"
#include "support/layout_cases.h"

static struct layout layout;

TEST(scatters_and_gathers)
{
	check_list_scatters_and_gathers(BY_CONFIGURE);
}

TEST(no_layout_no_access)
{
	struct mlx5dv_mkey *mkey = side_create_mkey(&server, 4, NULL);
	struct view byte = {.side = &server, .key = mkey->lkey, .length = 1};

	configure_start(&pair.server, mkey, 1);
	mlx5dv_wr_set_mkey_access_flags(pair.server.dv, KEY_ACCESS);
	configure_complete(&pair.server);
	expect_key_unusable(byte);
}

TEST(layout_is_replaced)
{
	struct ibv_sge first[] = {side_sge(&server, 9000, 100), side_sge(&server, 500, 60)};
	struct ibv_sge more[] = {side_sge(&server, 10, 70), side_sge(&server, 20000, 80), side_sge(&server, 9050, 90),
				 side_sge(&server, 40000, 1)};
	struct ibv_sge fewer[] = {side_sge(&server, 600, 30)};
	struct mlx5dv_mkey *mkey = side_create_mkey(&server, 4, NULL);

	expect_key_reaches(lay_list(&pair.server, BY_CONFIGURE, mkey, &layout, 2, first));
	expect_key_reaches(lay_list(&pair.server, BY_CONFIGURE, mkey, &layout, 4, more));
	expect_key_reaches(lay_list(&pair.server, BY_CONFIGURE, mkey, &layout, 1, fewer));
	expect_key_reaches(lay_list(&pair.server, BY_CONFIGURE, mkey, &layout, 2, first));
}

TEST(replaces_interleaved)
{
	struct mlx5dv_mr_interleaved data[] = {side_interleaved(&server, 1000, 16, 16),
					       side_interleaved(&server, 30000, 5, 3)};
	struct ibv_sge list[] = {side_sge(&server, 9000, 20), side_sge(&server, 500, 6)};
	struct mlx5dv_mkey *mkey = side_create_mkey(&server, 4, NULL);

	expect_key_reaches(lay_interleaved(&pair.server, BY_CONFIGURE, mkey, &layout, 7, 2, data));
	expect_key_reaches(lay_list(&pair.server, BY_CONFIGURE, mkey, &layout, 2, list));
}

TEST(offset_is_zero_based)
{
	check_list_offset_is_zero_based(BY_CONFIGURE);
}

TEST(four_entries_by_default)
{
	check_list_entries_by_default(BY_CONFIGURE);
}

TEST(more_entries_with_max_inline_data)
{
	check_list_entries_with_max_inline_data(BY_CONFIGURE);
}

TEST(num_sges_counts)
{
	struct ibv_sge list[] = {side_sge(&server, 9000, 20), side_sge(&server, 500, 6), side_sge(&server, 300, 33),
				 side_sge(&server, 10, 7), side_sge(&server, 90, 1)};
	struct pair_options options = pair.options;
	struct mlx5dv_mkey *mkey;
	uint16_t entries;

	options.max_inline_data = 124; /* room for 8 entries */
	pair_replace(&pair, &options);
	mkey = side_create_mkey(&server, 4, &entries);
	assert_int_equal(entries, 4);
	for (uint16_t count = 1; count <= 4; count++) {
		note("%u entries", count);
		expect_key_reaches(lay_list(&pair.server, BY_CONFIGURE, mkey, &layout, count, list));
	}
	expect_error(configure_list(&pair.server, BY_CONFIGURE, mkey, KEY_ACCESS, 5, list), ENOMEM);
	expect_nothing_posted(&pair.server);
	expect_key_reaches(view_key(&server, mkey, &layout));
}

TEST(arguments_are_copied)
{
	struct ibv_sge list[] = {side_sge(&server, 9000, 20), side_sge(&server, 500, 6)};
	struct mlx5dv_mkey *mkey = side_create_mkey(&server, 4, NULL);

	layout_of_list(&layout, &server, 2, list);
	configure_start(&pair.server, mkey, 2);
	mlx5dv_wr_set_mkey_layout_list(pair.server.dv, 2, list);
	memset(list, 0, sizeof(list));
	mlx5dv_wr_set_mkey_access_flags(pair.server.dv, KEY_ACCESS);
	memset(list, 0xff, sizeof(list));
	configure_complete(&pair.server);
	expect_key_reaches(view_key(&server, mkey, &layout));
}
