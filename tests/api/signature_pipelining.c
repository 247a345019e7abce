/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Signature pipelining: MLX5DV_QP_CREATE_SIG_PIPELINING of mlx5dv_create_qp(3), and
 * mlx5dv_qp_cancel_posted_send_wrs(3). The server WRITEs data out of a key that checks a CRC32C in its memory, and then
 * SENDs a response.
 */
#include <endian.h>

#include "support/event.h"
#include "support/signed_key.h"

enum {
	DATA_ID = 0xda7a,
	RESPONSE_ID = 0x4e5b,
	OTHER_ID = 0x07e4,
	RECV_ID = 0x4ec5,
	BLOCKS = 2,
	BYTES = BLOCKS * 512,
	TARGET = 2000, /* in the client's memory */
};

static struct layout layout;
static struct mlx5dv_mkey *mkey;
static uint8_t data[BYTES], extended[BLOCKS * 516];

DOMAIN_CRC(crc32c, CRC32C, 512, 0);

/* Returns the expected field of block 0. */
static uint64_t field_value(void)
{
	return (uint64_t)extended[512] << 24 | extended[513] << 16 | extended[514] << 8 | extended[515];
}

static void open_pair(void)
{
	struct mlx5dv_sig_block_attr attr = {.mem = &crc32c, .check_mask = MLX5DV_SIG_MASK_CRC32C};
	struct pair_options options = signed_options();

	options.dv_create_flags = MLX5DV_QP_CREATE_SIG_PIPELINING | MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE;
	pair_replace(&pair, &options);
	mkey = side_create_signed_mkey(&server, 3);
	lay_signed(mkey, &layout, BLOCKS * 516, &attr);
	side_stir(&client);
	side_stir(&server);
	for (size_t i = 0; i < BYTES; i++)
		data[i] = (uint8_t)(i ^ i / 256);
	domain_make_stream(&crc32c, data, BYTES, extended);
}

static void store_key(bool good)
{
	extended[0] ^= !good;
	key_store(&layout, 0, extended, sizeof(extended));
	extended[0] ^= !good;
}

/* Expects the data of store_key() called with the same argument. */
static void expect_data(bool good)
{
	data[0] ^= !good;
	plain_expect(TARGET, data, BYTES);
	data[0] ^= !good;
}

static void post_data(uint64_t wr_id, unsigned int flags)
{
	struct ibv_sge sge = {.addr = 0, .length = BYTES, .lkey = mkey->lkey};
	struct ibv_send_wr wr = {
		.wr_id = wr_id,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = flags,
		.wr.rdma = {.remote_addr = side_address(&client, TARGET), .rkey = client.mr->rkey},
	};

	post_send(&pair.server, &wr);
}

static void post_response(uint64_t wr_id, unsigned int flags)
{
	struct ibv_send_wr wr = {.wr_id = wr_id, .opcode = IBV_WR_SEND, .send_flags = flags};

	post_send(&pair.server, &wr);
}

static void resume(void)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS, .cur_qp_state = IBV_QPS_SQD};

	expect_error(ibv_modify_qp(pair.server.qp, &attr, IBV_QP_STATE | IBV_QP_CUR_STATE), 0);
}

static int cancel(uint64_t wr_id)
{
	return mlx5dv_qp_cancel_posted_send_wrs(pair.server.dv, wr_id);
}

/* Expects the computed CRC of block 0 of bad data. */
static void expect_bad_key(void)
{
	uint8_t computed[8];

	data[0] ^= 1;
	domain_make_field(&crc32c, data, 0, computed);
	data[0] ^= 1;
	expect_key_bad(mkey, MLX5DV_MKEY_SIG_BLOCK_BAD_GUARD, &crc32c, 0, 0, field_value(),
		       (uint64_t)computed[0] << 24 | computed[1] << 16 | computed[2] << 8 | computed[3]);
}

static void rearm(void)
{
	configure_start(&pair.server, mkey, 0);
	configure_complete(&pair.server);
}

