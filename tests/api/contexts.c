/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests several contexts of one device in a process, as several programs on an adapter: they address each other by QP number and
 * rkey, and share nothing else. Keys, events and errors are separate, and a context that is closed does not affect the others.
 */
#include "support/descriptors.h"
#include "support/event.h"
#include "support/program.h"

enum { RING = 5, SENDS = 100, RECEIVES = 200 };

static struct side ring[RING];
static struct pair links[RING]; /* from each side to the next */

static struct side *next_side(int i)
{
	return &ring[(i + 1) % RING];
}

static int ring_open(void **state)
{
	static const char *const names[RING] = {"side 0", "side 1", "side 2", "side 3", "side 4"};
	struct pair_options options = pair_defaults(IBV_QPT_RC);

	(void)state;
	note_clear();
	for (int i = 0; i < RING; i++)
		side_open(&ring[i], names[i], 16384, i % 2 ? 0x80 : 0);
	for (int i = 0; i < RING; i++)
		pair_open(&links[i], &ring[i], next_side(i), &options);
	return 0;
}

static int ring_close(void **state)
{
	(void)state;
	for (int i = 0; i < RING; i++)
		pair_close(&links[i]);
	for (int i = 0; i < RING; i++)
		side_close(&ring[i]);
	return 0;
}

/* Runs all operations between two neighbours, in both directions. */
static void talk(int i)
{
	struct view here = view_memory(&ring[i], 64, 5000), there = view_memory(next_side(i), 8192, 5000);

	expect_write(&links[i], here, there, IBV_WC_SUCCESS);
	expect_write(&links[i], there, here, IBV_WC_SUCCESS);
	expect_read(&links[i], here, there, IBV_WC_SUCCESS);
	expect_send(&links[i], here, there, IBV_WC_SUCCESS, IBV_WC_SUCCESS);
	expect_send(&links[i], there, here, IBV_WC_SUCCESS, IBV_WC_SUCCESS);
	expect_fetch_add(&links[i], view_part(here, 0, 8), view_part(there, 0, 8), IBV_WC_SUCCESS);
}

TEST(all_talk_to_their_neighbours)
{
	for (int round = 0; round < 3; round++)
		for (int i = 0; i < RING; i++)
			talk(i);
}

/* Passes a message around the ring. */
TEST(around_the_ring)
{
	for (int i = 0; i < RING; i++) {
		struct ibv_sge source = side_sge(&ring[i], 100, 1000), sink = side_sge(next_side(i), 100, 1000);
		struct ibv_send_wr wr = send_wr(SENDS, IBV_WR_SEND, &source);

		post_receive(&links[i].server, RECEIVES, &sink, 1);
		post_send(&links[i].client, &wr);
		expect_completion(&links[i].client, SENDS, IBV_WC_SEND);
		expect_completion(&links[i].server, RECEIVES, IBV_WC_RECV);
		memcpy(next_side(i)->expected + 100, ring[i].expected + 100, 1000);
	}
	for (int i = 1; i < RING; i++)
		assert_memory_equal(ring[0].memory + 100, ring[i].memory + 100, 1000);
}

TEST(numbers_are_unique)
{
	for (int i = 0; i < 2 * RING; i++)
		for (int k = 0; k < i; k++) {
			const struct endpoint *one = i % 2 ? &links[i / 2].server : &links[i / 2].client;
			const struct endpoint *other = k % 2 ? &links[k / 2].server : &links[k / 2].client;

			assert_int_not_equal(one->qp->qp_num, other->qp->qp_num);
		}
}

/* A key serves only the QPs of its own domain, even if another context registered the same memory. */
TEST(keys_are_each_ones_own)
{
	for (int i = 0; i < RING; i++) {
		struct side *here = &ring[i], *there = next_side(i);

		for (int k = 0; k < RING; k++) {
			struct view foreign_source = view_with_key(here, ring[k].mr->lkey, 0, 64);
			struct view foreign_target = view_with_key(there, ring[k].mr->rkey, 0, 64);
			struct view source = view_memory(here, 0, 64), target = view_memory(there, 0, 64);

			note("side %d with the keys of side %d", i, k);
			if (&ring[k] != here) {
				expect_write(&links[i], foreign_source, target, IBV_WC_LOC_PROT_ERR);
				expect_read(&links[i], foreign_source, target, IBV_WC_LOC_PROT_ERR);
			}
			if (&ring[k] != there) {
				expect_write(&links[i], source, foreign_target, IBV_WC_REM_ACCESS_ERR);
				expect_read(&links[i], source, foreign_target, IBV_WC_REM_ACCESS_ERR);
				expect_send(&links[i], source, foreign_target, IBV_WC_REM_OP_ERR, IBV_WC_LOC_PROT_ERR);
			}
		}
		for (int k = 0; k < RING; k++)
			while (&ring[k] == there && event_waits(&ring[k]))
				next_event(&ring[k]); /* access errors of its QPs */
	}
}

