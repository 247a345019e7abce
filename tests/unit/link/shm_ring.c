/* SPDX-License-Identifier: BSD-2-Clause */
/* The ring of the shm link: order, wrap-around, full rings, and anything that a hostile producer or consumer can write. */
#include "test_case.h"

#include "../support/shm_ring_fixture.h"

struct world {
	struct shm_ring *ring;
	struct shm_producer producer;
	struct shm_consumer consumer;
};

static void world_begin_at(struct world *world, struct shm_cursor at)
{
	memset(world, 0, sizeof(*world));
	world->ring = aligned_alloc(_Alignof(struct shm_ring), sizeof(*world->ring));
	assert_non_null(world->ring);
	memset(world->ring, 0, sizeof(*world->ring));
	world->ring->head = world->producer.head = world->producer.tail = shm_pack(at);
	world->producer.ring = world->consumer.ring = world->ring;
	world->consumer.at = at;
}

static void world_begin(struct world *world)
{
	world_begin_at(world, (struct shm_cursor){0});
}

static void world_end(struct world *world)
{
	free(world->ring);
}

static void take(struct world *world, struct shm_record *record)
{
	uint32_t field, value;

	assert_true(shm_ready(&world->consumer));
	assert_int_equal(shm_take(&world->consumer, record, &field, &value), 0);
}

TEST(test_shapes)
{
	static const struct shm_slot shapes[] = {
		{.headers = 12},
		{.headers = 12, .length = 1},
		{.headers = 12, .length = 104},
		{.headers = 12, .length = 105},
		{.headers = 28, .length = 88},
		{.headers = 28, .length = 89},
		{.headers = 52},
		{.headers = 52, .length = 64},
		{.headers = 52, .length = 65},
		{.headers = 72, .length = 44},
		{.headers = 72, .length = 64},
		{.headers = 72, .length = 65, .flags = SHM_FLAG_PATH},
		{.headers = 20, .length = 8, .flags = SHM_FLAG_PATH},
		{.headers = 20, .length = 4096, .flags = SHM_FLAG_PATH | SHM_FLAG_FRAME},
		{.headers = 28, .length = 65536},
	};
	struct world world;

	world_begin(&world);
	assert_false(shm_ready(&world.consumer));
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
		assert_int_equal(record_send(&world.producer, &shapes[i], i), 0);
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		struct shm_record record;

		take(&world, &record);
		assert_int_equal(record.slot.headers, shapes[i].headers);
		assert_int_equal(record.slot.length, shapes[i].length);
		assert_int_equal(record.slot.flags, shapes[i].flags);
		assert_int_equal(record.path != NULL, shapes[i].flags & SHM_FLAG_PATH ? 1 : 0);
		assert_true(record_is(&record, i));
		/* Payload outside of the slot begins on a line. */
		if (record.payload >= world.ring->data && record.payload < world.ring->data + SHM_DATA_BYTES)
			assert_int_equal((record.payload - world.ring->data) % 64, 0);
	}
	assert_false(shm_ready(&world.consumer));
	world_end(&world);
}

/* Many laps of records of all sizes, received in bursts. The room is computed here from the records in the ring. */
static void run_laps(struct shm_cursor at, uint64_t seed)
{
	struct world world;
	uint64_t sent = 0, taken = 0, full = 0;

	world_begin_at(&world, at);
	while (taken < 30000) {
		uint64_t burst = next_random(&seed) % 600;

		while (burst-- && sent < 30000) {
			struct shm_slot shape = record_shape(sent * 0x2545f4914f6cdd1dULL);
			int error = record_send(&world.producer, &shape, sent);

			if (error) {
				assert_int_equal(error, -ENOBUFS);
				/* An empty ring has room for everything. */
				assert_true(sent > taken);
				full++;
				break;
			}
			sent++;
		}
		burst = next_random(&seed) % 600;
		while (burst-- && taken < sent) {
			struct shm_record record;

			take(&world, &record);
			assert_true(record_is(&record, taken));
			taken++;
			if (next_random(&seed) % 8 == 0)
				shm_release(&world.consumer);
		}
		shm_release(&world.consumer);
		assert_int_equal(shm_ready(&world.consumer), sent != taken);
	}
	assert_true(full > 10);
	world_end(&world);
}