TEST(good_data_passes)
{
	open_pair();
	store_key(true);
	post_receive(&pair.client, RECV_ID, NULL, 0);
	post_data(DATA_ID, 0);
	post_response(RESPONSE_ID, IBV_SEND_SIGNALED | IBV_SEND_FENCE);
	expect_completion(&pair.server, RESPONSE_ID, IBV_WC_SEND);
	expect_completion(&pair.client, RECV_ID, IBV_WC_RECV);
	expect_data(true);
	expect_key_good(mkey);
	expect_no_event(&server);
	expect_state(&pair.server, IBV_QPS_RTS);
}

/* DESCRIPTION, steps 1 to 4. The transfer itself succeeds; the response is never sent, but completes. */
TEST(bad_data_stops_the_queue)
{
	open_pair();
	for (int round = 0; round < 3; round++) {
		note("round %d", round);
		store_key(false);
		post_receive(&pair.client, RECV_ID, NULL, 0);
		post_data(DATA_ID, IBV_SEND_SIGNALED);
		post_response(RESPONSE_ID, IBV_SEND_SIGNALED | IBV_SEND_FENCE);
		expect_event(&server, IBV_EVENT_SQ_DRAINED, pair.server.qp);
		expect_no_event(&server);
		expect_state(&pair.server, IBV_QPS_SQD);
		expect_completion(&pair.server, DATA_ID, IBV_WC_RDMA_WRITE);
		expect_idle(&pair.server);
		expect_idle(&pair.client);
		expect_bad_key();
		assert_int_equal(cancel(RESPONSE_ID), 1);
		resume();
		expect_completion(&pair.server, RESPONSE_ID, IBV_WC_SEND);
		expect_idle(&pair.client);
		expect_data(false);
		side_compare(&client);

		/* The queue continues: a response that reports the error takes the receive. */
		post_response(OTHER_ID, IBV_SEND_SIGNALED);
		expect_completion(&pair.server, OTHER_ID, IBV_WC_SEND);
		expect_completion(&pair.client, RECV_ID, IBV_WC_RECV);
		expect_no_event(&server);
		rearm();
	}
}

/* If not cancelled, the response is sent on SQD→RTS. */
TEST(resumes_without_cancelling)
{
	open_pair();
	store_key(false);
	post_receive(&pair.client, RECV_ID, NULL, 0);
	post_data(DATA_ID, 0);
	post_response(RESPONSE_ID, IBV_SEND_SIGNALED | IBV_SEND_FENCE);
	expect_event(&server, IBV_EVENT_SQ_DRAINED, pair.server.qp);
	expect_idle(&pair.server);
	expect_idle(&pair.client);
	assert_int_equal(cancel(OTHER_ID), 0);
	resume();
	expect_completion(&pair.server, RESPONSE_ID, IBV_WC_SEND);
	expect_completion(&pair.client, RECV_ID, IBV_WC_RECV);
	expect_data(false);
	expect_bad_key();
}

/*
 * "Cancel all pending send work requests with supplied WRID": all of these and no others, and none that was executed.
 */
TEST(cancels_all_of_a_wr_id)
{
	open_pair();
	store_key(false);
	for (int i = 0; i < 2; i++)
		post_receive(&pair.client, RECV_ID + i, NULL, 0);
	post_data(RESPONSE_ID, 0); /* same wr_id, already executed */
	post_response(RESPONSE_ID, IBV_SEND_SIGNALED);
	post_response(OTHER_ID, IBV_SEND_SIGNALED);
	post_response(RESPONSE_ID, 0);
	post_data(RESPONSE_ID, IBV_SEND_SIGNALED);
	expect_event(&server, IBV_EVENT_SQ_DRAINED, pair.server.qp);
	expect_idle(&pair.server);
	expect_data(false);
	side_compare(&client);
	/* Requests can be posted while the queue is stopped, and then cancelled. */
	post_response(RESPONSE_ID, IBV_SEND_SIGNALED);
	post_response(OTHER_ID, IBV_SEND_SIGNALED);
	assert_int_equal(cancel(RESPONSE_ID), 4);
	store_key(true); /* a WRITE that is not executed */
	resume();
	/* "will generate good completions according to the signaling originally requested" */
	expect_completion(&pair.server, RESPONSE_ID, IBV_WC_SEND);
	expect_completion(&pair.server, OTHER_ID, IBV_WC_SEND);
	expect_completion(&pair.server, RESPONSE_ID, IBV_WC_RDMA_WRITE);
	expect_completion(&pair.server, RESPONSE_ID, IBV_WC_SEND);
	expect_completion(&pair.server, OTHER_ID, IBV_WC_SEND);
	expect_idle(&pair.server);
	for (int i = 0; i < 2; i++)
		expect_completion(&pair.client, RECV_ID + i, IBV_WC_RECV);
	side_compare(&client);
	expect_bad_key();
}

