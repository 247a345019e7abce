/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rings that change during polling: CQEs of a destroyed QP are removed, or all CQEs move to another ring. In both cases
 * the remaining CQEs must be complete and in order, and the device must be able to continue writing.
 */
#include "../support/cq_fixture.h"

/* Writes a CQE of QP @qp that polls as wr_id 1000 * qp + @counter; also for the QP with the SRQ (sends do not touch it). */
static void write_send(struct cq_fixture *f, uint32_t qp, uint16_t counter)
{
	write_plain(f, 0, 0x0a, qp, counter);
}

static void expect_empty(struct cq_fixture *f)
{
	struct ibv_wc wc;

	assert_int_equal(poll_one(f, &wc), 0);
}

static void expect(struct cq_fixture *f, uint64_t wr_id)
{
	struct ibv_wc wc;

	assert_int_equal(poll_one(f, &wc), 1);
	assert_int_equal(wc.wr_id, wr_id);
}

/* Every pattern of two QPs in rings with 0 to 8 CQEs, at every place of the ring and in an odd and an even lap. */
TEST(purge_keeps_the_others_in_order)
{
	struct cq_fixture f;

	for (uint32_t size = 64; size <= 128; size += 64)
		for (uint32_t first = 0; first < 32; first += 3)
			for (uint32_t pattern = 0; pattern < 1 << 9; pattern++) {
				uint32_t used = 31 - __builtin_clz(pattern | 1); /* bits below the highest one */

				fixture_init(&f, 8, size, first);
				for (uint32_t i = 0; i < used; i++)
					write_send(&f, pattern >> i & 1, i);
				user_cq_purge_qp(&f.qp[1]);
				if (used && pattern & ((1 << used) - 1))
					assert_int_equal(published(&f),
							 first + __builtin_popcount(pattern & ((1 << used) - 1)));
				for (uint32_t i = 0; i < used; i++)
					if (!(pattern >> i & 1))
						expect(&f, i);
				expect_empty(&f);
				/* The device continues where it was, for more than a lap. */
				for (uint32_t i = 0; i < 11; i++) {
					write_send(&f, 0, i);
					expect(&f, i);
				}
				expect_empty(&f);
				fixture_free(&f);
			}
}

TEST(purge_gives_srq_entries_back)
{
	struct cq_fixture f;
	uint32_t index[4];

	fixture_init(&f, 16, 64, 0);
	for (int i = 0; i < 4; i++)
		index[i] = post_to_srq(&f, 70 + i);
	write_plain(&f, 2, 0, SRQ_QP, index[0]);
	write_send(&f, SRQ_QP, 1); /* a send CQE: its counter is not an SRQ entry */
	write_send(&f, 0, 2);
	write_plain(&f, 14, 0, SRQ_QP, index[1]);
	write_plain(&f, 13, 0x0a, SRQ_QP, 3);
	write_plain(&f, 1, 0, SRQ_QP, index[3]);
	assert_int_equal(f.srq.used, 4);
	user_cq_purge_qp(&f.qp[SRQ_QP]);
	assert_int_equal(f.srq.used, 1);
	expect(&f, 2);
	expect_empty(&f);
	fixture_free(&f);
}

/* The fields of a signature error overlap the user index. */
TEST(purge_leaves_signature_errors)
{
	struct cq_fixture f;

	fixture_init(&f, 8, 64, 0);
	write_plain(&f, 12, 0, 1, 0);
	user_cq_purge_qp(&f.qp[1]);
	assert_int_equal(f.cq.consumer_index, 0);
	fixture_free(&f);
}

TEST(purge_leaves_rings_given_away)
{
	struct cq_fixture f;

	fixture_init(&f, 8, 64, 0);
	f.cq.exported = true;
	write_send(&f, 1, 5);
	user_cq_purge_qp(&f.qp[1]);
	expect(&f, 1005);
	fixture_free(&f);
}

TEST(purge_of_both_queues)
{
	struct cq_fixture f, g;

	fixture_init(&f, 8, 64, 0);
	fixture_init(&g, 8, 128, 8);
	f.qp[1].base.recv_cq = &g.cq.base;
	write_send(&f, 1, 1);
	write_send(&f, 0, 2);
	write_plain(&g, 2, 0, 1, 0); /* same user index in both */
	write_plain(&g, 0, 0x0a, 0, 3);
	user_cq_purge_qp(&f.qp[1]);
	expect(&f, 2);
	expect_empty(&f);
	expect(&g, 3);
	expect_empty(&g);

	/* A QP without CQs, like XRC and DC. */
	f.qp[1].base.recv_cq = f.qp[1].base.send_cq = NULL;
	user_cq_purge_qp(&f.qp[1]);
	fixture_free(&f);
	fixture_free(&g);
}

/* A CQ of a single thread has no lock: the QP may be destroyed within a polled batch, but the CQE being read must stay. */
TEST(purge_within_a_batch)
{
	struct ibv_poll_cq_attr attr = {0};
	struct cq_fixture f;

	fixture_init(&f, 8, 64, 0);
	queue_lock_destroy(&f.cq.lock);
	queue_lock_init(&f.cq.lock, LOCK_LEVEL_USER_CQ, true);
	cq_poll_ex_fill(&f.cq, IBV_WC_STANDARD_FLAGS);
	write_send(&f, 1, 1);
	write_send(&f, 1, 2);
	write_send(&f, 0, 3);
	assert_int_equal(ibv_start_poll(&f.cq.ex, &attr), 0);
	user_cq_purge_qp(&f.qp[1]);
	assert_int_equal(published(&f), 0);
	assert_int_equal(f.cq.ex.wr_id, 1001);
	assert_int_equal(ibv_wc_read_qp_num(&f.cq.ex), FIRST_QPN + 1);
	assert_int_equal(ibv_next_poll(&f.cq.ex), 0);
	assert_int_equal(f.cq.ex.wr_id, 3);
	ibv_end_poll(&f.cq.ex);
	assert_int_equal(published(&f), 3);
	fixture_free(&f);
}

/* mlx5-formats 3.7: from any place in a ring of 8 to any place in a ring of 2 to 32, with 0 to 7 CQEs in flight. */
TEST(continuing_in_another_ring)
{
	struct cq_fixture f;

	for (uint32_t size = 64; size <= 128; size += 64)
		for (uint32_t count = 2; count <= 32; count *= 2)
			for (uint32_t first = 0; first < 70; first++)
				for (uint32_t used = 0; used < 8 && used < count; used++) {
					void *ring = make_ring(count, size), *old;

					fixture_init(&f, 8, size, first);
					old = f.cq.buffer;
					for (uint32_t i = 0; i < used; i++)
						write_send(&f, 0, i);
					write_plain(&f, 5, 0, 0, 0);
					/* The device may be ahead of the driver. */
					if (used + 1 < count)
						write_cqe_at(ring, count, size, f.producer++,
							     &(struct cqe_spec){.send_opcode = 0x0a, .counter = used});
					cq_continue_in(&f.cq, ring, count);
					free(old);
					assert_int_equal(f.cq.base.cqe, count - 1);
					for (uint32_t i = 0; i < used + (used + 1 < count); i++)
						expect(&f, i);
					expect_empty(&f);
					for (uint32_t i = 0; i < 2 * count + 1; i++) {
						write_send(&f, 0, i);
						expect(&f, i % SQ_BLOCKS);
					}
					expect_empty(&f);
					fixture_free(&f);
				}
}
