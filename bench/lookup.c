/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lookup of keys. Two devices, each with its own key table: one has a few keys, the other very many over the same memory. A
 * WRITE through one key must take equally long on both. Random keys cost additional cache misses: no more than the same number
 * of dependent loads in as much memory.
 */
#include "bench.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SMALL 8
#define REGION 4096
/* A lookup reads the table's leaf, the key, and its mapping. */
#define LOADS 3

struct many_keys {
	struct message *message;
	uint32_t *rkeys; /* shuffled */
	uint64_t count, next;
};

static void through_any_key(void *subject, uint64_t count)
{
	struct many_keys *keys = subject;

	while (count--) {
		keys->message->wr.wr.rdma.rkey = keys->rkeys[keys->next];
		if (++keys->next == keys->count)
			keys->next = 0;
		post_and_poll(keys->message, 1);
	}
}

/* Nodes of 128 bytes in an order that defeats the prefetcher. */
struct node {
	struct node *next;
	uint8_t unused[120];
};

static void dependent_loads(void *subject, uint64_t count)
{
	struct node **at = subject, *node = *at;

	while (count--)
		for (int i = 0; i < LOADS; i++)
			node = node->next;
	*at = node;
	memory_barrier_of_compiler();
}

static uint64_t random_number(void)
{
	static uint64_t state = 88172645463325252;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static void shuffle(uint32_t *values, uint64_t count)
{
	for (uint64_t i = count - 1; i; i--) {
		uint64_t j = random_number() % (i + 1);
		uint32_t value = values[i];

		values[i] = values[j];
		values[j] = value;
	}
}

/* Makes a ring through @bytes of nodes. */
static struct node **ring_new(uint64_t bytes)
{
	uint64_t count = bytes / sizeof(struct node);
	struct node *nodes = allocate(count * sizeof(*nodes)), **at = allocate(sizeof(struct node *));
	uint32_t *order = allocate(count * sizeof(*order));

	for (uint64_t i = 0; i < count; i++)
		order[i] = (uint32_t)i;
	shuffle(order, count);
	for (uint64_t i = 0; i < count; i++)
		nodes[order[i]].next = &nodes[order[(i + 1) % count]];
	*at = &nodes[order[0]];
	free(order);
	return at;
}

/* Registers the first page of `target` repeatedly; reports the cost per key. */
static void register_many(struct bench *bench, struct device *device, struct many_keys *keys)
{
	uint64_t before;
	double start;

	/* The list belongs to the benchmark: make it resident before. */
	memset(keys->rkeys, 0xff, keys->count * sizeof(*keys->rkeys));
	before = resident_bytes();
	start = now_ns();
	for (uint64_t i = 0; i < keys->count; i++) {
		struct ibv_mr *mr = ibv_reg_mr(device->pd, device->target, REGION,
					       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);

		if (!mr)
			die("ibv_reg_mr, key %lu: %s", (unsigned long)i, strerror(errno));
		keys->rkeys[i] = mr->rkey;
	}
	add_memory_row(bench, keys->count, resident_bytes() - before, "memory region, %.2f us to register",
		       (now_ns() - start) / 1000 / (double)keys->count);
}

void add_lookup_cases(struct bench *bench)
{
	struct device *few, *many;
	struct pair *few_pair = allocate(sizeof(*few_pair)), *many_pair = allocate(sizeof(*many_pair));
	struct many_keys *keys = allocate(sizeof(*keys));
	struct message *one_key;
	uint64_t table_bytes;

	if (!group_wanted(bench, "look-up"))
		return;
	few = device_open(0, REGION);
	many = device_open(1, REGION);
	pair_create(few, &(struct pair_attr){.depth = 64}, few_pair);
	pair_create(many, &(struct pair_attr){.depth = 64}, many_pair);
	keys->count = bench->keys;
	keys->rkeys = allocate(keys->count * sizeof(*keys->rkeys));
	table_bytes = resident_bytes();
	register_many(bench, many, keys);
	table_bytes = resident_bytes() - table_bytes;
	shuffle(keys->rkeys, keys->count);
	keys->message = message_new(many, many_pair, IBV_WR_RDMA_WRITE, SMALL);
	one_key = message_new(many, many_pair, IBV_WR_RDMA_WRITE, SMALL);
	one_key->wr.wr.rdma.rkey = keys->rkeys[0];

	struct bench_case c = {
		.group = "look-up",
		.run = post_and_poll,
		.subject = one_key,
		.yardstick_name = "among a few",
		.yardstick = post_and_poll,
		.yardstick_subject = message_new(few, few_pair, IBV_WR_RDMA_WRITE, SMALL),
		.goal = GOAL_TIME,
		.limit = 1.1,
		.threads = true,
	};

	add_case(bench, &c, "WRITE by one key of %lu", (unsigned long)keys->count);
	c.run = through_any_key;
	c.subject = keys;
	c.goal = GOAL_NONE;
	add_case(bench, &c, "WRITE by random keys of %lu", (unsigned long)keys->count);
	c.run = dependent_loads;
	c.subject = ring_new(table_bytes);
	c.yardstick_name = NULL;
	c.yardstick = NULL;
	add_case(bench, &c, "%d dependent loads in %lu MiB", LOADS, (unsigned long)(table_bytes >> 20));
}
