/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mlx5dv_wr_mkey_configure(3): the request, its effect on a key, and the use of the key. docs/reference/promises.md
 * names the cases. The server owns the keys. mkey_setters.c has the errors of the builder and its setters.
 */
#include "support/key_checks.h"

enum { WRITE_ID = 0x31 };

static struct layout layout, second_layout;
static struct mlx5dv_mkey_conf_attr no_attributes;

TEST(configures_an_existing_key)
{
	struct mlx5dv_mkey *mkey = side_create_mkey(&server, 4, NULL), *other = side_create_mkey(&server, 4, NULL);
	struct mlx5dv_mkey created = *mkey, other_created = *other;
	struct ibv_sge list[] = {side_sge(&server, 9000, 100), side_sge(&server, 500, 60)};
	struct view key;

	configure_start(&pair.server, mkey, 2);
	mlx5dv_wr_set_mkey_access_flags(pair.server.dv,
					IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_LOCAL_WRITE);
	mlx5dv_wr_set_mkey_layout_list(pair.server.dv, 2, list);
	configure_complete(&pair.server);
	layout_of_list(&layout, &server, 2, list);
	key = view_key(&server, mkey, &layout);
	expect_write(&pair, client_memory(160), key, IBV_WC_SUCCESS);
	expect_read(&pair, client_memory(160), key, IBV_WC_SUCCESS);
	expect_key_unusable(view_key(&server, other, &layout));
	assert_memory_equal(mkey, &created, sizeof(created));
	assert_memory_equal(other, &other_created, sizeof(other_created));
}

TEST(mixes_with_ibv_wr)
{
	struct mlx5dv_mkey *mkey = side_create_mkey(&server, 4, NULL);
	struct ibv_sge list[] = {side_sge(&server, 9000, 100), side_sge(&server, 500, 60)};
	struct view written = view_memory(&client, 2000, 160), back = view_memory(&server, 20000, 160);
	struct view last = view_memory(&server, 300, 8), received = view_memory(&client, 0, 8);
	struct ibv_sge receive[] = {side_sge(&client, 100, 8), side_sge(&client, 0, 8)};
	struct endpoint *end = &pair.server;
	char first[8] = "a batch";
	struct view key;

	layout_of_list(&layout, &server, 2, list);
	key = view_key(&server, mkey, &layout);
	post_receive(&pair.client, 1, &receive[0], 1);
	post_receive(&pair.client, 2, &receive[1], 1);

	batch_start(end, 1, IBV_SEND_INLINE);
	ibv_wr_send(end->ex);
	ibv_wr_set_inline_data(end->ex, first, sizeof(first));
	end->ex->wr_id = 2;
	mlx5dv_wr_mkey_configure(end->dv, mkey, 2, &no_attributes);
	mlx5dv_wr_set_mkey_access_flags(end->dv, 0);
	mlx5dv_wr_set_mkey_layout_list(end->dv, 2, list);
	batch_write(end, 3, 0, key, written);
	end->ex->wr_id = 4;
	ibv_wr_rdma_read(end->ex, written.key, written.address);
	ibv_wr_set_sge(end->ex, back.key, back.address, (uint32_t)back.length);
	batch_send(end, 5, IBV_SEND_SIGNALED, last);
	expect_error(ibv_wr_complete(end->ex), 0);

	expect_completion(end, 5, IBV_WC_SEND);
	expect_idle(end);
	expect_completion(&pair.client, 1, IBV_WC_RECV);
	expect_completion(&pair.client, 2, IBV_WC_RECV);
	memcpy(client.expected + 100, first, sizeof(first));
	model_copy(&key, &written);
	model_copy(&written, &back);
	model_copy(&last, &received);
}

/* READs all ranges from both keys, which hold the same bytes. */
static void expect_same(struct view one, struct view other)
{
	for (size_t offset = 0; offset < one.length; offset++)
		for (size_t length = 0; length < one.length; length++) {
			enum ibv_wc_status status =
				offset + length <= one.length ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR;

			note("offset %zu, length %zu", offset, length);
			expect_read(&pair, client_memory(length), view_part(one, (int64_t)offset, length), status);
			expect_read(&pair, client_memory(length), view_part(other, (int64_t)offset, length), status);
		}
}

