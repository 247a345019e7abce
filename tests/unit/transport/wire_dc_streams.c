/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Streams of a DCI (mlx5dv_dci_stream_id_reset(3)): a failure affects only its stream, until too many have failed;
 * in-flight and posted requests of the stream are flushed in the order of the queue, requests of other streams are
 * executed, also over a wire that loses packets.
 */
#include "test_case.h"

#include "../support/dc_fixture.h"
#include "../support/mishap.h"

#include "transport/control/commands.h"

enum {
	OK = 0,
	FLUSH = MLX5_CQE_SYNDROME_WR_FLUSH_ERR,
	NO_KEY = 0xfffff00,
	BYTES = 600, /* three packets */
};

static uint16_t indices[32];
static uint32_t posted, seen;

static void start(uint32_t limit, const struct ibv_qp_attr *options, wire_filter *filter, void *argument)
{
	dc_begin(options, limit, filter, argument);
	posted = seen = 0;
}

static void simple_start(uint32_t limit)
{
	const struct ibv_qp_attr options = dc_options();

	start(limit, &options, NULL, NULL);
}

/* Request number @posted writes BYTES to a separate place. */
static struct dc_request write_request(uint16_t stream, int to)
{
	struct dc_request request = dc_to(&dct[to], MLX5_OPCODE_RDMA_WRITE, posted * 1024, HALF + posted * 1024, BYTES);

	request.stream = stream;
	return request;
}

static void put(const struct dc_request *request)
{
	indices[posted++] = dc_put(&dci[0], request);
}

static void good(uint16_t stream, int to)
{
	const struct dc_request request = write_request(stream, to);

	put(&request);
}

/* Posts a request that fails to gather its data. */
static void bad_here(uint16_t stream, int to)
{
	struct dc_request request = write_request(stream, to);

	request.lkey = NO_KEY;
	put(&request);
}

/* Posts a request that the DCT refuses. */
static void bad_there(uint16_t stream, int to)
{
	struct dc_request request = write_request(stream, to);

	request.key++;
	put(&request);
}

static void run(void)
{
	ring(&dci[0]);
	dc_settle();
}

/* Expects the completion of the next request; a good one has written its bytes, another one none. */
static void expect(uint8_t syndrome)
{
	const uint8_t *here = device.memory + seen * 1024, *there = device.memory + HALF + seen * 1024;
	int differ = memcmp(here, there, BYTES);

	expect_cqe(&dci_cq[0], indices[seen], syndrome);
	if (!syndrome != !differ)
		fail_msg("request %u (syndrome %#x) has%s written", seen, syndrome, differ ? " not" : "");
	seen++;
}

static void expect_end(enum ibv_qp_state state)
{
	assert_int_equal(seen, posted);
	assert_null(raw_cq_poll(&dci_cq[0]));
	assert_int_equal(hca_qp_state(dci[0].qp), state);
	for (int i = 0; i < DCTS; i++)
		assert_int_equal(hca_qp_state(dct[i].qp), IBV_QPS_RTR);
	dc_end();
}

static int reset_stream(uint16_t stream)
{
	uint32_t errored;

	return hca_dci_reset_stream(dci[0].qp, stream, &errored);
}

TEST(fails_here)
{
	struct explain_record record, first;
	uint32_t errored;

	simple_start(4);
	bad_here(1, 0);
	good(2, 0);
	good(1, 0);
	good(2, 1);
	good(1, 1);
	run();
	expect(MLX5_CQE_SYNDROME_LOCAL_PROT_ERR);
	expect(OK);
	expect(FLUSH);
	expect(OK);
	expect(FLUSH);
	/* The flush names the stream and the failure. */
	assert_true(explain_previous(device.hca, dci[0].qp->number, 0, &record));
	assert_int_equal(record.rule, RULE_DCI_STREAM_FLUSHED);
	assert_int_equal(record.args[0], 1);
	assert_true(explain_previous(device.hca, dci[0].qp->number, record.args[1] + 1, &first));
	assert_int_equal(first.serial, record.args[1]);
	assert_int_equal(first.rule, RULE_KEY_UNKNOWN);

	/* Later requests of the stream are flushed, too, until it is reset, which works once. */
	good(1, 0);
	run();
	expect(FLUSH);
	assert_int_equal(hca_dci_reset_stream(dci[0].qp, 2, &errored), -EINVAL);
	assert_int_equal(errored, 1);
	assert_int_equal(reset_stream(1), 0);
	assert_int_equal(reset_stream(1), -EINVAL);
	good(1, 0);
	run();
	expect(OK);
	expect_end(IBV_QPS_RTS);
}

