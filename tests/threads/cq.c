/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A CQ and an SRQ shared by many threads: two post, two poll, one resizes, one waits for events. Every request
 * completes exactly once.
 */
#include <fcntl.h>
#include <poll.h>

#include "fixture.h"

enum { FLOWS = 2, REQUESTS = 20000, WINDOW = 48, WORD = 8 };

/* Two QPs and their memory. */
struct flow {
	struct ibv_qp *sender, *receiver;
	uint64_t source, target;
	uint64_t received[64]; /* destination of receives, by the low bits of their number */
};

static struct flow flows[FLOWS];
static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_mr *mr; /* covers the flows */
static struct ibv_comp_channel *channel;
static struct ibv_cq *cq;
static struct ibv_srq *srq;
static uint32_t seen[FLOWS][REQUESTS]; /* number of completions of each request; atomic */
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
	context = open_first_device();
	pd = ibv_alloc_pd(context);
	CHECK(pd);
	mr = ibv_reg_mr(pd, flows, sizeof(flows), ACCESS);
	channel = ibv_create_comp_channel(context);
	CHECK(mr && channel);
	CHECK(!fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK));
	cq = ibv_create_cq(context, 255, NULL, channel, 0);
	srq = ibv_create_srq(pd, &attr);
	CHECK(cq && srq);
	for (int i = 0; i < FLOWS; i++) {
		flows[i].sender = make_qp(pd, IBV_QPT_RC, cq, cq, NULL);
		flows[i].receiver = make_qp(pd, IBV_QPT_RC, cq, cq, srq);
		connect_pair(flows[i].sender, flows[i].receiver);
	}
}

static void close_all(void)
{
	for (int i = 0; i < FLOWS; i++)
		CHECK(!ibv_destroy_qp(flows[i].sender) && !ibv_destroy_qp(flows[i].receiver));
	CHECK(!ibv_destroy_srq(srq) && !ibv_destroy_cq(cq) && !ibv_destroy_comp_channel(channel));
	CHECK(!ibv_dereg_mr(mr) && !ibv_dealloc_pd(pd) && !ibv_close_device(context));
}

static void post_word(struct flow *flow, enum ibv_wr_opcode opcode, uint64_t wr_id)
{
	struct ibv_sge sge = {(uintptr_t)&flow->source, WORD, mr->lkey};
	struct ibv_send_wr *bad, wr = rdma_wr(wr_id, opcode, &sge, (uintptr_t)&flow->target, mr->rkey);

	CHECK(!ibv_post_send(flow->sender, &wr, &bad));
}

/* Returns false while the SRQ is full. */
static bool post_to_srq(struct flow *flow, uint64_t wr_id)
{
	struct ibv_sge sge = {(uintptr_t)&flow->received[wr_id % 64], WORD, mr->lkey};
	struct ibv_recv_wr *bad, wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1};
	int error = ibv_post_srq_recv(srq, &wr, &bad);

	CHECK(!error || error == ENOMEM);
	return !error;
}

/* wr_id: flow << 32 | number; receives have the top bit. */
#define RECEIVE (UINT64_C(1) << 63)

static void *write_all(void *argument)
{
	uint64_t flow = (uintptr_t)argument;

	for (uint64_t i = 0; i < REQUESTS; i++) {
		while (i - __atomic_load_n(&completed[flow], __ATOMIC_ACQUIRE) >= WINDOW)
			sched_yield();
		post_word(&flows[flow], IBV_WR_RDMA_WRITE, flow << 32 | i);
	}
	return NULL;
}

/* Posts a receive before each send: at most WINDOW of both flows together are posted. */
static void *send_all(void *argument)
{
	uint64_t flow = (uintptr_t)argument;

	for (uint64_t i = 0; i < REQUESTS; i++) {
		while (i - __atomic_load_n(&completed[flow], __ATOMIC_ACQUIRE) >= WINDOW / FLOWS)
			sched_yield();
		while (!post_to_srq(&flows[flow], RECEIVE | i))
			sched_yield();
		post_word(&flows[flow], IBV_WR_SEND, flow << 32 | i);
	}
	return NULL;
}

static void *poll_all(void *unused)
{
	struct ibv_wc wc[7];

	(void)unused;
	while (running()) {
		int found = ibv_poll_cq(cq, 7, wc);

		CHECK(found >= 0);
		for (int i = 0; i < found; i++) {
			uint32_t flow = wc[i].wr_id >> 32;

			CHECK(wc[i].status == IBV_WC_SUCCESS);
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

		CHECK(!ibv_resize_cq(cq, sizes[i % 3]));
		CHECK(!ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR));
		sched_yield();
	}
	return NULL;
}

static void *take_events(void *unused)
{
	struct pollfd fd = {.fd = channel->fd, .events = POLLIN};
	struct ibv_cq *of;
	void *cq_context;

	(void)unused;
	while (running()) {
		CHECK(!ibv_req_notify_cq(cq, 0));
		if (poll(&fd, 1, 1) != 1 || ibv_get_cq_event(channel, &of, &cq_context))
			continue;
		CHECK(of == cq);
		ibv_ack_cq_events(of, 1);
	}
	return NULL;
}

static void run(void *(*post)(void *))
{
	void *(*const others[])(void *) = {poll_all, poll_all, resize_all, take_events};
	pthread_t posters[FLOWS], threads[4];

	for (int i = 0; i < 4; i++)
		CHECK(!pthread_create(&threads[i], NULL, others[i], NULL));
	for (uintptr_t i = 0; i < FLOWS; i++)
		CHECK(!pthread_create(&posters[i], NULL, post, (void *)i));
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
			CHECK(seen[flow][i] == 1);
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
	CHECK(received == FLOWS * REQUESTS);
	close_all();
}

int main(void)
{
	writes();
	sends_to_an_srq();
	return 0;
}
