/* SPDX-License-Identifier: BSD-2-Clause */
/* Whole messages of each transport, and rings that begin with keys and continue with messages through them; see
 * wqe_write.h. */
#include <string.h>

#include "mkey/umr.h"
#include "random.h"
#include "wqe_input.h"
#include "wqe_write.h"

/* mlx5-formats 1.6: mostly the peer's address, in 48 bytes or 16. Returns the number of bytes. */
static uint32_t put_address(uint8_t *at, uint32_t pair)
{
	bool compact = !below(4);
	uint32_t number = below(8) ? WORLD_QPN(pair, 1) : WORLD_QPN(0, 0) + below(2 * WORLD_PAIRS + 2);

	memset(at, 0, 48);
	if (pair == WORLD_UD)
		put_be(at, below(8) ? 0x11111111 : random32(), 4);
	else
		put_be(at, below(8) ? WORLD_DC_KEY : random32(), 8);
	put_be(at + 8, (compact ? 0 : 1u << 31) | number, 4);
	at[13] = below(8) ? 0x80 : 0;
	if (compact)
		return 16;
	put_be(at + 28, below(8) ? 1u << 30 : random32(), 4);
	memset(at + 32, below(8) ? INPUT_OWN_GID : 0x5a, 16);
	return 48;
}

/* mlx5-formats 1.5: of four and eight bytes. Returns the size of the operands. */
static uint32_t put_operands(uint8_t *block, uint32_t at)
{
	bool masked = block[3] >= MLX5_OPCODE_ATOMIC_MASKED_CS, adds = block[3] == MLX5_OPCODE_ATOMIC_MASKED_FA;
	uint32_t size = 8, count = 2;

	if (masked) {
		block[0] = (uint8_t)(below(8) ? (uint8_t[]){0, 8, 9}[below(3)] : below(16));
		size = block[0] == 8 ? 4 : 8;
		count = block[0] && adds ? 2 : 4;
	}
	for (uint32_t i = 0; i < count; i++)
		put_be(block + at + i * size, any_operand(), (int)size);
	put_be(block + (at + ((size * count + 15) & ~15u)), size, 4);
	return (size * count + 15) & ~15u;
}

/* Writes a message of @pair, in at most three blocks. Returns their number, 0 if there is no room. */
uint32_t put_message(uint8_t *block, size_t room, uint32_t pair)
{
	static const uint8_t opcodes[] = {0x01, 0x08, 0x08, 0x09, 0x0a, 0x0a, 0x0b, 0x10, 0x10, 0x11, 0x12, 0x14, 0x15};
	uint8_t opcode = opcodes[below(sizeof(opcodes))];
	uint32_t at = 16;

	if (room < 192)
		return 0;
	memset(block, 0, 192);
	put_control(block);
	block[3] = opcode;
	if (pair == WORLD_DC)
		put_be(block + 9, below(4), 2);
	if (pair == WORLD_UD || pair == WORLD_DC)
		at += put_address(block + at, pair);
	if (pair == WORLD_XRC) {
		put_be(block + at, WORLD_XRC_SRQ + (below(8) ? below(2) : below(5)), 4);
		at += 16;
	}
	if (opcode == 0x08 || opcode == 0x09 || opcode >= 0x10) {
		put_remote(block + at);
		at += 16;
	}
	if (opcode > 0x10) {
		at += put_operands(block, at);
		put_be(block + at + 4, any_key(), 4);
		put_be(block + at + 8, any_address(), 8);
		at += 16;
	}
	for (uint32_t n = opcode > 0x10 ? 0 : below(3); n; n--, at += 16)
		put_segment(block + at);
	put_be(block + 4, (uint64_t)INPUT_OWN_QPN << 8 | at / 16, 4);
	return (at + 63) / 64;
}

/* Names existing memory. */
static void put_good_segment(uint8_t *unit, uint32_t bytes)
{
	static const struct {
		uint8_t key;
		uint32_t start, bytes;
	} pieces[] = {
		{WORLD_FULL, WORLD_BASE + 0x1040, 0x1f80},
		{WORLD_LOCAL, WORLD_BASE + 0x8000, 0x1000},
		{WORLD_ZERO_BASED, 0, 0xe00},
		{WORLD_DEVICE, 0, 0x1000},
		{WORLD_NULL, 0, 0x4000},
	};
	uint32_t which = below(sizeof(pieces) / sizeof(pieces[0]));

	if (bytes > pieces[which].bytes)
		bytes = pieces[which].bytes;
	put_be(unit, bytes, 4);
	put_be(unit + 4, WORLD_KEY(pieces[which].key), 4);
	put_be(unit + 8, pieces[which].start + below(pieces[which].bytes - bytes + 1), 8);
}

