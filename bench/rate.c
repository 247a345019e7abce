/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages per second: 8 bytes each, lists of LIST_LENGTH work requests per doorbell. */
#include "bench.h"

#define SMALL 8

static struct message *signal_last_only(struct message *message)
{
	for (uint32_t i = 0; i + 1 < LIST_LENGTH; i++)
		message->list[i].send_flags &= ~(unsigned int)IBV_SEND_SIGNALED;
	return message;
}

void add_rate_cases(struct bench *bench, struct device *device)
{
	struct pair *pair = allocate(sizeof(*pair)), *single = allocate(sizeof(*single));

	pair_create(device, &(struct pair_attr){.depth = 64}, pair);
	pair_create(device, &(struct pair_attr){.depth = 64, .pd = thread_domain(device)}, single);

	const struct {
		const char *name;
		work_fn *run;
		struct message *message;
		double limit; /* millions in a second; 0: no goal */
	} rows[] = {
		{"WRITE, a completion each", post_list_and_poll, message_new(device, pair, IBV_WR_RDMA_WRITE, SMALL),
		 22},
		{"  in a thread domain", post_list_and_poll, message_new(device, single, IBV_WR_RDMA_WRITE, SMALL), 22},
		{"WRITE, a completion per list", post_list_and_poll,
		 signal_last_only(message_new(device, pair, IBV_WR_RDMA_WRITE, SMALL)), 28},
		{"SEND with its receive", send_list_and_poll, message_new(device, pair, IBV_WR_SEND, SMALL), 0},
		{"  in a thread domain", send_list_and_poll, message_new(device, single, IBV_WR_SEND, SMALL), 0},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		rows[i].run(rows[i].message, 1);
		add_case(bench,
			 &(struct bench_case){.group = "rate, lists of 32",
					      .run = rows[i].run,
					      .subject = rows[i].message,
					      .yardstick_name = "bare model",
					      .yardstick = bare_model_list,
					      .batch = LIST_LENGTH,
					      .yardstick_batch = LIST_LENGTH,
					      .goal = rows[i].limit != 0 ? GOAL_RATE : GOAL_NONE,
					      .limit = rows[i].limit,
					      .threads = true},
			 "%s", rows[i].name);
	}
}
