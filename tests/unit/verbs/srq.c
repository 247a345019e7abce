/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ring of an SRQ (mlx5-formats 2.2). The test acts as the device: it reads the doorbell record, follows the links
 * and completes the entries in any order.
 */

#include "../support/cq_fixture.h"

static struct cq_fixture f;
static struct user_srq *const srq = &f.srq;

static void init(void)
{
	fixture_init(&f, 8, 64, 0);
}

static uint32_t be(const uint8_t *at, int bytes)
{
	uint32_t value = 0;

	while (bytes--)
		value = value << 8 | *at++;
	return value;
}

static const uint8_t *entry(uint32_t index)
{
	return (const uint8_t *)srq->buffer + ((size_t)index << srq->entry_shift);
}

TEST(entry_sizes)
{
	static const struct {
		uint32_t asked, size, got;
	} rows[] = {{0, 32, 1},   {1, 32, 1},    {2, 64, 3},    {3, 64, 3},    {4, 128, 7},  {7, 128, 7},
		    {8, 256, 15}, {15, 256, 15}, {16, 512, 31}, {30, 512, 31}, {31, 512, 31}};
	struct user_srq sized;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		srq_size_entries(&sized, rows[i].asked);
		assert_int_equal(1 << sized.entry_shift, rows[i].size);
		assert_int_equal(sized.max_sge, rows[i].got);
	}
	assert_int_equal(srq_entries_for(1), 2);
	assert_int_equal(srq_entries_for(2), 4);
	assert_int_equal(srq_entries_for(3), 4);
	assert_int_equal(srq_entries_for(4), 8);
	assert_int_equal(srq_entries_for(4095), 4096);
	assert_int_equal(srq_entries_for(32767), 32768);
}

TEST(layout_of_an_entry)
{
	struct ibv_sge sge[3] = {
		{.addr = 0x0123456789abcdef, .length = 0x11223344, .lkey = 0x55667788},
		{.addr = 1, .length = 0, .lkey = 2}, /* kept, unlike in a receive queue */
		{.addr = 3, .length = 4, .lkey = 5},
	};
	struct ibv_recv_wr wr = {.wr_id = 9, .sg_list = sge}, *bad;

	init();
	free(srq->buffer);
	srq_size_entries(srq, 3);
	srq->buffer = calloc(SRQ_ENTRIES, 1 << srq->entry_shift);
	srq_chain(srq, 0);
	memset((uint8_t *)entry(0) + 4, 0xa5, 4 * 64 - 4);
	srq_chain(srq, 0);

	wr.num_sge = 2;
	assert_int_equal(softhca_ibv_post_srq_recv(&srq->base, &wr, &bad), 0);
	assert_int_equal(be(entry(0) + 2, 2), 1);
	assert_memory_equal(entry(0) + 16, "\x11\x22\x33\x44\x55\x66\x77\x88\x01\x23\x45\x67\x89\xab\xcd\xef", 16);
	assert_memory_equal(entry(0) + 32, "\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0\1", 16);
	assert_memory_equal(entry(0) + 48, "\0\0\0\0\0\0\1\0\0\0\0\0\0\0\0\0", 16); /* terminator */

	wr.num_sge = 3; /* no room for a terminator, none needed */
	assert_int_equal(softhca_ibv_post_srq_recv(&srq->base, &wr, &bad), 0);
	assert_memory_equal(entry(1) + 48, "\0\0\0\4\0\0\0\5\0\0\0\0\0\0\0\3", 16);
	assert_int_equal(be(entry(2) + 2, 2), 3);

	wr.num_sge = 0;
	assert_int_equal(softhca_ibv_post_srq_recv(&srq->base, &wr, &bad), 0);
	assert_memory_equal(entry(2) + 16, "\0\0\0\0\0\0\1\0\0\0\0\0\0\0\0\0", 16);
	assert_int_equal(be((uint8_t *)srq->dbrec, 4), 3);
	fixture_free(&f);
}

