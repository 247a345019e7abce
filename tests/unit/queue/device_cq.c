/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queues of the device, with the test as their driver (mlx5-formats 3.1, 3.6 and 3.7). */
#include "test_case.h"

#include "../support/device_fixture.h"

static bool write_cqe(struct raw_cq *cq, uint16_t counter)
{
	return hca_cq_write(cq->cq, &(struct completion){.opcode = MLX5_CQE_REQ, .wqe_counter = counter});
}

static uint8_t *new_ring(uint32_t count)
{
	uint8_t *ring = aligned_alloc(64, count * 64);

	memset(ring, 0, count * 64);
	for (uint32_t i = 0; i < count; i++)
		ring[64 * i + 63] = MLX5_CQE_INVALID << 4;
	return ring;
}

struct move {
	struct raw_cq *cq;
	uint8_t *ring;
	uint32_t count;
};

/* As a driver does: moves all CQEs up to the marker one index further. */
static void carry_over(void *argument)
{
	const struct move *move = argument;
	struct raw_cq *cq = move->cq;
	uint32_t end = cq->consumer + 3;

	for (uint32_t i = cq->consumer; i < end; i++) {
		uint8_t *to = move->ring + 64 * (size_t)((i + 1) & (move->count - 1));

		memcpy(to, cq->ring + 64 * (size_t)(i & (cq->count - 1)), 64);
		to[63] = (uint8_t)((to[63] & ~1) | !!((i + 1) & move->count));
	}
	assert_int_equal(cq->ring[64 * (size_t)(end & (cq->count - 1)) + 63] >> 4, MLX5_CQE_RESIZE_CQ);
	cq->ring = move->ring;
	cq->count = move->count;
	cq->dbrec[0] = htobe32(++cq->consumer);
}

/* The marker uses an index, but no space of the CQEs: the new ring holds as many CQEs at once as it has entries. */
TEST(new_ring_is_used_to_the_last_entry)
{
	struct raw_cq cq;
	struct move move = {&cq, new_ring(4), 4};
	uint8_t *old;

	raw_cq_make(&device, &cq, 8);
	old = cq.ring;
	for (uint16_t i = 0; i < 3; i++)
		assert_true(write_cqe(&cq, i));
	assert_int_equal(hca_cq_resize(cq.cq, move.ring, 4, carry_over, &move), 0);
	free(old);
	assert_true(write_cqe(&cq, 3));
	assert_false(write_cqe(&cq, 4));
	for (uint16_t i = 0; i < 4; i++)
		expect_cqe(&cq, i, 0);
	assert_null(raw_cq_poll(&cq));
	raw_cq_destroy(&cq);
}

/* ---- progress of a reading program ------------------------------------------------------------------------------- */

/* A program and the true state of its ring, independent of the record. */
struct reader {
	struct raw_cq cq;
	bool modulo;  /* its record has the index modulo the size of the ring, otherwise 24 bits */
	bool careful; /* it never lets the ring overflow */
	uint32_t produced, consumed;
	uint32_t at_once; /* consumed since the last CQE */
};

static void reader_make(struct reader *reader, uint32_t count, bool modulo, uint32_t first)
{
	*reader = (struct reader){.modulo = modulo, .produced = first, .consumed = first};
	raw_cq_make(&device, &reader->cq, count);
	reader->cq.cq->producer_index = first;
	reader->cq.dbrec[0] = htobe32(modulo ? first % count : first & 0xffffff);
}

static void consume(struct reader *reader, uint32_t count)
{
	reader->consumed += count;
	reader->at_once += count;
	reader->cq.dbrec[0] =
		htobe32(reader->modulo ? reader->consumed % reader->cq.count : reader->consumed & 0xffffff);
}

static void produce(struct reader *reader)
{
	bool room = reader->produced - reader->consumed < reader->cq.count;

	if (!room && reader->careful)
		return;
	if (write_cqe(&reader->cq, 0) != room)
		fail_msg("%u entries, %s, %u written, %u read: %s", reader->cq.count,
			 reader->modulo ? "modulo the size" : "24 bits", reader->produced, reader->consumed,
			 room ? "the CQE is lost" : "a CQE is written over");
	reader->produced += room;
	reader->at_once = 0;
}

