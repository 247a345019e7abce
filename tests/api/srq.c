/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared receive queues through the ABI: what is refused, capacity, limit event, resize under load, extended creation. */
#include <poll.h>

#include "queue_pair.h"

static struct queue_pair q;
static struct ibv_cq *send_cq, *recv_cq;
static struct ibv_srq *srq;

static void open_all(uint32_t max_wr)
{
	struct ibv_srq_init_attr attr = {.srq_context = &q, .attr = {.max_wr = max_wr, .max_sge = 1}};

	queue_pair_open(&q);
	send_cq = ibv_create_cq(q.pair.context, 255, NULL, NULL, 0);
	recv_cq = ibv_create_cq(q.pair.context, 255, NULL, NULL, 0);
	assert_non_null(send_cq);
	assert_non_null(recv_cq);
	srq = ibv_create_srq(q.pair.pd, &attr);
	assert_non_null(srq);
	queue_pair_connect(&q, send_cq, recv_cq, srq);
}

static void close_all(void)
{
	assert_int_equal(ibv_destroy_srq(srq), EBUSY);
	queue_pair_disconnect(&q);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_destroy_cq(send_cq), 0);
	assert_int_equal(ibv_destroy_cq(recv_cq), 0);
	queue_pair_close(&q);
}

static void send_and_expect(uint64_t wr_id)
{
	send_message(&q, wr_id, 0);
	expect_completion(send_cq, wr_id);
}

static void creation(void **state)
{
	static const struct {
		uint32_t max_wr, max_sge, got_wr, got_sge;
	} rows[] = {{1, 1, 1, 1}, {2, 2, 3, 3}, {100, 4, 127, 7}, {4095, 16, 4095, 31}, {4096, 0, 8191, 1}};
	struct ibv_srq_init_attr attr = {0};
	struct ibv_device_attr device;
	struct ibv_srq_attr got;
	uint32_t number;

	(void)state;
	queue_pair_open(&q);
	assert_int_equal(ibv_query_device(q.pair.context, &device), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		attr.attr = (struct ibv_srq_attr){rows[i].max_wr, rows[i].max_sge, 77};
		srq = ibv_create_srq(q.pair.pd, &attr);
		assert_non_null(srq);
		assert_int_equal(attr.attr.max_wr, rows[i].got_wr);
		assert_int_equal(attr.attr.max_sge, rows[i].got_sge);
		assert_int_equal(ibv_query_srq(srq, &got), 0);
		assert_int_equal(got.max_wr, rows[i].got_wr);
		assert_int_equal(got.max_sge, rows[i].got_sge);
		assert_int_equal(got.srq_limit, 0); /* irrelevant at creation */
		assert_int_equal(ibv_get_srq_num(srq, &number), 0);
		assert_true(number <= 0xffffff);
		assert_ptr_equal(srq->pd, q.pair.pd);
		assert_ptr_equal(srq->context, q.pair.context);
		assert_int_equal(ibv_destroy_srq(srq), 0);
	}
	attr.attr = (struct ibv_srq_attr){device.max_srq_wr, device.max_srq_sge, 0};
	srq = ibv_create_srq(q.pair.pd, &attr);
	assert_non_null(srq);
	assert_int_equal(ibv_destroy_srq(srq), 0);

	attr.attr = (struct ibv_srq_attr){device.max_srq_wr + 1, 1, 0};
	assert_null(ibv_create_srq(q.pair.pd, &attr));
	assert_int_equal(errno, EINVAL);
	attr.attr = (struct ibv_srq_attr){1, device.max_srq_sge + 1, 0};
	assert_null(ibv_create_srq(q.pair.pd, &attr));
	assert_int_equal(errno, EINVAL);
	attr.attr = (struct ibv_srq_attr){UINT32_MAX, UINT32_MAX, 0};
	assert_null(ibv_create_srq(q.pair.pd, &attr));
	assert_int_equal(errno, EINVAL);
	queue_pair_close(&q);
}

static void extended_creation(void **state)
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
		{IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE, IBV_SRQT_XRC, EOPNOTSUPP},
		{IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE, IBV_SRQT_TM, EOPNOTSUPP},
	};

	(void)state;
	queue_pair_open(&q);
	attr.pd = q.pair.pd;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		attr.comp_mask = rows[i].comp_mask;
		attr.srq_type = rows[i].type;
		attr.attr.max_wr = 10;
		errno = 0;
		srq = ibv_create_srq_ex(q.pair.context, &attr);
		if (!srq != !!rows[i].error || (!srq && errno != rows[i].error))
			fail_msg("row %zu: %s", i, strerror(errno));
		if (srq) {
			assert_int_equal(attr.attr.max_wr, 15);
			assert_int_equal(ibv_destroy_srq(srq), 0);
		}
	}
	queue_pair_close(&q);
}

