/* SPDX-License-Identifier: BSD-2-Clause */
/* The Internet checksum with general-purpose registers. */
#include "block/guard_checksum.h"

#include <string.h>

uint64_t guard_checksum_words(uint8_t *to, const uint8_t *from, size_t bytes)
{
	uint64_t sums[4] = {0};
	uint16_t pair;

	for (; bytes >= 16; from += 16, bytes -= 16) {
		uint64_t words[2];

		memcpy(words, from, 16);
		if (to)
			to = (uint8_t *)memcpy(to, words, 16) + 16;
		sums[0] += words[0] & 0xffffffff;
		sums[1] += words[0] >> 32;
		sums[2] += words[1] & 0xffffffff;
		sums[3] += words[1] >> 32;
	}
	for (; bytes; from += 2, bytes -= 2) {
		memcpy(&pair, from, 2);
		if (to)
			to = (uint8_t *)memcpy(to, &pair, 2) + 2;
		sums[0] += pair;
	}
	return guard_checksum_fold(sums[0]) + guard_checksum_fold(sums[1]) + guard_checksum_fold(sums[2]) +
	       guard_checksum_fold(sums[3]);
}

static uint64_t words_copy(enum guard_type type, uint64_t running, uint8_t *to, const uint8_t *from, size_t bytes)
{
	(void)type;
	return guard_checksum_copy(guard_checksum_words, running, to, from, bytes);
}

const struct guard_kernel guard_kernel_words = {
	.name = "words",
	.needs = CPU_ANY,
	.types = 1u << GUARD_IP_CHECKSUM,
	.copy = words_copy,
};