TEST(test_laps)
{
	run_laps((struct shm_cursor){0}, 1);
}

/* Counts wrap around at 2^32. */
TEST(test_count_wraps)
{
	run_laps((struct shm_cursor){.slot = 0u - 1000, .line = 0u - 5 * SHM_DATA_LINES}, 2);
}

TEST(test_slots_run_out)
{
	const struct shm_slot small = {.headers = 12, .length = 8};
	struct shm_record record;
	struct world world;

	world_begin(&world);
	assert_true(shm_has_room(&world.producer));
	for (uint32_t i = 0; i < SHM_SLOTS; i++)
		assert_int_equal(record_send(&world.producer, &small, i), 0);
	assert_int_equal(record_send(&world.producer, &small, SHM_SLOTS), -ENOBUFS);
	assert_false(shm_has_room(&world.producer));
	/* Receiving is not releasing. */
	take(&world, &record);
	assert_int_equal(record_send(&world.producer, &small, SHM_SLOTS), -ENOBUFS);
	shm_release(&world.consumer);
	assert_int_equal(record_send(&world.producer, &small, SHM_SLOTS), 0);
	assert_int_equal(record_send(&world.producer, &small, SHM_SLOTS + 1), -ENOBUFS);
	for (uint32_t i = 1; i <= SHM_SLOTS; i++) {
		take(&world, &record);
		assert_true(record_is(&record, i));
	}
	assert_false(shm_ready(&world.consumer));
	world_end(&world);
}

TEST(test_lines_run_out)
{
	const struct shm_slot large = {.headers = 12, .length = SHM_MOST_PAYLOAD};
	uint32_t count = SHM_DATA_BYTES / SHM_MOST_PAYLOAD;
	struct shm_record record;
	struct world world;

	world_begin(&world);
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(record_send(&world.producer, &large, i), 0);
	assert_int_equal(record_send(&world.producer, &(struct shm_slot){.headers = 12, .length = 105}, count),
			 -ENOBUFS);
	/* A record without lines still fits. */
	assert_int_equal(record_send(&world.producer, &(struct shm_slot){.headers = 12, .length = 104}, count), 0);
	assert_false(shm_has_room(&world.producer));
	take(&world, &record);
	shm_release(&world.consumer);
	assert_int_equal(record_send(&world.producer, &large, count + 1), 0);
	world_end(&world);
}

/*
 * A record that does not fit before the end of the data area starts at its beginning; the rest is unused until it is
 * released.
 */
TEST(test_end_is_skipped)
{
	const struct shm_slot large = {.headers = 12, .length = SHM_MOST_PAYLOAD};
	struct world world;
	struct shm_record record;

	world_begin(&world);
	assert_int_equal(record_send(&world.producer, &(struct shm_slot){.headers = 12, .length = 128}, 0), 0);
	for (uint32_t i = 1; i < SHM_DATA_BYTES / SHM_MOST_PAYLOAD; i++)
		assert_int_equal(record_send(&world.producer, &large, i), 0);
	assert_int_equal(record_send(&world.producer, &large, 8), -ENOBUFS);
	for (uint32_t i = 0; i < 2; i++)
		take(&world, &record);
	shm_release(&world.consumer);
	assert_int_equal(record_send(&world.producer, &large, 8), 0);
	for (uint32_t i = 2; i <= SHM_DATA_BYTES / SHM_MOST_PAYLOAD; i++) {
		take(&world, &record);
		assert_true(record_is(&record, i));
	}
	assert_ptr_equal(record.payload, world.ring->data);
	world_end(&world);
}

