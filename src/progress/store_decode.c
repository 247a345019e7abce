/* SPDX-License-Identifier: BSD-2-Clause */
/* Decoding of store instructions. */
#include "progress/store_decode.h"

#include <string.h>

#if defined(__x86_64__) && defined(__LP64__)

/* More than one copy of a WQE to a register. */
enum { MOST_STORES = 64 };

/* The mandatory prefix, as VEX and EVEX encode it. */
enum prefix { PREFIX_NONE, PREFIX_66, PREFIX_F3, PREFIX_F2 };

struct instruction {
	const uint8_t *at; /* next byte */
	enum prefix prefix;
	bool wide;    /* REX.W */
	uint8_t base; /* extensions of the fields of ModRM and SIB: 0 or 8 */
	uint8_t index;
	uint8_t scale;  /* unit of an 8-bit displacement (EVEX), otherwise 1 */
	uint8_t behind; /* bytes of an immediate operand */
};

enum encoding { LEGACY = 1, VEX = 2, EVEX = 4 };

/* Opcodes of map 0F that store vectors, or parts of them. */
static const struct {
	uint8_t opcode;
	enum prefix prefix;
	uint8_t encodings;
} vector_stores[] = {
	{0x11, PREFIX_NONE, LEGACY | VEX | EVEX},
	{0x11, PREFIX_66, LEGACY | VEX | EVEX},
	{0x11, PREFIX_F3, LEGACY | VEX},
	{0x11, PREFIX_F2, LEGACY | VEX},
	{0x13, PREFIX_NONE, LEGACY | VEX},
	{0x13, PREFIX_66, LEGACY | VEX},
	{0x17, PREFIX_NONE, LEGACY | VEX},
	{0x17, PREFIX_66, LEGACY | VEX},
	{0x29, PREFIX_NONE, LEGACY | VEX | EVEX},
	{0x29, PREFIX_66, LEGACY | VEX | EVEX},
	{0x2b, PREFIX_NONE, LEGACY | VEX | EVEX},
	{0x2b, PREFIX_66, LEGACY | VEX | EVEX},
	{0x7e, PREFIX_NONE, LEGACY},
	{0x7e, PREFIX_66, LEGACY | VEX},
	{0x7f, PREFIX_NONE, LEGACY},
	{0x7f, PREFIX_66, LEGACY | VEX | EVEX},
	{0x7f, PREFIX_F3, LEGACY | VEX | EVEX},
	{0x7f, PREFIX_F2, EVEX},
	{0xc3, PREFIX_NONE, LEGACY},
	{0xd6, PREFIX_66, LEGACY | VEX},
	{0xe7, PREFIX_NONE, LEGACY},
	{0xe7, PREFIX_66, LEGACY | VEX | EVEX},
};

static bool vector_stores_have(uint8_t opcode, enum prefix prefix, enum encoding encoding)
{
	for (size_t i = 0; i < sizeof(vector_stores) / sizeof(vector_stores[0]); i++)
		if (vector_stores[i].opcode == opcode && vector_stores[i].prefix == prefix &&
		    vector_stores[i].encodings & encoding)
			return true;
	return false;
}

/* C5, or C4 with map 0F. */
static bool decode_vex(struct instruction *instruction)
{
	uint8_t last = instruction->at[1];

	if (instruction->at[0] == 0xc4) {
		/* The extensions are inverted. */
		instruction->index = last & 0x40 ? 0 : 8;
		instruction->base = last & 0x20 ? 0 : 8;
		if ((last & 0x1f) != 1)
			return false;
		last = instruction->at[2];
		instruction->at++;
	}
	instruction->prefix = last & 3;
	instruction->at += 3;
	return vector_stores_have(instruction->at[-1], instruction->prefix, VEX);
}

/* 62: map 0F, without a mask and broadcasting. */
static bool decode_evex(struct instruction *instruction)
{
	const uint8_t *payload = instruction->at + 1;

	if ((payload[0] & 0xf) != 1 || !(payload[1] & 4) || payload[2] & 0x97 || (payload[2] >> 5 & 3) == 3)
		return false;
	instruction->index = payload[0] & 0x40 ? 0 : 8;
	instruction->base = payload[0] & 0x20 ? 0 : 8;
	instruction->prefix = payload[1] & 3;
	/* Whole vectors: a displacement of 8 bits counts vectors. */
	instruction->scale = (uint8_t)(16 << (payload[2] >> 5 & 3));
	instruction->at += 5;
	return vector_stores_have(instruction->at[-1], instruction->prefix, EVEX);
}