/* Many laps of the list with receives outstanding, completions polled late and in turn. */
static void traffic(void **state)
{
	uint64_t posted = 0, sent = 0, polled = 0;

	(void)state;
	open_all(7);
	srand(3);
	while (polled < 3000) {
		switch (rand() % 3) {
		case 0:
			if (posted - polled == 7)
				assert_int_equal(post_to_srq(&q, srq, posted), ENOMEM);
			else
				assert_int_equal(post_to_srq(&q, srq, posted++), 0);
			break;
		case 1:
			if (sent < posted)
				send_and_expect(sent++);
			break;
		default:
			if (polled < sent)
				expect_completion(recv_cq, polled++);
		}
	}
	close_all();
}

static bool event_waits(void)
{
	struct pollfd fd = {.fd = q.pair.context->async_fd, .events = POLLIN};

	return poll(&fd, 1, 0) == 1;
}

/* ibv_modify_srq(3): raised once when the number of posted WRs drops below the limit, then disarmed. */
static void limit_event(void **state)
{
	struct ibv_srq_attr attr = {.srq_limit = 2};
	struct ibv_async_event event;

	(void)state;
	open_all(15);
	for (int i = 0; i < 4; i++)
		assert_int_equal(post_to_srq(&q, srq, i), 0);
	assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), 0);
	assert_int_equal(ibv_query_srq(srq, &attr), 0);
	assert_int_equal(attr.srq_limit, 2);
	send_and_expect(0);
	send_and_expect(1);
	assert_false(event_waits()); /* two are left */
	send_and_expect(2);
	assert_int_equal(ibv_get_async_event(q.pair.context, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
	assert_ptr_equal(event.element.srq, srq);
	ibv_ack_async_event(&event);
	assert_int_equal(ibv_query_srq(srq, &attr), 0);
	assert_int_equal(attr.srq_limit, 0);
	send_and_expect(3);
	assert_false(event_waits());
	close_all();
}

static void modify_refusals(void **state)
{
	struct ibv_srq_attr attr = {.max_wr = 31, .srq_limit = 32}, got;

	(void)state;
	open_all(15);
	for (int i = 0; i < 9; i++)
		assert_int_equal(post_to_srq(&q, srq, i), 0);
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
	close_all();
}

/* Receives posted, consumed and not yet polled, in every mixture, live through growing and shrinking. */
static void resize_under_load(void **state)
{
	static const uint32_t sizes[] = {7, 15, 127, 20, 1023, 7, 2047};
	uint64_t posted = 0, sent = 0, polled = 0;
	uint32_t max_wr = 7;

	(void)state;
	open_all(7);
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
				error = post_to_srq(&q, srq, posted);
				assert_int_equal(error, posted - polled == max_wr ? ENOMEM : 0);
				posted += !error;
				break;
			case 2:
				if (sent < posted && sent - polled < 200)
					send_and_expect(sent++);
				break;
			default:
				if (polled < sent)
					expect_completion(recv_cq, polled++);
			}
		}
		/* Before a smaller one, make room. */
		while (round + 1 < 7 && posted - polled > sizes[round + 1]) {
			while (sent < posted && sent - polled < 200)
				send_and_expect(sent++);
			expect_completion(recv_cq, polled++);
		}
	}
	while (sent < posted) {
		if (sent - polled == 200)
			expect_completion(recv_cq, polled++);
		send_and_expect(sent++);
	}
	while (polled < sent)
		expect_completion(recv_cq, polled++);
	close_all();
}

/* Receives of a QP that goes come back to the SRQ, which lives on. */
static void reset_gives_entries_back(void **state)
{
	struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};

	(void)state;
	open_all(3);
	for (int round = 0; round < 10; round++) {
		for (int i = 0; i < 3; i++)
			assert_int_equal(post_to_srq(&q, srq, i), 0);
		for (int i = 0; i < 3; i++)
			send_and_expect(i);
		assert_int_equal(post_to_srq(&q, srq, 3), ENOMEM); /* none was polled */
		assert_int_equal(ibv_modify_qp(q.pair.qp[RECEIVER], &reset, IBV_QP_STATE), 0);
		expect_no_completion(recv_cq);
		queue_pair_disconnect(&q);
		queue_pair_connect(&q, send_cq, recv_cq, srq);
	}
	close_all();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(creation),
		cmocka_unit_test(extended_creation),
		cmocka_unit_test(traffic),
		cmocka_unit_test(limit_event),
		cmocka_unit_test(modify_refusals),
		cmocka_unit_test(resize_under_load),
		cmocka_unit_test(reset_gives_entries_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
