/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keys beyond the man pages' examples: entries in other keys, entries without bytes, a key on each end of a request,
 * tags chosen by the program.
 */
#include "support/key_checks.h"

enum { INNER_BYTES = 100 };

static struct layout layout, other_layout, outer_layout;

/* Configures a key of @side over every other byte of INNER_BYTES * 2. */
static struct view lay_every_other_byte(struct endpoint *endpoint)
{
	struct mlx5dv_mr_interleaved entry = side_interleaved(endpoint->side, 20000, 1, 1);

	return lay_interleaved(endpoint, BY_CONFIGURE, side_create_mkey(endpoint->side, 4, NULL), &other_layout,
			       INNER_BYTES, 1, &entry);
}

/* The source and sink of one message both have layouts: neither is copied as one piece. */
TEST(key_on_both_ends)
{
	struct ibv_sge list[] = {side_sge(&client, 9000, 20), side_sge(&client, 100, 12), side_sge(&client, 50000, 68)};
	struct view source = lay_list(&pair.client, BY_CONFIGURE, side_create_mkey(&client, 4, NULL), &layout, 3, list);
	struct view sink = lay_every_other_byte(&pair.server);

	assert_int_equal(source.length, sink.length);
	expect_send(&pair, source, sink, IBV_WC_SUCCESS, IBV_WC_SUCCESS);
	expect_write(&pair, source, sink, IBV_WC_SUCCESS);
	expect_read(&pair, source, sink, IBV_WC_SUCCESS);
	expect_send(&pair, view_part(source, 7, 41), view_part(sink, 3, 41), IBV_WC_SUCCESS, IBV_WC_SUCCESS);
	expect_write(&pair, view_part(source, 31, 2), view_part(sink, 98, 2), IBV_WC_SUCCESS);
	expect_fetch_add(&pair, view_part(source, 16, 8), view_part(sink, 24, 8), IBV_WC_SUCCESS);
}

/* Lists the second half of the inner key, then the first. */
TEST(list_in_a_key)
{
	struct view inner = lay_every_other_byte(&pair.server);
	struct ibv_sge halves[] = {{.addr = 50, .length = 50, .lkey = inner.key}, {.length = 50, .lkey = inner.key}};
	struct mlx5dv_mkey *mkey = side_create_mkey(&server, 4, NULL);

	expect_error(configure_list(&pair.server, BY_CONFIGURE, mkey, KEY_ACCESS, 2, halves), 0);
	expect_completion(&pair.server, CONFIGURE_WR_ID, IBV_WC_DRIVER1);
	outer_layout.length = INNER_BYTES;
	for (int i = 0; i < INNER_BYTES; i++)
		outer_layout.at[i] = other_layout.at[(i + 50) % INNER_BYTES];
	expect_key_reaches(view_key(&server, mkey, &outer_layout));
}

/*
 * Interleaves two blocks of five bytes of the inner key, starting at its third byte, with one word of plain memory
 * each.
 */
TEST(interleaved_in_a_key)
{
	struct view inner = lay_every_other_byte(&pair.server);
	struct mlx5dv_mr_interleaved data[] = {
		{.addr = 3, .bytes_count = 2, .bytes_skip = 3, .lkey = inner.key},
		side_interleaved(&server, 40000, 8, 0),
	};
	struct mlx5dv_mkey *mkey = side_create_mkey(&server, 4, NULL);

	expect_error(configure_interleaved(&pair.server, BY_CONFIGURE, mkey, KEY_ACCESS, 10, 2, data), 0);
	expect_completion(&pair.server, CONFIGURE_WR_ID, IBV_WC_DRIVER1);
	outer_layout.length = 0;
	for (uint32_t i = 0; i < 10; i++) {
		for (uint32_t b = 0; b < 2; b++)
			outer_layout.at[outer_layout.length++] = other_layout.at[3 + 5 * i + b];
		for (uint32_t b = 0; b < 8; b++)
			outer_layout.at[outer_layout.length++] = 40000 + 8 * i + b;
	}
	expect_key_reaches(view_key(&server, mkey, &outer_layout));
}

/* Pieces without bytes are not part of the layout, whatever their key. */
TEST(empty_pieces)
{
	struct ibv_sge list[] = {
		side_sge(&server, 30000, 0), side_sge(&server, 9000, 8), {0}, side_sge(&server, 100, 8)};
	struct mlx5dv_mkey *mkey = side_create_mkey(&server, 4, NULL);

	expect_key_reaches(lay_list(&pair.server, BY_CONFIGURE, mkey, &layout, 4, list));
}

/* MLX5DV_MKEY_INIT_ATTR_FLAGS_UPDATE_TAG: the program chooses the low byte, and the previous key becomes stale. */
TEST(tag_of_a_live_key)
{
	struct mlx5dv_mkey_init_attr attr = {
		.pd = server.pd,
		.create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT | MLX5DV_MKEY_INIT_ATTR_FLAGS_UPDATE_TAG,
		.max_entries = 4,
	};
	struct mlx5dv_mkey *mkey = mlx5dv_create_mkey(&attr);
	struct view before, after;

	assert_non_null(mkey);
	before = lay_sample(mkey, &layout);
	expect_key_reaches(before);
	mkey->lkey |= 0x77;
	mkey->rkey = mkey->lkey;
	after = lay_sample(mkey, &layout);
	assert_int_equal(after.key, before.key | 0x77);
	expect_key_reaches(after);
	expect_key_unusable(before);
	expect_error(mlx5dv_destroy_mkey(mkey), 0);
}