/* Another thread was faster. */
TEST(test_tail_has_moved)
{
	struct shm_record record;
	struct world world;
	struct shm_cursor from, to;

	world_begin(&world);
	from = to = shm_tail(&world.producer);
	shm_step(&to, 3);
	assert_int_equal(record_send(&world.producer, &(struct shm_slot){.headers = 12}, 0), 0);
	assert_int_equal(shm_reserve(&world.producer, from, to), -EAGAIN);
	/* Also if the head has passed the tail that this thread read. */
	take(&world, &record);
	shm_release(&world.consumer);
	world.producer.head = world.ring->head;
	assert_int_equal(shm_reserve(&world.producer, from, to), -EAGAIN);
	world_end(&world);
}

/* A published slot is not ready in the previous lap, nor in the next. */
TEST(test_sequence)
{
	struct world world;

	world_begin(&world);
	world.ring->slot[0].sequence = 2;
	assert_false(shm_ready(&world.consumer));
	world.ring->slot[0].sequence = 0xffffffff;
	assert_false(shm_ready(&world.consumer));
	world.ring->slot[0].sequence = 1;
	assert_true(shm_ready(&world.consumer));
	world.consumer.at.slot = SHM_SLOTS;
	assert_false(shm_ready(&world.consumer));
	world_end(&world);
}

/* ---- a hostile consumer ---------------------------------------------------------------------------------------- */

static int reserve_with_head(uint32_t slot, uint32_t line)
{
	const struct shm_slot small = {.headers = 12, .length = 128};
	struct world world;
	int error;

	world_begin(&world);
	for (uint32_t i = 0; i < 100; i++)
		assert_int_equal(record_send(&world.producer, &small, i), 0);
	world.ring->head = shm_pack((struct shm_cursor){slot, line});
	/* The producer reads the head when all slots that it knows of are in use: after 512 records. */
	for (uint32_t i = 100; i < SHM_SLOTS; i++)
		assert_int_equal(record_send(&world.producer, &small, 0), 0);
	error = record_send(&world.producer, &small, 0);
	world_end(&world);
	return error;
}

TEST(test_hostile_head)
{
	/* After 512 records of two lines each. */
	assert_int_equal(reserve_with_head(100, 200), 0);
	assert_int_equal(reserve_with_head(512, 1024), 0);
	assert_int_equal(reserve_with_head(513, 1024), -EPROTO);
	assert_int_equal(reserve_with_head(512, 1025), -EPROTO);
	assert_int_equal(reserve_with_head(0xffffffff, 0), -EPROTO);
	assert_int_equal(reserve_with_head(0, 0xffffffff - SHM_DATA_LINES), -EPROTO);
	assert_int_equal(reserve_with_head(0x80000000, 0x80000000), -EPROTO);
	/* The head has not moved: there is never room. */
	assert_int_equal(reserve_with_head(0, 0), -ENOBUFS);
}

/* ---- a hostile producer ---------------------------------------------------------------------------------------- */

static uint32_t field_refused(const struct shm_slot *slot)
{
	struct world world;
	struct shm_record record;
	uint32_t field = 0, value = 0;
	int error;

	world_begin(&world);
	shm_publish(world.ring, 0, slot);
	error = shm_take(&world.consumer, &record, &field, &value);
	assert_int_equal(error, field ? -EPROTO : 0);
	/* An invalid ring is not used any further. */
	if (field)
		assert_int_equal(world.consumer.at.slot, 0);
	world_end(&world);
	return field;
}

