/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mlx5dv_mkey_check(3): which of several errors is reported, how long it is kept, and which CQ must have been polled.
 * In profile man the key keeps the first error, independently of completion queues; profile connectx behaves like
 * adapters and their library (mlx5-formats 3.5, 4.6 and 6, no. 7).
 */
#include "support/event.h"
#include "support/rings.h"
#include "support/signed_key.h"

enum { BLOCKS = 4, RAW = BLOCKS * 512, EXTENDED = BLOCKS * 520, APP_1 = 0x5679, APP = 0x5678 };

static struct layout layout;
static struct mlx5dv_mkey *mkey;
static uint8_t data[RAW], stream[EXTENDED];

DOMAIN_CRC(crc32, CRC32, 512, 0);
DOMAIN_DIF(dif, CRC, 512, 0xffff, APP, 0xf0debc9a, MLX5DV_SIG_T10DIF_FLAG_REF_REMAP);

static const struct mlx5dv_sig_block_attr in_memory = {.mem = &dif, .check_mask = 0xff};

static void open_pair(void)
{
	struct pair_options options = signed_options();

	pair_replace(&pair, &options);
	mkey = side_create_signed_mkey(&server, 3);
	for (int i = 0; i < RAW; i++)
		data[i] = (uint8_t)(i * 5 + i / 512);
}

/* The key has T10-DIF in its memory and nothing on the wire; block 1 has a wrong application tag, block 3 a reference tag. */
static void lay_bad(void)
{
	lay_signed(mkey, &layout, EXTENDED, &in_memory);
	domain_make_stream(&dif, data, RAW, stream);
	stream[520 + 512 + 3] ^= 1;
	stream[3 * 520 + 512 + 7] ^= 1;
	side_stir(&client);
	side_stir(&server);
	key_store(&layout, 0, stream, EXTENDED);
}

static void transfer(enum key_operation operation, uint32_t first, uint32_t count)
{
	transfer_signed(operation, mkey->lkey, first * 512, SIGNED_PLAIN, count * 512);
	memcpy(client.expected, client.memory, client.bytes);
}

/* In a transfer that began with block @first of the key. */
#define expect_block_1(first)                                                                                          \
	expect_key_bad(mkey, MLX5DV_MKEY_SIG_BLOCK_BAD_APPTAG, &dif, 1, (1 - (first)) * 512, APP_1, APP)
#define expect_block_3(first)                                                                                          \
	expect_key_bad(mkey, MLX5DV_MKEY_SIG_BLOCK_BAD_REFTAG, &dif, 3, (3 - (first)) * 512, 0xf0debc9c, 0xf0debc9d)

static void configure(uint32_t flags)
{
	struct mlx5dv_mkey_conf_attr attr = {.conf_flags = flags};

	batch_start(&pair.server, CONFIGURE_WR_ID, IBV_SEND_INLINE | IBV_SEND_SIGNALED);
	mlx5dv_wr_mkey_configure(pair.server.dv, mkey, 0, &attr);
	configure_complete(&pair.server);
	expect_idle(&pair.server);
}

/* ---- which, and for how long ------------------------------------------------------------------------------------ */

/*
 * "The first of these errors is reported to the MKEY and kept there until application software queries it": neither a
 * later block nor a later transfer replaces it. After a query the next error is reported; no configuration is needed.
 */
TEST(the_first_is_kept_man)
{
	if (!in_profile("man", __func__))
		return;
	open_pair();
	lay_bad();
	transfer(OUT_SEND, 0, BLOCKS);
	transfer(OUT_SEND, 2, 2);
	transfer(OUT_REMOTE_READ, 2, 2);
	expect_block_1(0);
	transfer(OUT_REMOTE_READ, 2, 2);
	transfer(OUT_SEND, 0, BLOCKS);
	expect_block_3(2);
	for (int i = 0; i < 3; i++) {
		transfer(OUT_WRITE, 1, 1);
		expect_block_1(1);
	}
	transfer(OUT_SEND, 0, 1);
	expect_key_good(mkey);
}

static void invalidate(void)
{
	struct ibv_send_wr wr = {
		.wr_id = 4, .opcode = IBV_WR_LOCAL_INV, .send_flags = IBV_SEND_SIGNALED, .invalidate_rkey = mkey->rkey};

	post_send(&pair.server, &wr);
	expect_completion(&pair.server, 4, IBV_WC_LOCAL_INV);
}

/*
 * "kept there until application software queries it": with its type, values and offset, whatever the new configuration
 * of the key.
 */
