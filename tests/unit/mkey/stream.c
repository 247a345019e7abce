/* SPDX-License-Identifier: BSD-2-Clause */
/* mkey/stream: gather and scatter lists over keys of all kinds, read, written and copied in pieces of any size. */
#include "test_case.h"

#include "../support/key_world.h"
#include "mkey/stream.h"

enum {
	ROUNDS = 150,
	COPIES = 30,
	SEGMENTS = 8,
	LONGEST = 9000,
	HALF = BLOCK_BYTES / 2, /* sources lie in the lower half of the block, targets in the upper one */
	NULL_SLOT = 0,
	HALF_REGIONS = 3,
	HALF_LAYOUTS = 3,
};

static struct key_world world;
static uint8_t shadow[BLOCK_BYTES];

/* A list, with a copy for the reference. */
struct list {
	struct mlx5_wqe_data_seg wire[SEGMENTS];
	struct {
		uint32_t key;
		uint64_t address, length;
	} segment[SEGMENTS];
	uint32_t count;
	uint64_t length;
	unsigned int wanted;
};

static int open_world(void **state)
{
	(void)state;
	world_open(&world, 2);
	return 0;
}

static int close_world(void **state)
{
	(void)state;
	world_close(&world);
	return 0;
}

static void new_contents(void)
{
	for (int i = 0; i < BLOCK_BYTES; i++)
		shadow[i] = world.memory[i] = (uint8_t)choose_bits(&world.choose);
}

static int region_slot(bool target, uint64_t i)
{
	return i ? (int)i + (target ? HALF_REGIONS : 0) : NULL_SLOT;
}

static int layout_slot(bool target, uint64_t i)
{
	return FIRST_LAYOUT + (target ? HALF_LAYOUTS : 0) + (int)i;
}

static void random_layout(bool target, uint64_t number)
{
	static const uint16_t sizes[] = {0, 1, 2, 4, 8, 16, 20, 32, 64, 128, 300};
	struct choose *c = &world.choose;
	struct key *key = &world.reference.key[layout_slot(target, number)];
	bool repeats = chance(c, 60);

	key->count = 1 + (uint32_t)choose_below(c, 5);
	key->repeat = repeats ? 1 + choose_below(c, 60) : 1;
	key->rights |= LOCAL_WRITE;
	key->length = 0;
	for (uint32_t i = 0; i < key->count; i++) {
		int slot = number && chance(c, 25) ? layout_slot(target, choose_below(c, number))
						   : region_slot(target, choose_below(c, HALF_REGIONS + 1));
		const struct key *in = &world.reference.key[slot];
		struct entry *entry = &key->entries[i];

		*entry = (struct entry){.key = in->number, .bytes = CHOOSE_OF(c, sizes)};
		if (!repeats)
			entry->bytes = 1 + choose_below(c, 2000);
		else
			entry->stride = entry->bytes + CHOOSE_OF(c, sizes);
		entry->address =
			in->start + (in->length > 3000 ? choose_below(c, 3000) : choose_below(c, in->length + 1));
		key->length += entry->bytes * key->repeat;
	}
	world_lay_out(&world, layout_slot(target, number), repeats);
}

static void new_keys(bool target)
{
	struct choose *c = &world.choose;

	for (int i = 1; i <= HALF_REGIONS; i++) {
		uint64_t length = 1 + choose_below(c, HALF), offset = choose_below(c, HALF - length + 1);
		int slot = region_slot(target, (uint64_t)i);

		if (world.key[slot])
			assert_int_equal(hca_mr_deregister(world.key[slot]), 0);
		world_region(&world, slot, offset + (target ? HALF : 0), length, chance(c, 50) ? 0 : 0 - length,
			     ALL_ACCESS);
	}
	for (uint64_t i = 0; i < HALF_LAYOUTS; i++) {
		if (!world.key[layout_slot(target, i)])
			world_mkey(&world, layout_slot(target, i));
		random_layout(target, i);
	}
}

