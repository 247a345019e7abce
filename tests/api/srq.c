/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared receive queues through the ABI: errors, capacity, limit event, resize under load, extended creation. */
#include "support/event.h"
#include "support/program.h"
#include "support/words.h"

static struct ibv_srq *srq; /* of the server */

/* Opens an SRQ and connects the server's QP to it. */
static void open_srq(uint32_t max_wr)
{
	struct ibv_srq_init_attr attr = {.srq_context = &server, .attr = {.max_wr = max_wr, .max_sge = 1}};
	struct pair_options options = pair_defaults(IBV_QPT_RC);

	srq = ibv_create_srq(server.pd, &attr);
	assert_non_null(srq);
	options.srq = srq;
	pair_replace(&pair, &options);
}

static void close_srq(void)
{
	struct pair_options options = pair_defaults(IBV_QPT_RC);

	expect_error(ibv_destroy_srq(srq), EBUSY);
	pair_replace(&pair, &options);
	expect_error(ibv_destroy_srq(srq), 0);
}

/* Returns what ibv_post_srq_recv(3) returns. */
static int post_to_srq(uint64_t wr_id)
{
	struct ibv_sge sge = word_sink(&server, wr_id);
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;

	return ibv_post_srq_recv(srq, &wr, &bad);
}

/* Sends a message that consumes the receive of @wr_id. */
static void send_and_expect(uint64_t wr_id)
{
	send_word(&pair.client, wr_id, wr_id, 0);
	expect_completion(&pair.client, wr_id, IBV_WC_SEND);
}

static void expect_received(uint64_t wr_id)
{
	expect_completion(&pair.server, wr_id, IBV_WC_RECV);
}

TEST(creation)
{
	static const struct {
		uint32_t max_wr, max_sge, got_wr, got_sge;
	} rows[] = {{1, 1, 1, 1}, {2, 2, 3, 3}, {100, 4, 127, 7}, {4095, 16, 4095, 31}, {4096, 0, 8191, 1}};
	struct ibv_srq_init_attr attr = {0};
	struct ibv_device_attr device;
	struct ibv_srq_attr got;
	uint32_t number;

	assert_int_equal(ibv_query_device(server.context, &device), 0);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		attr.attr = (struct ibv_srq_attr){rows[i].max_wr, rows[i].max_sge, 77};
		srq = ibv_create_srq(server.pd, &attr);
		assert_non_null(srq);
		assert_int_equal(attr.attr.max_wr, rows[i].got_wr);
		assert_int_equal(attr.attr.max_sge, rows[i].got_sge);
		assert_int_equal(ibv_query_srq(srq, &got), 0);
		assert_int_equal(got.max_wr, rows[i].got_wr);
		assert_int_equal(got.max_sge, rows[i].got_sge);
		assert_int_equal(got.srq_limit, 0); /* irrelevant at creation */
		assert_int_equal(ibv_get_srq_num(srq, &number), 0);
		assert_true(number <= 0xffffff);
		assert_ptr_equal(srq->pd, server.pd);
		assert_ptr_equal(srq->context, server.context);
		assert_int_equal(ibv_destroy_srq(srq), 0);
	}
	attr.attr = (struct ibv_srq_attr){device.max_srq_wr, device.max_srq_sge, 0};
	srq = ibv_create_srq(server.pd, &attr);
	assert_non_null(srq);
	assert_int_equal(ibv_destroy_srq(srq), 0);

	attr.attr = (struct ibv_srq_attr){device.max_srq_wr + 1, 1, 0};
	expect_null(ibv_create_srq(server.pd, &attr), EINVAL);
	attr.attr = (struct ibv_srq_attr){1, device.max_srq_sge + 1, 0};
	expect_null(ibv_create_srq(server.pd, &attr), EINVAL);
	attr.attr = (struct ibv_srq_attr){UINT32_MAX, UINT32_MAX, 0};
	expect_null(ibv_create_srq(server.pd, &attr), EINVAL);
}

TEST(extended_creation)
{
	struct ibv_srq_init_attr_ex attr = {.attr = {.max_wr = 10, .max_sge = 1}};
	static const struct {
		uint32_t comp_mask;
		enum ibv_srq_type type;
		int error;
	} rows[] = {
		{IBV_SRQ_INIT_ATTR_PD, 0, 0},
		{IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE, IBV_SRQT_BASIC, 0},
		{IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ, 0, 0},
		{IBV_SRQ_INIT_ATTR_TYPE, IBV_SRQT_BASIC, EINVAL},
		{0, 0, EINVAL},
		{IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE, IBV_SRQT_TM + 1, EINVAL},
		{IBV_SRQ_INIT_ATTR_PD | 1 << 5, 0, EOPNOTSUPP},
		{IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE, IBV_SRQT_XRC, EINVAL},
		{IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE, IBV_SRQT_TM, EOPNOTSUPP},
	};

	attr.pd = server.pd;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		attr.comp_mask = rows[i].comp_mask;
		attr.srq_type = rows[i].type;
		attr.attr.max_wr = 10;
		errno = 0;
		srq = ibv_create_srq_ex(server.context, &attr);
		if (!srq != !!rows[i].error || (!srq && errno != rows[i].error))
			fail_msg("row %zu: %s", i, strerror(errno));
		if (srq) {
			assert_int_equal(attr.attr.max_wr, 15);
			assert_int_equal(ibv_destroy_srq(srq), 0);
		}
	}
}

