/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The builder of mlx5dv_wr_mkey_configure(3) and its setters: number, order and attributes. docs/reference/promises.md
 * names the cases. The server owns the keys.
 */
#include "support/key_checks.h"

enum {
	BUILDER_FLAGS = IBV_SEND_INLINE | IBV_SEND_SIGNALED,
	SEND_ID = 0x5e,
	WRITE_ID = 0x31,
	RECEIVE_ID = 0x4e,
};

enum setter { SET_ACCESS, SET_LIST, SET_INTERLEAVED, SETTERS };

static struct layout layout;
static struct mlx5dv_mkey_conf_attr no_attributes;

/* Calls one setter. Each would change a key of lay_sample(). */
static void call_setter(struct endpoint *endpoint, enum setter setter)
{
	struct ibv_sge list[] = {side_sge(&server, 40000, 500)};
	struct mlx5dv_mr_interleaved data[] = {side_interleaved(&server, 30000, 16, 16)};

	switch (setter) {
	case SET_ACCESS:
		mlx5dv_wr_set_mkey_access_flags(endpoint->dv, IBV_ACCESS_REMOTE_ATOMIC);
		break;
	case SET_LIST:
		mlx5dv_wr_set_mkey_layout_list(endpoint->dv, 1, list);
		break;
	default:
		mlx5dv_wr_set_mkey_layout_interleaved(endpoint->dv, 5, 1, data);
	}
}

TEST(too_few_setters_man)
{
	struct mlx5dv_mkey *mkey;
	struct view key;

	if (!in_profile("man", __func__))
		return;
	mkey = side_create_mkey(&server, 4, NULL);
	key = lay_sample(mkey, &layout);
	for (enum setter setter = 0; setter < SETTERS; setter++) {
		note("setter %d", setter);
		batch_start(&pair.server, 0, 0);
		batch_send(&pair.server, SEND_ID, IBV_SEND_SIGNALED, view_memory(&server, 0, 8));
		pair.server.ex->wr_flags = BUILDER_FLAGS;
		mlx5dv_wr_mkey_configure(pair.server.dv, mkey, 2, &no_attributes);
		call_setter(&pair.server, setter);
		expect_batch_refused(&pair.server, EINVAL);
		expect_key_reaches(key);

		configure_start(&pair.server, mkey, 2);
		call_setter(&pair.server, setter);
		batch_send(&pair.server, SEND_ID, IBV_SEND_SIGNALED, view_memory(&server, 0, 8));
		expect_batch_refused(&pair.server, EINVAL);
		expect_key_reaches(key);
	}
	expect_key_reaches(lay_sample(mkey, &layout));
}

TEST(too_few_setters_connectx)
{
	struct ibv_sge receive = side_sge(&client, 0, 8);
	struct view sent = view_memory(&server, 300, 8), received = view_memory(&client, 0, 8);
	struct mlx5dv_mkey *mkey;
	struct view key;

	if (!in_profile("connectx", __func__))
		return;
	mkey = side_create_mkey(&server, 4, NULL);
	key = lay_sample(mkey, &layout);
	for (enum setter setter = 0; setter < SETTERS; setter++) {
		note("setter %d", setter);
		configure_start(&pair.server, mkey, 2);
		call_setter(&pair.server, setter);
		expect_error(ibv_wr_complete(pair.server.ex), 0);
		expect_nothing_posted(&pair.server);
		expect_key_reaches(key);

		for (int after = 0; after < 2; after++) {
			post_receive(&pair.client, RECEIVE_ID, &receive, 1);
			ibv_wr_start(pair.server.ex);
			if (!after)
				batch_send(&pair.server, SEND_ID, IBV_SEND_SIGNALED, sent);
			pair.server.ex->wr_flags = BUILDER_FLAGS;
			mlx5dv_wr_mkey_configure(pair.server.dv, mkey, 2, &no_attributes);
			call_setter(&pair.server, setter);
			if (after)
				batch_send(&pair.server, SEND_ID, IBV_SEND_SIGNALED, sent);
			expect_error(ibv_wr_complete(pair.server.ex), 0);
			expect_completion(&pair.server, SEND_ID, IBV_WC_SEND);
			expect_idle(&pair.server);
			expect_completion(&pair.client, RECEIVE_ID, IBV_WC_RECV);
			model_copy(&sent, &received);
			expect_key_reaches(key);
		}
	}
	expect_key_reaches(lay_sample(mkey, &layout));
}