/* Stops the server's queue as ibv_modify_qp(3) does. */
static void drain(void)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD};

	expect_error(ibv_modify_qp(pair.server.qp, &attr, IBV_QP_STATE), 0);
}

/* Each cancelled request completes with its original opcode. */
TEST(completions_of_cancelled_requests)
{
	static const struct {
		enum ibv_wr_opcode opcode;
		int done;
	} row[] = {
		{IBV_WR_SEND, IBV_WC_SEND},
		{IBV_WR_SEND_WITH_IMM, IBV_WC_SEND},
		{IBV_WR_SEND_WITH_INV, IBV_WC_SEND},
		{IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE},
		{IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WC_RDMA_WRITE},
		{IBV_WR_RDMA_READ, IBV_WC_RDMA_READ},
		{IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WC_COMP_SWAP},
		{IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WC_FETCH_ADD},
		{IBV_WR_LOCAL_INV, IBV_WC_LOCAL_INV},
	};

	open_pair();
	drain();
	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		struct ibv_sge sge = side_sge(&server, 0, 8);
		struct ibv_send_wr wr = {
			.wr_id = i,
			.sg_list = &sge,
			.num_sge = row[i].opcode != IBV_WR_LOCAL_INV,
			.opcode = row[i].opcode,
			.send_flags = IBV_SEND_SIGNALED,
			.invalidate_rkey = mkey->rkey,
		};

		/* WRITE, READ and atomics share this place in the structure. */
		if (row[i].opcode == IBV_WR_ATOMIC_CMP_AND_SWP || row[i].opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
			wr.wr.atomic.remote_addr = side_address(&client, 0) & ~UINT64_C(7);
			wr.wr.atomic.rkey = client.mr->rkey;
		} else if (row[i].opcode != IBV_WR_SEND_WITH_INV && row[i].opcode != IBV_WR_LOCAL_INV) {
			wr.wr.rdma.remote_addr = side_address(&client, 0);
			wr.wr.rdma.rkey = client.mr->rkey;
		}
		post_send(&pair.server, &wr);
	}
	batch_start(&pair.server, 100, IBV_SEND_INLINE | IBV_SEND_SIGNALED);
	mlx5dv_wr_mkey_configure(pair.server.dv, mkey, 0, &(struct mlx5dv_mkey_conf_attr){0});
	expect_error(ibv_wr_complete(pair.server.ex), 0);
	expect_idle(&pair.server);

	for (size_t i = 0; i < ARRAY_SIZE(row); i++)
		assert_int_equal(cancel(i), 1);
	assert_int_equal(cancel(100), 1);
	resume();
	for (size_t i = 0; i < ARRAY_SIZE(row); i++)
		expect_completion(&pair.server, i, row[i].done);
	expect_completion(&pair.server, 100, IBV_WC_DRIVER1);
	expect_idle(&pair.server);
	expect_idle(&pair.client);
	side_compare(&client);
	side_compare(&server);
}

/* mlx5-formats 4.11: of the WQE, opcode and opmod become 0; index, length and completion bits stay. */
TEST(a_nop_keeps_the_rest)
{
	struct mlx5dv_qp out = {0};
	struct mlx5dv_obj object = {.qp = {.out = &out}};
	uint8_t before[64], after[64];

	open_pair();
	pair_renew(&pair); /* its first WQE is at the beginning of the ring */
	object.qp.in = pair.server.qp;
	expect_error(mlx5dv_init_obj(&object, MLX5DV_OBJ_QP), 0);
	drain();
	post_data(OTHER_ID, IBV_SEND_SIGNALED | IBV_SEND_FENCE);
	memcpy(before, out.sq.buf, sizeof(before));
	assert_int_equal(before[3], MLX5_OPCODE_RDMA_WRITE);
	assert_int_equal(cancel(OTHER_ID), 1);
	memcpy(after, out.sq.buf, sizeof(after));
	before[3] = MLX5_OPCODE_NOP;
	assert_memory_equal(before, after, sizeof(before));
	resume();
	expect_completion(&pair.server, OTHER_ID, IBV_WC_RDMA_WRITE);
	side_compare(&client);
}

