/* SPDX-License-Identifier: BSD-2-Clause */
/* copy_small(): it copies exactly the requested bytes, for every length around its bounds and at every alignment. */
#include "test_case.h"

#include "core/copy_small.h"

enum { MOST = TUNABLE_COPY_WORDS_BYTES + 16, WORD = 8, UNTOUCHED = 0xee };

static void copy(uint32_t length, size_t to_at, size_t from_at)
{
	uint8_t from[MOST + WORD], to[MOST + 2 * WORD];

	for (size_t i = 0; i < sizeof(from); i++)
		from[i] = (uint8_t)(i % 251 + 1);
	memset(to, UNTOUCHED, sizeof(to));
	copy_small(to + to_at, from + from_at, length);
	for (size_t i = 0; i < sizeof(to); i++) {
		uint8_t wanted =
			i < to_at || i - to_at >= length ? UNTOUCHED : (uint8_t)((i - to_at + from_at) % 251 + 1);

		if (to[i] != wanted)
			fail_msg("%u bytes from %zu to %zu: byte %zu is %#x", length, from_at, to_at, i, to[i]);
	}
}

TEST(test_lengths_and_alignments)
{
	for (uint32_t length = 0; length <= MOST; length++)
		for (size_t at = 0; at < WORD; at++) {
			copy(length, at, 0);
			copy(length, 4, at);
		}
}