static void random_list(struct list *list, bool target)
{
	struct choose *c = &world.choose;

	*list = (struct list){.count = (uint32_t)choose_below(c, SEGMENTS + 1),
			      .wanted = target ? LOCAL_WRITE : LOCAL_READ};
	for (uint32_t i = 0; i < list->count; i++) {
		int slot = chance(c, 60) ? layout_slot(target, choose_below(c, HALF_LAYOUTS))
					 : region_slot(target, choose_below(c, HALF_REGIONS + 1));
		const struct key *key = &world.reference.key[slot];
		uint64_t most = key->length < LONGEST ? key->length : LONGEST, length = choose_below(c, most + 1);
		uint64_t address = key->start + choose_below(c, key->length - length + 1);

		if (chance(c, 3))
			address++;
		list->segment[i].key = key->number;
		list->segment[i].address = address;
		list->segment[i].length = length;
		list->wire[i] =
			(struct mlx5_wqe_data_seg){htobe32((uint32_t)length), htobe32(key->number), htobe64(address)};
		list->length += length;
	}
}

/* Finds byte @offset of the list; returns false if it is refused. */
static bool find(const struct list *list, uint64_t offset, struct spot *spot)
{
	for (uint32_t i = 0; i < list->count; i++) {
		if (offset < list->segment[i].length)
			return list->segment[i].address + offset >= offset &&
			       keys_locate(&world.reference, list->segment[i].key, list->segment[i].address + offset,
					   list->wanted, world.accessor, spot);
		offset -= list->segment[i].length;
	}
	fail_msg("no byte %lu in the list", offset);
	return false;
}

static bool allowed(const struct list *list, uint64_t offset, uint64_t length)
{
	struct spot spot;

	for (uint64_t i = 0; i < length; i++)
		if (!find(list, offset + i, &spot))
			return false;
	return true;
}

static uint8_t byte_at(const struct list *list, uint64_t offset)
{
	struct spot spot;

	assert_true(find(list, offset, &spot));
	return spot.block == NOWHERE ? 0 : shadow[spot.offset];
}

/* Makes the stream of a part of @list; it must be refused exactly when a byte of the part is refused. */
static bool begin(struct stream *stream, const struct list *list, uint64_t offset, uint64_t length)
{
	struct refusal why;
	int error;

	stream_begin(stream, &world.access, rights_wanted(list->wanted));
	error = stream_add_segments(stream, list->wire, list->count, offset, length, &why);
	assert_int_equal(error == 0, allowed(list, offset, length));
	if (!error)
		assert_int_equal(stream->length, length);
	return !error;
}

static void compare_memory(void)
{
	for (int i = 0; i < BLOCK_BYTES; i++)
		if (world.memory[i] != shadow[i])
			fail_msg("byte %d is %02x, not %02x", i, world.memory[i], shadow[i]);
}

/* ---- at random ------------------------------------------------------------------------------------------------- */

static void read_at_random(void)
{
	static uint8_t bytes[SEGMENTS * LONGEST];
	struct choose *c = &world.choose;
	struct stream stream;
	struct list list;
	uint64_t offset, length, done = 0;

	random_list(&list, false);
	offset = choose_below(c, list.length + 1);
	length = choose_below(c, list.length - offset + 1);
	if (!begin(&stream, &list, offset, length))
		return;
	while (done < length) {
		uint64_t next = 1 + choose_below(c, length - done);

		stream_read(&stream, bytes + done, next);
		done += next;
	}
	for (uint64_t i = 0; i < length; i++)
		if (bytes[i] != byte_at(&list, offset + i))
			fail_msg("byte %lu of [%lu, +%lu) is %02x, not %02x", i, offset, length, bytes[i],
				 byte_at(&list, offset + i));
}

/* Expects the bytes of @source, in order, at those of @sink. A byte written twice may have either value. */
static void expect_copied(const struct list *sink, uint64_t sink_offset, const struct list *source,
			  uint64_t source_offset, uint64_t length)
{
	static uint8_t written[BLOCK_BYTES]; /* number of writes */
	struct spot spot;

	memset(written, 0, sizeof(written));
	for (uint64_t i = 0; i < length; i++) {
		uint8_t value = byte_at(source, source_offset + i);

		assert_true(find(sink, sink_offset + i, &spot));
		if (spot.block == NOWHERE)
			continue;
		/* Takes the actual value if it is one of the candidates. */
		if (!written[spot.offset] || world.memory[spot.offset] == value)
			shadow[spot.offset] = value;
		written[spot.offset] = 1;
	}
}