/* Wraps the ring and the 16-bit index of a WQE. */
TEST(cancels_at_every_place_of_the_ring)
{
	enum { ROUNDS = 500, REQUESTS = 7 };

	open_pair();
	for (int round = 0; round < ROUNDS; round++) {
		drain();
		for (int i = 0; i < REQUESTS; i++)
			post_response(i % 2 ? RESPONSE_ID : OTHER_ID, i + 1 == REQUESTS ? IBV_SEND_SIGNALED : 0);
		assert_int_equal(cancel(RESPONSE_ID), REQUESTS / 2);
		assert_int_equal(cancel(OTHER_ID), REQUESTS - REQUESTS / 2);
		resume();
		expect_completion(&pair.server, OTHER_ID, IBV_WC_SEND);
	}
	expect_idle(&pair.server);
	expect_idle(&pair.client);
}

/* "or “flushed” completions in case the QP goes to error" */
TEST(cancelled_requests_are_flushed)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	open_pair();
	store_key(false);
	post_data(DATA_ID, 0);
	post_response(RESPONSE_ID, IBV_SEND_SIGNALED);
	post_response(RESPONSE_ID, 0);
	expect_event(&server, IBV_EVENT_SQ_DRAINED, pair.server.qp);
	assert_int_equal(cancel(RESPONSE_ID), 2);
	expect_error(ibv_modify_qp(pair.server.qp, &attr, IBV_QP_STATE), 0);
	for (int i = 0; i < 2; i++)
		expect_status(&pair.server, RESPONSE_ID, IBV_WC_WR_FLUSH_ERR);
	expect_data(false);
	expect_bad_key();
	pair_renew(&pair);
}

/* "A work request can only be canceled when the QP is in SQD state": -errno in all others. */
TEST(other_states_are_refused)
{
	struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR}, reset = {.qp_state = IBV_QPS_RESET};

	open_pair();
	assert_int_equal(cancel(RESPONSE_ID), -EINVAL);
	drain();
	assert_int_equal(cancel(RESPONSE_ID), 0);
	resume();
	assert_int_equal(cancel(RESPONSE_ID), -EINVAL);
	expect_error(ibv_modify_qp(pair.server.qp, &error, IBV_QP_STATE), 0);
	assert_int_equal(cancel(RESPONSE_ID), -EINVAL);
	expect_error(ibv_modify_qp(pair.server.qp, &reset, IBV_QP_STATE), 0);
	assert_int_equal(cancel(RESPONSE_ID), -EINVAL);
	endpoint_to_init(&pair.server);
	assert_int_equal(cancel(RESPONSE_ID), -EINVAL);
	endpoint_to_rtr(&pair.server);
	assert_int_equal(cancel(RESPONSE_ID), -EINVAL);
	pair_renew(&pair);
}

/* A WQE that is already a NOP cannot be cancelled (mlx5-formats 4.11). */
TEST(cancelled_twice)
{
	open_pair();
	drain();
	post_response(RESPONSE_ID, IBV_SEND_SIGNALED);
	assert_int_equal(cancel(RESPONSE_ID), 1);
	assert_int_equal(cancel(RESPONSE_ID), -EINVAL);
	resume();
	expect_completion(&pair.server, RESPONSE_ID, IBV_WC_SEND);
	expect_idle(&pair.client);
}

