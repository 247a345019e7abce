/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv_get_async_event(3): "destroying an object (CQ, SRQ or QP) will wait for all affiliated events for the object to
 * be acknowledged"; events not taken are dropped with their object, and the descriptor is then not readable.
 */
#include <fcntl.h>
#include <poll.h>
#include "test_case.h"

#include "fixture.h"

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;

static int setup(void **state)
{
	(void)state;
	context = open_first_device();
	pd = ibv_alloc_pd(context);
	cq = ibv_create_cq(context, 15, NULL, NULL, 0);
	return pd && cq ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	return ibv_destroy_cq(cq) || ibv_dealloc_pd(pd) || ibv_close_device(context);
}

static struct ibv_srq *create_srq(void)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_srq *srq = ibv_create_srq(pd, &attr);

	assert_non_null(srq);
	return srq;
}

/* Creates a QP connected to itself. */
static struct ibv_qp *create_qp(struct ibv_srq *srq)
{
	struct ibv_qp *qp = make_qp(pd, IBV_QPT_RC, cq, cq, srq);

	to_init(qp);
	to_rts(qp, qp->qp_num);
	return qp;
}

/* A QP that receives from an SRQ and goes to the error state raises IBV_EVENT_QP_LAST_WQE_REACHED. */
static void raise_event_of(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
}

static bool event_waits(void)
{
	struct pollfd fd = {.fd = context->async_fd, .events = POLLIN};

	return poll(&fd, 1, 0) == 1;
}

struct destruction {
	struct ibv_qp *qp;
	int done; /* atomic */
};

static void *destroy(void *argument)
{
	struct destruction *destruction = argument;

	if (ibv_destroy_qp(destruction->qp))
		abort();
	__atomic_store_n(&destruction->done, 1, __ATOMIC_RELEASE);
	return NULL;
}

static bool is_done(struct destruction *destruction)
{
	return __atomic_load_n(&destruction->done, __ATOMIC_ACQUIRE);
}

TEST(destruction_waits_for_the_acknowledgement)
{
	struct ibv_srq *srq = create_srq();
	struct destruction destruction = {.qp = create_qp(srq)};
	struct ibv_async_event event;
	pthread_t thread;

	raise_event_of(destruction.qp);
	assert_int_equal(ibv_get_async_event(context, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
	assert_ptr_equal(event.element.qp, destruction.qp);
	assert_int_equal(pthread_create(&thread, NULL, destroy, &destruction), 0);
	usleep(100000);
	assert_false(is_done(&destruction));
	ibv_ack_async_event(&event);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(is_done(&destruction));
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

TEST(untaken_events_vanish_with_the_object)
{
	struct ibv_srq *srq = create_srq();
	struct ibv_qp *first = create_qp(srq), *second = create_qp(srq);
	struct ibv_async_event event;

	raise_event_of(first);
	raise_event_of(second);
	assert_true(event_waits());
	assert_int_equal(ibv_destroy_qp(first), 0);
	assert_true(event_waits());
	assert_int_equal(ibv_get_async_event(context, &event), 0);
	assert_ptr_equal(event.element.qp, second);
	ibv_ack_async_event(&event);
	assert_int_equal(ibv_destroy_qp(second), 0);
	assert_false(event_waits());
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

enum { READERS = 2, ROUNDS = 300 };

static uint32_t events_seen; /* atomic */
static int stop;             /* atomic */

/*
 * Takes and acknowledges events, as a program's event thread does. Non-blocking, so that it can be stopped.
 */
static void *reader(void *argument)
{
	struct ibv_async_event event;

	(void)argument;
	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
		struct pollfd fd = {.fd = context->async_fd, .events = POLLIN};

		poll(&fd, 1, 1);
		if (ibv_get_async_event(context, &event))
			continue;
		if (event.event_type != IBV_EVENT_QP_LAST_WQE_REACHED || event.element.qp->context != context)
			abort(); /* the QP still exists, because its event is not acknowledged */
		__atomic_add_fetch(&events_seen, 1, __ATOMIC_RELAXED);
		ibv_ack_async_event(&event);
	}
	return NULL;
}

TEST(objects_come_and_go_under_the_readers)
{
	struct ibv_srq *srq = create_srq();
	pthread_t threads[READERS];

	assert_int_equal(fcntl(context->async_fd, F_SETFL, fcntl(context->async_fd, F_GETFL) | O_NONBLOCK), 0);
	for (int i = 0; i < READERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, reader, NULL), 0);
	for (int i = 0; i < ROUNDS; i++) {
		struct ibv_qp *qp = create_qp(srq);

		raise_event_of(qp);
		assert_int_equal(ibv_destroy_qp(qp), 0);
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < READERS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_false(event_waits());
	assert_in_range(events_seen, 0, ROUNDS);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

int main(void)
{
	alarm(100);
	return run_cases(.setup = setup, .teardown = teardown);
}
