/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Mutations at the boundaries of blocks, of fields and of blocks of AES, which libFuzzer would seldom reach. Some mutations are
 * libFuzzer's own.
 */
#include <string.h>

#include "block_input.h"
#include "random.h"

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed);

uint64_t random_state;

static uint8_t any_byte(void)
{
	return (uint8_t)random32();
}

/* Writes a length of some blocks with their fields, plus or minus a little. */
static void put_near(uint8_t *at)
{
	static const uint16_t sizes[] = {512, 516, 520, 528, 4048, 4052, 4056, 4096, 4100, 4104, 4160, 4164, 4168};
	uint32_t block = sizes[below(sizeof(sizes) / sizeof(sizes[0]))];
	uint32_t value = below(20480 / block + 1) * block + below(20) - (below(2) ? 10 : 0);

	if (!below(4))
		value = below(4) ? 16 * below(1280) : below(20480);
	at[0] = (uint8_t)value;
	at[1] = (uint8_t)(value >> 8);
}

static void put_domain(struct input_domain *domain)
{
	domain->kind = (uint8_t)below(6);
	domain->block = (uint8_t)(below(2) ? below(2) : below(5));
	domain->seed = (uint8_t)below(2);
	domain->checks = (uint8_t)((below(2) ? 0x40 : 0) | below(4));
	memset(domain->app, below(2) ? 0xff : any_byte(), sizeof(domain->app));
	memset(domain->ref, below(2) ? 0xff : any_byte(), sizeof(domain->ref));
}

static void put_cut(uint8_t *cut)
{
	put_near(cut);
	if (below(2)) {
		cut[0] = (uint8_t)below(64);
		cut[1] = 0;
	}
}

static void put_patch(struct input *input)
{
	for (int i = 0; i < INPUT_PATCHES; i++)
		input->patch[i].change = 0;
	if (below(8))
		return;
	input->patch[0].place = (uint8_t)below(128);
	input->patch[0].change = below(2) ? 1 << below(8) : any_byte();
}

static void mutate(struct input *input)
{
	switch (below(11)) {
	case 0:
		put_domain(&input->memory);
		break;
	case 1:
		put_domain(&input->wire);
		break;
	case 2:
		input->form = any_byte();
		break;
	case 3:
		input->check_mask = below(2) ? 0xff : any_byte();
		input->copy_mask = below(2) ? 0 : any_byte();
		break;
	case 4:
		input->order = (uint8_t)below(4);
		input->unit = (uint8_t)below(5);
		input->tweak[below(8)] = any_byte();
		break;
	case 5:
		put_near(input->bytes);
		break;
	case 6:
		put_cut(input->entry[below(INPUT_CUTS / 2)]);
		break;
	case 7:
		put_near(input->wire_first);
		put_near(input->length);
		break;
	case 8:
		put_cut(input->cut[below(INPUT_CUTS)]);
		break;
	case 9:
		input->contents = any_byte();
		input->seed = any_byte();
		break;
	default:
		put_patch(input);
		memset(input->limit, 0, sizeof(input->limit));
		if (!below(4))
			put_near(input->limit);
	}
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
	struct input input = {0};

	random_begin(seed);
	if (!below(8) || max_size < sizeof(input))
		return LLVMFuzzerMutate(data, size, max_size < sizeof(input) ? max_size : sizeof(input));
	memcpy(&input, data, size < sizeof(input) ? size : sizeof(input));
	for (uint32_t n = 1 + below(6); n; n--)
		mutate(&input);
	memcpy(data, &input, sizeof(input));
	return sizeof(input);
}
