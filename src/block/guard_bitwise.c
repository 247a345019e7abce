/* SPDX-License-Identifier: BSD-2-Clause */
/* Reference for tests: CRCs bit by bit, the checksum byte by byte. Never chosen. */
#include "block/guard_kernels.h"

#include <string.h>

/* Polynomials in both bit orders, as catalogues list either; names in mlx5-formats 5.1. */
const struct guard_crc guard_crcs[GUARD_TYPE_COUNT] = {
	[GUARD_T10_CRC] = {16, 0x8bb7ull << 48, 0xedd1, 0xffffull << 48},
	[GUARD_CRC32] = {32, 0x04c11db7ull << 32, 0xedb88320, 0xffffffffull << 32},
	[GUARD_CRC32C] = {32, 0x1edc6f41ull << 32, 0x82f63b78, 0xffffffff},
	[GUARD_CRC64_XP10] = {64, 0xad93d23594c93659, 0x9a6c9329ac4bc9b5, ~0ull},
};

static uint64_t crc_byte(enum guard_type type, uint64_t running, uint8_t byte)
{
	const struct guard_crc *crc = &guard_crcs[type];
	bool reflected = guard_is_reflected(type);

	running ^= reflected ? byte : (uint64_t)byte << 56;
	for (int bit = 0; bit < 8; bit++) {
		if (reflected)
			running = running >> 1 ^ (running & 1 ? crc->reversed : 0);
		else
			running = running << 1 ^ (running >> 63 ? crc->polynomial : 0);
	}
	return running;
}

static uint64_t checksum_byte(uint64_t running, uint8_t byte)
{
	uint64_t odd = running & GUARD_CHECKSUM_ODD;
	uint64_t sum = (running & 0xffff) + (odd ? byte : (unsigned int)byte << 8);

	return ((sum & 0xffff) + (sum >> 16)) | (odd ^ GUARD_CHECKSUM_ODD);
}

static uint64_t bitwise_copy(enum guard_type type, uint64_t running, uint8_t *to, const uint8_t *from, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++) {
		if (guard_is_crc(type))
			running = crc_byte(type, running, from[i]);
		else if (type == GUARD_IP_CHECKSUM)
			running = checksum_byte(running, from[i]);
		if (to)
			to[i] = from[i];
	}
	return running;
}

const struct guard_kernel guard_kernel_bitwise = {
	.name = "bitwise",
	.needs = CPU_ANY,
	.types = (1u << GUARD_TYPE_COUNT) - 1,
	.copy = bitwise_copy,
};