/* An event is delivered to the context of its QP. */
TEST(events_are_each_ones_own)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE};
	struct ibv_sge sge;

	for (int i = 0; i < RING; i++) {
		sge = side_sge(&ring[i], 0, 8);
		wr.sg_list = &sge;
		wr.num_sge = 1;
		wr.wr.rdma.rkey = 0xdeadbeef;
		post_send(&links[i].client, &wr);
		expect_status(&links[i].client, 0, IBV_WC_REM_ACCESS_ERR);
		for (int k = 0; k < RING; k++) {
			note("error of link %d, side %d", i, k);
			if (&ring[k] == next_side(i))
				expect_event(&ring[k], IBV_EVENT_QP_ACCESS_ERR, links[i].server.qp);
			expect_no_event(&ring[k]);
		}
		/* Only this link fails. */
		for (int k = i + 1; k < RING; k++)
			talk(k);
	}
}

/* One side closes all its objects: the others keep working, and the links to it are opened again. */
TEST(one_ends_the_others_go_on)
{
	struct pair_options options = pair_defaults(IBV_QPT_RC);

	for (int i = 0; i < RING; i++) {
		int before = (i + RING - 1) % RING;

		note("side %d ends", i);
		pair_close(&links[i]);
		pair_close(&links[before]);
		side_close(&ring[i]);
		for (int k = 0; k < RING; k++)
			if (k != i && k != before)
				talk(k);
		side_open(&ring[i], "side", 16384, i % 2 ? 0x80 : 0);
		pair_open(&links[before], &ring[before], &ring[i], &options);
		pair_open(&links[i], &ring[i], next_side(i), &options);
		talk(before);
		talk(i);
	}
}

/* Opens, uses and closes contexts repeatedly, without leaking descriptors. */
TEST(many_lives)
{
	struct pair_options options = pair_defaults(IBV_QPT_RC);
	int descriptors = count_descriptors();

	for (int i = 0; i < 100; i++) {
		struct side one, other;
		struct pair between;

		note("life %d", i);
		side_open(&one, "one", 4096, 0);
		side_open(&other, "other", 4096, 0x80);
		pair_open(&between, &one, &other, &options);
		expect_write(&between, view_memory(&one, 0, 4096), view_memory(&other, 0, 4096), IBV_WC_SUCCESS);
		pair_close(&between);
		side_close(&one);
		side_close(&other);
		assert_true(descriptors_come_back_to(descriptors));
	}
}

/* Sends datagrams from each side to each; the QP number identifies the sender. */
TEST(datagrams_between_all)
{
	struct pair_options options = pair_defaults(IBV_QPT_UD);
	static struct pair ends[RING]; /* only their clients are used */

	for (int i = 0; i < RING; i++)
		pair_open(&ends[i], &ring[i], next_side(i), &options);
	for (int from = 0; from < RING; from++)
		for (int to = 0; to < RING; to++) {
			struct ibv_sge source = side_sge(&ring[from], 0, 100), sink = side_sge(&ring[to], 1000, 140);
			struct ibv_send_wr wr = send_wr(SENDS, IBV_WR_SEND, &source), *bad;

			if (from == to)
				continue;
			wr.wr.ud.ah = ends[from].client.ah;
			wr.wr.ud.remote_qpn = ends[to].client.qp->qp_num;
			wr.wr.ud.remote_qkey = PAIR_QKEY;
			post_receive(&ends[to].client, RECEIVES, &sink, 1);
			expect_error(ibv_post_send(ends[from].client.qp, &wr, &bad), 0);
			expect_completion(&ends[from].client, SENDS, IBV_WC_SEND);
			assert_int_equal(expect_completion(&ends[to].client, RECEIVES, IBV_WC_RECV).src_qp,
					 ends[from].client.qp->qp_num);
			memcpy(ring[to].expected + 1000, ring[to].memory + 1000, 40); /* the header */
			memcpy(ring[to].expected + 1040, ring[from].expected, 100);
			side_compare(&ring[to]);
		}
	for (int i = 0; i < RING; i++)
		pair_close(&ends[i]);
}

int main(void)
{
	return run_cases(.setup = ring_open, .teardown = ring_close);
}
