/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion events through the ABI: ibv_req_notify_cq(3), ibv_get_cq_event(3), acknowledgement, moderation. */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>

#include "queue_pair.h"

static struct queue_pair q;
static struct ibv_comp_channel *channel;
static struct ibv_cq *send_cq, *recv_cq;

static void open_all(void)
{
	queue_pair_open(&q);
	channel = ibv_create_comp_channel(q.pair.context);
	assert_non_null(channel);
	send_cq = ibv_create_cq(q.pair.context, 63, &q, channel, 0);
	recv_cq = ibv_create_cq(q.pair.context, 63, NULL, channel, 0);
	assert_non_null(send_cq);
	assert_non_null(recv_cq);
	queue_pair_connect(&q, send_cq, recv_cq, NULL);
}

static void close_all(void)
{
	queue_pair_disconnect(&q);
	assert_int_equal(ibv_destroy_cq(send_cq), 0);
	assert_int_equal(ibv_destroy_comp_channel(channel), EBUSY);
	assert_int_equal(ibv_destroy_cq(recv_cq), 0);
	assert_int_equal(ibv_destroy_comp_channel(channel), 0);
	queue_pair_close(&q);
}

static bool event_waits(int timeout_ms)
{
	struct pollfd fd = {.fd = channel->fd, .events = POLLIN};

	return poll(&fd, 1, timeout_ms) == 1;
}

/* Takes the event that must be there, of @expected. */
static void take(struct ibv_cq *expected)
{
	struct ibv_cq *cq;
	void *context;

	if (!event_waits(2000))
		fail_msg("no event");
	assert_int_equal(ibv_get_cq_event(channel, &cq, &context), 0);
	assert_ptr_equal(cq, expected);
	assert_ptr_equal(context, expected == send_cq ? &q : NULL);
	ibv_ack_cq_events(cq, 1);
}

static void one_event_per_request(void **state)
{
	(void)state;
	open_all();
	write_message(&q, 1);
	assert_false(event_waits(0)); /* not armed */
	expect_completion(send_cq, 1);
	for (int i = 0; i < 10; i++) { /* through all serial numbers */
		assert_int_equal(ibv_req_notify_cq(send_cq, 0), 0);
		assert_false(event_waits(0));
		write_message(&q, 2);
		write_message(&q, 3);
		take(send_cq);
		assert_false(event_waits(0));
		expect_completion(send_cq, 2);
		expect_completion(send_cq, 3);
	}
	/* Asked for twice before anything completes: one event. */
	assert_int_equal(ibv_req_notify_cq(send_cq, 0), 0);
	assert_int_equal(ibv_req_notify_cq(send_cq, 0), 0);
	write_message(&q, 4);
	take(send_cq);
	assert_false(event_waits(0));
	close_all();
}

/* The request closes the race of the man page's example: a completion that came between poll and request counts. */
static void completions_that_wait_raise_the_event(void **state)
{
	(void)state;
	open_all();
	write_message(&q, 1);
	assert_int_equal(ibv_req_notify_cq(send_cq, 0), 0);
	take(send_cq);
	expect_completion(send_cq, 1);
	assert_int_equal(ibv_req_notify_cq(send_cq, 0), 0);
	assert_false(event_waits(0));
	close_all();
}

static void solicited_only(void **state)
{
	struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};

	(void)state;
	open_all();
	for (int i = 0; i < 4; i++)
		post_receive(&q, 10 + i);
	assert_int_equal(ibv_req_notify_cq(recv_cq, 1), 0);
	send_message(&q, 1, 0);
	assert_false(event_waits(0));
	send_message(&q, 2, IBV_SEND_SOLICITED);
	take(recv_cq);
	/* A failed completion is always solicited. */
	expect_completion(recv_cq, 10);
	expect_completion(recv_cq, 11);
	assert_int_equal(ibv_req_notify_cq(recv_cq, 1), 0);
	assert_false(event_waits(0));
	assert_int_equal(ibv_modify_qp(q.pair.qp[RECEIVER], &error, IBV_QP_STATE), 0);
	take(recv_cq);
	close_all();
}

