/* SPDX-License-Identifier: BSD-2-Clause */
/* WRITE, READ, SEND between two QPs of the process, one message at a time, compared with memcpy of the same buffers. */
#include "bench.h"

#include <string.h>

static struct copies *same_copy(const struct device *device, uint32_t bytes)
{
	struct copies *copies = allocate(sizeof(*copies));

	*copies = (struct copies){.to = device->target, .from = device->source, .bytes = bytes, .pieces = 1};
	return copies;
}

/* Checks that the message arrives; otherwise its speed means nothing. */
static void check_arrival(struct device *device, work_fn *run, struct message *message, uint32_t bytes)
{
	memset(device->target, 0, bytes);
	run(message, 1);
	if (memcmp(device->target, device->source, bytes) != 0)
		die("a message of %u bytes did not arrive", bytes);
}

static void add_operation(struct bench *bench, struct device *device, struct pair *pair, const char *name,
			  enum ibv_wr_opcode opcode, work_fn *run)
{
	static const struct {
		const char *name;
		uint32_t bytes;
		double limit; /* 0: no goal */
	} sizes[] = {
		{"4 KiB", 4 << 10, 0.4},
		{"64 KiB", 64 << 10, 0.9},
		{"1 MiB", 1 << 20, 0.9},
		{"64 MiB", 64 << 20, 0},
	};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint32_t bytes = sizes[i].bytes;
		struct bench_case c = {.run = run,
				       .yardstick_name = "memcpy",
				       .yardstick = copy_pieces,
				       .payload = bytes,
				       .goal = sizes[i].limit ? GOAL_SPEED : GOAL_NONE,
				       .limit = sizes[i].limit};

		if (bytes > device->size)
			continue;
		c.subject = message_new(device, pair, opcode, bytes);
		c.yardstick_subject = same_copy(device, bytes);
		check_arrival(device, run, c.subject, bytes);
		for (int threads = 0; threads < 2; threads++) {
			c.threads = threads;
			c.group = threads ? "bandwidth, several threads" : "bandwidth, one thread";
			add_case(bench, &c, "%s %s", name, sizes[i].name);
		}
	}
}

void add_bandwidth_cases(struct bench *bench, struct device *device)
{
	struct pair *pair = allocate(sizeof(*pair));

	pair_create(device, &(struct pair_attr){.depth = 64}, pair);
	add_operation(bench, device, pair, "WRITE", IBV_WR_RDMA_WRITE, post_and_poll);
	add_operation(bench, device, pair, "READ", IBV_WR_RDMA_READ, post_and_poll);
	add_operation(bench, device, pair, "SEND", IBV_WR_SEND, send_and_poll);
}