TEST(same_as_wr_mr_calls)
{
	struct ibv_sge list[] = {side_sge(&server, 600, 1), side_sge(&server, 90, 6), side_sge(&server, 400, 4)};
	struct mlx5dv_mr_interleaved data[] = {side_interleaved(&server, 1000, 3, 2),
					       side_interleaved(&server, 50, 1, 7)};
	struct mlx5dv_mkey *one = side_create_mkey(&server, 4, NULL), *other = side_create_mkey(&server, 4, NULL);

	expect_same(lay_list(&pair.server, BY_MR_CALL, one, &layout, 3, list),
		    lay_list(&pair.server, BY_CONFIGURE, other, &second_layout, 3, list));
	expect_same(lay_interleaved(&pair.server, BY_MR_CALL, one, &layout, 3, 2, data),
		    lay_interleaved(&pair.server, BY_CONFIGURE, other, &second_layout, 3, 2, data));
}

/* Each builder needs its own flag: with all other flags set the QP does not offer it. */
TEST(qp_needs_the_flag)
{
	static const uint64_t others[] = {0,
					  MLX5DV_QP_EX_WITH_MR_LIST,
					  MLX5DV_QP_EX_WITH_MR_INTERLEAVED,
					  MLX5DV_QP_EX_WITH_RAW_WQE,
					  MLX5DV_QP_EX_WITH_MEMCPY,
					  MLX5DV_QP_EX_WITH_MR_LIST | MLX5DV_QP_EX_WITH_MR_INTERLEAVED |
						  MLX5DV_QP_EX_WITH_RAW_WQE | MLX5DV_QP_EX_WITH_MEMCPY};
	struct pair_options options = pair.options;
	struct mlx5dv_mkey *mkey;
	struct view key;

	if (!in_profile("man", __func__))
		return;
	mkey = side_create_mkey(&server, 4, NULL);
	key = lay_sample(mkey, &layout);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		note("send_ops_flags %#llx", (unsigned long long)others[i]);
		options.dv_send_ops = others[i];
		pair_replace(&pair, &options);
		configure_start(&pair.server, mkey, 1);
		mlx5dv_wr_set_mkey_access_flags(pair.server.dv, 0);
		expect_batch_refused(&pair.server, EOPNOTSUPP);
		expect_key_reaches(key);
	}
	options.dv_send_ops = MLX5DV_QP_EX_WITH_MKEY_CONFIGURE;
	pair_replace(&pair, &options);
	expect_key_reaches(lay_sample(mkey, &layout));
}

/* mlx5-formats 4.2: an adapter's library requires any of the three. */
TEST(any_key_flag_in_connectx)
{
	static const uint64_t flags[] = {MLX5DV_QP_EX_WITH_MR_LIST, MLX5DV_QP_EX_WITH_MR_INTERLEAVED,
					 MLX5DV_QP_EX_WITH_MKEY_CONFIGURE};
	struct pair_options options = pair.options;
	struct mlx5dv_mkey *mkey;

	if (!in_profile("connectx", __func__))
		return;
	mkey = side_create_mkey(&server, 4, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		options.dv_send_ops = flags[i];
		pair_replace(&pair, &options);
		expect_key_reaches(lay_sample(mkey, &layout));
	}
}

static void set_rights_alone(struct mlx5dv_mkey *mkey, uint32_t access)
{
	configure_start(&pair.server, mkey, 1);
	mlx5dv_wr_set_mkey_access_flags(pair.server.dv, access);
	configure_complete(&pair.server);
}

