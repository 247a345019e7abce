/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Mutations that follow the format of WQEs: libFuzzer alone would hardly ever write a key, an address inside it, and a matching
 * length, all big-endian and in the right places. Every other mutation is libFuzzer's own.
 */
#include <string.h>

#include "random.h"
#include "wqe_input.h"
#include "wqe_write.h"

uint64_t random_state;

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed);

static void mutate_ring(uint8_t *ring, size_t bytes, uint32_t pair)
{
	size_t block = below((uint32_t)bytes / 64) * 64u, unit = below((uint32_t)bytes / 16) * 16u;

	switch (below(13)) {
	case 0:
		put_control(ring + block);
		break;
	case 1:
		put_umr(ring + block, bytes - block);
		break;
	case 2:
		put_remote(ring + block + 16);
		break;
	case 3:
		put_repeat(ring + unit);
		break;
	case 4:
		put_repeat_entry(ring + unit);
		break;
	case 5:
		put_set_psv(ring + block);
		break;
	case 6:
		if (bytes - block >= 128)
			put_blocks(ring + block, below(2) ? 4 : 8);
		break;
	case 7:
		put_copy(ring + block);
		break;
	case 8:
		put_atomic(ring + block, bytes - block);
		break;
	case 9:
	case 10:
		put_message(ring + block, bytes - block, pair);
		break;
	default:
		put_segment(ring + unit);
	}
}

static void mutate(struct input *input)
{
	uint32_t op, pair = input->config.pair % WORLD_PAIRS;

	switch (below(8)) {
	case 0:
		((uint8_t *)&input->config)[below(sizeof(input->config))] = (uint8_t)random32();
		break;
	case 1:
		op = below(INPUT_OPS);
		input->op[op].kind = (uint8_t)below(OP_COUNT);
		input->op[op].argument = (uint8_t)random32();
		break;
	case 2:
		put_segment(input->rq_b + below(sizeof(input->rq_b) / 16) * 16);
		break;
	case 3:
		put_segment(input->srq + below(sizeof(input->srq) / 16) * 16);
		break;
	case 4:
		mutate_ring(input->sq_b, sizeof(input->sq_b), pair);
		break;
	default:
		mutate_ring(input->sq_a, sizeof(input->sq_a), pair);
	}
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
	struct input input = {0};

	random_begin(seed);
	if (below(2) || max_size < sizeof(input))
		return LLVMFuzzerMutate(data, size, max_size);
	memcpy(&input, data, size < sizeof(input) ? size : sizeof(input));
	if (!below(8))
		put_scene(&input);
	for (uint32_t n = below(5); n; n--)
		mutate(&input);
	memcpy(data, &input, sizeof(input));
	return sizeof(input);
}
