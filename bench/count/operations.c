/* SPDX-License-Identifier: BSD-2-Clause */
/* Small requests, and those that are counted over every link, see count.h. */
#include "count.h"

#define SMALL 8
#define LINE 64
#define DEPTH 64

static struct pair *pair_new(struct device *device)
{
	struct pair *pair = allocate(sizeof(*pair));

	pair_create(device, &(struct pair_attr){.depth = DEPTH}, pair);
	return pair;
}

static struct message *send_inline(struct message *message)
{
	message->wr.send_flags |= IBV_SEND_INLINE;
	return message;
}

static struct message *signal_last_only(struct message *message)
{
	for (uint32_t i = 0; i + 1 < LIST_LENGTH; i++)
		message->list[i].send_flags &= ~(unsigned int)IBV_SEND_SIGNALED;
	return message;
}

void add_small_operations(struct operations *operations, struct device *device)
{
	struct pair *pair = pair_new(device);
	const struct operation list[] = {
		{"WRITE of 8 bytes", post_and_poll, message_new(device, pair, IBV_WR_RDMA_WRITE, SMALL), 1},
		{"READ of 8 bytes", post_and_poll, message_new(device, pair, IBV_WR_RDMA_READ, SMALL), 1},
		{"fetch and add", post_and_poll, message_new(device, pair, IBV_WR_ATOMIC_FETCH_AND_ADD, SMALL), 1},
		{"SEND of 8 bytes with its receive", send_and_poll, message_new(device, pair, IBV_WR_SEND, SMALL), 1},
		{"WRITE in a list of 32, a completion each", post_list_and_poll,
		 message_new(device, pair, IBV_WR_RDMA_WRITE, SMALL), LIST_LENGTH},
		{"WRITE in a list of 32, one completion", post_list_and_poll,
		 signal_last_only(message_new(device, pair, IBV_WR_RDMA_WRITE, SMALL)), LIST_LENGTH},
		{"SEND in a list of 32 with its receive", send_list_and_poll,
		 message_new(device, pair, IBV_WR_SEND, SMALL), LIST_LENGTH},
	};

	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++)
		add_operation(operations, &list[i]);
}

void add_link_operations(struct operations *operations, struct device *device)
{
	struct pair *pair = pair_new(device), *inlining = allocate(sizeof(*inlining));

	pair_create(device, &(struct pair_attr){.depth = DEPTH, .max_inline = LINE}, inlining);

	const struct operation list[] = {
		{"WRITE of 8 bytes", post_and_poll, message_new(device, pair, IBV_WR_RDMA_WRITE, SMALL), 1},
		{"READ of 8 bytes", post_and_poll, message_new(device, pair, IBV_WR_RDMA_READ, SMALL), 1},
		{"SEND of 8 bytes with its receive", send_and_poll, message_new(device, pair, IBV_WR_SEND, SMALL), 1},
		{"WRITE of 8 bytes, inline", post_and_poll,
		 send_inline(message_new(device, inlining, IBV_WR_RDMA_WRITE, SMALL)), 1},
		{"WRITE of 64 bytes, inline", post_and_poll,
		 send_inline(message_new(device, inlining, IBV_WR_RDMA_WRITE, LINE)), 1},
		{"WRITE in a list of 32, one completion", post_list_and_poll,
		 signal_last_only(message_new(device, pair, IBV_WR_RDMA_WRITE, SMALL)), LIST_LENGTH},
		{"WRITE of 4 KiB", post_and_poll, message_new(device, pair, IBV_WR_RDMA_WRITE, 4096), 1},
	};

	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++)
		add_operation(operations, &list[i]);
}