TEST(reconfigure_replaces_the_named_parts)
{
	struct mlx5dv_mkey *mkey = side_create_mkey(&server, 4, NULL);
	struct ibv_sge list[] = {side_sge(&server, 30000, 77)};
	struct view key = lay_sample(mkey, &layout), memory = client_memory(key.length);

	set_rights_alone(mkey, IBV_ACCESS_REMOTE_READ);
	expect_read(&pair, memory, key, IBV_WC_SUCCESS);
	expect_write(&pair, memory, key, IBV_WC_REM_ACCESS_ERR);
	set_rights_alone(mkey, IBV_ACCESS_REMOTE_WRITE);
	expect_write(&pair, memory, key, IBV_WC_SUCCESS);
	expect_read(&pair, memory, key, IBV_WC_REM_ACCESS_ERR);

	configure_start(&pair.server, mkey, 1);
	mlx5dv_wr_set_mkey_layout_list(pair.server.dv, 1, list);
	configure_complete(&pair.server);
	layout_of_list(&layout, &server, 1, list);
	key = view_key(&server, mkey, &layout);
	memory = client_memory(key.length);
	expect_write(&pair, memory, key, IBV_WC_SUCCESS);
	expect_read(&pair, memory, key, IBV_WC_REM_ACCESS_ERR);
	expect_write(&pair, client_memory(78), view_part(key, 0, 78), IBV_WC_REM_ACCESS_ERR);
}

static void invalidate(struct mlx5dv_mkey *mkey)
{
	batch_start(&pair.server, 0x11, IBV_SEND_SIGNALED);
	ibv_wr_local_inv(pair.server.ex, mkey->lkey);
	expect_error(ibv_wr_complete(pair.server.ex), 0);
	expect_completion(&pair.server, 0x11, IBV_WC_LOCAL_INV);
	expect_idle(&pair.server);
}

/* Checks that a configuration with one setter, or none, does not restore earlier contents of the key. */
static void expect_cleared(struct mlx5dv_mkey *mkey, struct view key)
{
	struct ibv_sge sge = side_sge(&server, 12000, 64);
	struct view part;

	expect_send(&pair, view_part(key, 0, 8), client_memory(8), IBV_WC_LOC_PROT_ERR, IBV_WC_SUCCESS);
	expect_write(&pair, client_memory(8), view_part(key, 0, 8), IBV_WC_REM_ACCESS_ERR);

	configure_start(&pair.server, mkey, 0);
	configure_complete(&pair.server);
	expect_key_unusable(key);
	set_rights_alone(mkey, KEY_ACCESS);
	expect_key_unusable(key);

	invalidate(mkey);
	configure_start(&pair.server, mkey, 1);
	mlx5dv_wr_set_mkey_layout_list(pair.server.dv, 1, &sge);
	configure_complete(&pair.server);
	layout_of_list(&second_layout, &server, 1, &sge);
	part = view_key(&server, mkey, &second_layout);
	expect_write(&pair, client_memory(8), view_part(part, 0, 8), IBV_WC_REM_ACCESS_ERR);
	expect_read(&pair, client_memory(8), view_part(part, 0, 8), IBV_WC_REM_ACCESS_ERR);
	expect_read(&pair, view_part(part, 0, 8), client_memory(8), IBV_WC_LOC_PROT_ERR);
	/* A new key has local read, too. */
	expect_write(&pair, part, client_memory(64), IBV_WC_SUCCESS);
	expect_key_reaches(lay_sample(mkey, &layout));
}

TEST(cleared_by_post_send)
{
	struct ibv_send_wr wr = send_wr(0x11, IBV_WR_LOCAL_INV, NULL);
	struct mlx5dv_mkey *mkey;
	struct view key;

	if (!in_profile("man", __func__))
		return;
	mkey = side_create_mkey(&server, 4, NULL);
	key = lay_sample(mkey, &layout);
	wr.invalidate_rkey = mkey->lkey;
	post_send(&pair.server, &wr);
	expect_completion(&pair.server, 0x11, IBV_WC_LOCAL_INV);
	expect_idle(&pair.server);
	expect_cleared(mkey, key);
}

TEST(cleared_by_wr_local_inv)
{
	struct mlx5dv_mkey *mkey;
	struct view key;

	if (!in_profile("man", __func__))
		return;
	mkey = side_create_mkey(&server, 4, NULL);
	key = lay_sample(mkey, &layout);
	invalidate(mkey);
	expect_cleared(mkey, key);
}

/* An adapter keeps the rest of the configuration. */
TEST(kept_by_connectx)
{
	struct mlx5dv_mkey *mkey;
	struct view key;

	if (!in_profile("connectx", __func__))
		return;
	mkey = side_create_mkey(&server, 4, NULL);
	key = lay_sample(mkey, &layout);
	invalidate(mkey);
	expect_key_unusable(key);
	configure_start(&pair.server, mkey, 0);
	configure_complete(&pair.server);
	expect_key_reaches(key);
}

