/* SPDX-License-Identifier: BSD-2-Clause */
/* mlx5dv_wr_set_mkey_layout_list(3). docs/reference/promises.md names the cases. The server owns the keys. */
#include "support/key_checks.h"
#include "support/layout_cases.h"

static struct layout layout;

static void scatters_and_gathers(void **state)
{
	(void)state;
	check_list_scatters_and_gathers(BY_CONFIGURE);
}

static void no_layout_no_access(void **state)
{
	struct mlx5dv_mkey *mkey = side_create_mkey(&server, 4, NULL);
	struct view byte = {.side = &server, .key = mkey->lkey, .length = 1};

	(void)state;
	configure_start(&pair.server, mkey, 1);
	mlx5dv_wr_set_mkey_access_flags(pair.server.dv, KEY_ACCESS);
	configure_complete(&pair.server);
	expect_key_unusable(byte);
}

static void layout_is_replaced(void **state)
{
	struct ibv_sge first[] = {side_sge(&server, 9000, 100), side_sge(&server, 500, 60)};
	struct ibv_sge more[] = {side_sge(&server, 10, 70), side_sge(&server, 20000, 80), side_sge(&server, 9050, 90),
				 side_sge(&server, 40000, 1)};
	struct ibv_sge fewer[] = {side_sge(&server, 600, 30)};
	struct mlx5dv_mkey *mkey = side_create_mkey(&server, 4, NULL);

	(void)state;
	expect_key_reaches(lay_list(&pair.server, BY_CONFIGURE, mkey, &layout, 2, first));
	expect_key_reaches(lay_list(&pair.server, BY_CONFIGURE, mkey, &layout, 4, more));
	expect_key_reaches(lay_list(&pair.server, BY_CONFIGURE, mkey, &layout, 1, fewer));
	expect_key_reaches(lay_list(&pair.server, BY_CONFIGURE, mkey, &layout, 2, first));
}

static void replaces_interleaved(void **state)
{
	struct mlx5dv_mr_interleaved data[] = {side_interleaved(&server, 1000, 16, 16),
					       side_interleaved(&server, 30000, 5, 3)};
	struct ibv_sge list[] = {side_sge(&server, 9000, 20), side_sge(&server, 500, 6)};
	struct mlx5dv_mkey *mkey = side_create_mkey(&server, 4, NULL);

	(void)state;
	expect_key_reaches(lay_interleaved(&pair.server, BY_CONFIGURE, mkey, &layout, 7, 2, data));
	expect_key_reaches(lay_list(&pair.server, BY_CONFIGURE, mkey, &layout, 2, list));
}

static void offset_is_zero_based(void **state)
{
	(void)state;
	check_list_offset_is_zero_based(BY_CONFIGURE);
}

static void four_entries_by_default(void **state)
{
	(void)state;
	check_list_entries_by_default(BY_CONFIGURE);
}

static void more_entries_with_max_inline_data(void **state)
{
	(void)state;
	check_list_entries_with_max_inline_data(BY_CONFIGURE);
}

static void num_sges_counts(void **state)
{
	struct ibv_sge list[] = {side_sge(&server, 9000, 20), side_sge(&server, 500, 6), side_sge(&server, 300, 33),
				 side_sge(&server, 10, 7), side_sge(&server, 90, 1)};
	struct pair_options options = pair.options;
	struct mlx5dv_mkey *mkey;
	uint16_t entries;

	(void)state;
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

static void arguments_are_copied(void **state)
{
	struct ibv_sge list[] = {side_sge(&server, 9000, 20), side_sge(&server, 500, 6)};
	struct mlx5dv_mkey *mkey = side_create_mkey(&server, 4, NULL);

	(void)state;
	layout_of_list(&layout, &server, 2, list);
	configure_start(&pair.server, mkey, 2);
	mlx5dv_wr_set_mkey_layout_list(pair.server.dv, 2, list);
	memset(list, 0, sizeof(list));
	mlx5dv_wr_set_mkey_access_flags(pair.server.dv, KEY_ACCESS);
	memset(list, 0xff, sizeof(list));
	configure_complete(&pair.server);
	expect_key_reaches(view_key(&server, mkey, &layout));
}

int main(void)
{
	const struct CMUnitTest cases[] = {
		API_CASE(scatters_and_gathers),
		API_CASE(no_layout_no_access),
		API_CASE(layout_is_replaced),
		API_CASE(replaces_interleaved),
		API_CASE(offset_is_zero_based),
		API_CASE(four_entries_by_default),
		API_CASE(more_entries_with_max_inline_data),
		API_CASE(num_sges_counts),
		API_CASE(arguments_are_copied),
	};

	return run_cases("mkey_list", cases);
}
