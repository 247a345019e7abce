/* SPDX-License-Identifier: BSD-2-Clause */
/* Cases for both ways of laying out a key, see layout_cases.h; docs/reference/promises.md names them. */
#include "support/layout_cases.h"

static struct layout layout;

/* Runs WRITE, READ, SEND and RECV over all of @key. */
static void move_both_ways(struct view key)
{
	struct view memory = view_memory(&client, 5, key.length);

	expect_write(&pair, memory, key, IBV_WC_SUCCESS);
	expect_read(&pair, memory, key, IBV_WC_SUCCESS);
	expect_send(&pair, key, memory, IBV_WC_SUCCESS, IBV_WC_SUCCESS);
	expect_send(&pair, memory, key, IBV_WC_SUCCESS, IBV_WC_SUCCESS);
}

/* Checks that [@offset, +@length) of @key, and its bytes on the client, are transferred, or rejected on both ends. */
static void reach(struct view key, uint64_t offset, size_t length, bool success)
{
	struct view part = view_part(key, (int64_t)offset, length), memory = view_memory(&client, 77, length);

	note("offset %#lx, length %zu of %zu", offset, length, key.length);
	expect_write(&pair, memory, part, success ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR);
	expect_send(&pair, part, memory, success ? IBV_WC_SUCCESS : IBV_WC_LOC_PROT_ERR, IBV_WC_SUCCESS);
}

/* ---- lists -------------------------------------------------------------------------------------------------- */

