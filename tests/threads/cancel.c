/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pthread_cancel(3). Calls of the library are not cancellation points, except ibv_get_cq_event(3),
 * ibv_get_async_event(3), mlx5dv_devx_get_event(3) and mlx5dv_devx_get_async_cmd_comp(3), which hold no resource while
 * they block: the device works after a thread was cancelled. First a thread with a pending cancellation makes each call
 * of the table (calls.h); then a thread that posts and polls, and one that waits for events, are cancelled at random
 * moments.
 */
#include "calls.h"

#include <unistd.h>

enum { ROUNDS = 150, PATIENCE_SECONDS = 5 };

static struct calls_world world;
static const struct call *current;
static int inside; /* atomic */

/* ---- a cancellation request that is always pending ------------------------------------------------------------- */

static void *make_cancelled(void *argument)
{
	(void)argument;
	__atomic_store_n(&inside, 1, __ATOMIC_RELEASE);
	pthread_cancel(pthread_self());
	current->make(&world);
	__atomic_store_n(&inside, 0, __ATOMIC_RELEASE);
	pthread_testcancel();
	return NULL;
}

static bool has_no_point(const struct call *call)
{
	pthread_t thread;
	void *result;

	current = call;
	CHECK(!pthread_create(&thread, NULL, make_cancelled, NULL));
	CHECK(!pthread_join(thread, &result) && result == PTHREAD_CANCELED);
	if (!__atomic_load_n(&inside, __ATOMIC_ACQUIRE))
		return true;
	fprintf(stderr, "cancelled inside of the call for \"%s\" (row %zu)\n", call->symbols, (size_t)(call - calls));
	return false;
}

/* ---- traffic --------------------------------------------------------------------------------------------------- */

static struct ibv_cq *cq;
static struct ibv_qp *qp;

static void post(uint64_t wr_id)
{
	struct ibv_sge sge = {(uintptr_t)world.buffer, 64, world.mr->lkey};
	struct ibv_send_wr *bad,
		wr = rdma_wr(wr_id, IBV_WR_RDMA_WRITE, &sge, (uintptr_t)world.buffer + 2048, world.mr->rkey);

	CHECK(!ibv_post_send(qp, &wr, &bad));
}

static void *traffic(void *argument)
{
	struct ibv_wc wc;

	for (uint64_t i = 1;; i++) {
		(void)argument;
		post(i);
		while (!ibv_poll_cq(cq, 1, &wc))
			pthread_testcancel();
		pthread_testcancel();
	}
	return NULL;
}

static void *wait_for_event(void *channel)
{
	struct ibv_cq *from;
	void *cookie;

	ibv_get_cq_event(channel, &from, &cookie);
	return NULL;
}

static void *wait_for_async_event(void *context)
{
	struct ibv_async_event event;

	ibv_get_async_event(context, &event);
	return NULL;
}

static void *wait_for_device_event(void *channel)
{
	uint64_t event[9];

	mlx5dv_devx_get_event(channel, (struct mlx5dv_devx_async_event_hdr *)event, sizeof(event));
	return NULL;
}

static void *wait_for_response(void *completion)
{
	uint64_t response[9];

	mlx5dv_devx_get_async_cmd_comp(completion, (struct mlx5dv_devx_async_cmd_hdr *)response, sizeof(response));
	return NULL;
}

/* Waits for an event before it checks for room to store one. */
static void *wait_without_room(void *channel)
{
	mlx5dv_devx_get_event(channel, NULL, 0);
	return NULL;
}

static void cancel_after(void *(*body)(void *), void *argument, useconds_t us)
{
	struct timespec end;
	pthread_t thread;
	void *result;

	CHECK(!pthread_create(&thread, NULL, body, argument));
	usleep(us);
	CHECK(!pthread_cancel(thread));
	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += PATIENCE_SECONDS;
	CHECK(!pthread_timedjoin_np(thread, &result, &end) && result == PTHREAD_CANCELED);
}

/* The last request completes after those of the cancelled thread. */
static void device_works(void)
{
	struct ibv_wc wc;

	post(0);
	do {
		wc = wait_completion(cq);
		CHECK(wc.status == IBV_WC_SUCCESS);
	} while (wc.wr_id != 0);
}

int main(void)
{
	struct mlx5dv_devx_event_channel *device_events;
	struct mlx5dv_devx_cmd_comp *responses;
	struct ibv_comp_channel *channel;
	bool good = true;

	calls_complete();
	calls_open(&world);
	for (size_t i = 0; i < calls_count; i++)
		good &= has_no_point(&calls[i]);
	CHECK(good);
	device_events = mlx5dv_devx_create_event_channel(world.context, 0);
	responses = mlx5dv_devx_create_cmd_comp(world.context);
	CHECK(device_events && responses);
	channel = ibv_create_comp_channel(world.context);
	cq = ibv_create_cq(world.context, 64, NULL, channel, 0);
	CHECK(cq);
	qp = make_qp(world.pd, IBV_QPT_RC, cq, cq, NULL);
	to_init(qp);
	to_rts(qp, qp->qp_num);
	srand(1);
	for (int i = 0; i < ROUNDS; i++) {
		cancel_after(traffic, NULL, (useconds_t)(rand() % 2000));
		device_works();
	}
	cancel_after(wait_for_event, channel, 10000);
	cancel_after(wait_for_async_event, world.context, 10000);
	cancel_after(wait_for_device_event, device_events, 10000);
	cancel_after(wait_without_room, device_events, 10000);
	mlx5dv_devx_destroy_event_channel(device_events);
	cancel_after(wait_for_response, responses, 10000);
	mlx5dv_devx_destroy_cmd_comp(responses);
	device_works();
	CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_cq(cq) && !ibv_destroy_comp_channel(channel));
	calls_close(&world);
	return 0;
}