TEST(test_hostile_fields)
{
	const struct shm_slot good = {.headers = 28, .length = 100};
	struct shm_slot slot;

	assert_int_equal(field_refused(&good), 0);
#define REFUSED(base, number, member, with)                                                                            \
	do {                                                                                                           \
		slot = base;                                                                                           \
		slot.member = with;                                                                                    \
		assert_int_equal(field_refused(&slot), number);                                                        \
	} while (0)
	for (int bit = 2; bit < 8; bit++)
		REFUSED(good, 2, flags, (uint8_t)(1 << bit));
	REFUSED(good, 2, flags, SHM_FLAG_FRAME);
	for (int headers = 0; headers < 256; headers++)
		REFUSED(good, headers < 12 || headers > 72 || headers % 4 ? 3u : 0u, headers, (uint8_t)headers);
	for (int bit = 0; bit < 16; bit++)
		REFUSED(good, bit < 8 ? 0u : 4u, rule, (uint16_t)(1 << bit));
	REFUSED(good, 0, length, SHM_MOST_PAYLOAD);
	REFUSED(good, 5, length, SHM_MOST_PAYLOAD + 1);
	REFUSED(good, 5, length, 0xffffffff);
	REFUSED(good, 0, length, 0);
#undef REFUSED
}

static bool is_inside(const void *at, size_t length, const void *base, size_t size)
{
	return (const uint8_t *)at >= (const uint8_t *)base &&
	       (size_t)((const uint8_t *)at - (const uint8_t *)base) <= size &&
	       length <= size - (size_t)((const uint8_t *)at - (const uint8_t *)base);
}

/* For any contents of the slots, returned payload lies in the data area, or in the slot itself. */
TEST(test_hostile_slots)
{
	uint64_t seed = 99;
	uint32_t accepted = 0;
	struct world world;

	world_begin(&world);
	for (uint32_t i = 0; i < 300000; i++) {
		struct shm_slot slot = {0};
		const struct shm_slot *in_ring;
		struct shm_record record;
		uint32_t field, value;
		uint64_t random = next_random(&seed);

		if (random & 3)
			slot = record_shape(next_random(&seed));
		/* One field gets a random value. */
		memcpy((uint8_t *)&slot + 4 + random / 4 % 8, &random, random >> 60 & 3);
		shm_publish(world.ring, world.consumer.at.slot, &slot);
		in_ring = shm_next(&world.consumer);
		if (shm_take(&world.consumer, &record, &field, &value))
			continue;
		accepted++;
		if (record.path)
			assert_true(is_inside(record.path, 64, world.ring->data, SHM_DATA_BYTES));
		assert_true(is_inside(record.headers, record.slot.headers, in_ring->bytes, SHM_INLINE_BYTES));
		assert_true(is_inside(record.payload, record.slot.length, world.ring->data, SHM_DATA_BYTES) ||
			    is_inside(record.payload, record.slot.length, in_ring->bytes, SHM_INLINE_BYTES));
	}
	assert_true(accepted > 50000);
	world_end(&world);
}

/* Changing the sizes after they were checked has no effect. */
TEST(test_sizes_are_copied)
{
	struct world world;
	struct shm_record record;

	world_begin(&world);
	assert_int_equal(record_send(&world.producer, &(struct shm_slot){.headers = 12, .length = 8}, 5), 0);
	take(&world, &record);
	memset(&world.ring->slot[0], 0xff, offsetof(struct shm_slot, bytes));
	assert_int_equal(record.slot.length, 8);
	assert_true(record_is(&record, 5));
	world_end(&world);
}

/* Lines written with non-temporal stores have the same contents as others, and their neighbours do not change. */
TEST(test_lines_are_written)
{
	enum { MOST = 3000, MARGIN = 64 };
	static uint8_t lines[MOST + 2 * MARGIN] __attribute__((aligned(SHM_LINE))), from[MOST + 8];

	for (uint32_t i = 0; i < sizeof(from); i++)
		from[i] = (uint8_t)(i * 7 + i / 256 + 1);
	for (uint32_t length = 0; length <= MOST; length += length < 600 ? 1 : 83) {
		uint32_t at = length % 8;

		memset(lines, 0, sizeof(lines));
		shm_write_lines(lines + MARGIN, from + at, length);
		assert_memory_equal(lines + MARGIN, from + at, length);
		for (uint32_t i = 0; i < MARGIN; i++)
			assert_int_equal(lines[i] | lines[MARGIN + length + i], 0);
	}
}
