/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Both ends of two connections, each in its own thread, all over one PD and one pair of CQs per side: SENDs in both
 * directions at once with receives posted late (RNR and its timer), WRITEs and fetch-and-adds to one counter. Every
 * message arrives once, in order and complete; the counter includes every addition.
 */
#include "fixture.h"

enum { THREADS = 4, MESSAGES = 3000, BYTES = 2048, WINDOW = 8 };

struct end {
	struct ibv_qp *qp;
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_mr *mr;
	uint8_t memory[(WINDOW + 1) * BYTES]; /* WINDOW receive slots and the source */
	uint64_t before;                      /* result of the fetch-and-add */
	struct ibv_mr *before_mr;
	int index;
};

static struct end ends[THREADS];
static uint64_t counter;
static struct ibv_mr *counter_mr;

static void post_receive(struct end *end, int slot)
{
	struct ibv_sge sge = {(uintptr_t)end->memory + (size_t)slot * BYTES, BYTES, end->mr->lkey};
	struct ibv_recv_wr *bad, wr = {.wr_id = (uint64_t)slot, .sg_list = &sge, .num_sge = 1};

	CHECK(!ibv_post_recv(end->qp, &wr, &bad));
}

static void send_one(struct end *end, uint32_t number)
{
	uint8_t *source = end->memory + WINDOW * BYTES;
	uint32_t length = 4 + number % (BYTES - 4);
	struct ibv_sge sge = {(uintptr_t)source, length, end->mr->lkey};
	struct ibv_send_wr *bad, wr = send_wr(number, IBV_WR_SEND, &sge);
	struct ibv_wc wc;

	memset(source, (int)(number * 7 + (uint32_t)end->index), length);
	memcpy(source, &number, sizeof(number));
	CHECK(!ibv_post_send(end->qp, &wr, &bad));
	wc = wait_completion(end->send_cq);
	CHECK(wc.status == IBV_WC_SUCCESS && wc.wr_id == number && wc.opcode == IBV_WC_SEND);
}

static void add_one(struct end *end)
{
	struct ibv_sge sge = {(uintptr_t)&end->before, 8, end->before_mr->lkey};
	struct ibv_send_wr *bad,
		wr = {.sg_list = &sge,
		      .num_sge = 1,
		      .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
		      .send_flags = IBV_SEND_SIGNALED,
		      .wr.atomic = {.remote_addr = (uintptr_t)&counter, .compare_add = 1, .rkey = counter_mr->rkey}};
	uint64_t earlier = end->before;

	CHECK(!ibv_post_send(end->qp, &wr, &bad));
	CHECK(wait_completion(end->send_cq).status == IBV_WC_SUCCESS);
	CHECK(earlier == UINT64_MAX || end->before > earlier);
}

/* Takes arrived messages; sometimes reposts the receive late, so that the peer finds an empty queue. */
static void take(struct end *end, uint32_t *expected)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(end->recv_cq, 1, &wc) == 1) {
		const uint8_t *slot = end->memory + wc.wr_id * BYTES;
		uint32_t number, length = 4 + *expected % (BYTES - 4);

		CHECK(wc.status == IBV_WC_SUCCESS && wc.byte_len == length);
		memcpy(&number, slot, sizeof(number));
		CHECK(number == *expected);
		for (uint32_t i = 4; i < length; i++)
			CHECK(slot[i] == (uint8_t)(number * 7 + (uint32_t)(end->index ^ 1)));
		if (*expected % 500 == 499)
			nanosleep(&(struct timespec){0, 200000}, NULL);
		post_receive(end, (int)wc.wr_id);
		++*expected;
	}
}

static void *run_end(void *argument)
{
	struct end *end = argument;
	uint32_t expected = 0;
	time_t limit = time(NULL) + 60;

	for (uint32_t number = 0; number < MESSAGES; number++) {
		send_one(end, number);
		add_one(end);
		take(end, &expected);
	}
	while (expected < MESSAGES) {
		take(end, &expected);
		CHECK(time(NULL) < limit);
		sched_yield();
	}
	return NULL;
}

int main(void)
{
	struct ibv_context *context = open_first_device();
	struct ibv_pd *pd = ibv_alloc_pd(context);
	pthread_t threads[THREADS];

	counter_mr = ibv_reg_mr(pd, &counter, sizeof(counter), ACCESS);
	CHECK(pd && counter_mr);
	for (int i = 0; i < THREADS; i++) {
		struct end *end = &ends[i];

		end->index = i;
		end->before = UINT64_MAX;
		end->send_cq = ibv_create_cq(context, 64, NULL, NULL, 0);
		end->recv_cq = ibv_create_cq(context, 64, NULL, NULL, 0);
		end->mr = ibv_reg_mr(pd, end->memory, sizeof(end->memory), ACCESS);
		end->before_mr = ibv_reg_mr(pd, &end->before, sizeof(end->before), ACCESS);
		CHECK(end->send_cq && end->recv_cq && end->mr && end->before_mr);
		end->qp = make_qp(pd, IBV_QPT_RC, end->send_cq, end->recv_cq, NULL);
	}
	for (int i = 0; i < THREADS; i += 2) {
		connect_pair(ends[i].qp, ends[i + 1].qp);
		for (int slot = 0; slot < WINDOW; slot++) {
			post_receive(&ends[i], slot);
			post_receive(&ends[i + 1], slot);
		}
	}
	for (int i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&threads[i], NULL, run_end, &ends[i]));
	for (int i = 0; i < THREADS; i++)
		CHECK(!pthread_join(threads[i], NULL));
	CHECK(counter == (uint64_t)THREADS * MESSAGES);
	for (int i = 0; i < THREADS; i++) {
		CHECK(!ibv_destroy_qp(ends[i].qp) && !ibv_destroy_cq(ends[i].send_cq) &&
		      !ibv_destroy_cq(ends[i].recv_cq));
		CHECK(!ibv_dereg_mr(ends[i].mr) && !ibv_dereg_mr(ends[i].before_mr));
	}
	CHECK(!ibv_dereg_mr(counter_mr) && !ibv_dealloc_pd(pd) && !ibv_close_device(context));
	return 0;
}
