/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules 900 to 949, continued: events that are acknowledged not at all or too often, and a queue pair destroyed while its
 * CQ is polled. */
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "../rdmacm/support.h"
#include "kernel_has.h"
#include "rule_cases.h"
#include "test_clock.h"
#include "support/words.h"

/* The other thread acknowledges after the warning: destroying waits for that, as on an adapter. */
static void wait_for_warning(void)
{
	static uint64_t last;
	struct softhca_explanation newest;

	for (int i = 0; i < 500; i++) {
		if (softhca_explanations(client.context, 0, &newest, 1) == 1 &&
		    newest.rule == RULE_EVENTS_UNACKNOWLEDGED && newest.serial != last)
			break;
		sleep_ms(10);
	}
	last = newest.serial;
}

static void *acknowledge(void *argument)
{
	wait_for_warning();
	ibv_ack_cq_events(argument, 1);
	return NULL;
}

static void *acknowledge_id(void *argument)
{
	wait_for_warning();
	assert_success(rdma_ack_cm_event(argument));
	return NULL;
}

/* Makes an id, takes its event, and returns both. */
static struct rdma_cm_id *id_with_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
	struct rdma_cm_id *id = new_id(channel, RDMA_PS_TCP);

	assert_success(rdma_resolve_addr(id, NULL, loopback(7471), TIMEOUT_MS));
	*event = next_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	return id;
}

/* rdma_destroy_id(3): the call waits for events of the id that were not acknowledged. */
static void id_unacknowledged(void)
{
	struct rdma_event_channel *channel = new_channel(), *other = new_channel();
	struct rdma_cm_event *event;
	struct rdma_cm_id *id = id_with_event(channel, &event);
	pthread_t thread;

	assert_success(rdma_ack_cm_event(event));
	assert_success(rdma_destroy_id(id));
	expect_no_misuse(EVENTS_UNACKNOWLEDGED);

	for (int migrate = 0; migrate < 2; migrate++) {
		id = id_with_event(channel, &event);
		expect_error(pthread_create(&thread, NULL, acknowledge_id, event), 0);
		assert_success(migrate ? rdma_migrate_id(id, other) : rdma_destroy_id(id));
		expect_error(pthread_join(thread, NULL), 0);
		expect_misuse(
			EVENTS_UNACKNOWLEDGED,
			"%s: destroying or migrating the rdma id waits for 1 events that were taken and not acknowledged",
			migrate ? "rdma_migrate_id" : "rdma_destroy_id");
		if (migrate)
			assert_success(rdma_destroy_id(id));
	}
	rdma_destroy_event_channel(channel);
	rdma_destroy_event_channel(other);
}

static struct ibv_cq *cq_with_event(struct ibv_comp_channel *channel, struct pair_options *options)
{
	struct ibv_cq *cq = ibv_create_cq(client.context, 16, NULL, channel, 0), *raised;
	void *cq_context;

	assert_non_null(cq);
	options->client_cq = cq;
	pair_replace(&pair, options);
	expect_error(ibv_req_notify_cq(cq, 0), 0);
	write_word(&pair.client, 1);
	expect_error(ibv_get_cq_event(channel, &raised, &cq_context), 0);
	assert_ptr_equal(raised, cq);
	expect_completion(&pair.client, 1, IBV_WC_RDMA_WRITE);
	options->client_cq = NULL;
	pair_replace(&pair, options);
	return cq;
}

RULE_CASE(EVENTS_UNACKNOWLEDGED, .lint = "on")
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(client.context);
	struct pair_options options = pair.options;
	struct ibv_cq *cq;
	pthread_t thread;

	assert_non_null(channel);
	cq = cq_with_event(channel, &options);
	ibv_ack_cq_events(cq, 1);
	expect_error(ibv_destroy_cq(cq), 0);
	id_unacknowledged();

	cq = cq_with_event(channel, &options);
	expect_error(pthread_create(&thread, NULL, acknowledge, cq), 0);
	expect_error(ibv_destroy_cq(cq), 0);
	expect_error(pthread_join(thread, NULL), 0);
	expect_misuse(
		EVENTS_UNACKNOWLEDGED,
		"ibv_destroy_cq: destroying or migrating the CQ waits for 1 events that were taken and not acknowledged");
	expect_error(ibv_destroy_comp_channel(channel), 0);
}

RULE_CASE(EVENTS_OVERACKNOWLEDGED, .lint = "on")
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(client.context);
	struct ibv_cq *cq;

	assert_non_null(channel);
	cq = ibv_create_cq(client.context, 16, NULL, channel, 0);
	assert_non_null(cq);
	ibv_ack_cq_events(cq, 0);
	expect_no_misuse(EVENTS_OVERACKNOWLEDGED);

	ibv_ack_cq_events(cq, 3);
	expect_misuse(EVENTS_OVERACKNOWLEDGED,
		      "ibv_ack_cq_events: 3 more events of CQ 0x%x are acknowledged than the program has taken",
		      cq->handle);
	expect_error(ibv_destroy_cq(cq), 0);
	expect_error(ibv_destroy_comp_channel(channel), 0);
}

/* ---- sleeping --------------------------------------------------------------------------------------------------- */

enum wait { WAIT_GET, WAIT_POLL, WAIT_EPOLL };

/* Causes a completion when the program has been warned, or after some time if @argument is NULL. */
static void *wake(void *argument)
{
	const uint64_t *serial = argument;
	struct softhca_explanation newest = {0};

	for (int i = 0; i < (serial ? 500 : 100); i++) {
		softhca_explanations(client.context, 0, &newest, 1);
		if (serial && newest.serial > *serial && newest.rule == RULE_SLEEPS_ON_COMPLETIONS)
			break;
		sleep_ms(10);
	}
	write_word(&pair.client, 3);
	return NULL;
}