/* Later requests of the stream are already sent when the refusal arrives; the DCT has dropped them. */
TEST(fails_there)
{
	simple_start(4);
	good(1, 0);
	run();
	expect(OK);
	bad_there(1, 0);
	good(2, 0);
	good(1, 0);
	run();
	expect(MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR);
	expect(OK);
	expect(FLUSH);
	expect_end(IBV_QPS_RTS);
}

TEST(handles_requests_in_flight)
{
	struct dc_request request;

	simple_start(4);
	good(1, 0);
	request = write_request(1, 0);
	request.remote = 1 << 24; /* beyond the key */
	put(&request);
	good(1, 0);
	good(1, 0);
	good(2, 0);
	ring(&dci[0]);
	/* All requests of stream 1 are in flight. */
	assert_int_equal(wire_sent(), 4 * 3);
	dc_settle();
	expect(OK);
	expect(MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR);
	expect(FLUSH);
	expect(FLUSH);
	expect(OK);
	assert_int_equal(reset_stream(1), 0);
	good(1, 0);
	run();
	expect(OK);
	expect_end(IBV_QPS_RTS);
}

/* The DCT does not answer on a connection after it refused a request there: the stream continues with another. */
TEST(same_target_again)
{
	struct dc_request request;

	simple_start(4);
	good(1, 0);
	request = write_request(1, 0);
	request.remote = 1 << 24; /* beyond the key */
	put(&request);
	run();
	expect(OK);
	expect(MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR);
	assert_int_equal(reset_stream(1), 0);
	good(1, 0);
	run();
	expect(OK);
	expect_end(IBV_QPS_RTS);
}

/* "once the number of unique stream_id in error reaches the DCI QP's log_num_errored streams" */
TEST(too_many)
{
	const struct ibv_qp_attr options = dc_options();

	for (uint32_t limit = 1; limit <= 1u << LIMIT_LOG_DCI_ERRORED; limit *= 2) {
		simple_start(limit);
		for (uint32_t i = 0; i < limit; i++) {
			/* A stream counts once, whatever its number, and not after a reset. */
			uint16_t stream = (uint16_t)(65535 - i * 1000);

			posted = seen = 0;
			if (i == 2 && limit > 2) {
				assert_int_equal(reset_stream(65535), 0);
				bad_here(65535, 0);
				run();
				expect(MLX5_CQE_SYNDROME_LOCAL_PROT_ERR);
			}
			bad_here(stream, 0);
			good(stream, 0);
			good(7, 0);
			run();
			expect(MLX5_CQE_SYNDROME_LOCAL_PROT_ERR);
			expect(FLUSH);
			/* The memory was written in the round before. */
			expect_cqe(&dci_cq[0], indices[seen++], i == limit - 1 ? FLUSH : OK);
			memset(device.memory + HALF, 0x33, HALF);
		}
		expect_rule(dci[0].qp, RULE_FLUSHED);
		assert_int_equal(hca_qp_state(dci[0].qp), IBV_QPS_ERR);
		assert_int_equal(reset_stream(65535), -EINVAL);
		/* All streams work again after RESET. */
		dci_start(&dci[0], &options);
		posted = seen = 0;
		good(65535, 0);
		run();
		expect(OK);
		expect_end(IBV_QPS_RTS);
	}
}

/* Without streams there is one, whatever the WQEs contain. */
TEST(without)
{
	simple_start(0);
	good(1, 0);
	good(2, 0);
	ring(&dci[0]);
	assert_int_equal(wire_sent(), 2 * 3);
	dc_settle();
	expect(OK);
	expect(OK);
	bad_here(3, 0);
	good(4, 0);
	run();
	expect(MLX5_CQE_SYNDROME_LOCAL_PROT_ERR);
	expect(FLUSH);
	assert_int_equal(reset_stream(3), -EINVAL);
	expect_end(IBV_QPS_ERR);
}

