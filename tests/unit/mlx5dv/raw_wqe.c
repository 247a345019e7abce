/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mlx5dv_wr_raw_wqe, byte by byte: content and place in the ring, and effects on later WQEs (mlx5-formats 4.8 and 1.1).
 * The QP is made by hand and no doorbell is rung.
 */
#include "test_case.h"

#include "../support/umr_fixture.h"
#include "verbs/post/wr.h"

enum { UNIT = 16, BLOCK = 64, LONGEST = 63 };

static struct fixture *fixture;
static struct mlx5dv_qp_ex *dv;

static int set_up(void **state)
{
	(void)state;
	fixture = fixture_new();
	fixture->qp.cap.max_send_sge = 4;
	dv = &fixture->qp.dv;
	assert_int_equal(wr_table_fill(&fixture->qp, IBV_QP_EX_WITH_SEND), 0);
	assert_int_equal(dv_wr_table_fill(&fixture->qp, MLX5DV_QP_EX_WITH_RAW_WQE | MLX5DV_QP_EX_WITH_MKEY_CONFIGURE),
			 0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	fixture_free(fixture);
	return 0;
}

/*
 * Makes a WQE of @units with bytes that all differ from the fill of the ring; the low 6 bits of its second word are the
 * units.
 */
static void make_wqe(uint8_t *wqe, uint32_t units, uint32_t seed)
{
	for (uint32_t i = 0; i < units * UNIT; i++) {
		seed = seed * 1664525 + 1013904223;
		wqe[i] = (uint8_t)(seed >> 24);
		if (wqe[i] == TEST_FILLING)
			wqe[i] ^= 0xff;
	}
	wqe[7] = (uint8_t)((wqe[7] & 0xc0) | units);
}

/* Expects the WQE at block @index to be @wqe, except for the 16 bits of the index. */
static void expect_wqe(uint32_t index, const uint8_t *wqe, uint32_t bytes)
{
	uint8_t found[LONGEST * UNIT], expected[LONGEST * UNIT];

	memcpy(expected, wqe, bytes);
	expected[1] = (uint8_t)(index >> 8);
	expected[2] = (uint8_t)index;
	fixture_read(fixture, index, found, bytes);
	assert_memory_equal(found, expected, bytes);
}

/* Every length at every place of the ring, also across its end and with a counter that wraps; from any alignment. */
TEST(as_it_is)
{
	static const uint32_t bases[] = {0, 0xffe0, 0xfffffff0};

	for (size_t b = 0; b < sizeof(bases) / sizeof(bases[0]); b++) {
		for (uint32_t index = bases[b]; index != bases[b] + TEST_BLOCKS; index++) {
			for (uint32_t units = 1; units <= LONGEST; units++) {
				uint8_t storage[LONGEST * UNIT + 8], *wqe = storage + units % 8;
				uint32_t blocks = (units + 3) / 4;

				make_wqe(wqe, units, index * 64 + units);
				fixture_place(fixture, index);
				fixture_start(fixture, 0);
				mlx5dv_wr_raw_wqe(dv, wqe);
				assert_int_equal(fixture->qp.builder.error, 0);
				assert_int_equal(fixture->qp.builder.count, 1);
				assert_int_equal(fixture->qp.sq.cur_post, index + blocks);
				expect_wqe(index, wqe, units * UNIT);
				for (uint32_t i = units * UNIT; i < blocks * BLOCK; i++)
					assert_int_equal(fixture->ring[(index * BLOCK + i) % (TEST_BLOCKS * BLOCK)],
							 TEST_FILLING);
				fixture_expect_untouched(fixture, index + blocks, TEST_BLOCKS - blocks);
			}
		}
	}
}

/* It keeps its own flags: wr_flags and sq_sig_all have no effect. Its slot saves wr_id and opcode. */
TEST(flags_are_ignored)
{
	const unsigned int all = IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_FENCE | IBV_SEND_INLINE;
	uint8_t wqe[2 * UNIT];

	for (unsigned int flags = 0; flags <= all; flags++) {
		make_wqe(wqe, 2, flags);
		fixture_place(fixture, 5);
		fixture_start(fixture, flags);
		fixture->qp.sq_sig_all = flags & 1;
		send_queue_derive(&fixture->qp);
		fixture->qp.ex.wr_id = 0x1234567890 + flags;
		mlx5dv_wr_raw_wqe(dv, wqe);
		expect_wqe(5, wqe, sizeof(wqe));
		assert_int_equal(fixture->wr_id[5], 0x1234567890 + flags);
		assert_int_equal(fixture->wc_opcode[5], IBV_WC_DRIVER2);
	}
}

/* Without a length only its control segment can be copied; the device will detect and report that. */
TEST(without_length)
{
	uint8_t wqe[UNIT];

	make_wqe(wqe, 1, 1);
	wqe[7] &= 0xc0;
	fixture_place(fixture, 3);
	fixture_start(fixture, 0);
	mlx5dv_wr_raw_wqe(dv, wqe);
	assert_int_equal(fixture->qp.builder.error, 0);
	assert_int_equal(fixture->qp.sq.cur_post, 4);
	expect_wqe(3, wqe, sizeof(wqe));
}

static void send(unsigned int flags)
{
	fixture->qp.ex.wr_flags = flags;
	wr_send(&fixture->qp.ex);
	wr_set_sge(&fixture->qp.ex, 0x100, 0x1000, 64);
}

static uint8_t fence_at(uint32_t index)
{
	return fixture->ring[index % TEST_BLOCKS * BLOCK + 11] & 0xe0;
}

/* mlx5-formats 1.3: the WQE after a UMR gets a small fence; a raw WQE ends that, and gets none. */
TEST(fence_of_an_umr_ends_with_it)
{
	uint8_t wqe[UNIT];

	make_wqe(wqe, 1, 9);
	wqe[11] = 0x08;
	fixture_place(fixture, 0);
	fixture_start(fixture, IBV_SEND_INLINE);
	mlx5dv_wr_mkey_configure(dv, &fixture->mkey.base, 0, &no_attributes);
	assert_int_equal(fixture->qp.sq.cur_post, 2);
	send(0);
	assert_int_equal(fence_at(2), 0x20);

	fixture_place(fixture, 0);
	fixture_start(fixture, IBV_SEND_INLINE);
	mlx5dv_wr_mkey_configure(dv, &fixture->mkey.base, 0, &no_attributes);
	mlx5dv_wr_raw_wqe(dv, wqe);
	send(0);
	send(IBV_SEND_FENCE);
	assert_int_equal(fixture->qp.builder.error, 0);
	assert_int_equal(fence_at(2), 0);
	assert_int_equal(fence_at(3), 0);
	assert_int_equal(fence_at(4), 0x80);
}

/* Several in a chain, between WQEs of builders. */
TEST(mixed)
{
	uint8_t wqe[4][7 * UNIT], found[UNIT];

	fixture_place(fixture, TEST_BLOCKS - 3);
	fixture_start(fixture, IBV_SEND_SIGNALED);
	for (uint32_t i = 0; i < 4; i++) {
		make_wqe(wqe[i], 4 + i, i);
		fixture->qp.ex.wr_id = 100 + i;
		mlx5dv_wr_raw_wqe(dv, wqe[i]);
		fixture->qp.ex.wr_id = 200 + i;
		send(IBV_SEND_SIGNALED);
	}
	assert_int_equal(fixture->qp.builder.error, 0);
	assert_int_equal(fixture->qp.builder.count, 8);
	for (uint32_t i = 0, index = TEST_BLOCKS - 3; i < 4; i++) {
		expect_wqe(index, wqe[i], (4 + i) * UNIT);
		assert_int_equal(fixture->wr_id[index % TEST_BLOCKS], 100 + i);
		assert_int_equal(fixture->wqe_head[index % TEST_BLOCKS], fixture->qp.sq.head + 2 * i);
		index += (4 + i + 3) / 4;
		fixture_read(fixture, index, found, UNIT);
		assert_int_equal(be32_at(found, 0), (index & 0xffff) << 8 | MLX5_OPCODE_SEND);
		assert_int_equal(fixture->wr_id[index % TEST_BLOCKS], 200 + i);
		assert_int_equal(fixture->wc_opcode[index % TEST_BLOCKS], WC_OPCODE_FROM_CQE);
		index++;
	}
}

/* ---- room ------------------------------------------------------------------------------------------------------- */

static void open_queue(uint32_t index, uint32_t wqe_size)
{
	fixture_place(fixture, index);
	fixture->qp.sq.wqe_size = wqe_size;
	fixture->qp.sq.max_post = TEST_BLOCKS * BLOCK / wqe_size;
	fixture->qp.sq.oversized = false;
	send_queue_derive(&fixture->qp);
	fixture_start(fixture, 0);
}

/* WRs of the size for which the queue was made: max_send_wr of them, then ENOMEM. */
TEST(as_many_as_promised)
{
	uint8_t wqe[4 * UNIT];

	make_wqe(wqe, 4, 1);
	open_queue(7, BLOCK);
	for (uint32_t i = 0; i < TEST_BLOCKS; i++)
		mlx5dv_wr_raw_wqe(dv, wqe);
	assert_int_equal(fixture->qp.builder.error, 0);
	mlx5dv_wr_raw_wqe(dv, wqe);
	assert_int_equal(fixture->qp.builder.error, ENOMEM);
	assert_int_equal(fixture->qp.builder.count, TEST_BLOCKS);
}

/*
 * Larger WRs take blocks of the ring from the others, but never blocks in use. After a prefix of small ones, of which
 * @polled have completed, exactly as many fit as the blocks allow.
 */
TEST(larger_than_promised)
{
	for (uint32_t units = 5; units <= LONGEST; units += 4) {
		for (uint32_t small = 0; small < 6; small++) {
			for (uint32_t polled = 0; polled <= small; polled++) {
				uint32_t blocks = (units + 3) / 4, room = (TEST_BLOCKS - small + polled) / blocks;
				uint8_t wqe[LONGEST * UNIT], little[UNIT];
				uint64_t before;

				make_wqe(wqe, units, units);
				make_wqe(little, 1, 2);
				open_queue(11, BLOCK);
				for (uint32_t i = 0; i < small; i++)
					mlx5dv_wr_raw_wqe(dv, little);
				assert_int_equal(fixture->qp.builder.error, 0);
				/* As ibv_wr_complete(3), and polling, would do. */
				fixture->qp.sq.head += small;
				fixture->qp.sq.tail += polled;
				fixture_start(fixture, 0);
				for (uint32_t i = 0; i < room; i++)
					mlx5dv_wr_raw_wqe(dv, wqe);
				assert_int_equal(fixture->qp.builder.error, 0);
				before = fixture_last_serial();
				mlx5dv_wr_raw_wqe(dv, wqe);
				assert_int_equal(fixture->qp.builder.error, ENOMEM);
				expect_record(before, RULE_SQ_FULL);
				assert_int_equal(fixture->qp.builder.count, room);
				for (uint32_t i = polled; i < small; i++)
					expect_wqe(11 + i, little, UNIT);
			}
		}
	}
}

/* A WQE that is larger than the whole ring never fits. */
TEST(larger_than_the_ring)
{
	uint8_t wqe[LONGEST * UNIT];

	for (uint32_t blocks = 1; blocks < 16; blocks *= 2) {
		uint64_t before;

		make_wqe(wqe, 4 * blocks + 1, 3);
		open_queue(0, BLOCK);
		fixture->qp.sq.wqebb_count = fixture->qp.sq.max_post = blocks;
		send_queue_derive(&fixture->qp);
		before = fixture_last_serial();
		mlx5dv_wr_raw_wqe(dv, wqe);
		assert_int_equal(fixture->qp.builder.error, ENOMEM);
		expect_record(before, RULE_SQ_FULL);
		fixture_expect_untouched(fixture, 0, TEST_BLOCKS);
		fixture_start(fixture, 0);
		make_wqe(wqe, 4 * blocks, 3);
		mlx5dv_wr_raw_wqe(dv, wqe);
		assert_int_equal(fixture->qp.builder.error, 0);
		fixture->qp.sq.wqebb_count = TEST_BLOCKS;
		send_queue_derive(&fixture->qp);
	}
}

/* An error of the chain drops it; an error that it causes drops the chain. */
TEST(errors_of_a_chain)
{
	uint8_t wqe[UNIT];
	__be32 dbrec[2] = {0};

	make_wqe(wqe, 1, 1);
	fixture->qp.dbrec = dbrec;
	fixture_place(fixture, 4);
	fixture_start(fixture, 0);
	queue_lock(&fixture->qp.sq.lock);
	mlx5dv_wr_mkey_configure(dv, &fixture->mkey.base, 0, &no_attributes); /* without IBV_SEND_INLINE */
	mlx5dv_wr_raw_wqe(dv, wqe);
	assert_int_equal(wr_complete(&fixture->qp.ex), EOPNOTSUPP);
	fixture_expect_untouched(fixture, 4, TEST_BLOCKS);

	fixture_start(fixture, 0);
	queue_lock(&fixture->qp.sq.lock);
	fixture->qp.sq.max_post = 2;
	for (int i = 0; i < 3; i++)
		mlx5dv_wr_raw_wqe(dv, wqe);
	assert_int_equal(wr_complete(&fixture->qp.ex), ENOMEM);
	assert_int_equal(fixture->qp.sq.cur_post, 4);
	assert_int_equal(fixture->qp.sq.head, 4);
	assert_int_equal(dbrec[1], 0);
}

int main(void)
{
	return run_cases(.setup = set_up, .teardown = tear_down);
}
