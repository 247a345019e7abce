/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cost of a configuration with block attributes: work requests of the send queue, completions, bytes of a WQE. A table
 * of docs/use/mkeys.md lists these bytes; its rows are tested.
 */

#include "support/crypto_keys.h"
#include "support/signed_key.h"

enum { BYTES = 2 * 512, MOST_ENTRIES = 64, GROUP = 64 };

static struct layout layout;
static struct mlx5dv_mkey *mkey;

DOMAIN_CRC(crc32, CRC32, 512, 0);
DOMAIN_DIF(dif, CRC, 512, 0, 0x5678, 0xf0debc9a, 0);

static const struct mlx5dv_sig_block_attr good = {.mem = &crc32, .check_mask = 0xff};

/* ---- requests and completions ----------------------------------------------------------------------------------- */

/* Signatures of one domain take two requests of the send queue, of two domains three (mlx5-formats 4.5). */
TEST(requests_of_a_configuration)
{
	for (int domains = 1; domains <= 2; domains++) {
		struct mlx5dv_sig_block_attr attr = {.mem = &crc32, .wire = domains == 2 ? &crc32 : NULL};

		for (uint32_t wrs = 1; wrs <= 4; wrs *= 2) {
			struct pair_options options = signed_options();
			struct ibv_qp_init_attr init;
			struct ibv_qp_attr qp_attr;
			uint32_t got;

			options.max_send_wr = wrs;
			pair_replace(&pair, &options);
			expect_error(ibv_query_qp(pair.server.qp, &qp_attr, IBV_QP_CAP, &init), 0);
			got = init.cap.max_send_wr;
			mkey = side_create_signed_mkey(&server, 3);
			note("%u requests, %d domains", got, domains);
			configure_start(&pair.server, mkey, 1);
			mlx5dv_wr_set_mkey_sig_block(pair.server.dv, &attr);
			if (got <= (uint32_t)domains)
				expect_batch_refused(&pair.server, ENOMEM);
			else
				configure_complete(&pair.server);
		}
	}
}

/*
 * mlx5dv_wr_mkey_configure(3), USAGE: "If completion is requested for MKEY configuration work request it will be delivered
 * with the IBV_WC_DRIVER1 opcode": one completion, however many domains there are. With sq_sig_all an adapter has one for each
 * (mlx5-formats 4.5).
 */
static void expect_completions(bool connectx)
{
	for (int all = 0; all < 2; all++) {
		struct pair_options options = signed_options();

		options.sq_sig_all = all;
		pair_replace(&pair, &options);
		mkey = side_create_signed_mkey(&server, 3);
		for (int domains = 1; domains <= 2; domains++) {
			struct mlx5dv_sig_block_attr attr = {.mem = &crc32, .wire = domains == 2 ? &dif : NULL};

			for (int signalled = 0; signalled < 2; signalled++) {
				int expected = all ? (connectx ? domains : 1) : signalled;

				batch_start(&pair.server, CONFIGURE_WR_ID,
					    IBV_SEND_INLINE | (signalled ? IBV_SEND_SIGNALED : 0));
				mlx5dv_wr_mkey_configure(pair.server.dv, mkey, 1, &(struct mlx5dv_mkey_conf_attr){0});
				mlx5dv_wr_set_mkey_sig_block(pair.server.dv, &attr);
				batch_send(&pair.server, 9, IBV_SEND_SIGNALED, view_memory(&server, 0, 0));
				post_receive(&pair.client, 10, NULL, 0);
				expect_error(ibv_wr_complete(pair.server.ex), 0);
				for (int i = 0; i < expected; i++)
					expect_completion(&pair.server, CONFIGURE_WR_ID, IBV_WC_DRIVER1);
				expect_completion(&pair.server, 9, IBV_WC_SEND);
				expect_completion(&pair.client, 10, IBV_WC_RECV);
				expect_idle(&pair.server);
			}
		}
	}
}

TEST(completions_of_a_configuration_man)
{
	if (in_profile("man", __func__))
		expect_completions(false);
}