static void a_channel_without_events_would_block(void **state)
{
	struct ibv_cq *cq;
	void *context;

	(void)state;
	open_all();
	assert_int_equal(fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK), 0);
	assert_int_equal(ibv_get_cq_event(channel, &cq, &context), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(ibv_req_notify_cq(send_cq, 0), 0);
	write_message(&q, 1);
	take(send_cq);
	close_all();
}

static void moderated_events(void **state)
{
	struct ibv_modify_cq_attr attr = {.attr_mask = IBV_CQ_ATTR_MODERATE,
					  .moderate = {.cq_count = 3, .cq_period = 4000}};

	(void)state;
	open_all();
	assert_int_equal(ibv_modify_cq(send_cq, &attr), 0);
	/* By number … */
	assert_int_equal(ibv_req_notify_cq(send_cq, 0), 0);
	for (int i = 0; i < 3; i++)
		write_message(&q, i);
	assert_true(event_waits(0));
	take(send_cq);
	for (int i = 0; i < 3; i++)
		expect_completion(send_cq, i);
	/* … and by time. */
	assert_int_equal(ibv_req_notify_cq(send_cq, 0), 0);
	write_message(&q, 9);
	take(send_cq);
	expect_completion(send_cq, 9);
	attr.moderate = (struct ibv_moderate_cq){0};
	assert_int_equal(ibv_modify_cq(send_cq, &attr), 0);
	assert_int_equal(ibv_req_notify_cq(send_cq, 0), 0);
	write_message(&q, 10);
	assert_true(event_waits(0));
	take(send_cq);
	close_all();
}

/* Events not taken go with their CQ; the channel then has only those of others. */
static void destroy_drops_events(void **state)
{
	(void)state;
	open_all();
	assert_int_equal(ibv_req_notify_cq(send_cq, 0), 0);
	write_message(&q, 1);
	assert_true(event_waits(0));
	queue_pair_disconnect(&q);
	assert_int_equal(ibv_destroy_cq(send_cq), 0);
	assert_false(event_waits(0));
	assert_int_equal(ibv_destroy_cq(recv_cq), 0);
	assert_int_equal(ibv_destroy_comp_channel(channel), 0);
	queue_pair_close(&q);
}

static int destroyed; /* atomic */

static void *destroy(void *unused)
{
	int result = ibv_destroy_cq(send_cq);

	(void)unused;
	__atomic_store_n(&destroyed, 1, __ATOMIC_RELEASE);
	return (void *)(intptr_t)result;
}

/* ibv_get_cq_event(3): "destroying a CQ will wait for all completion events to be acknowledged". */
static void destroy_waits_for_acknowledgement(void **state)
{
	struct timespec while_ = {.tv_nsec = 50000000};
	struct ibv_cq *cq;
	pthread_t thread;
	void *context, *result;

	(void)state;
	open_all();
	destroyed = 0;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(ibv_req_notify_cq(send_cq, 0), 0);
		write_message(&q, i);
		assert_int_equal(ibv_get_cq_event(channel, &cq, &context), 0);
		expect_completion(send_cq, i);
	}
	queue_pair_disconnect(&q);
	assert_int_equal(pthread_create(&thread, NULL, destroy, NULL), 0);
	nanosleep(&while_, NULL);
	assert_false(__atomic_load_n(&destroyed, __ATOMIC_ACQUIRE));
	ibv_ack_cq_events(cq, 1);
	nanosleep(&while_, NULL);
	assert_false(__atomic_load_n(&destroyed, __ATOMIC_ACQUIRE));
	ibv_ack_cq_events(cq, 1);
	pthread_join(thread, &result);
	assert_null(result);
	assert_int_equal(ibv_destroy_cq(recv_cq), 0);
	assert_int_equal(ibv_destroy_comp_channel(channel), 0);
	queue_pair_close(&q);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_event_per_request),
		cmocka_unit_test(completions_that_wait_raise_the_event),
		cmocka_unit_test(solicited_only),
		cmocka_unit_test(a_channel_without_events_would_block),
		cmocka_unit_test(moderated_events),
		cmocka_unit_test(destroy_drops_events),
		cmocka_unit_test(destroy_waits_for_acknowledgement),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