TEST(user_data_is_not_inlined)
{
	const uint32_t half = SIDE_BYTES / 2;
	struct ibv_sge list[] = {side_sge(&server, half, half), side_sge(&server, 0, half)};
	struct mlx5dv_mkey *mkey = side_create_mkey(&server, 4, NULL);
	struct view key = lay_list(&pair.server, BY_CONFIGURE, mkey, &layout, 2, list);

	/* New contents are written after the key was configured (transfer.h). */
	expect_write(&pair, key, view_memory(&client, 0, SIDE_BYTES), IBV_WC_SUCCESS);
}

/* Uses @part of a key in every role. */
static void use_in_every_role(struct view part)
{
	struct view memory = client_memory(part.length);

	expect_send(&pair, part, memory, IBV_WC_SUCCESS, IBV_WC_SUCCESS);
	expect_send_imm(&pair, part, memory, IBV_WC_SUCCESS, IBV_WC_SUCCESS);
	expect_write(&pair, part, memory, IBV_WC_SUCCESS);
	expect_write_imm(&pair, part, memory, IBV_WC_SUCCESS);

	expect_send(&pair, memory, part, IBV_WC_SUCCESS, IBV_WC_SUCCESS);
	expect_send_imm(&pair, memory, part, IBV_WC_SUCCESS, IBV_WC_SUCCESS);
	expect_read(&pair, part, memory, IBV_WC_SUCCESS);

	expect_write(&pair, memory, part, IBV_WC_SUCCESS);
	expect_write_imm(&pair, memory, part, IBV_WC_SUCCESS);
	expect_read(&pair, memory, part, IBV_WC_SUCCESS);
}

TEST(usable_by_every_operation)
{
	struct ibv_sge list[] = {side_sge(&server, 9001, 13), side_sge(&server, 200, 64),
				 side_sge(&server, 4090, 5003)};
	struct mlx5dv_mkey *mkey = side_create_mkey(&server, 4, NULL);
	struct view key = lay_list(&pair.server, BY_CONFIGURE, mkey, &layout, 3, list), counter = client_memory(8);
	/* Inside a piece and across the border of two; the remote address is a multiple of 8. */
	static const int64_t atomics[] = {24, 8, 72};

	note("whole key");
	use_in_every_role(key);
	note("range");
	use_in_every_role(view_part(key, 5, 2000));
	note("no bytes");
	use_in_every_role(view_part(key, 5, 0));
	counter.address = side_address(&client, counter.start = 3000);
	for (size_t i = 0; i < ARRAY_SIZE(atomics); i++) {
		struct view word = view_part(key, atomics[i], 8);

		note("word at %ld", atomics[i]);
		expect_fetch_add(&pair, word, counter, IBV_WC_SUCCESS);
		expect_compare_swap(&pair, word, counter, true, IBV_WC_SUCCESS);
		expect_compare_swap(&pair, word, counter, false, IBV_WC_SUCCESS);
		expect_fetch_add(&pair, counter, word, IBV_WC_SUCCESS);
		expect_compare_swap(&pair, counter, word, true, IBV_WC_SUCCESS);
		expect_compare_swap(&pair, counter, word, false, IBV_WC_SUCCESS);
	}
}

static void add_unsignalled_list(struct mlx5dv_mkey *mkey, struct ibv_sge *entry)
{
	pair.server.ex->wr_flags = IBV_SEND_INLINE;
	mlx5dv_wr_mkey_configure(pair.server.dv, mkey, 2, &no_attributes);
	mlx5dv_wr_set_mkey_access_flags(pair.server.dv, 0);
	mlx5dv_wr_set_mkey_layout_list(pair.server.dv, 1, entry);
}

/* Ends the batch and opens another, unless all requests go into one batch. */
static void next_batch(bool one_batch)
{
	if (one_batch)
		return;
	expect_error(ibv_wr_complete(pair.server.ex), 0);
	ibv_wr_start(pair.server.ex);
}