struct tries {
	uint32_t of_packets, of_receives;
};

enum { NOWHERE = 0xabcdef };

static enum wire_verdict count_tries(void *argument, uint64_t number, const struct wire_packet *packet)
{
	struct tries *tries = argument;

	(void)number;
	tries->of_packets +=
		packet->destination_qpn == NOWHERE && packet_opcodes[packet->opcode].message == MESSAGE_WRITE;
	tries->of_receives += packet_opcodes[packet->opcode].message == MESSAGE_ACKNOWLEDGE &&
			      (packet->syndrome & AETH_KIND_MASK) == AETH_RNR_NAK;
	return WIRE_PASS;
}

/* ibv_modify_qp(3), retry_cnt and rnr_retry: each stream has all retries, independent of the one before. */
TEST(patience)
{
	struct ibv_qp_attr options = dc_options();
	struct dc_request request;
	struct tries tries = {0};

	options.retry_cnt = 2;
	options.rnr_retry = 1;
	start(8, &options, count_tries, &tries);
	for (uint16_t i = 0; i < 3; i++) {
		request = write_request((uint16_t)(10 + i), 0);
		request.target = NOWHERE;
		put(&request);
		good((uint16_t)(10 + i), 0);
	}
	good(1, 0);
	for (uint16_t i = 0; i < 2; i++) {
		request = write_request((uint16_t)(20 + i), 0);
		request.opcode = MLX5_OPCODE_RDMA_WRITE_IMM;
		request.length = 100;
		put(&request);
	}
	good(1, 0);
	run();
	for (int i = 0; i < 3; i++) {
		expect(MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR);
		expect(FLUSH);
	}
	expect(OK);
	for (int i = 0; i < 2; i++)
		expect(MLX5_CQE_SYNDROME_RNR_RETRY_EXC_ERR);
	expect(OK);
	/* After the first WRITE, another one is sent and lost with it. */
	assert_int_equal(tries.of_packets, 3 * 3 * 3);
	assert_int_equal(tries.of_receives, 2 * 2);
	expect_end(IBV_QPS_RTS);
}

/* Flushed requests are not waited for any more. */
TEST(responses_of_another_stream)
{
	struct ibv_qp_attr options = dc_options();
	struct dc_request request;

	options.max_rd_atomic = 1;
	start(4, &options, NULL, NULL);
	request = write_request(1, 0);
	request.remote = 1 << 24; /* beyond the key */
	put(&request);
	request = write_request(1, 0);
	request.opcode = MLX5_OPCODE_RDMA_READ;
	put(&request);
	request = write_request(2, 0);
	request.opcode = MLX5_OPCODE_RDMA_READ;
	request.fence = 3 << 5;
	put(&request);
	run();
	expect(MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR);
	expect(FLUSH);
	expect(OK);
	expect_end(IBV_QPS_RTS);
}

/* A program that writes another target into a WQE that will be sent again. */
TEST(changed_meanwhile)
{
	const struct ibv_qp_attr options = dc_options();
	struct wire_packet *packet;
	__be32 target;

	start(4, &options, NULL, NULL);
	good(1, 0);
	good(1, 0);
	good(2, 0);
	ring(&dci[0]);
	while ((packet = wire_take()))
		free(packet);
	target = htobe32(MLX5_EXTENDED_UD_AV | dct[1].qp->number);
	memcpy(dci[0].sq + indices[0] * 64 + 16 + offsetof(struct mlx5_wqe_av, dqp_dct), &target, 4);
	dc_settle();
	expect(MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR);
	expect(FLUSH);
	expect(OK);
	expect_end(IBV_QPS_RTS);
}

/* A READ into a sink without a valid key. */
TEST(sink_fails)
{
	struct dc_request request;

	simple_start(4);
	request = write_request(1, 0);
	request.opcode = MLX5_OPCODE_RDMA_READ;
	request.lkey = NO_KEY;
	put(&request);
	request = write_request(1, 0);
	request.opcode = MLX5_OPCODE_RDMA_READ;
	put(&request);
	good(2, 0);
	run();
	expect_cqe(&dci_cq[0], indices[seen++], MLX5_CQE_SYNDROME_LOCAL_PROT_ERR);
	expect(FLUSH);
	expect(OK);
	expect_end(IBV_QPS_RTS);
}