TEST(kept_through_configurations_man)
{
	static const struct mlx5dv_sig_block_attr others[] = {
		{.wire = &crc32, .check_mask = 0xff},
		{.mem = &crc32, .check_mask = 0xff},
	};

	if (!in_profile("man", __func__))
		return;
	open_pair();
	for (int how = 0; how < 6; how++) {
		note("configuration %d", how);
		lay_bad();
		transfer(OUT_SEND, 0, BLOCKS);
		if (how == 1)
			configure(MLX5DV_MKEY_CONF_FLAG_RESET_SIG_ATTR);
		else if (how < 4)
			lay_signed(mkey, &layout, 100 + 520 * how, &others[how % 2]);
		else if (how == 4)
			invalidate();
		configure(0);
		/* Nor does an error that is found afterwards replace it. */
		if (how == 5) {
			lay_bad();
			transfer(OUT_SEND, 2, 2);
		}
		expect_block_1(0);
	}
}

/* The key reports the first error found after it was configured, once an error was polled. */
TEST(the_last_polled_is_kept_connectx)
{
	if (!in_profile("connectx", __func__))
		return;
	open_pair();
	lay_bad();
	transfer(OUT_SEND, 0, BLOCKS);
	transfer(OUT_SEND, 2, 2);
	transfer(OUT_REMOTE_READ, 2, 2);
	expect_block_1(0);
	/* Queried, not armed. */
	transfer(OUT_SEND, 0, BLOCKS);
	expect_key_good(mkey);
	configure(0);
	transfer(OUT_SEND, 2, 2);
	expect_block_3(2);
	/* Armed before the query: only the newer error is left. */
	configure(0);
	transfer(OUT_SEND, 0, 2);
	configure(0);
	transfer(OUT_SEND, 2, 2);
	expect_block_3(2);
}

/* An error survives the configuration of the key; it is decoded with the current domains. */
TEST(read_as_configured_connectx)
{
	struct mlx5dv_mkey_err err;

	if (!in_profile("connectx", __func__))
		return;
	open_pair();
	lay_bad();
	transfer(OUT_SEND, 0, BLOCKS);
	configure(MLX5DV_MKEY_CONF_FLAG_RESET_SIG_ATTR);
	for (int i = 0; i < 2; i++)
		expect_error(mlx5dv_mkey_check(mkey, &err), EINVAL);
	lay_bad();
	expect_block_1(0);
}

/* ---- which completion must be polled ---------------------------------------------------------------------------- */

static struct ibv_send_wr write_of(struct ibv_sge *sge, unsigned int flags)
{
	struct ibv_send_wr wr = {
		.wr_id = 5, .sg_list = sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = flags};

	*sge = (struct ibv_sge){.addr = 512, .length = 512, .lkey = mkey->lkey};
	wr.wr.rdma.remote_addr = side_address(&client, SIGNED_PLAIN);
	wr.wr.rdma.rkey = client.mr->rkey;
	return wr;
}

/* Reads block 1 of the key for the peer; only the peer has a completion. */
static void read_by_peer(const struct mlx5dv_mkey *key)
{
	struct ibv_sge plain = side_sge(&client, SIGNED_PLAIN, 512);
	struct ibv_send_wr wr = rdma_wr(5, IBV_WR_RDMA_READ, &plain, 512, key->rkey);

	post_send(&pair.client, &wr);
	expect_completion(&pair.client, 5, IBV_WC_RDMA_READ);
	memcpy(client.expected, client.memory, client.bytes);
}

/*
 * NOTES: "Application should wait for the respected completion (if this was a local MKEY) or wait for a received
 * message from a peer (if this was a remote MKEY)". The message may come through another QP with another CQ; the CQ of
 * the QP by which the peer used the key is not polled.
 */
