/* SPDX-License-Identifier: BSD-2-Clause */
/* Packet sequence numbers: 24 bits that wrap around, half of them older and half of them newer (IBTA 9.7.2). */
#include "test_case.h"

#include "wire/packet.h"

enum { SPACE = 1 << 24, HALF = SPACE / 2 };

/* Steps from @b to @a on the circle, the shorter way; forward if both ways are equally long. */
static int distance(uint32_t a, uint32_t b)
{
	int ahead = ((int)a - (int)b + SPACE) % SPACE;

	return ahead >= HALF ? ahead - SPACE : ahead;
}

static const uint32_t numbers[] = {0,    1,        2,        255,      256,      HALF - 2, HALF - 1,
				   HALF, HALF + 1, 0xfffffd, 0xfffffe, 0xffffff, 0x123456, 0xabcdef};

#define COUNT (sizeof(numbers) / sizeof(numbers[0]))

TEST(distances)
{
	for (size_t a = 0; a < COUNT; a++)
		for (size_t b = 0; b < COUNT; b++)
			assert_int_equal(psn_distance(numbers[a], numbers[b]), distance(numbers[a], numbers[b]));
	assert_int_equal(psn_distance(0, 0xffffff), 1);
	assert_int_equal(psn_distance(0xffffff, 0), -1);
	assert_int_equal(psn_distance(HALF - 1, 0), HALF - 1);
	assert_int_equal(psn_distance(0, HALF - 1), 1 - HALF);
	/* Exactly opposite: neither newer nor older, but always the same result. */
	assert_int_equal(psn_distance(HALF, 0), -HALF);
	assert_int_equal(psn_distance(0, HALF), -HALF);
}

TEST(sums)
{
	for (size_t a = 0; a < COUNT; a++) {
		for (size_t b = 0; b < COUNT; b++) {
			uint32_t sum = psn_add(numbers[a], numbers[b]);

			assert_int_equal(sum, (numbers[a] + numbers[b]) % SPACE);
			if (numbers[b] < HALF)
				assert_int_equal(psn_distance(sum, numbers[a]), numbers[b]);
		}
		/* One back, as for the packet before another one. */
		assert_int_equal(psn_add(numbers[a], PSN_MASK), (numbers[a] + SPACE - 1) % SPACE);
	}
}

/* A message without payload is one packet (IBTA C9-148 for READ, 9.4.3 for the rest). */
TEST(packets)
{
	for (uint32_t shift = 8; shift <= 12; shift++) {
		uint64_t mtu = UINT64_C(1) << shift;

		assert_int_equal(packets_of(0, shift), 1);
		for (uint64_t bytes = 1; bytes < 6 * mtu; bytes++)
			assert_int_equal(packets_of(bytes, shift), bytes / mtu + (bytes % mtu != 0));
		assert_int_equal(packets_of(LIMIT_MAX_MSG_SIZE, shift), LIMIT_MAX_MSG_SIZE / mtu);
		assert_int_equal(packets_of(LIMIT_MAX_MSG_SIZE - 1, shift), LIMIT_MAX_MSG_SIZE / mtu);
		/* The longest message must be shorter than half of the sequence numbers. */
		assert_true(packets_of(LIMIT_MAX_MSG_SIZE, shift) < HALF);
	}
}
