/* SPDX-License-Identifier: BSD-2-Clause */
/* WRITE, READ, SEND between two QPs of the process, one message at a time, against memcpy of the same buffers. */
#include "bench.h"

#include <string.h>

static struct copies *same_copy(const struct device *device, uint32_t bytes)
{
	struct copies *copies = allocate(sizeof(*copies));

	*copies = (struct copies){.to = device->target, .from = device->source, .bytes = bytes, .pieces = 1};
	return copies;
}

/* The message must arrive, else its speed means nothing. */
static void check_arrival(struct device *device, work_fn *run, struct message *message, uint32_t bytes)
{
	memset(device->target, 0, bytes);
	run(message, 1);
	if (memcmp(device->target, device->source, bytes))
		die("a message of %u bytes did not arrive", bytes);
}

void add_bandwidth_cases(struct bench *bench, struct device *device)
{
	static const struct {
		const char *name;
		enum ibv_wr_opcode opcode;
		work_fn *run;
	} operations[] = {
		{"WRITE", IBV_WR_RDMA_WRITE, post_and_poll},
		{"READ", IBV_WR_RDMA_READ, post_and_poll},
		{"SEND", IBV_WR_SEND, send_and_poll},
	};
	static const struct {
		const char *name;
		uint32_t bytes;
		double limit; /* 0: no goal */
	} sizes[] = {
		{"4 KiB", 4 << 10, 0.2},
		{"64 KiB", 64 << 10, 0.75},
		{"1 MiB", 1 << 20, 0.9},
		{"64 MiB", 64 << 20, 0},
	};
	struct pair *pair = allocate(sizeof(*pair));

	pair_create(device, &(struct pair_attr){.depth = 64}, pair);
	for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++) {
		for (size_t j = 0; j < sizeof(sizes) / sizeof(sizes[0]); j++) {
			uint32_t bytes = sizes[j].bytes;
			struct message *message;

			if (bytes > device->size)
				continue;
			message = message_new(device, pair, operations[i].opcode, bytes);
			check_arrival(device, operations[i].run, message, bytes);
			add_case(bench,
				 &(struct bench_case){.group = "bandwidth",
						      .run = operations[i].run,
						      .subject = message,
						      .yardstick_name = "memcpy",
						      .yardstick = copy_pieces,
						      .yardstick_subject = same_copy(device, bytes),
						      .payload = bytes,
						      .goal = sizes[j].limit ? GOAL_SPEED : GOAL_NONE,
						      .limit = sizes[j].limit,
						      .threads = true},
				 "%s %s", operations[i].name, sizes[j].name);
		}
	}
}