TEST(too_many_setters)
{
	struct mlx5dv_mkey *mkey = side_create_mkey(&server, 4, NULL);
	struct view key = lay_sample(mkey, &layout);

	configure_start(&pair.server, mkey, 1);
	call_setter(&pair.server, SET_ACCESS);
	call_setter(&pair.server, SET_LIST);
	expect_batch_refused(&pair.server, EINVAL);
	expect_key_reaches(key);
	for (enum setter setter = 0; setter < SETTERS; setter++) {
		note("setter %d", setter);
		configure_start(&pair.server, mkey, 0);
		call_setter(&pair.server, setter);
		expect_batch_refused(&pair.server, EINVAL);
		expect_key_reaches(key);
	}
}

/* Configures @mkey with up to three setters, in this order or with the list first. */
static void configure_in_order(struct mlx5dv_mkey *mkey, bool rights, bool list, bool list_first)
{
	struct ibv_sge entries[] = {side_sge(&server, 9000, 100), side_sge(&server, 500, 60)};

	configure_start(&pair.server, mkey, rights + list);
	if (rights && !list_first)
		mlx5dv_wr_set_mkey_access_flags(pair.server.dv, KEY_ACCESS);
	if (list)
		mlx5dv_wr_set_mkey_layout_list(pair.server.dv, 2, entries);
	if (rights && list_first)
		mlx5dv_wr_set_mkey_access_flags(pair.server.dv, KEY_ACCESS);
	configure_complete(&pair.server);
	layout_of_list(&layout, &server, 2, entries);
}

TEST(setters_are_optional)
{
	struct mlx5dv_mkey *mkey[4];

	for (int i = 0; i < 4; i++)
		mkey[i] = side_create_mkey(&server, 4, NULL);
	configure_in_order(mkey[0], true, false, false);
	expect_key_unusable(view_key(&server, mkey[0], &layout));
	configure_in_order(mkey[0], false, true, false);
	configure_in_order(mkey[1], false, true, false);
	expect_write(&pair, client_memory(1), view_part(view_key(&server, mkey[1], &layout), 0, 1),
		     IBV_WC_REM_ACCESS_ERR);
	configure_in_order(mkey[1], true, false, false);
	configure_in_order(mkey[2], true, true, false);
	configure_in_order(mkey[3], true, true, true);
	for (int i = 0; i < 4; i++) {
		note("key %d", i);
		expect_key_reaches(view_key(&server, mkey[i], &layout));
	}
}

TEST(zero_setters)
{
	struct mlx5dv_mkey *mkey = side_create_mkey(&server, 4, NULL), *bare = side_create_mkey(&server, 4, NULL);
	struct view key = lay_sample(mkey, &layout), target = client_memory(key.length);

	configure_start(&pair.server, mkey, 0);
	batch_write(&pair.server, WRITE_ID, IBV_SEND_SIGNALED, key, target);
	expect_error(ibv_wr_complete(pair.server.ex), 0);
	expect_completion(&pair.server, CONFIGURE_WR_ID, IBV_WC_DRIVER1);
	expect_completion(&pair.server, WRITE_ID, IBV_WC_RDMA_WRITE);
	expect_idle(&pair.server);
	model_copy(&key, &target);
	side_compare(&client);
	side_compare(&server);
	expect_key_reaches(key);

	configure_start(&pair.server, bare, 0);
	configure_complete(&pair.server);
	expect_key_unusable(view_key(&server, bare, &layout));
}

TEST(setter_called_twice)
{
	struct mlx5dv_mkey *mkey = side_create_mkey(&server, 4, NULL);

	for (enum setter setter = 0; setter < SETTERS; setter++) {
		struct view key = lay_sample(mkey, &layout);

		note("setter %d", setter);
		configure_start(&pair.server, mkey, 2);
		call_setter(&pair.server, setter);
		call_setter(&pair.server, setter);
		expect_batch_refused(&pair.server, EINVAL);
		expect_key_reaches(key);

		configure_start(&pair.server, mkey, 1);
		call_setter(&pair.server, setter);
		mlx5dv_wr_mkey_configure(pair.server.dv, mkey, 1, &no_attributes);
		call_setter(&pair.server, setter);
		expect_error(ibv_wr_complete(pair.server.ex), 0);
		expect_completion(&pair.server, CONFIGURE_WR_ID, IBV_WC_DRIVER1);
		expect_completion(&pair.server, CONFIGURE_WR_ID, IBV_WC_DRIVER1);
		expect_idle(&pair.server);
	}
}