TEST(completions_of_a_configuration_connectx)
{
	if (in_profile("connectx", __func__))
		expect_completions(true);
}

/* Hundreds of rounds in a short queue: the entries of unsignalled SET_PSVs are freed. */
TEST(rounds_without_completions)
{
	struct pair_options options = signed_options();
	struct mlx5dv_sig_block_attr attr = {.mem = &crc32, .wire = &crc32, .check_mask = 0xff};

	options.max_send_wr = 4;
	pair_replace(&pair, &options);
	mkey = side_create_signed_mkey(&server, 3);
	for (int round = 0; round < 500; round++) {
		configure_start(&pair.server, mkey, 1);
		pair.server.ex->wr_flags = IBV_SEND_INLINE; /* sampled by the SET_PSVs: none completes */
		mlx5dv_wr_set_mkey_sig_block(pair.server.dv, &attr);
		batch_send(&pair.server, 9, IBV_SEND_SIGNALED, view_memory(&server, 0, 0));
		post_receive(&pair.client, 10, NULL, 0);
		expect_error(ibv_wr_complete(pair.server.ex), 0);
		expect_completion(&pair.server, 9, IBV_WC_SEND);
		expect_completion(&pair.client, 10, IBV_WC_RECV);
	}
	expect_idle(&pair.server);
}

/* ---- room ------------------------------------------------------------------------------------------------------- */

enum { ALONE, SIGNED, ENCRYPTED, BOTH, COLUMNS };

/* A row of the table: a layout of @least to @most entries, and the max_inline_data that it needs with each setter. */
struct room {
	bool interleaved;
	unsigned int least, most;
	unsigned int needed[COLUMNS];
};

/* "| list, 5 to 8 entries | 124 | 188 | 188 | 252 |", "| no layout | 60 | …" */
static bool parse_room(const char *line, struct room *room)
{
	char kind[16];
	int at = 0;

	*room = (struct room){.most = 0};
	if (sscanf(line, "| %15[a-z], %u to %u entries |%n", kind, &room->least, &room->most, &at) == 3 && at)
		room->interleaved = !strcmp(kind, "interleaved");
	else if (strncmp(line, "| no layout |", 13) == 0)
		at = 13;
	else
		return false;
	assert_int_equal(sscanf(line + at, " %u | %u | %u | %u |", &room->needed[ALONE], &room->needed[SIGNED],
				&room->needed[ENCRYPTED], &room->needed[BOTH]),
			 COLUMNS);
	return true;
}

static struct mlx5dv_dek *make_dek(void)
{
	struct mlx5dv_dek_init_attr attr = {.pd = server.pd, .comp_mask = MLX5DV_DEK_INIT_ATTR_CRYPTO_LOGIN};
	struct mlx5dv_dek *dek;

	plain_key(attr.key, 32);
	dek = mlx5dv_dek_create(server.context, &attr);
	assert_non_null(dek);
	return dek;
}

static struct mlx5dv_mkey *make_key(int column)
{
	struct mlx5dv_mkey_init_attr attr = {
		.pd = server.pd,
		.create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT |
				(column & SIGNED ? MLX5DV_MKEY_INIT_ATTR_FLAGS_BLOCK_SIGNATURE : 0) |
				(column & ENCRYPTED ? MLX5DV_MKEY_INIT_ATTR_FLAGS_CRYPTO : 0),
		.max_entries = MOST_ENTRIES,
	};
	struct mlx5dv_mkey *key = mlx5dv_create_mkey(&attr);

	assert_non_null(key);
	return key;
}

static void set_layout(const struct room *room, unsigned int entries)
{
	struct mlx5dv_mr_interleaved data[MOST_ENTRIES];
	struct ibv_sge sge[MOST_ENTRIES];

	for (unsigned int i = 0; i < entries; i++) {
		sge[i] = side_sge(&server, 64 * i, 16);
		data[i] = side_interleaved(&server, 64 * i, 16, 0);
	}
	if (room->interleaved)
		mlx5dv_wr_set_mkey_layout_interleaved(pair.server.dv, 1, (uint16_t)entries, data);
	else
		mlx5dv_wr_set_mkey_layout_list(pair.server.dv, (uint16_t)entries, sge);
}

