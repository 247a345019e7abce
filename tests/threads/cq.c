/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A CQ and an SRQ in the hands of many threads: two that post, two that poll, one that resizes, one that waits for
 * events. Every request completes exactly once, whatever meets what.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>

#include "../api/queue_pair.h"

enum { FLOWS = 2, REQUESTS = 20000, WINDOW = 48 };

static struct queue_pair q[FLOWS];
static struct ibv_comp_channel *channel;
static struct ibv_cq *cq;
static struct ibv_srq *srq;
static uint32_t seen[FLOWS][REQUESTS]; /* times that the request completed; atomic */
static uint32_t completed[FLOWS];      /* atomic */
static uint32_t received;              /* atomic */
static int stop;                       /* atomic */

static bool running(void)
{
	return !__atomic_load_n(&stop, __ATOMIC_ACQUIRE);
}

static void open_all(void)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 63, .max_sge = 1}};

	memset(seen, 0, sizeof(seen));
	memset(completed, 0, sizeof(completed));
	received = 0;
	stop = 0;
	queue_pair_open(&q[0]);
	channel = ibv_create_comp_channel(q[0].pair.context);
	assert_non_null(channel);
	assert_int_equal(fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK), 0);
	cq = ibv_create_cq(q[0].pair.context, 255, NULL, channel, 0);
	assert_non_null(cq);
	srq = ibv_create_srq(q[0].pair.pd, &attr);
	assert_non_null(srq);
	for (uint32_t i = 1; i < FLOWS; i++) {
		q[i] = q[0];
		q[i].flow = i;
	}
	for (int i = 0; i < FLOWS; i++)
		queue_pair_connect(&q[i], cq, cq, srq);
}

static void close_all(void)
{
	for (int i = 0; i < FLOWS; i++)
		queue_pair_disconnect(&q[i]);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_destroy_comp_channel(channel), 0);
	queue_pair_close(&q[0]);
}

/* wr_id: flow << 32 | number; receives have the top bit. */
#define RECEIVE (UINT64_C(1) << 63)

static void *write_all(void *argument)
{
	uint64_t flow = (uintptr_t)argument;

	for (uint64_t i = 0; i < REQUESTS; i++) {
		while (i - __atomic_load_n(&completed[flow], __ATOMIC_ACQUIRE) >= WINDOW)
			sched_yield();
		write_message(&q[flow], flow << 32 | i);
	}
	return NULL;
}

/* A receive for each send, before it: at most WINDOW of both flows together are posted. */
static void *send_all(void *argument)
{
	uint64_t flow = (uintptr_t)argument;

	for (uint64_t i = 0; i < REQUESTS; i++) {
		while (i - __atomic_load_n(&completed[flow], __ATOMIC_ACQUIRE) >= WINDOW / FLOWS)
			sched_yield();
		while (post_to_srq(&q[flow], srq, RECEIVE | i))
			sched_yield();
		send_message(&q[flow], flow << 32 | i, 0);
	}
	return NULL;
}

static void *poll_all(void *unused)
{
	struct ibv_wc wc[7];

	(void)unused;
	while (running()) {
		int found = ibv_poll_cq(cq, 7, wc);

		assert_true(found >= 0);
		for (int i = 0; i < found; i++) {
			uint32_t flow = wc[i].wr_id >> 32;

			assert_int_equal(wc[i].status, IBV_WC_SUCCESS);
			if (wc[i].wr_id & RECEIVE) {
				__atomic_add_fetch(&received, 1, __ATOMIC_RELAXED);
				continue;
			}
			__atomic_add_fetch(&seen[flow][(uint32_t)wc[i].wr_id], 1, __ATOMIC_RELAXED);
			__atomic_add_fetch(&completed[flow], 1, __ATOMIC_RELEASE);
		}
		if (!found)
			sched_yield();
	}
	return NULL;
}

static void *resize_all(void *unused)
{
	static const int sizes[] = {511, 1023, 255};

	(void)unused;
	for (int i = 0; running(); i++) {
		struct ibv_srq_attr attr = {.max_wr = 63 + i % 500};

		assert_int_equal(ibv_resize_cq(cq, sizes[i % 3]), 0);
		assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), 0);
		sched_yield();
	}
	return NULL;
}

static void *take_events(void *unused)
{
	struct pollfd fd = {.fd = channel->fd, .events = POLLIN};
	struct ibv_cq *of;
	void *context;

	(void)unused;
	while (running()) {
		assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
		if (poll(&fd, 1, 1) != 1 || ibv_get_cq_event(channel, &of, &context))
			continue;
		assert_ptr_equal(of, cq);
		ibv_ack_cq_events(of, 1);
	}
	return NULL;
}

static void run(void *(*post)(void *))
{
	void *(*const others[])(void *) = {poll_all, poll_all, resize_all, take_events};
	pthread_t posters[FLOWS], threads[4];

	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, others[i], NULL), 0);
	for (uintptr_t i = 0; i < FLOWS; i++)
		assert_int_equal(pthread_create(&posters[i], NULL, post, (void *)i), 0);
	for (int i = 0; i < FLOWS; i++)
		pthread_join(posters[i], NULL);
	for (int i = 0; i < FLOWS; i++)
		while (__atomic_load_n(&completed[i], __ATOMIC_ACQUIRE) < REQUESTS)
			sched_yield();
	while (post == send_all && __atomic_load_n(&received, __ATOMIC_ACQUIRE) < FLOWS * REQUESTS)
		sched_yield();
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	for (int flow = 0; flow < FLOWS; flow++)
		for (int i = 0; i < REQUESTS; i++)
			assert_int_equal(seen[flow][i], 1);
}

static void writes(void)
{
	open_all();
	run(write_all);
	close_all();
}

static void sends_to_an_srq(void)
{
	open_all();
	run(send_all);
	assert_int_equal(received, FLOWS * REQUESTS);
	close_all();
}

/* Not under cmocka's runner: a failed assertion in any thread then ends the program. */
int main(void)
{
	writes();
	sends_to_an_srq();
	return 0;
}