TEST(two_layouts_refused)
{
	struct mlx5dv_mkey *mkey = side_create_mkey(&server, 4, NULL);
	struct view key = lay_sample(mkey, &layout);

	for (enum setter first = SET_LIST; first <= SET_INTERLEAVED; first++) {
		note("layout setter %d first", first);
		configure_start(&pair.server, mkey, 2);
		call_setter(&pair.server, first);
		call_setter(&pair.server, SET_LIST + SET_INTERLEAVED - first);
		expect_batch_refused(&pair.server, EINVAL);
		expect_key_reaches(key);
	}
}

TEST(setter_without_builder)
{
	struct mlx5dv_mkey *mkey = side_create_mkey(&server, 4, NULL);
	struct view key = lay_sample(mkey, &layout);
	struct pair other;

	pair_open(&other, &client, &server, &pair.options);
	for (enum setter setter = 0; setter < SETTERS; setter++) {
		note("setter %d", setter);
		batch_start(&pair.server, SEND_ID, BUILDER_FLAGS);
		call_setter(&pair.server, setter);
		expect_batch_refused(&pair.server, EINVAL);

		configure_start(&other.server, mkey, 1);
		batch_start(&pair.server, SEND_ID, BUILDER_FLAGS);
		call_setter(&pair.server, setter);
		expect_batch_refused(&pair.server, EINVAL);
		mlx5dv_wr_set_mkey_access_flags(other.server.dv, KEY_ACCESS);
		configure_complete(&other.server);
		expect_key_reaches(key);
	}
	pair_close(&other);
}

TEST(inline_flag_required)
{
	struct mlx5dv_mkey *mkey = side_create_mkey(&server, 4, NULL);
	struct view key = lay_sample(mkey, &layout);

	for (int later = 0; later < 2; later++) {
		note("set between builder and setters: %d", later);
		batch_start(&pair.server, CONFIGURE_WR_ID, IBV_SEND_SIGNALED);
		mlx5dv_wr_mkey_configure(pair.server.dv, mkey, 2, &no_attributes);
		if (later)
			pair.server.ex->wr_flags = BUILDER_FLAGS;
		call_setter(&pair.server, SET_ACCESS);
		call_setter(&pair.server, SET_LIST);
		expect_batch_refused(&pair.server, EOPNOTSUPP);
		expect_key_reaches(key);
	}
}

TEST(unknown_attributes)
{
	static const struct mlx5dv_mkey_conf_attr unknown[] = {
		{.conf_flags = MLX5DV_MKEY_CONF_FLAG_RESET_SIG_ATTR << 1},
		{.conf_flags = UINT32_C(1) << 31},
		{.conf_flags = MLX5DV_MKEY_CONF_FLAG_RESET_SIG_ATTR | 4},
		{.comp_mask = 1},
		{.comp_mask = UINT64_C(1) << 63},
	};
	struct mlx5dv_mkey *mkey = side_create_mkey(&server, 4, NULL);
	struct mlx5dv_mkey_conf_attr attr = {0};
	struct view key = lay_sample(mkey, &layout);

	for (size_t i = 0; i < ARRAY_SIZE(unknown); i++) {
		note("attributes %zu", i);
		attr = unknown[i];
		batch_start(&pair.server, CONFIGURE_WR_ID, BUILDER_FLAGS);
		mlx5dv_wr_mkey_configure(pair.server.dv, mkey, 1, &attr);
		call_setter(&pair.server, SET_ACCESS);
		expect_batch_refused(&pair.server, EOPNOTSUPP);
		expect_key_reaches(key);
	}
	attr = (struct mlx5dv_mkey_conf_attr){0};
	batch_start(&pair.server, CONFIGURE_WR_ID, BUILDER_FLAGS);
	mlx5dv_wr_mkey_configure(pair.server.dv, mkey, 1, &attr);
	memset(&attr, 0xff, sizeof(attr));
	mlx5dv_wr_set_mkey_access_flags(pair.server.dv, KEY_ACCESS);
	configure_complete(&pair.server);
	expect_key_reaches(key);
}

TEST(reset_sig_attr_on_plain_key)
{
	struct mlx5dv_mkey_conf_attr attr = {.conf_flags = MLX5DV_MKEY_CONF_FLAG_RESET_SIG_ATTR};
	struct mlx5dv_mkey *mkey = side_create_mkey(&server, 4, NULL);
	struct view key = lay_sample(mkey, &layout);

	batch_start(&pair.server, CONFIGURE_WR_ID, BUILDER_FLAGS);
	mlx5dv_wr_mkey_configure(pair.server.dv, mkey, 0, &attr);
	configure_complete(&pair.server);
	expect_key_reaches(key);
}