/* Many laps of the list with receives outstanding, completions polled late and in turn. */
TEST(traffic)
{
	uint64_t posted = 0, sent = 0, polled = 0;

	open_srq(7);
	srand(3);
	while (polled < 3000) {
		switch (rand() % 3) {
		case 0:
			if (posted - polled == 7)
				assert_int_equal(post_to_srq(posted), ENOMEM);
			else
				assert_int_equal(post_to_srq(posted++), 0);
			break;
		case 1:
			if (sent < posted)
				send_and_expect(sent++);
			break;
		default:
			if (polled < sent)
				expect_received(polled++);
		}
	}
	close_srq();
}

/* ibv_modify_srq(3): raised once when the number of posted WRs drops below the limit, then disarmed. */
TEST(limit_event)
{
	struct ibv_srq_attr attr = {.srq_limit = 2};

	open_srq(15);
	for (int i = 0; i < 4; i++)
		assert_int_equal(post_to_srq(i), 0);
	assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), 0);
	assert_int_equal(ibv_query_srq(srq, &attr), 0);
	assert_int_equal(attr.srq_limit, 2);
	send_and_expect(0);
	send_and_expect(1);
	expect_no_event(&server); /* two are left */
	send_and_expect(2);
	expect_event(&server, IBV_EVENT_SRQ_LIMIT_REACHED, srq);
	assert_int_equal(ibv_query_srq(srq, &attr), 0);
	assert_int_equal(attr.srq_limit, 0);
	send_and_expect(3);
	expect_no_event(&server);
	close_srq();
}

TEST(modify_refusals)
{
	struct ibv_srq_attr attr = {.max_wr = 31, .srq_limit = 32}, got;

	open_srq(15);
	for (int i = 0; i < 9; i++)
		assert_int_equal(post_to_srq(i), 0);
	/* Nothing is modified if anything is wrong. */
	assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), EINVAL);
	attr.srq_limit = 16;
	assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), EINVAL);
	attr.srq_limit = 1;
	attr.max_wr = 8; /* nine are posted */
	assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), EINVAL);
	attr.max_wr = UINT32_MAX;
	assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), EINVAL);
	assert_int_equal(ibv_modify_srq(srq, &attr, 1 << 2), EINVAL);
	assert_int_equal(ibv_query_srq(srq, &got), 0);
	assert_int_equal(got.max_wr, 15);
	assert_int_equal(got.srq_limit, 0);
	assert_int_equal(ibv_modify_srq(srq, &attr, 0), 0);
	close_srq();
}

/* Receives that are posted, consumed or not yet polled, in every mixture, survive growing and shrinking. */
TEST(resize_under_load)
{
	static const uint32_t sizes[] = {7, 15, 127, 20, 1023, 7, 2047};
	uint64_t posted = 0, sent = 0, polled = 0;
	uint32_t max_wr = 7;

	open_srq(7);
	srand(4);
	for (int round = 0; round < 7; round++) {
		struct ibv_srq_attr attr = {.max_wr = sizes[round]};
		int error = ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR);

		assert_int_equal(error, sizes[round] < posted - polled ? EINVAL : 0);
		assert_int_equal(ibv_query_srq(srq, &attr), 0);
		if (!error) {
			assert_true(attr.max_wr >= sizes[round]);
			max_wr = attr.max_wr;
		}
		assert_int_equal(attr.max_wr, max_wr);
		for (int step = 0; step < 400; step++) {
			switch (rand() % 4) {
			case 0:
			case 1:
				error = post_to_srq(posted);
				assert_int_equal(error, posted - polled == max_wr ? ENOMEM : 0);
				posted += !error;
				break;
			case 2:
				if (sent < posted && sent - polled < 200)
					send_and_expect(sent++);
				break;
			default:
				if (polled < sent)
					expect_received(polled++);
			}
		}
		/* Before a smaller one, make room. */
		while (round + 1 < 7 && posted - polled > sizes[round + 1]) {
			while (sent < posted && sent - polled < 200)
				send_and_expect(sent++);
			expect_received(polled++);
		}
	}
	while (sent < posted) {
		if (sent - polled == 200)
			expect_received(polled++);
		send_and_expect(sent++);
	}
	while (polled < sent)
		expect_received(polled++);
	close_srq();
}

/* Receives of a destroyed QP return to the SRQ, which stays usable. */
TEST(reset_gives_entries_back)
{
	struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};

	open_srq(3);
	for (int round = 0; round < 10; round++) {
		for (int i = 0; i < 3; i++)
			assert_int_equal(post_to_srq(i), 0);
		for (int i = 0; i < 3; i++)
			send_and_expect(i);
		assert_int_equal(post_to_srq(3), ENOMEM); /* none was polled */
		assert_int_equal(ibv_modify_qp(pair.server.qp, &reset, IBV_QP_STATE), 0);
		expect_idle(&pair.server);
		pair_renew(&pair);
	}
	close_srq();
}