/* ibv_post_srq_recv(3): WRs before the bad one are posted, the bad one and the rest are not. */
TEST(refusals)
{
	static const int wrong[] = {2, 1000, -1, INT32_MIN};
	struct ibv_recv_wr wr[SRQ_ENTRIES + 1], *bad;

	for (int i = 0; i < 4; i++) {
		init();
		memset(wr, 0, sizeof(wr));
		wr[0].next = &wr[1];
		wr[1].next = &wr[2];
		wr[1].num_sge = wrong[i];
		assert_int_equal(softhca_ibv_post_srq_recv(&srq->base, wr, &bad), EINVAL);
		assert_ptr_equal(bad, &wr[1]);
		assert_int_equal(srq->used, 1);
		assert_int_equal(be((uint8_t *)srq->dbrec, 4), 1);
		fixture_free(&f);
	}

	init();
	memset(wr, 0, sizeof(wr));
	for (int i = 0; i < SRQ_ENTRIES; i++)
		wr[i].next = &wr[i + 1];
	assert_int_equal(softhca_ibv_post_srq_recv(&srq->base, wr, &bad), ENOMEM);
	assert_ptr_equal(bad, &wr[SRQ_ENTRIES - 1]); /* max_wr is one less */
	assert_int_equal(be((uint8_t *)srq->dbrec, 4), SRQ_ENTRIES - 1);
	assert_int_equal(softhca_ibv_post_srq_recv(&srq->base, bad, &bad), ENOMEM);
	assert_int_equal(be((uint8_t *)srq->dbrec, 4), SRQ_ENTRIES - 1);
	fixture_free(&f);
}

/*
 * Long random runs, through several wraps of the 16-bit counter: the device follows links to take entries in the order
 * of posting, completes them in any order, and each completion yields the wr_id of its entry.
 */
TEST(random_runs)
{
	uint64_t expected[SRQ_ENTRIES]; /* wr_ids posted, not taken: a FIFO */
	uint32_t taken[SRQ_ENTRIES];    /* entries taken, not completed */
	uint64_t taken_id[SRQ_ENTRIES];
	uint32_t posted = 0, consumed = 0, held = 0, next = 0;
	uint64_t wr_id;

	srand(2);
	init();
	while (posted < 200000) {
		switch (rand() % 3) {
		case 0: {
			struct ibv_recv_wr wr = {.wr_id = (uint64_t)posted * 0x100000001}, *bad;
			bool full = posted - consumed + held == SRQ_ENTRIES - 1;

			assert_int_equal(softhca_ibv_post_srq_recv(&srq->base, &wr, &bad), full ? ENOMEM : 0);
			if (!full)
				expected[posted++ % SRQ_ENTRIES] = wr.wr_id;
			assert_int_equal(be((uint8_t *)srq->dbrec, 4), posted & 0xffff);
			break;
		}
		case 1:
			if (consumed == posted)
				break;
			taken[held] = next;
			taken_id[held++] = expected[consumed++ % SRQ_ENTRIES];
			next = be(entry(next) + 2, 2);
			break;
		default:
			if (held) {
				uint32_t which = rand() % held;

				assert_int_equal(user_srq_complete(srq, taken[which], &wr_id), 0);
				assert_int_equal(wr_id, taken_id[which]);
				taken[which] = taken[--held];
				taken_id[which] = taken_id[held];
			}
		}
		assert_int_equal(srq->used, posted - consumed + held);
	}
	fixture_free(&f);
}

TEST(entries_out_of_range)
{
	uint64_t wr_id;

	init();
	assert_int_equal(user_srq_complete(srq, SRQ_ENTRIES, &wr_id), -EINVAL);
	assert_int_equal(user_srq_complete(srq, 0xffff, &wr_id), -EINVAL);
	assert_int_equal(srq->used, 0);
	fixture_free(&f);
}