/* Returns true if something was copied. */
static bool copy_at_random(void)
{
	static struct stream from, to;
	struct choose *c = &world.choose;
	struct list source, sink;
	uint64_t source_offset, sink_offset, length, done = 0;

	random_list(&source, false);
	random_list(&sink, true);
	source_offset = choose_below(c, source.length + 1);
	sink_offset = choose_below(c, sink.length + 1);
	length = source.length - source_offset < sink.length - sink_offset ? source.length - source_offset
									   : sink.length - sink_offset;
	length = chance(c, 50) ? length : choose_below(c, length + 1);
	if (!begin(&from, &source, source_offset, length) || !begin(&to, &sink, sink_offset, length))
		return false;
	while (done < length) {
		uint64_t next = chance(c, 40) ? length - done : 1 + choose_below(c, length - done);

		stream_copy(&to, &from, next);
		done += next;
	}
	expect_copied(&sink, sink_offset, &source, source_offset, length);
	compare_memory();
	return length > 0;
}

TEST(lists_at_random)
{
	int copied = 0;

	world_null_region(&world, NULL_SLOT);
	for (int round = 0; round < ROUNDS; round++) {
		new_contents();
		new_keys(false);
		new_keys(true);
		epoch_enter();
		for (int i = 0; i < COPIES; i++) {
			read_at_random();
			copied += copy_at_random();
		}
		epoch_leave();
	}
	/* The rest was refused: neither result may be rare. */
	assert_in_range(copied, ROUNDS * COPIES / 4, ROUNDS * COPIES * 9 / 10);
}

/* ---- one by one ------------------------------------------------------------------------------------------------ */

/* Two keys that are walked, and the first of them again: each part has a separate walk. */
TEST(two_walks_in_turn)
{
	struct key *one = &world.reference.key[FIRST_LAYOUT], *other = &world.reference.key[FIRST_LAYOUT + 1];
	struct stream stream;
	uint8_t bytes[12];
	struct refusal why;

	new_contents();
	world_region(&world, 1, 0, 100, 0, ALL_ACCESS);
	world_mkey(&world, FIRST_LAYOUT);
	world_mkey(&world, FIRST_LAYOUT + 1);
	*one = (struct key){.kind = MODEL_LAYOUT,
			    .number = one->number,
			    .rights = LOCAL_READ,
			    .length = 8,
			    .repeat = 2,
			    .count = 1,
			    .entries = {{world.reference.key[1].number, 0, 4, 10}}};
	*other = *one;
	other->number = mkey_number(world.key[FIRST_LAYOUT + 1]);
	other->entries[0].address = 50;
	world_lay_out(&world, FIRST_LAYOUT, true);
	world_lay_out(&world, FIRST_LAYOUT + 1, true);
	epoch_enter();
	stream_begin(&stream, &world.access, RIGHT_LOCAL_READ);
	assert_int_equal(stream_add_key(&stream, one->number, 2, 4, &why), 0);
	assert_int_equal(stream_add_key(&stream, other->number, 2, 4, &why), 0);
	assert_int_equal(stream_add_key(&stream, one->number, 0, 4, &why), 0);
	assert_int_equal(stream.length, 12);
	stream_read(&stream, bytes, 12);
	epoch_leave();
	for (int i = 0; i < 2; i++) {
		assert_int_equal(bytes[i], shadow[2 + i]);
		assert_int_equal(bytes[2 + i], shadow[10 + i]);
		assert_int_equal(bytes[4 + i], shadow[52 + i]);
		assert_int_equal(bytes[6 + i], shadow[60 + i]);
	}
	assert_memory_equal(bytes + 8, shadow, 4);
}