/* A READ into a checking key finds its error when the data has arrived; later requests wait. */
TEST(a_read_stops_the_queue)
{
	struct mlx5dv_sig_block_attr attr = {.wire = &crc32c, .check_mask = MLX5DV_SIG_MASK_CRC32C};
	struct ibv_sge sge;
	struct ibv_send_wr wr = send_wr(DATA_ID, IBV_WR_RDMA_READ, &sge);

	open_pair();
	lay_signed(mkey, &layout, BYTES, &attr);
	extended[0] ^= 1;
	plain_store(TARGET, extended, sizeof(extended));
	extended[0] ^= 1;
	post_receive(&pair.client, RECV_ID, NULL, 0);
	sge = (struct ibv_sge){.addr = 0, .length = sizeof(extended), .lkey = mkey->lkey};
	wr.wr.rdma.remote_addr = side_address(&client, TARGET);
	wr.wr.rdma.rkey = client.mr->rkey;
	post_send(&pair.server, &wr);
	post_response(RESPONSE_ID, IBV_SEND_SIGNALED | IBV_SEND_FENCE);
	expect_event(&server, IBV_EVENT_SQ_DRAINED, pair.server.qp);
	expect_completion(&pair.server, DATA_ID, IBV_WC_RDMA_READ);
	expect_idle(&pair.server);
	data[0] ^= 1;
	key_expect(&layout, 0, data, BYTES);
	data[0] ^= 1;
	side_compare(&server);
	expect_bad_key();
	assert_int_equal(cancel(RESPONSE_ID), 1);
	resume();
	expect_completion(&pair.server, RESPONSE_ID, IBV_WC_SEND);
	expect_idle(&pair.client);
}

/* Errors found for the peer do not stop the queue, nor any error on a QP without the flag. */
TEST(errors_that_do_not_stop_a_queue)
{
	struct pair_options options = signed_options();

	open_pair();
	store_key(false);
	transfer_signed(OUT_REMOTE_READ, mkey->lkey, 0, TARGET, BYTES);
	expect_data(false);
	expect_state(&pair.server, IBV_QPS_RTS);
	expect_state(&pair.client, IBV_QPS_RTS);
	expect_no_event(&server);
	expect_no_event(&client);
	expect_bad_key();
	rearm();

	pair_replace(&pair, &options);
	transfer_signed(OUT_WRITE, mkey->lkey, 0, TARGET, BYTES);
	expect_state(&pair.server, IBV_QPS_RTS);
	expect_no_event(&server);
	expect_bad_key();
}

/*
 * mlx5dv_qp_cancel_posted_send_wrs(3): "Such QP will stop after a transfer operation that failed signature validation", also
 * while the key keeps an earlier error.
 */
TEST(every_error_stops_the_queue_man)
{
	if (!in_profile("man", __func__))
		return;
	open_pair();
	store_key(false);
	for (int i = 0; i < 3; i++) {
		post_data(DATA_ID, IBV_SEND_SIGNALED);
		expect_event(&server, IBV_EVENT_SQ_DRAINED, pair.server.qp);
		expect_completion(&pair.server, DATA_ID, IBV_WC_RDMA_WRITE);
		resume();
	}
	expect_data(false);
	expect_bad_key();
	/* The cause of the stop is resolved: good data passes. */
	store_key(true);
	post_data(DATA_ID, IBV_SEND_SIGNALED);
	expect_completion(&pair.server, DATA_ID, IBV_WC_RDMA_WRITE);
	expect_data(true);
	expect_no_event(&server);
	expect_key_good(mkey);
}

/*
 * Unreported errors do not stop it: the first one was reported, and the key not configured since (mlx5-formats 6, no.
 * 7).
 */
TEST(silent_until_rearmed_connectx)
{
	if (!in_profile("connectx", __func__))
		return;
	open_pair();
	store_key(false);
	post_data(DATA_ID, IBV_SEND_SIGNALED);
	expect_event(&server, IBV_EVENT_SQ_DRAINED, pair.server.qp);
	expect_completion(&pair.server, DATA_ID, IBV_WC_RDMA_WRITE);
	expect_data(false);
	expect_bad_key();
	resume();
	post_data(DATA_ID, IBV_SEND_SIGNALED);
	expect_completion(&pair.server, DATA_ID, IBV_WC_RDMA_WRITE);
	expect_no_event(&server);
	expect_key_good(mkey);
	rearm();
	post_data(DATA_ID, IBV_SEND_SIGNALED);
	expect_event(&server, IBV_EVENT_SQ_DRAINED, pair.server.qp);
	expect_completion(&pair.server, DATA_ID, IBV_WC_RDMA_WRITE);
	expect_bad_key();
}
