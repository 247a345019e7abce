/* SPDX-License-Identifier: BSD-2-Clause */
/* See wqe_write.h. */
#include "wqe_write.h"

#include <string.h>

#include "mkey/umr.h"
#include "random.h"
#include "wqe_input.h"

void put_be(uint8_t *at, uint64_t value, int bytes)
{
	for (int i = 0; i < bytes; i++)
		at[i] = (uint8_t)(value >> 8 * (bytes - 1 - i));
}

uint32_t be32_of(const uint8_t *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

uint32_t any_key(void)
{
	return WORLD_KEY(below(WORLD_KEYS)) | (below(4) ? 0 : below(256));
}

/* Returns the length of some blocks with their fields, plus or minus a little. */
uint32_t near_a_block(void)
{
	static const uint16_t sizes[] = {512, 516, 520, 528, 4048, 4056, 4096, 4104, 4160};
	uint32_t block = sizes[below(sizeof(sizes) / sizeof(sizes[0]))];

	return (below(0x2000 / block + 2) * block + below(24) - (below(2) ? 12 : 0)) & 0x3fff;
}

/* Returns an address mostly inside or at the edge of a key's range. */
uint64_t any_address(void)
{
	static const uint64_t starts[] = {0, WORLD_BASE + 0x1040, WORLD_BASE + 0x6000, WORLD_BASE + 0x8000,
					  WORLD_BASE + 0xc000};

	switch (below(8)) {
	case 0:
		return (uint64_t)0 - below(256);
	case 1:
		return (uint64_t)random32() << 32 | random32();
	case 2:
		return starts[below(5)] + below(0x2000);
	case 3:
		return near_a_block();
	default:
		return starts[below(5)] + 8 * below(0x100);
	}
}

uint32_t any_length(void)
{
	static const uint32_t usual[] = {0,   1,   4,    7,    8,    16,   40,   64,   256, 512,
					 516, 520, 1024, 1040, 4095, 4096, 4097, 4104, 8064};

	switch (below(8)) {
	case 0:
		return random32();
	case 1:
		return 0x80000000u | below(below(2) ? 64 : 2048);
	case 2:
		return below(0x2000);
	case 3:
		return near_a_block();
	default:
		return usual[below(sizeof(usual) / sizeof(usual[0]))];
	}
}

/* Returns modifiers of existing opcodes (mlx5-formats 1.4, 1.5), and others. */
static uint8_t any_opmod(void)
{
	static const uint8_t usual[] = {0, 1, 8, 9};

	return below(8) ? usual[below(sizeof(usual))] : (uint8_t)random32();
}

void put_control(uint8_t *block)
{
	static const uint8_t opcodes[] = {0x00, 0x01, 0x08, 0x09, 0x0a, 0x0b, 0x10, 0x11,
					  0x12, 0x14, 0x15, 0x25, 0x25, 0x20, 0x2f};
	static const uint8_t fences[] = {0, 0x20, 0x40, 0x60, 0x80};

	memset(block, 0, 16);
	block[0] = below(4) ? 0 : any_opmod();
	block[3] = below(16) ? opcodes[below(sizeof(opcodes))] : (uint8_t)random32();
	put_be(block + 4, (uint64_t)INPUT_OWN_QPN << 8 | below(20), 4);
	block[11] = (uint8_t)(fences[below(5)] | below(4) << 2 | below(4));
	put_be(block + 12, any_key(), 4);
}

void put_segment(uint8_t *unit)
{
	put_be(unit, any_length(), 4);
	put_be(unit + 4, any_key(), 4);
	put_be(unit + 8, any_address(), 8);
}

void put_remote(uint8_t *unit)
{
	put_be(unit, any_address(), 8);
	put_be(unit + 8, any_key(), 4);
	put_be(unit + 12, 0, 4);
}

void put_repeat(uint8_t *unit)
{
	put_be(unit, any_length(), 4);
	put_be(unit + 4, 0x400, 4);
	put_be(unit + 8, below(8) ? below(64) : random32(), 4);
	put_be(unit + 12, 0, 2);
	put_be(unit + 14, below(6), 2);
}

void put_repeat_entry(uint8_t *unit)
{
	uint32_t bytes = below(2) ? 1u << below(9) : below(512);

	put_be(unit, below(4) ? bytes + 8 * below(8) : below(512), 2);
	put_be(unit + 2, bytes, 2);
	put_be(unit + 4, any_key(), 4);
	put_be(unit + 8, any_address(), 8);
}

static uint8_t any_block_selector(void)
{
	return (uint8_t)(below(16) ? below(5) : below(256));
}

/* Returns format and PSV of a domain. */
static uint32_t any_domain(void)
{
	static const uint8_t formats[] = {0, 0, 0x22, 0x23, 0x42, 0x43, 0x52, 0x53};
	uint32_t format = below(16) ? formats[below(sizeof(formats))] : below(256);

	return format << 24 | (WORLD_PSV + (below(8) ? below(WORLD_PSVS - 1) : below(WORLD_PSVS + 2)));
}

static void put_inline_domain(uint8_t *section)
{
	memset(section, 0, 16);
	put_be(section, below(16) ? 0xc000 : random32(), 2);
	put_be(section + 2, below(2) ? 0xffff : 0x3a3a, 2);
	put_be(section + 4, below(4) ? 0x3a3a3a3a : UINT32_MAX - below(2), 4);
	section[8] = (uint8_t)(below(16) ? 1 + below(2) : below(256));
	section[9] = (uint8_t)(0x80 | (below(2) ? 8 : 0));
	section[13] = (uint8_t)((below(2) ? 0x40 : 0) | below(4));
	put_be(section + 14, 0xffff, 2);
}

static void put_signature(uint8_t *bsf, uint32_t size_code)
{
	bool same = below(2);

	memset(bsf, 0, 64);
	bsf[0] = (uint8_t)(size_code << 6 | (same ? 0x10 : 0));
	bsf[1] = (uint8_t)(below(4) ? 0xff : below(256));
	bsf[2] = same ? (uint8_t)(below(2) ? 0xff : below(256)) : any_block_selector();
	bsf[3] = any_block_selector();
	put_be(bsf + 4, below(16) ? UINT32_MAX : below(0x2000), 4);
	put_be(bsf + 8, any_domain(), 4);
	put_be(bsf + 12, same && below(8) ? be32_of(bsf + 8) : any_domain(), 4);
	if (!below(32))
		put_be(bsf + 16 + 4 * below(4), random32(), 4);
	put_inline_domain(bsf + 32);
	put_inline_domain(bsf + 48);
}

static void put_cipher(uint8_t *bsf, uint32_t size_code)
{
	memset(bsf, 0, 64);
	bsf[0] = (uint8_t)(size_code << 6 | (below(16) ? 1 : below(64)));
	bsf[1] = (uint8_t)(below(16) ? below(4) : below(256));
	bsf[3] = (uint8_t)!below(32);
	put_be(bsf + 4, UINT32_MAX, 4);
	bsf[8] = any_block_selector();
	put_be(bsf + 24, random32(), 8);
	put_be(bsf + 32, WORLD_DEK + (below(8) ? 0 : below(WORLD_DEKS + 2)), 4);
	memset(bsf + 40, below(4) ? WORLD_KEYTAG : 0, 8);
}

/* Writes a block setup: a signature, a cipher, or both. */
void put_blocks(uint8_t *bsf, uint32_t octowords)
{
	if (octowords == 8) {
		put_signature(bsf, 3);
		put_cipher(bsf + 64, 3);
	} else if (below(4)) {
		put_signature(bsf, below(16) ? 2 : below(4));
	} else {
		put_cipher(bsf, 2);
	}
}

/* Writes an MMO WQE, which takes one block. */
void put_copy(uint8_t *block)
{
	uint32_t length = any_length();

	put_control(block);
	block[0] = below(8) ? 1 : any_opmod();
	block[3] = MLX5_OPCODE_MMO;
	put_be(block + 4, (uint64_t)INPUT_OWN_QPN << 8 | 4, 4);
	for (int i = 1; i < 4; i++)
		put_segment(block + i * 16);
	put_be(block + 32, length, 4);
	put_be(block + 48, below(8) ? length : any_length(), 4);
}

/* Returns few bits, all, none, or a small number where it is a value. */
uint64_t any_operand(void)
{
	switch (below(4)) {
	case 0:
		return below(2) ? UINT64_MAX : 0;
	case 1:
		return UINT64_C(1) << below(64);
	case 2:
		return UINT64_C(0x3a3a3a3a3a3a3a3a);
	default:
		return (uint64_t)random32() << 32 | random32();
	}
}

/* Writes an atomic of any form, in at most two blocks. */
void put_atomic(uint8_t *block, size_t room)
{
	static const struct {
		uint8_t opcode, opmod, operands; /* in units */
	} forms[] = {{0x11, 0, 1}, {0x12, 0, 1}, {0x14, 0, 2}, {0x15, 0, 2},
		     {0x14, 8, 1}, {0x14, 9, 2}, {0x15, 8, 1}, {0x15, 9, 1}};
	uint32_t form = below(8), units = forms[form].operands;

	if (room < 128)
		return;
	put_control(block);
	block[0] = below(16) ? forms[form].opmod : any_opmod();
	block[3] = forms[form].opcode;
	put_be(block + 4, (uint64_t)INPUT_OWN_QPN << 8 | (3 + units), 4);
	put_remote(block + 16);
	for (uint32_t i = 0; i < 2 * units; i++)
		put_be(block + 32 + i * 8, any_operand(), 8);
	put_segment(block + 32 + units * 16);
	put_be(block + 32 + units * 16, below(8) ? (forms[form].opmod == 8 ? 4 : 8) : any_length(), 4);
}

/* Writes a UMR WQE: the first two blocks and the part of layout and block setup that fits. */
void put_umr(uint8_t *block, size_t room)
{
	uint32_t entries = 4 * below(5), blocks = below(2) ? 0 : 4 << !below(3);
	uint64_t mask = ((uint64_t)random32() & 0x203e7241) | (blocks ? 0x1000 : 0);

	if (room < 128 + (entries + blocks) * 16)
		return;
	put_control(block);
	block[3] = MLX5_OPCODE_UMR;
	put_be(block + 4, (uint64_t)INPUT_OWN_QPN << 8 | (8 + entries + blocks), 4);
	if (blocks && below(8))
		put_be(block + 12, WORLD_KEY(WORLD_MKEY_SIGNATURE + (blocks == 8 || !below(4))), 4);
	memset(block + 16, 0, 112);
	block[16] = (uint8_t)(UMR_INLINE | (below(4) ? 0 : below(16) << 3));
	put_be(block + 20, entries, 2);
	put_be(block + 22, blocks, 2);
	put_be(block + 24, below(4) ? mask | 1 | MLX5_WQE_UMR_CTRL_MKEY_MASK_FREE : mask, 8);
	block[64] = below(8) ? 0 : 0x40;
	block[66] = below(2) ? 0x7c : (uint8_t)random32();
	put_be(block + 68, (uint64_t)(below(2) ? 0xffffff : INPUT_OWN_QPN) << 8 | (below(2) ? 0 : below(256)), 4);
	put_be(block + 76, blocks ? 1u << 30 : 0, 4);
	put_be(block + 80, below(2) ? 0 : any_address(), 8);
	put_be(block + 88, any_length(), 8);
	for (uint32_t i = 0; i < entries; i++)
		put_segment(block + 128 + i * 16);
	if (entries && below(2)) {
		put_repeat(block + 128);
		for (uint32_t i = 1; i < entries; i++)
			put_repeat_entry(block + 128 + i * 16);
	}
	if (blocks)
		put_blocks(block + 128 + entries * 16, blocks);
	/* From memory, where earlier requests may have written a similar structure. */
	if (!below(6)) {
		block[16] &= (uint8_t)~UMR_INLINE;
		put_segment(block + 128);
		put_be(block + 128, below(4) ? (entries + blocks) * 16 : any_length(), 4);
	}
}

void put_set_psv(uint8_t *block)
{
	put_control(block);
	block[3] = MLX5_OPCODE_SET_PSV;
	put_be(block + 4, (uint64_t)INPUT_OWN_QPN << 8 | 2, 4);
	put_be(block + 16, any_domain() & 0xffffff, 4);
	put_be(block + 20, below(8) ? 0 : random32(), 4);
	put_be(block + 24, random32(), 8);
}
