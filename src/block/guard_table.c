/* SPDX-License-Identifier: BSD-2-Clause */
/* CRCs by eight tables, eight bytes per step: for CPUs without carry-less multiplication, and for short ends. */
#include "block/guard_kernels.h"

#include <endian.h>
#include <string.h>

/* Copied pieces stay in the L1 cache until their CRC has been computed. */
enum { PIECE = 1024 };

/* advance[type][n][byte]: contribution of a byte to the register after n more bytes. */
static uint64_t advance[GUARD_TYPE_COUNT][8][256];

static void table_prepare(void)
{
	for (unsigned int type = 0; type < GUARD_TYPE_COUNT; type++) {
		if (!guard_is_crc(type))
			continue;
		for (unsigned int byte = 0; byte < 256; byte++) {
			uint64_t value = guard_kernel_bitwise.copy(type, 0, NULL, &(uint8_t){byte}, 1);

			advance[type][0][byte] = value;
		}
		for (unsigned int byte = 0; byte < 256; byte++)
			for (unsigned int n = 1; n < 8; n++)
				advance[type][n][byte] =
					guard_table_update(type, advance[type][n - 1][byte], &(uint8_t){0}, 1);
	}
}

static uint64_t table_update_reflected(const uint64_t table[8][256], uint64_t running, const uint8_t *from,
				       size_t bytes)
{
	for (; bytes >= 8; from += 8, bytes -= 8) {
		uint64_t word;

		memcpy(&word, from, 8);
		word = le64toh(word) ^ running;
		running = 0;
		for (unsigned int n = 0; n < 8; n++)
			running ^= table[7 - n][word >> 8 * n & 0xff];
	}
	for (; bytes; from++, bytes--)
		running = running >> 8 ^ table[0][(running ^ *from) & 0xff];
	return running;
}

static uint64_t table_update_plain(const uint64_t table[8][256], uint64_t running, const uint8_t *from, size_t bytes)
{
	for (; bytes >= 8; from += 8, bytes -= 8) {
		uint64_t word;

		memcpy(&word, from, 8);
		word = be64toh(word) ^ running;
		running = 0;
		for (unsigned int n = 0; n < 8; n++)
			running ^= table[n][word >> 8 * n & 0xff];
	}
	for (; bytes; from++, bytes--)
		running = running << 8 ^ table[0][running >> 56 ^ *from];
	return running;
}

uint64_t guard_table_update(enum guard_type type, uint64_t running, const uint8_t *from, size_t bytes)
{
	if (guard_is_reflected(type))
		return table_update_reflected(advance[type], running, from, bytes);
	return table_update_plain(advance[type], running, from, bytes);
}

static uint64_t table_copy(enum guard_type type, uint64_t running, uint8_t *to, const uint8_t *from, size_t bytes)
{
	if (!to)
		return guard_table_update(type, running, from, bytes);
	while (bytes) {
		size_t piece = bytes < PIECE ? bytes : PIECE;

		memcpy(to, from, piece);
		running = guard_table_update(type, running, from, piece);
		to += piece;
		from += piece;
		bytes -= piece;
	}
	return running;
}

const struct guard_kernel guard_kernel_table = {
	.name = "table",
	.needs = CPU_ANY,
	.prepare = table_prepare,
	.types = 1u << GUARD_T10_CRC | 1u << GUARD_CRC32 | 1u << GUARD_CRC32C | 1u << GUARD_CRC64_XP10,
	.copy = table_copy,
};