/* MOV, and MOVBE and MOVDIRI in map 0F 38. */
static bool decode_general(struct instruction *instruction)
{
	uint8_t opcode = *instruction->at++;

	switch (opcode) {
	case 0x88:
	case 0x89:
		return true;
	case 0xc6:
	case 0xc7:
		instruction->behind = opcode == 0xc6                                           ? 1
				      : instruction->prefix == PREFIX_66 && !instruction->wide ? 2
											       : 4;
		return !(*instruction->at & 0x38);
	case 0x0f:
		opcode = *instruction->at++;
		if (opcode != 0x38)
			return vector_stores_have(opcode, instruction->prefix, LEGACY);
		opcode = *instruction->at++;
		return (opcode == 0xf1 && instruction->prefix <= PREFIX_66) ||
		       (opcode == 0xf9 && instruction->prefix == PREFIX_NONE);
	default:
		return false;
	}
}

static bool decode_legacy(struct instruction *instruction)
{
	for (;; instruction->at++) {
		uint8_t byte = *instruction->at;

		if (byte == 0x66 && instruction->prefix == PREFIX_NONE)
			instruction->prefix = PREFIX_66;
		else if (byte == 0xf3 && instruction->prefix == PREFIX_NONE)
			instruction->prefix = PREFIX_F3;
		else if (byte == 0xf2 && instruction->prefix == PREFIX_NONE)
			instruction->prefix = PREFIX_F2;
		else
			break;
	}
	if ((*instruction->at & 0xf0) == 0x40) {
		instruction->wide = *instruction->at & 8;
		instruction->index = *instruction->at & 2 ? 8 : 0;
		instruction->base = *instruction->at & 1 ? 8 : 0;
		instruction->at++;
	}
	return decode_general(instruction);
}

static bool decode_opcode(struct instruction *instruction)
{
	switch (*instruction->at) {
	case 0xc4:
	case 0xc5:
		return decode_vex(instruction);
	case 0x62:
		return decode_evex(instruction);
	default:
		return decode_legacy(instruction);
	}
}

static uint64_t register_value(const greg_t *registers, uint8_t number)
{
	static const uint8_t places[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
					 REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

	return (uint64_t)registers[places[number]];
}

/* Decodes ModRM, SIB and displacement. Returns false for a register as operand. */
static bool decode_address(struct instruction *instruction, const greg_t *registers, uint64_t *address)
{
	uint8_t modrm = *instruction->at++, mode = modrm >> 6, base = modrm & 7;
	int32_t far;

	*address = 0;
	if (mode == 3)
		return false;
	if (base == 4) {
		uint8_t sib = *instruction->at++, index = (sib >> 3 & 7) + instruction->index;

		base = sib & 7;
		/* RSP cannot be an index. */
		if (index != 4)
			*address = register_value(registers, index) << (sib >> 6);
	}
	if (mode || base != 5)
		*address += register_value(registers, base + instruction->base);
	if (mode == 1) {
		*address += (uint64_t)((int64_t)(int8_t)*instruction->at * instruction->scale);
		instruction->at++;
	} else if (mode == 2 || base == 5) {
		memcpy(&far, instruction->at, sizeof(far));
		instruction->at += sizeof(far);
		*address += (uint64_t)(int64_t)far;
		/* Relative to the end of the instruction, if there is no SIB. */
		if (mode == 0 && (modrm & 7) == 5)
			*address += (uintptr_t)instruction->at + instruction->behind;
	}
	instruction->at += instruction->behind;
	return true;
}

/* Returns the end of a store instruction at @at, and its address in @address, or NULL. */
static const uint8_t *store_decode(const uint8_t *at, const greg_t *registers, uint64_t *address)
{
	struct instruction instruction = {.at = at, .scale = 1};

	return decode_opcode(&instruction) && decode_address(&instruction, registers, address) ? instruction.at : NULL;
}

bool store_decode_works(void)
{
	return true;
}

size_t stores_skip(ucontext_t *context, uintptr_t start, size_t bytes)
{
	greg_t *registers = context->uc_mcontext.gregs;
	size_t stores = 0;

	for (; stores < MOST_STORES; stores++) {
		uint64_t address;
		const uint8_t *end = store_decode((const uint8_t *)(uintptr_t)registers[REG_RIP], registers, &address);

		if (!end || address - start >= bytes)
			break;
		registers[REG_RIP] = (greg_t)(uintptr_t)end;
	}
	return stores;
}

#else

bool store_decode_works(void)
{
	return false;
}

size_t stores_skip(ucontext_t *context, uintptr_t start, size_t bytes)
{
	(void)context;
	(void)start;
	(void)bytes;
	return 0;
}

#endif