/* As many parts as a WQE has segments, with inline data between keys. */
TEST(as_many_parts_as_a_wqe)
{
	const uint32_t most = (LIMIT_MAX_WQE_SIZE - 16) / 16;
	uint8_t bytes[LIMIT_MAX_WQE_SIZE * 2], plain[3] = {1, 2, 3};
	struct stream stream;
	struct refusal why;
	uint32_t done = 0;

	new_contents();
	world_region(&world, 1, 0, 1000, 0, ALL_ACCESS);
	epoch_enter();
	stream_begin(&stream, &world.access, RIGHT_LOCAL_READ);
	for (uint32_t i = 0; i < most; i++) {
		if (i % 2)
			stream_add_memory(&stream, plain, 1 + i % 3);
		else
			assert_int_equal(stream_add_key(&stream, world.reference.key[1].number, i, 1 + i % 7, &why), 0);
		/* A part of zero bytes adds nothing. */
		stream_add_memory(&stream, plain, 0);
		assert_int_equal(stream_add_key(&stream, 0xdeadbeef, 0, 0, &why), 0);
	}
	assert_int_equal(stream.count, most);
	stream_read(&stream, bytes, stream.length);
	epoch_leave();
	for (uint32_t i = 0; i < most; i++) {
		uint32_t length = i % 2 ? 1 + i % 3 : 1 + i % 7;

		assert_memory_equal(bytes + done, i % 2 ? plain : shadow + i, length);
		done += length;
	}
	assert_int_equal(done, stream.length);
}

TEST(segment_beyond_the_end)
{
	const struct mlx5_wqe_data_seg wire[] = {
		{htobe32(10), htobe32(0), htobe64(0)}, /* the key is set below */
		{htobe32(20), htobe32(0), htobe64(UINT64_MAX - 5)},
	};
	struct mlx5_wqe_data_seg list[2];
	struct stream stream;
	struct refusal why;

	world_region(&world, 1, 0, 100, 0, ALL_ACCESS);
	world_null_region(&world, NULL_SLOT);
	memcpy(list, wire, sizeof(list));
	list[0].lkey = htobe32(world.reference.key[1].number);
	list[1].lkey = htobe32(world.reference.key[NULL_SLOT].number);
	epoch_enter();
	/* Bytes 10 … 14 are the last five of the null region. */
	for (uint64_t offset = 0; offset < 30; offset++) {
		for (uint64_t length = 0; offset + length <= 30; length++) {
			uint64_t end = offset + length;

			stream_begin(&stream, &world.access, RIGHT_LOCAL_READ);
			assert_int_equal(stream_add_segments(&stream, list, 2, offset, length, &why) == 0,
					 length == 0 || end <= 15);
		}
	}
	/* A part beyond the end of the list is not added. */
	stream_begin(&stream, &world.access, RIGHT_LOCAL_READ);
	assert_int_equal(stream_add_segments(&stream, list, 1, 4, 100, &why), 0);
	assert_int_equal(stream.length, 6);
	stream_begin(&stream, &world.access, RIGHT_LOCAL_READ);
	assert_int_equal(stream_add_segments(&stream, list, 1, 10, 1, &why), 0);
	assert_int_equal(stream.length, 0);
	epoch_leave();
}

/* Sums of lengths are 64 bits wide (mlx5-formats 2.1: a byte count has 31, a list many of them). */
TEST(more_than_32_bits)
{
	struct mlx5_wqe_data_seg list[6];
	struct stream stream;
	struct refusal why;

	world_null_region(&world, NULL_SLOT);
	for (int i = 0; i < 6; i++)
		list[i] = (struct mlx5_wqe_data_seg){htobe32(0x7fffffff),
						     htobe32(world.reference.key[NULL_SLOT].number), 0};
	epoch_enter();
	stream_begin(&stream, &world.access, RIGHT_LOCAL_READ);
	assert_int_equal(stream_add_segments(&stream, list, 6, 0, UINT64_MAX, &why), 0);
	assert_int_equal(stream.length, UINT64_C(6) * 0x7fffffff);
	stream_begin(&stream, &world.access, RIGHT_LOCAL_READ);
	assert_int_equal(stream_add_segments(&stream, list, 6, UINT64_C(5) * 0x7fffffff + 7, UINT64_MAX, &why), 0);
	assert_int_equal(stream.length, 0x7fffffff - 7);
	epoch_leave();
}

int main(void)
{
	return run_cases(.setup = open_world, .teardown = close_world);
}
