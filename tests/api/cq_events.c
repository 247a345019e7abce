/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests completion events through the ABI: ibv_req_notify_cq(3), ibv_get_cq_event(3), acknowledgement, moderation. */
#include "test_clock.h"
#include "support/words.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/wait.h>

/* Both QPs are on one side, so that their CQs share a channel. */
static struct side side;
static struct pair pair;
static struct ibv_comp_channel *channel;
static struct ibv_cq *send_cq, *recv_cq;

static int set_up(void **state)
{
	struct pair_options options = pair_defaults(IBV_QPT_RC);

	(void)state;
	note_clear();
	side_open(&side, "side", SIDE_BYTES, 0);
	channel = ibv_create_comp_channel(side.context);
	assert_non_null(channel);
	send_cq = ibv_create_cq(side.context, 63, &side, channel, 0);
	recv_cq = ibv_create_cq(side.context, 63, NULL, channel, 0);
	assert_non_null(send_cq);
	assert_non_null(recv_cq);
	options.client_cq = send_cq;
	options.server_cq = recv_cq;
	pair_open(&pair, &side, &side, &options);
	return 0;
}

/* Destroys the objects; those that a case has already destroyed are NULL. */
static int tear_down(void **state)
{
	(void)state;
	if (pair.client.qp)
		pair_close(&pair);
	if (send_cq)
		expect_error(ibv_destroy_cq(send_cq), 0);
	expect_error(ibv_destroy_comp_channel(channel), EBUSY);
	expect_error(ibv_destroy_cq(recv_cq), 0);
	expect_error(ibv_destroy_comp_channel(channel), 0);
	side_close(&side);
	return 0;
}

static void close_pair(void)
{
	pair_close(&pair);
	pair.client.qp = NULL;
}

/* Posts a WRITE of the client, which completes in send_cq. */
static void write_message(uint64_t wr_id)
{
	write_word(&pair.client, wr_id);
}

static void expect_written(uint64_t wr_id)
{
	expect_completion(&pair.client, wr_id, IBV_WC_RDMA_WRITE);
}

static bool event_waits(int timeout_ms)
{
	struct pollfd fd = {.fd = channel->fd, .events = POLLIN};

	return poll(&fd, 1, timeout_ms) == 1;
}

/* Takes the pending event and checks that it belongs to @expected. */
static void take(struct ibv_cq *expected)
{
	struct ibv_cq *cq;
	void *context;

	if (!event_waits(2000))
		fail_msg("no event");
	assert_int_equal(ibv_get_cq_event(channel, &cq, &context), 0);
	assert_ptr_equal(cq, expected);
	assert_ptr_equal(context, expected == send_cq ? &side : NULL);
	ibv_ack_cq_events(cq, 1);
}

TEST(one_event_per_request)
{
	write_message(1);
	assert_false(event_waits(0)); /* not armed */
	expect_written(1);
	for (int i = 0; i < 10; i++) { /* through all serial numbers */
		assert_int_equal(ibv_req_notify_cq(send_cq, 0), 0);
		assert_false(event_waits(0));
		write_message(2);
		write_message(3);
		take(send_cq);
		assert_false(event_waits(0));
		expect_written(2);
		expect_written(3);
	}
	/* Armed twice before a completion: one event. */
	assert_int_equal(ibv_req_notify_cq(send_cq, 0), 0);
	assert_int_equal(ibv_req_notify_cq(send_cq, 0), 0);
	write_message(4);
	take(send_cq);
	assert_false(event_waits(0));
}

/* Arming closes the race of the man page's example: a completion between poll and arming raises an event. */
TEST(completions_that_wait_raise_the_event)
{
	write_message(1);
	assert_int_equal(ibv_req_notify_cq(send_cq, 0), 0);
	take(send_cq);
	expect_written(1);
	assert_int_equal(ibv_req_notify_cq(send_cq, 0), 0);
	assert_false(event_waits(0));
}

TEST(solicited_only)
{
	struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};

	for (int i = 0; i < 4; i++) {
		struct ibv_sge sink = word_sink(&side, 10 + i);

		post_receive(&pair.server, 10 + i, &sink, 1);
	}
	assert_int_equal(ibv_req_notify_cq(recv_cq, 1), 0);
	send_word(&pair.client, 1, 10, 0);
	assert_false(event_waits(0));
	send_word(&pair.client, 2, 11, IBV_SEND_SOLICITED);
	take(recv_cq);
	/* A failed completion is always solicited. */
	expect_completion(&pair.server, 10, IBV_WC_RECV);
	expect_completion(&pair.server, 11, IBV_WC_RECV);
	assert_int_equal(ibv_req_notify_cq(recv_cq, 1), 0);
	assert_false(event_waits(0));
	assert_int_equal(ibv_modify_qp(pair.server.qp, &error, IBV_QP_STATE), 0);
	take(recv_cq);
}