/*
 * Writes a valid UMR: @number over memory, with block setup if it has room for one, or over @inner. Returns its blocks.
 */
static uint32_t put_good_umr(uint8_t *block, uint32_t number, uint32_t inner)
{
	uint32_t octowords = inner ? 0 : number == WORLD_MKEY_CIPHER && below(2) ? 8 : 4, length = 0;

	memset(block, 0, 192);
	put_control(block);
	block[3] = MLX5_OPCODE_UMR;
	put_be(block + 4, (uint64_t)INPUT_OWN_QPN << 8 | (12 + octowords), 4);
	put_be(block + 12, WORLD_KEY(number), 4);
	block[16] = UMR_INLINE;
	put_be(block + 20, 4, 2);
	put_be(block + 22, octowords, 2);
	put_be(block + 24, 0x203e2041 | (octowords ? 0x1200 : 0), 8);
	block[66] = 0x7c;
	put_be(block + 68, 0xffffff00, 4);
	put_be(block + 76, octowords ? 1u << 30 : 0, 4);
	for (uint32_t i = 0; i < 1 + below(4); i++) {
		uint8_t *unit = block + 128 + i * 16;

		put_good_segment(unit, 1 + near_a_block());
		if (inner) {
			put_be(unit, 1 + near_a_block(), 4);
			put_be(unit + 4, WORLD_KEY(inner), 4);
			put_be(unit + 8, below(2) ? 0 : near_a_block(), 8);
		}
		length += be32_of(unit);
	}
	put_be(block + 88, length, 8);
	if (octowords)
		put_blocks(block + 192, octowords);
	return (12 + octowords) / 4;
}

/* Names a range of @number on its wire, as source or target. */
static void aim(uint8_t *unit, uint32_t number, bool remote)
{
	put_be(unit + (remote ? 8 : 4), WORLD_KEY(number), 4);
	put_be(unit + (remote ? 0 : 8), below(2) ? 0 : near_a_block(), 8);
	if (!remote)
		put_be(unit, 1 + near_a_block(), 4);
}

/* Keys with block setup, one of them perhaps inside another, then messages through them. */
void put_scene(struct input *input)
{
	uint32_t pair = input->config.pair % WORLD_PAIRS, at = 0, blocks;
	uint32_t number = below(2) ? WORLD_MKEY_SIGNATURE : WORLD_MKEY_CIPHER, outer = number;

	memset(input->op, 0, sizeof(input->op));
	memset(input->sq_a, 0, sizeof(input->sq_a));
	at += put_good_umr(input->sq_a, number, 0);
	if (below(2)) {
		outer = below(2) ? WORLD_MKEY_8 : WORLD_MKEY_4;
		at += put_good_umr(input->sq_a + at * 64, outer, number);
	}
	while (at < WORLD_SQ_BLOCKS) {
		uint8_t *block = input->sq_a + at * 64;

		if (below(4)) {
			blocks = put_message(block, sizeof(input->sq_a) - at * 64, pair);
			/* Its last segments, which name keys. */
			for (uint32_t i = 1; blocks && i < (be32_of(block + 4) & 63); i++)
				if (be32_of(block + i * 16 + 4) >= WORLD_KEY(0) &&
				    be32_of(block + i * 16 + 4) < WORLD_KEY(32))
					aim(block + i * 16, below(2) ? outer : number, false);
				else if (be32_of(block + i * 16 + 8) >= WORLD_KEY(0) &&
					 be32_of(block + i * 16 + 8) < WORLD_KEY(32))
					aim(block + i * 16, below(2) ? outer : number, true);
		} else {
			put_copy(block);
			aim(block + (below(2) ? 32 : 48), outer, false);
			memcpy(block + 48, block + 32, 4);
			blocks = 1;
		}
		if (!blocks)
			break;
		at += blocks;
	}
	for (uint32_t i = 0; i < sizeof(input->rq_b); i += 32)
		aim(input->rq_b + i, below(2) ? outer : number, false);
	for (uint32_t i = 0; i < WORLD_SRQ_ENTRIES; i++)
		aim(input->srq + (i << WORLD_SRQ_SHIFT) + 16, below(2) ? outer : number, false);
	input->op[0].kind = OP_RECEIVE_B;
	input->op[0].argument = WORLD_RQ_ENTRIES;
	input->op[1].kind = OP_SEND_A;
	input->op[1].argument = (uint8_t)at;
	for (uint32_t i = 2; i < 6; i++)
		input->op[i].kind = OP_TIMER_A;
}