TEST(used_without_waiting)
{
	struct mlx5dv_mkey *mkey = side_create_mkey(&server, 4, NULL);
	struct ibv_sge entries[] = {side_sge(&server, 9000, 500), side_sge(&server, 100, 500)};
	struct view key, memory[2];

	layout_of_list(&layout, &server, 1, &entries[0]);
	key = view_key(&server, mkey, &layout);
	for (int one_batch = 0; one_batch < 2; one_batch++) {
		note("one batch: %d", one_batch);
		side_stir(&client);
		side_stir(&server);
		ibv_wr_start(pair.server.ex);
		for (int i = 0; i < 2; i++) {
			memory[i] = view_memory(&client, 1000 * (size_t)(i + 1), 500);
			add_unsignalled_list(mkey, &entries[i]);
			next_batch(one_batch);
			batch_write(&pair.server, WRITE_ID, i ? IBV_SEND_SIGNALED : 0, key, memory[i]);
			if (!i)
				next_batch(one_batch);
		}
		expect_error(ibv_wr_complete(pair.server.ex), 0);
		expect_completion(&pair.server, WRITE_ID, IBV_WC_RDMA_WRITE);
		expect_idle(&pair.server);
		for (int i = 0; i < 2; i++) {
			struct view piece = view_memory(&server, entries[i].addr - side_address(&server, 0), 500);

			model_copy(&piece, &memory[i]);
		}
		side_compare(&client);
		side_compare(&server);
	}
}

TEST(unsignalled_configure)
{
	struct mlx5dv_mkey *mkey = side_create_mkey(&server, 4, NULL);
	struct ibv_sge entry = side_sge(&server, 9000, 500);
	struct view key, memory = client_memory(500);

	layout_of_list(&layout, &server, 1, &entry);
	key = view_key(&server, mkey, &layout);
	for (uint32_t round = 0; round < 3 * pair.server.cap.max_send_wr; round++) {
		note("round %u", round);
		ibv_wr_start(pair.server.ex);
		add_unsignalled_list(mkey, &entry);
		batch_write(&pair.server, round, IBV_SEND_SIGNALED, key, memory);
		expect_error(ibv_wr_complete(pair.server.ex), 0);
		expect_completion(&pair.server, round, IBV_WC_RDMA_WRITE);
		expect_idle(&pair.server);
	}
	model_copy(&key, &memory);
}

static void expect_driver1_by_start_poll(uint64_t wr_id)
{
	struct ibv_cq_ex *cq = pair.server.cq_ex;
	struct ibv_poll_cq_attr attr = {0};

	expect_error(ibv_start_poll(cq, &attr), 0);
	assert_int_equal(cq->status, IBV_WC_SUCCESS);
	assert_int_equal(cq->wr_id, wr_id);
	assert_int_equal(ibv_wc_read_opcode(cq), IBV_WC_DRIVER1);
	assert_int_equal(ibv_wc_read_qp_num(cq), pair.server.qp->qp_num);
	expect_error(ibv_next_poll(cq), ENOENT);
	ibv_end_poll(cq);
}

TEST(completion_opcode_is_driver1)
{
	struct mlx5dv_mkey *mkey = side_create_mkey(&server, 4, NULL);
	struct pair_options options = pair.options;

	for (int i = 0; i < 4; i++) {
		unsigned int signalled = i & 1 ? 0 : IBV_SEND_SIGNALED;

		options.sq_sig_all = !signalled;
		options.extended_cq = i & 2;
		note("sq_sig_all %d, extended %d", options.sq_sig_all, options.extended_cq);
		pair_replace(&pair, &options);
		batch_start(&pair.server, 0x123456789abcdef0, IBV_SEND_INLINE | signalled);
		mlx5dv_wr_mkey_configure(pair.server.dv, mkey, 1, &no_attributes);
		mlx5dv_wr_set_mkey_access_flags(pair.server.dv, KEY_ACCESS);
		expect_error(ibv_wr_complete(pair.server.ex), 0);
		if (options.extended_cq)
			expect_driver1_by_start_poll(0x123456789abcdef0);
		else
			expect_completion(&pair.server, 0x123456789abcdef0, IBV_WC_DRIVER1);
		expect_idle(&pair.server);
		expect_idle(&pair.client);
	}
}