TEST(a_channel_without_events_would_block)
{
	struct ibv_cq *cq;
	void *context;

	assert_int_equal(fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK), 0);
	assert_int_equal(ibv_get_cq_event(channel, &cq, &context), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(ibv_req_notify_cq(send_cq, 0), 0);
	write_message(1);
	take(send_cq);
}

TEST(moderated_events)
{
	struct ibv_modify_cq_attr attr = {.attr_mask = IBV_CQ_ATTR_MODERATE,
					  .moderate = {.cq_count = 3, .cq_period = 4000}};

	assert_int_equal(ibv_modify_cq(send_cq, &attr), 0);
	/* Moderation by number … */
	assert_int_equal(ibv_req_notify_cq(send_cq, 0), 0);
	for (int i = 0; i < 3; i++)
		write_message(i);
	assert_true(event_waits(0));
	take(send_cq);
	for (int i = 0; i < 3; i++)
		expect_written(i);
	/* … and by time. */
	assert_int_equal(ibv_req_notify_cq(send_cq, 0), 0);
	write_message(9);
	take(send_cq);
	expect_written(9);
	attr.moderate = (struct ibv_moderate_cq){0};
	assert_int_equal(ibv_modify_cq(send_cq, &attr), 0);
	assert_int_equal(ibv_req_notify_cq(send_cq, 0), 0);
	write_message(10);
	assert_true(event_waits(0));
	take(send_cq);
}

/* Destroying a CQ drops its pending events; the channel keeps only those of other CQs. */
TEST(destroy_drops_events)
{
	assert_int_equal(ibv_req_notify_cq(send_cq, 0), 0);
	write_message(1);
	assert_true(event_waits(0));
	close_pair();
	assert_int_equal(ibv_destroy_cq(send_cq), 0);
	send_cq = NULL;
	assert_false(event_waits(0));
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
TEST(destroy_waits_for_acknowledgement)
{
	struct ibv_cq *cq;
	pthread_t thread;
	void *context, *result;

	destroyed = 0;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(ibv_req_notify_cq(send_cq, 0), 0);
		write_message(i);
		assert_int_equal(ibv_get_cq_event(channel, &cq, &context), 0);
		expect_written(i);
	}
	close_pair();
	assert_int_equal(pthread_create(&thread, NULL, destroy, NULL), 0);
	sleep_ms(50);
	assert_false(__atomic_load_n(&destroyed, __ATOMIC_ACQUIRE));
	ibv_ack_cq_events(cq, 1);
	sleep_ms(50);
	assert_false(__atomic_load_n(&destroyed, __ATOMIC_ACQUIRE));
	ibv_ack_cq_events(cq, 1);
	pthread_join(thread, &result);
	assert_null(result);
	send_cq = NULL;
}

/*
 * Completes a receive in recv_cq by the flush of a new QP, as the child cannot modify the parent's QPs. Returns false on failure.
 */
static bool flush_receive(void)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = recv_cq, .recv_cq = recv_cq, .cap = {.max_recv_wr = 1}, .qp_type = IBV_QPT_RC};
	struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1}, error = {.qp_state = IBV_QPS_ERR};
	struct ibv_recv_wr *bad, wr = {.num_sge = 0};
	struct ibv_qp *qp = ibv_create_qp(side.pd, &attr);

	return qp && !ibv_modify_qp(qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) &&
	       !ibv_post_recv(qp, &wr, &bad) && !ibv_modify_qp(qp, &error, IBV_QP_STATE) && event_waits(2000) &&
	       !ibv_destroy_qp(qp);
}

/* Uses and destroys the child's copies. Returns 0, or the number of the step that failed. */
static int child_of_fork(void)
{
	struct ibv_cq *cq;
	void *context;

	if (!event_waits(0) || ibv_get_cq_event(channel, &cq, &context) || cq != send_cq)
		return 1;
	ibv_ack_cq_events(cq, 1);
	if (event_waits(0))
		return 2;
	/* A new event, which is dropped with its CQ. */
	if (ibv_req_notify_cq(recv_cq, 0) || !flush_receive())
		return 3;
	if (ibv_destroy_qp(pair.client.qp) || ibv_destroy_qp(pair.server.qp) || ibv_destroy_cq(send_cq) ||
	    ibv_destroy_cq(recv_cq) || event_waits(0))
		return 4;
	return ibv_destroy_comp_channel(channel) ? 5 : 0;
}

/* fork(2): the child has its own copies of the objects and its own events. */
TEST(forked_child)
{
	struct ibv_sge sink = word_sink(&side, 10);
	int status;
	pid_t child;

	post_receive(&pair.server, 10, &sink, 1);
	assert_int_equal(fcntl(channel->fd, F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(ibv_req_notify_cq(send_cq, 0), 0);
	write_message(1);
	child = fork();
	if (!child)
		_exit(child_of_fork());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	take(send_cq);
	assert_false(event_waits(0));
	expect_written(1);
}

int main(void)
{
	return run_cases(.setup = set_up, .teardown = tear_down);
}