/* Bursts of writes and reads, with the ring empty, full, and in between. */
static void read_at_random(struct reader *reader, uint32_t seed)
{
	for (uint32_t step = 0; step < 4000; step++) {
		uint32_t burst, waiting = reader->produced - reader->consumed;

		seed = seed * 1664525 + 1013904223;
		burst = (seed >> 16) % (reader->cq.count + 2);
		if (seed >> 31) {
			for (; burst; burst--)
				produce(reader);
			continue;
		}
		burst = burst < waiting ? burst : waiting;
		/*
		 * Reading the whole ring at once does not change a record modulo its size, so the device cannot detect
		 * it.
		 */
		if (reader->modulo && reader->at_once + burst >= reader->cq.count)
			continue;
		consume(reader, burst);
	}
}

TEST(either_record_tells_of_room)
{
	struct reader reader;

	for (uint32_t count = 2; count <= 64; count *= 2)
		for (uint32_t seed = 1; seed <= 20; seed++) {
			reader_make(&reader, count, seed % 2, 0);
			read_at_random(&reader, seed);
			raw_cq_destroy(&reader.cq);
			/* Around the end of the 24 bits, after which both kinds of record are equal for a lap. */
			reader_make(&reader, count, seed % 2, 0x1000000 - 3 * count);
			reader.careful = reader.modulo;
			read_at_random(&reader, seed);
			raw_cq_destroy(&reader.cq);
		}
}

/* For a program that never reads, the oldest CQEs stay unchanged; one that has read all has the whole ring again. */
TEST(ring_of_one_lap_is_full)
{
	struct reader reader;

	for (uint32_t modulo = 0; modulo < 2; modulo++) {
		reader_make(&reader, 8, modulo, 0);
		for (uint32_t i = 0; i < 20; i++)
			produce(&reader);
		assert_int_equal(reader.produced, 8);
		consume(&reader, 7);
		for (uint32_t i = 0; i < 20; i++)
			produce(&reader);
		assert_int_equal(reader.produced, 15);
		raw_cq_destroy(&reader.cq);
	}
}

/*
 * A consumer index of 16 bits, or of the 24 of mlx5-formats 3.1, through more CQEs than it can count; the number of
 * unread CQEs differs from lap to lap. A full ring is detected after its wrap-around as well as before.
 */
static void consumer_index(uint32_t mask, bool in_umem)
{
	enum { COUNT = 64 };
	struct raw_cq cq = {.count = COUNT, .ring = new_ring(COUNT)};
	struct hca_cq_attr attr = {
		.cqe_count = COUNT, .cqe_size = 64, .dbrec = cq.dbrec, .buffer = cq.ring, .in_umem = in_umem};
	uint32_t written = 0, all = (UINT32_C(1) << 16) + 3 * COUNT;

	assert_int_equal(hca_cq_create(device.context, &attr, &cq.cq), 0);
	for (uint32_t lap = 1; written < all; lap = lap % COUNT + 1) {
		for (uint32_t i = 0; i < lap; i++)
			assert_true(write_cqe(&cq, (uint16_t)written++));
		for (uint32_t i = 0; i < lap; i++)
			expect_cqe(&cq, (uint16_t)(written - lap + i), 0);
		cq.dbrec[0] = htobe32(cq.consumer & mask);
	}
	for (uint32_t i = 0; i < COUNT; i++)
		assert_true(write_cqe(&cq, (uint16_t)written++));
	assert_false(write_cqe(&cq, (uint16_t)written));
	raw_cq_destroy(&cq);
}

TEST(consumer_indices)
{
	consumer_index(0xffffff, false);
	consumer_index(0xffff, false);
	consumer_index(0xffff, true);
}

int main(void)
{
	return run_cases(.group_setup = device_group_open, .group_teardown = device_group_close);
}