static void wait_for_channel(struct ibv_comp_channel *channel, enum wait wait)
{
	struct pollfd polled = {.fd = channel->fd, .events = POLLIN};
	struct epoll_event event = {.events = EPOLLIN};
	int fd;

	switch (wait) {
	case WAIT_GET:
		break;
	case WAIT_POLL:
		assert_int_equal(poll(&polled, 1, -1), 1);
		break;
	case WAIT_EPOLL:
		fd = epoll_create1(EPOLL_CLOEXEC);
		assert_true(fd >= 0);
		assert_success(epoll_ctl(fd, EPOLL_CTL_ADD, channel->fd, &event));
		assert_int_equal(epoll_wait(fd, &event, 1, -1), 1);
		close(fd);
		break;
	}
}

static void take_event(struct ibv_comp_channel *channel, struct ibv_cq *cq)
{
	struct ibv_cq *raised;
	void *cq_context;

	expect_error(ibv_get_cq_event(channel, &raised, &cq_context), 0);
	assert_ptr_equal(raised, cq);
	ibv_ack_cq_events(cq, 1);
}

/*
 * Takes an event for two completions, arms the CQ, polls @polled of them, and sleeps until a third one arrives: when a warning
 * was made, if @warned.
 */
static void sleep_after(struct ibv_comp_channel *channel, struct ibv_cq *cq, int polled, enum wait wait, bool warned)
{
	struct softhca_explanation newest = {0};
	pthread_t thread;

	softhca_explanations(client.context, 0, &newest, 1);
	write_word(&pair.client, 1);
	write_word(&pair.client, 2);
	expect_error(ibv_req_notify_cq(cq, 0), 0);
	take_event(channel, cq);
	expect_error(ibv_req_notify_cq(cq, 0), 0);
	for (int i = 1; i <= polled; i++)
		expect_completion(&pair.client, (uint64_t)i, IBV_WC_RDMA_WRITE);
	expect_error(pthread_create(&thread, NULL, wake, warned ? &newest.serial : NULL), 0);
	wait_for_channel(channel, wait);
	take_event(channel, cq);
	expect_error(pthread_join(thread, NULL), 0);
	for (int i = polled + 1; i <= 3; i++)
		expect_completion(&pair.client, (uint64_t)i, IBV_WC_RDMA_WRITE);
}

/* Sleeps with @wait, after polling the CQ until it is empty or not. */
static void sleep_on_channel(struct ibv_comp_channel *channel, enum wait wait, bool warned)
{
	struct ibv_cq *cq = ibv_create_cq(client.context, 16, NULL, channel, 0);
	struct pair_options options = pair.options;

	assert_non_null(cq);
	options.client_cq = cq;
	pair_replace(&pair, &options);
	sleep_after(channel, cq, warned ? 1 : 2, wait, warned);
	if (warned)
		expect_misuse(
			SLEEPS_ON_COMPLETIONS,
			"%s: a thread waits for an event of CQ 0x%x, but 1 completions in it raise none: the last event "
			"reported them, and the thread armed the CQ without emptying it",
			wait == WAIT_GET ? "ibv_get_cq_event" : "ibv_req_notify_cq", cq->handle);
	options.client_cq = NULL;
	pair_replace(&pair, &options);
	expect_error(ibv_destroy_cq(cq), 0);
}

RULE_CASE(SLEEPS_ON_COMPLETIONS, .lint = "on")
{
	if (!kernel_has_names_of_calls())
		skip();
	struct ibv_comp_channel *channel = ibv_create_comp_channel(client.context);

	assert_non_null(channel);
	for (int wait = WAIT_GET; wait <= WAIT_EPOLL; wait++)
		sleep_on_channel(channel, (enum wait)wait, false);
	expect_no_misuse(SLEEPS_ON_COMPLETIONS);
	for (int wait = WAIT_GET; wait <= WAIT_EPOLL; wait++)
		sleep_on_channel(channel, (enum wait)wait, true);
	expect_error(ibv_destroy_comp_channel(channel), 0);
	side_accept(&server);
}

/* ---- polling ---------------------------------------------------------------------------------------------------- */

static void write_and_start_poll(struct ibv_cq_ex *cq)
{
	struct ibv_poll_cq_attr attr = {0};

	write_word(&pair.client, 1);
	while (ibv_start_poll(cq, &attr) == ENOENT)
		;
	assert_int_equal(cq->wr_id, 1);
}

RULE_CASE(DESTROYED_IN_POLL, .lint = "on")
{
	struct ibv_cq_init_attr_ex attr = {.cqe = 16,
					   .wc_flags = IBV_WC_STANDARD_FLAGS,
					   .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
					   .flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED};
	struct ibv_cq_ex *cq = ibv_create_cq_ex(client.context, &attr);
	struct pair_options options = pair.options;
	uint32_t number;

	assert_non_null(cq);
	options.client_cq = ibv_cq_ex_to_cq(cq);
	pair_replace(&pair, &options);
	write_and_start_poll(cq);
	ibv_end_poll(cq);
	pair_renew(&pair);
	expect_no_misuse(DESTROYED_IN_POLL);

	write_and_start_poll(cq);
	number = pair.client.qp->qp_num;
	endpoint_destroy_qp(&pair.client);
	expect_misuse(
		DESTROYED_IN_POLL,
		"qp 0x%x ibv_destroy_qp: the queue pair is destroyed between ibv_start_poll() and ibv_end_poll() of CQ "
		"0x%x in the same thread",
		number, options.client_cq->handle);
	ibv_end_poll(cq);
	options.client_cq = NULL;
	pair_replace(&pair, &options);
	expect_error(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	side_accept(&server);
}