/* Local operations of other streams, which are executed at once, complete in order; those of the stream are flushed. */
TEST(local_operations)
{
	struct mlx5_wqe_ctrl_seg nop;

	simple_start(4);
	nop = ctrl_segment(&dci[0], MLX5_OPCODE_NOP, 1);
	bad_there(1, 0);
	indices[posted++] = dci[0].posted;
	put_nop(&dci[0]);
	nop.dci_stream_channel_id = htobe16(1);
	indices[posted++] = dci[0].posted;
	nop.opmod_idx_opcode = htobe32((uint32_t)dci[0].posted << 8 | MLX5_OPCODE_NOP);
	put_wqe(&dci[0], &nop, 1, 1);
	good(1, 0);
	ring(&dci[0]);
	dc_settle();
	expect(MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR);
	expect_cqe(&dci_cq[0], indices[seen++], OK);
	expect_cqe(&dci_cq[0], indices[seen++], FLUSH);
	expect(FLUSH);
	expect_end(IBV_QPS_RTS);
}

/* A WQE that is not a valid request. */
TEST(malformed)
{
	struct mlx5_wqe_ctrl_seg ctrl;

	simple_start(4);
	ctrl = ctrl_segment(&dci[0], 0x77, 1);
	ctrl.dci_stream_channel_id = htobe16(1);
	indices[posted++] = dci[0].posted;
	put_wqe(&dci[0], &ctrl, 1, 1);
	good(2, 0);
	/* It is not read any more. */
	ctrl = ctrl_segment(&dci[0], 0x77, 1);
	ctrl.dci_stream_channel_id = htobe16(1);
	indices[posted++] = dci[0].posted;
	put_wqe(&dci[0], &ctrl, 1, 1);
	run();
	expect_cqe(&dci_cq[0], indices[seen++], MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR);
	expect(OK);
	expect(FLUSH);
	expect_end(IBV_QPS_RTS);
}

/* mlx5-formats 6, no. 46: a flushed request of completion mode 1 has no completion. */
TEST(no_completion_asked)
{
	struct dc_request request;
	uint32_t word;

	simple_start(4);
	bad_here(1, 0);
	request = write_request(1, 0);
	put(&request);
	/* fm_ce_se is byte 11 of the WQE. */
	memcpy(&word, dci[0].sq + indices[1] * 64 + 8, 4);
	word = (word & htobe32(0xffffff00)) | htobe32(0x04);
	memcpy(dci[0].sq + indices[1] * 64 + 8, &word, 4);
	good(1, 0);
	run();
	expect(MLX5_CQE_SYNDROME_LOCAL_PROT_ERR);
	seen++;
	expect(FLUSH);
	expect_end(IBV_QPS_RTS);
}

/* ---- over a wire that loses packets ---------------------------------------------------------------------------- */

/* The outcome is the same whichever packet is affected. */
TEST(one_mishap)
{
	const struct ibv_qp_attr options = dc_options();

	for (int verdict = WIRE_DROP; verdict <= WIRE_DELAY; verdict++) {
		struct mishap mishap = {.verdict = (enum wire_verdict)verdict};

		while (mishap_next(&mishap)) {
			start(4, &options, mishap_filter, &mishap);
			good(1, 0);
			good(2, 0);
			bad_there(2, 0);
			good(1, 1);
			good(2, 1);
			bad_here(3, 1);
			good(1, 0);
			good(3, 0);
			run();
			expect(OK);
			expect(OK);
			expect(MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR);
			expect(OK);
			expect(FLUSH);
			expect(MLX5_CQE_SYNDROME_LOCAL_PROT_ERR);
			expect(OK);
			expect(FLUSH);
			assert_int_equal(reset_stream(2), 0);
			assert_int_equal(reset_stream(3), 0);
			good(2, 1);
			good(3, 0);
			run();
			expect(OK);
			expect(OK);
			expect_end(IBV_QPS_RTS);
		}
	}
}

int main(void)
{
	return run_cases(.group_setup = device_group_open, .group_teardown = device_group_close);
}
