/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One small message at a time, from the post to its polled completion, and the cost of its parts: the rows below the WRITE omit
 * one part each.
 */
#include "bench.h"

#include <string.h>

#define SMALL 8

static void poll_empty(void *subject, uint64_t count)
{
	struct message *message = subject;
	struct ibv_wc wc;

	while (count--)
		if (ibv_poll_cq(message->pair->cq, 1, &wc))
			die("a completion of nothing");
}

static void post_nothing(void *subject, uint64_t count)
{
	struct message *message = subject;
	struct ibv_send_wr *bad;

	while (count--)
		if (ibv_post_send(message->pair->qp[0], NULL, &bad))
			die("an empty list was refused");
}

/* Signals every 16th request. Counts single requests, rounded up to a multiple of sixteen. */
static void post_unsignalled(void *subject, uint64_t count)
{
	struct message *message = subject;
	struct ibv_send_wr silent = message->wr, *bad;

	silent.send_flags &= ~(unsigned int)IBV_SEND_SIGNALED;
	for (uint64_t i = 0; i < count; i += 16) {
		for (int j = 0; j < 15; j++)
			if (ibv_post_send(message->pair->qp[0], &silent, &bad))
				die("the queue is full of unsignalled requests");
		post_and_poll(message, 1);
	}
}

static void build_and_poll(void *subject, uint64_t count)
{
	struct message *message = subject;
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(message->pair->qp[0]);

	qp->wr_flags = IBV_SEND_SIGNALED;
	while (count--) {
		ibv_wr_start(qp);
		ibv_wr_rdma_write(qp, message->wr.wr.rdma.rkey, message->wr.wr.rdma.remote_addr);
		ibv_wr_set_sge(qp, message->sge.lkey, message->sge.addr, message->sge.length);
		if (ibv_wr_complete(qp))
			die("ibv_wr_complete");
		await(message->pair, 1);
	}
}

static struct message *with_flags(struct message *message, unsigned int flags)
{
	message->wr.send_flags |= flags;
	return message;
}

struct row {
	const char *name;
	work_fn *run;
	struct message *message;
	double limit[2]; /* nanoseconds with one thread, with several; 0: no goal */
};

static void add_rows(struct bench *bench, const struct row *rows, size_t count, bool threads)
{
	for (size_t i = 0; i < count; i++) {
		if (rows[i].run == post_and_poll)
			rows[i].run(rows[i].message, 1);
		add_case(bench,
			 &(struct bench_case){.group = threads ? "latency, several threads" : "latency, one thread",
					      .run = rows[i].run,
					      .subject = rows[i].message,
					      .yardstick_name = "bare model",
					      .yardstick = bare_model,
					      .goal = rows[i].limit[threads] != 0 ? GOAL_NS : GOAL_NONE,
					      .limit = rows[i].limit[threads],
					      .threads = threads},
			 "%s", rows[i].name);
	}
}

void add_latency_cases(struct bench *bench, struct device *device)
{
	struct pair *pair = allocate(sizeof(*pair)), *single = allocate(sizeof(*single)),
		    *builders = allocate(sizeof(*builders));

	pair_create(device, &(struct pair_attr){.depth = 64, .max_inline = 64}, pair);
	pair_create(device, &(struct pair_attr){.depth = 64, .pd = thread_domain(device)}, single);
	pair_create(device, &(struct pair_attr){.depth = 64, .builders = true}, builders);

	const struct row rows[] = {
		{"WRITE of 8 bytes", post_and_poll, message_new(device, pair, IBV_WR_RDMA_WRITE, SMALL), {50, 50}},
		{"  in a thread domain",
		 post_and_poll,
		 message_new(device, single, IBV_WR_RDMA_WRITE, SMALL),
		 {50, 50}},
		{"  inline",
		 post_and_poll,
		 with_flags(message_new(device, pair, IBV_WR_RDMA_WRITE, SMALL), IBV_SEND_INLINE),
		 {0}},
		{"  by ibv_wr_*", build_and_poll, message_new(device, builders, IBV_WR_RDMA_WRITE, SMALL), {0}},
		{"  no completion (one in 16)",
		 post_unsignalled,
		 message_new(device, pair, IBV_WR_RDMA_WRITE, SMALL),
		 {0}},
		{"  no keys, no copy (0 bytes)", post_and_poll, message_new(device, pair, IBV_WR_RDMA_WRITE, 0), {0}},
		{"  an empty list: call, lock", post_nothing, message_new(device, pair, IBV_WR_RDMA_WRITE, SMALL), {0}},
		{"  poll of an empty CQ", poll_empty, message_new(device, pair, IBV_WR_RDMA_WRITE, SMALL), {0}},
		{"READ of 8 bytes", post_and_poll, message_new(device, pair, IBV_WR_RDMA_READ, SMALL), {60, 58}},
		{"fetch and add", post_and_poll, message_new(device, pair, IBV_WR_ATOMIC_FETCH_AND_ADD, SMALL), {0}},
		{"SEND of 8 bytes with its receive",
		 send_and_poll,
		 message_new(device, pair, IBV_WR_SEND, SMALL),
		 {75, 72}},
	};

	add_rows(bench, rows, sizeof(rows) / sizeof(rows[0]), true);
	add_rows(bench, rows, sizeof(rows) / sizeof(rows[0]), false);
}