/* Configures @entries with the setters of @column on a QP created with @max_inline_data. */
static int try_room(const struct room *room, unsigned int entries, int column, unsigned int max_inline_data)
{
	struct pair_options options = pair_defaults(IBV_QPT_RC);
	struct mlx5dv_dek *dek = make_dek();
	struct mlx5dv_crypto_attr crypto = {
		.encrypt_on_tx = true,
		.signature_crypto_order = MLX5DV_SIGNATURE_CRYPTO_ORDER_SIGNATURE_BEFORE_CRYPTO_ON_TX,
		.data_unit_size = MLX5DV_BLOCK_SIZE_512,
		.dek = dek,
	};
	int error;

	note("%s of %u entries, setters %d, max_inline_data %u", room->interleaved ? "interleaved" : "list", entries,
	     column, max_inline_data);
	options.max_inline_data = max_inline_data;
	pair_replace(&pair, &options);
	mkey = make_key(column);
	configure_start(&pair.server, mkey, (uint8_t)(!!entries + !!(column & SIGNED) + !!(column & ENCRYPTED)));
	if (entries)
		set_layout(room, entries);
	if (column & SIGNED)
		mlx5dv_wr_set_mkey_sig_block(pair.server.dv, &good);
	if (column & ENCRYPTED)
		mlx5dv_wr_set_mkey_crypto(pair.server.dv, &crypto);
	error = ibv_wr_complete(pair.server.ex);
	if (!error)
		expect_completion(&pair.server, CONFIGURE_WR_ID, IBV_WC_DRIVER1);
	expect_error(mlx5dv_destroy_mkey(mkey), 0);
	expect_error(mlx5dv_dek_destroy(dek), 0);
	return error;
}

static void expect_room(const struct room *room)
{
	for (int column = ALONE; column < COLUMNS; column++) {
		unsigned int needed = room->needed[column];

		expect_error(try_room(room, room->most, column, needed), 0);
		expect_error(try_room(room, room->least, column, needed), 0);
		/* A QP always has at least 60, and grows in steps of a block. */
		if (needed > 60)
			expect_error(try_room(room, room->least, column, needed - GROUP), ENOMEM);
	}
}

TEST(room_in_a_work_request)
{
	FILE *page = fopen(MKEYS_PAGE, "r");
	unsigned int rows = 0;
	struct room room;
	char line[256];

	assert_non_null(page);
	while (fgets(line, sizeof(line), page)) {
		if (!parse_room(line, &room))
			continue;
		expect_room(&room);
		rows++;
	}
	fclose(page);
	assert_true(rows >= 9);
}

/* Separate configurations need less room. */
TEST(room_one_after_the_other)
{
	struct pair_options options = pair_defaults(IBV_QPT_RC);
	struct ibv_sge pieces[3];

	cut_layout(&layout, pieces, 2 * 516);
	pair_replace(&pair, &options);
	mkey = side_create_signed_mkey(&server, 3);
	expect_error(configure_signed(mkey, 3, pieces, &good), ENOMEM);
	expect_nothing_posted(&pair.server);
	expect_error(configure_list(&pair.server, BY_CONFIGURE, mkey, KEY_ACCESS, 3, pieces), 0);
	expect_completion(&pair.server, CONFIGURE_WR_ID, IBV_WC_DRIVER1);
	configure_start(&pair.server, mkey, 1);
	mlx5dv_wr_set_mkey_sig_block(pair.server.dv, &good);
	configure_complete(&pair.server);
	expect_signed_transfer(OUT_SEND, mkey, &layout, &crc32, NULL, BYTES);
	expect_signed_transfer(IN_REMOTE_WRITE, mkey, &layout, &crc32, NULL, BYTES);
}