TEST(known_by_a_message_man)
{
	struct ibv_send_wr message = {.wr_id = 6, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
	struct pair_options options = signed_options();
	struct pair other;

	if (!in_profile("man", __func__))
		return;
	open_pair();
	pair_open(&other, &client, &server, &options);
	lay_bad();
	for (int i = 0; i < 3; i++) {
		read_by_peer(mkey);
		post_receive(&other.server, 8, NULL, 0);
		post_send(&other.client, &message);
		expect_completion(&other.client, 6, IBV_WC_SEND);
		expect_completion(&other.server, 8, IBV_WC_RECV);
		expect_block_1(1);
	}
	expect_idle(&pair.server);
	pair_close(&other);
}

/* A local key: after the completion of a later request, or a message from the peer that the data arrived. */
TEST(known_without_a_completion_man)
{
	struct ibv_send_wr wr, empty = {.wr_id = 6, .opcode = IBV_WR_SEND};
	struct ibv_sge sge;

	if (!in_profile("man", __func__))
		return;
	open_pair();
	lay_bad();
	wr = write_of(&sge, 0);
	for (int i = 0; i < 3; i++) {
		post_receive(&pair.client, 8, NULL, 0);
		post_send(&pair.server, &wr);
		post_send(&pair.server, &empty);
		expect_completion(&pair.client, 8, IBV_WC_RECV);
		memcpy(client.expected, client.memory, client.bytes);
		expect_block_1(1);
	}
	expect_idle(&pair.server);
}

/* "the respected completion" is enough, and an adapter's key reports nothing before it. */
TEST(known_with_the_completion_connectx)
{
	struct ibv_send_wr wr, message = {.wr_id = 6, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
	struct ibv_sge sge;

	if (!in_profile("connectx", __func__))
		return;
	open_pair();
	for (int remote = 0; remote < 2; remote++) {
		lay_bad();
		wr = write_of(&sge, IBV_SEND_SIGNALED);
		if (remote) {
			post_receive(&pair.server, 8, NULL, 0);
			read_by_peer(mkey);
			post_send(&pair.client, &message);
			expect_completion(&pair.client, 6, IBV_WC_SEND);
		} else {
			post_send(&pair.server, &wr);
		}
		expect_key_good(mkey);
		expect_completion(&pair.server, remote ? 8 : 5, remote ? IBV_WC_RECV : IBV_WC_RDMA_WRITE);
		memcpy(client.expected, client.memory, client.bytes);
		expect_block_1(1);
	}
}

/* Configuring a key without polling its error does not reset the device's record that it reported one. */
TEST(configured_before_polling_connectx)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;

	if (!in_profile("connectx", __func__))
		return;
	open_pair();
	lay_bad();
	wr = write_of(&sge, IBV_SEND_SIGNALED);
	post_send(&pair.server, &wr);
	configure_start(&pair.server, mkey, 0);
	expect_error(ibv_wr_complete(pair.server.ex), 0);
	post_send(&pair.server, &wr);
	expect_completion(&pair.server, 5, IBV_WC_RDMA_WRITE);
	expect_completion(&pair.server, CONFIGURE_WR_ID, IBV_WC_DRIVER1);
	expect_completion(&pair.server, 5, IBV_WC_RDMA_WRITE);
	expect_idle(&pair.server);
	memcpy(client.expected, client.memory, client.bytes);
	expect_block_1(1);
	configure(0);
	post_send(&pair.server, &wr);
	expect_completion(&pair.server, 5, IBV_WC_RDMA_WRITE);
	expect_block_1(1);
}

/* ---- completion queues ------------------------------------------------------------------------------------------ */

/* Signature errors are not completions: any number of them cannot overrun a small CQ. */
TEST(no_entries_in_a_completion_queue_man)
{
	enum { KEYS = 20 };
	struct mlx5dv_mkey_init_attr init = {
		.pd = server.pd, .create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_BLOCK_SIGNATURE, .max_entries = 3};
	struct pair_options options = signed_options();
	struct ibv_send_wr message = {.wr_id = 6, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
	struct mlx5dv_mkey *keys[KEYS];

	if (!in_profile("man", __func__))
		return;
	open_pair();
	options.cqe = 1;
	pair_replace(&pair, &options);
	lay_bad();
	for (int i = 0; i < KEYS; i++) {
		struct ibv_sge pieces[3];

		keys[i] = mlx5dv_create_mkey(&init);
		assert_non_null(keys[i]);
		cut_layout(&layout, pieces, EXTENDED);
		expect_error(configure_signed(keys[i], 3, pieces, &in_memory), 0);
		expect_completion(&pair.server, CONFIGURE_WR_ID, IBV_WC_DRIVER1);
	}
	for (int i = 0; i < KEYS; i++)
		read_by_peer(keys[i]);
	post_receive(&pair.server, 8, NULL, 0);
	post_send(&pair.client, &message);
	expect_completion(&pair.client, 6, IBV_WC_SEND);
	expect_completion(&pair.server, 8, IBV_WC_RECV);
	expect_no_event(&server);
	for (int i = 0; i < KEYS; i++) {
		mkey = keys[i];
		expect_block_1(1);
		expect_error(mlx5dv_destroy_mkey(mkey), 0);
	}
}

/*
 * The error of a destroyed key: nothing to poll in profile man; for an adapter's library, a CQE that belongs to no key.
 */
static void expect_left_by_a_destroyed_key(int polled)
{
	struct mlx5dv_mkey_init_attr init = {
		.pd = server.pd,
		.create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT | MLX5DV_MKEY_INIT_ATTR_FLAGS_BLOCK_SIGNATURE,
		.max_entries = 3,
	};
	struct ibv_wc wc;

	open_pair();
	mkey = mlx5dv_create_mkey(&init);
	assert_non_null(mkey);
	lay_bad();
	read_by_peer(mkey);
	expect_error(mlx5dv_destroy_mkey(mkey), 0);
	assert_int_equal(ibv_poll_cq(pair.server.cq, 1, &wc), polled);
	expect_idle(&pair.server);
	expect_nothing_posted(&pair.server);
}

TEST(a_destroyed_key_man)
{
	if (in_profile("man", __func__))
		expect_left_by_a_destroyed_key(0);
}

TEST(a_destroyed_key_connectx)
{
	if (in_profile("connectx", __func__))
		expect_left_by_a_destroyed_key(-2);
}

/*
 * A program that reads the ring itself (mlx5dv_init_obj(3)) gets errors as from an adapter: one CQE until the key is
 * armed, which a query does, too. Others do not notice: polling skips it, even if the key was destroyed.
 */
TEST(a_ring_that_was_given_away_man)
{
	enum { SIG_ERR = 12, APP_SYNDROME = 0x1000 };
	struct mlx5_cqe64 cqe;
	struct rings rings;
	struct ibv_wc wc;

	if (!in_profile("man", __func__))
		return;
	open_pair();
	lay_bad();
	rings = rings_open(&pair.server);
	rings.consumer = be32toh(rings.cq.dbrec[0]); /* the configuration was polled before */
	for (int i = 0; i < 3; i++) {
		const uint8_t *bytes = (const uint8_t *)&cqe;

		read_by_peer(mkey);
		cqe = rings_next_cqe(&rings);
		assert_int_equal(mlx5dv_get_cqe_opcode(&cqe), SIG_ERR);
		assert_int_equal(bytes[32] << 8 | bytes[33], APP_SYNDROME);
		assert_int_equal(bytes[35], 1); /* memory */
		assert_int_equal((uint32_t)bytes[36] << 24 | bytes[37] << 16 | bytes[38] << 8 | bytes[39], mkey->lkey);
		/* The last byte of block 1 including its field, in the key. */
		assert_int_equal(bytes[46] << 8 | bytes[47], 2 * 520 - 1);
		read_by_peer(mkey);
		assert_false(rings_has_cqe(&rings));
		expect_block_1(1);
	}
	read_by_peer(mkey);
	while (!rings_has_cqe(&rings))
		;
	assert_int_equal(ibv_poll_cq(pair.server.cq, 1, &wc), 0);
	expect_block_1(1);
}

/* Extended polling returns no errors in profile man, and absorbs those of profile connectx. */
static void expect_extended_polling(bool connectx)
{
	struct pair_options options = signed_options();
	struct ibv_poll_cq_attr no_attr = {0};
	struct ibv_send_wr wr;
	struct ibv_sge sge;

	open_pair();
	options.extended_cq = true;
	pair_replace(&pair, &options);
	lay_bad();
	for (int signalled = 0; signalled < 2; signalled++) {
		wr = write_of(&sge, signalled ? IBV_SEND_SIGNALED : 0);
		post_send(&pair.server, &wr);
		if (connectx)
			expect_key_good(mkey);
		if (signalled) {
			expect_error(ibv_start_poll(pair.server.cq_ex, &no_attr), 0);
			assert_int_equal(pair.server.cq_ex->wr_id, 5);
			expect_error(ibv_next_poll(pair.server.cq_ex), ENOENT);
			ibv_end_poll(pair.server.cq_ex);
		} else {
			expect_error(ibv_start_poll(pair.server.cq_ex, &no_attr), ENOENT);
		}
		expect_block_1(1);
		configure(0);
	}
	memcpy(client.expected, client.memory, client.bytes);
}

TEST(extended_polling_man)
{
	if (in_profile("man", __func__))
		expect_extended_polling(false);
}

TEST(extended_polling_connectx)
{
	if (in_profile("connectx", __func__))
		expect_extended_polling(true);
}