void check_list_scatters_and_gathers(enum way way)
{
	/* A key needs only local rights of the regions under it. */
	struct ibv_mr *low = side_register(&server, 0, 30000, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_mr *high = side_register(&server, 30000, 30000, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_sge list[] = {
		{side_address(&server, 20000), 1, low->lkey},
		{side_address(&server, 50001), 13, high->lkey},
		{side_address(&server, 99), 64, low->lkey},
		{side_address(&server, 40000), 4096, high->lkey},
	};
	struct ibv_sge overlapping[] = {
		{side_address(&server, 100), 64, low->lkey},
		{side_address(&server, 36000), 64, high->lkey},
		{side_address(&server, 120), 64, low->lkey},
		{side_address(&server, 100), 1, low->lkey},
	};
	struct mlx5dv_mkey *mkey = side_create_mkey(&server, 4, NULL);
	struct view key;

	for (uint16_t count = 1; count <= 4; count++) {
		note("%u entries", count);
		move_both_ways(lay_list(&pair.server, way, mkey, &layout, count, list));
	}
	note("overlapping entries");
	key = lay_list(&pair.server, way, mkey, &layout, 4, overlapping);
	expect_read(&pair, view_memory(&client, 0, key.length), key, IBV_WC_SUCCESS);
	expect_send(&pair, key, view_memory(&client, 0, key.length), IBV_WC_SUCCESS, IBV_WC_SUCCESS);
}

void check_list_offset_is_zero_based(enum way way)
{
	struct ibv_sge list[] = {side_sge(&server, 9000, 7), side_sge(&server, 100, 16), side_sge(&server, 4095, 5)};
	struct mlx5dv_mkey *mkey = side_create_mkey(&server, 4, NULL);
	struct view key = lay_list(&pair.server, way, mkey, &layout, 3, list);
	const size_t total = 28, borders[] = {0, 7, 23, 28};

	assert_int_equal(key.length, total);
	for (size_t b = 0; b < ARRAY_SIZE(borders); b++)
		for (size_t offset = borders[b] ? borders[b] - 1 : 0; offset <= borders[b] + 1; offset++) {
			reach(key, offset, 1, offset < total);
			reach(key, offset, 2, offset + 2 <= total);
			if (offset < total)
				reach(key, offset, total - offset, true);
			if (offset <= total)
				reach(key, offset, total + 1 - offset, false);
		}
	reach(key, UINT64_MAX, 1, false);
	reach(key, UINT64_MAX, 2, false);
	reach(key, list[0].addr, 1, false);
}

/* Makes @count entries of unequal length at different places. */
static void make_list(struct ibv_sge *list, uint16_t count)
{
	for (uint16_t i = 0; i < count; i++)
		list[i] = side_sge(&server, 200 * (size_t)(count - i), 10 + i);
}

static void list_of_most(enum way way, uint16_t most)
{
	struct mlx5dv_mkey *mkey = side_create_mkey(&server, most + 1, NULL);
	struct ibv_sge list[64];
	struct view key;

	note("%u entries", most);
	make_list(list, most + 1);
	key = lay_list(&pair.server, way, mkey, &layout, most, list);
	move_both_ways(key);
	expect_error(configure_list(&pair.server, way, mkey, 0, most + 1, list), ENOMEM);
	expect_nothing_posted(&pair.server);
	move_both_ways(key);
}

void check_list_entries_by_default(enum way way)
{
	list_of_most(way, 4);
}

void check_list_entries_with_max_inline_data(enum way way)
{
	static const uint32_t asked[] = {124, 252, 508};
	struct pair_options options = pair.options;

	for (size_t i = 0; i < ARRAY_SIZE(asked); i++) {
		options.max_inline_data = asked[i];
		pair_replace(&pair, &options);
		assert_true(pair.server.cap.max_inline_data >= asked[i]);
		list_of_most(way, (uint16_t)((pair.server.cap.max_inline_data + 4) / 16));
	}
}

/* ---- interleaved -------------------------------------------------------------------------------------------- */

void check_interleaved_scatters_and_gathers(enum way way)
{
	static const struct {
		uint32_t bytes[3], skip[3];
	} patterns[] = {{{1, 7, 512}, {0, 4, 1000}}, {{512, 1, 7}, {4, 1000, 0}}, {{7, 512, 1}, {1000, 0, 4}}};
	static const uint32_t repeats[] = {1, 2, 100};
	/* Room for 100 blocks of each entry; the first entry is placed after the second. */
	static const size_t starts[] = {160001, 0, 330000};
	struct ibv_mr *low = side_register(&server, 0, 320000, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_mr *high = side_register(&server, 320000, INTERLEAVED_MEMORY - 320000, IBV_ACCESS_LOCAL_WRITE);
	const uint32_t lkeys[] = {low->lkey, low->lkey, high->lkey};
	struct mlx5dv_mkey *mkey = side_create_mkey(&server, 4, NULL);

	for (size_t p = 0; p < ARRAY_SIZE(patterns); p++)
		for (uint16_t count = 1; count <= 3; count++)
			for (size_t r = 0; r < ARRAY_SIZE(repeats); r++) {
				struct mlx5dv_mr_interleaved data[3];
				struct view key;

				for (int e = 0; e < 3; e++)
					data[e] = (struct mlx5dv_mr_interleaved){side_address(&server, starts[e]),
										 patterns[p].bytes[e],
										 patterns[p].skip[e], lkeys[e]};
				note("pattern %zu, %u entries, %u times", p, count, repeats[r]);
				key = lay_interleaved(&pair.server, way, mkey, &layout, repeats[r], count, data);
				move_both_ways(key);
				if (key.length > 8)
					move_both_ways(view_part(key, 3, key.length - 5));
			}
}

void check_interleaved_repeat_count(enum way way)
{
	static const uint32_t repeats[] = {1, 2, 1000};
	struct mlx5dv_mr_interleaved data[] = {side_interleaved(&server, 20000, 8, 3),
					       side_interleaved(&server, 64, 5, 3)};
	struct mlx5dv_mkey *mkey = side_create_mkey(&server, 4, NULL);
	struct view byte = view_memory(&client, 0, 1), key;

	for (size_t r = 0; r < ARRAY_SIZE(repeats); r++) {
		note("%u times", repeats[r]);
		key = lay_interleaved(&pair.server, way, mkey, &layout, repeats[r], 2, data);
		assert_int_equal(key.length, 13 * repeats[r]);
		move_both_ways(key);
		expect_read(&pair, byte, view_part(key, (int64_t)key.length - 1, 1), IBV_WC_SUCCESS);
		expect_read(&pair, byte, view_part(key, (int64_t)key.length, 1), IBV_WC_REM_ACCESS_ERR);
	}
	note("0 times");
	key = lay_interleaved(&pair.server, way, mkey, &layout, 0, 2, data);
	expect_read(&pair, byte, view_part(key, 0, 1), IBV_WC_REM_ACCESS_ERR);
	expect_write(&pair, byte, view_part(key, 0, 1), IBV_WC_REM_ACCESS_ERR);
	expect_send(&pair, view_part(key, 0, 1), byte, IBV_WC_LOC_PROT_ERR, IBV_WC_SUCCESS);
}

static void make_pattern(struct mlx5dv_mr_interleaved *data, uint16_t count)
{
	for (uint16_t i = 0; i < count; i++)
		data[i] = side_interleaved(&server, 200 * (size_t)(count - i), 10 + i, 3);
}

static void interleaved_of_most(enum way way, uint16_t most)
{
	struct mlx5dv_mkey *mkey = side_create_mkey(&server, most + 2, NULL);
	struct mlx5dv_mr_interleaved data[64];
	struct view key;

	note("%u entries", most);
	make_pattern(data, most + 1);
	key = lay_interleaved(&pair.server, way, mkey, &layout, 3, most, data);
	move_both_ways(key);
	expect_error(configure_interleaved(&pair.server, way, mkey, 0, 3, most + 1, data), ENOMEM);
	expect_nothing_posted(&pair.server);
	move_both_ways(key);
}

void check_interleaved_entries_by_default(enum way way)
{
	interleaved_of_most(way, 3);
}

void check_interleaved_entries_with_max_inline_data(enum way way)
{
	static const uint32_t asked[] = {124, 252};
	struct pair_options options = pair.options;

	for (size_t i = 0; i < ARRAY_SIZE(asked); i++) {
		options.max_inline_data = asked[i];
		pair_replace(&pair, &options);
		assert_true(pair.server.cap.max_inline_data >= asked[i]);
		interleaved_of_most(way, (uint16_t)((pair.server.cap.max_inline_data + 4) / 16 - 1));
	}
}

void check_interleaved_header_takes_an_entry(enum way way)
{
	struct pair_options options = pair.options;
	struct mlx5dv_mr_interleaved data[8];
	struct mlx5dv_mkey *of_four, *of_eight;
	uint16_t got;

	make_pattern(data, 8);
	options.max_inline_data = 8 * 16 - 4;
	pair_replace(&pair, &options);
	of_four = side_create_mkey(&server, 4, &got);
	assert_int_equal(got, 4);
	of_eight = side_create_mkey(&server, 8, &got);
	assert_int_equal(got, 8);
	move_both_ways(lay_interleaved(&pair.server, way, of_eight, &layout, 2, 7, data));
	move_both_ways(lay_interleaved(&pair.server, way, of_four, &layout, 2, 3, data));

	/* The library counts the entries only, the device also the header (mlx5-formats 4.3, 6 no. 41). */
	expect_error(configure_interleaved(&pair.server, way, of_four, 0, 2, 4, data), 0);
	expect_status(&pair.server, CONFIGURE_WR_ID, IBV_WC_MW_BIND_ERR);
	expect_state(&pair.server, IBV_QPS_ERR);
	pair_renew(&pair);
	move_both_ways(view_key(&server, of_four, &layout));

	expect_error(configure_interleaved(&pair.server, way, of_four, 0, 2, 5, data), ENOMEM);
	expect_nothing_posted(&pair.server);
	move_both_ways(view_key(&server, of_four, &layout));
}
