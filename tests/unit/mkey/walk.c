/* SPDX-License-Identifier: BSD-2-Clause */
/* mkey/walk: the bytes that an access through a key touches; exactly these bytes are checked. */
#include "test_case.h"

#include "../support/key_world.h"

enum { ROUNDS = 60, ACCESSES = 200, LONGEST = 6000, NULL_SLOT = 0, OTHER_REGIONS = 5 };

static struct key_world world;

static int open_world(void **state)
{
	(void)state;
	world_open(&world, 1);
	return 0;
}

static int close_world(void **state)
{
	(void)state;
	world_close(&world);
	return 0;
}

static int enter(struct walk *walk, uint8_t rights, const struct mapping *layout, uint64_t address, uint64_t length,
		 struct refusal *why)
{
	int error = walk_check(&world.access, rights, layout, address - layout->start, length, 1, why);

	if (!error)
		walk_enter(walk, &world.access, layout, address - layout->start, length);
	return error;
}

/*
 * Compares one access in the device and in the reference: both refuse it, or both find the same bytes in the same order.
 * @most: longest piece requested. Returns true if it is allowed.
 */
static bool compare(uint32_t key, uint64_t address, uint64_t length, unsigned int wanted, uint64_t most)
{
	bool allowed = keys_allow(&world.reference, key, address, length, wanted, world.accessor);
	struct refusal why = {0};
	struct walk walk;
	struct piece piece = {0};
	uint64_t done = 0;
	const struct mapping *layout = NULL;
	int error;

	epoch_enter();
	/* A direct key has no layout to walk through: streams handle those by walk_direct(). */
	error = walk_direct(&world.access, rights_wanted(wanted), key, address, length, &piece, &layout, &why);
	/* In one piece, or as streams do it. */
	if (!error && layout && length % 2)
		error = walk_begin(&walk, &world.access, rights_wanted(wanted), key, address, length, &why);
	else if (!error && layout)
		error = enter(&walk, rights_wanted(wanted), layout, address, length, &why);
	if ((error == 0) != allowed)
		fail_msg("key %#x [%#lx, +%lu) rights %#x: %d by rule %d, allowed %d", key, address, length, wanted,
			 error, why.rule, allowed);
	while (!error && done < length) {
		struct spot spot;

		if (layout && !walk_next(&walk, most, &piece))
			fail_msg("key %#x [%#lx, +%lu): ends after %lu bytes", key, address, length, done);
		assert_true(piece.length > 0 && piece.length <= length - done && (!layout || piece.length <= most));
		for (uint64_t i = 0; i < piece.length;) {
			assert_true(keys_locate(&world.reference, key, address + done, wanted, world.accessor, &spot));
			if (spot.block == NOWHERE ? piece.address != NULL
						  : piece.address + i != world.memory + spot.offset)
				fail_msg("key %#x [%#lx, +%lu): byte %lu is at %p, not at %#lx of block %d", key,
					 address, length, done, (void *)(piece.address + i), spot.offset, spot.block);
			if (spot.run > piece.length - i)
				spot.run = piece.length - i;
			i += spot.run;
			done += spot.run;
		}
	}
	if (!error && layout)
		assert_false(walk_next(&walk, most, &piece));
	epoch_leave();
	return allowed;
}

/* ---- at random ------------------------------------------------------------------------------------------------- */

static void random_regions(void)
{
	static const unsigned int access[] = {ALL_ACCESS, ALL_ACCESS, IBV_ACCESS_REMOTE_READ, 0,
					      IBV_ACCESS_LOCAL_WRITE};
	struct choose *c = &world.choose;

	if (!world.key[NULL_SLOT])
		world_null_region(&world, NULL_SLOT);
	for (int slot = 1; slot < OTHER_REGIONS; slot++) {
		uint64_t length = 1 + choose_below(c, 3000), offset = choose_below(c, BLOCK_BYTES - length);
		uint64_t start = chance(c, 30) ? 0 - length : chance(c, 30) ? 0 : choose_bits(c) >> 1;

		if (world.key[slot])
			assert_int_equal(hca_mr_deregister(world.key[slot]), 0);
		world_region(&world, slot, offset, length, start, CHOOSE_OF(c, access));
	}
}

/* Any key may contain any other: layouts refer to themselves, too. */
static int random_target(void)
{
	struct choose *c = &world.choose;

	return chance(c, 70) ? (int)choose_below(c, OTHER_REGIONS) : FIRST_LAYOUT + (int)choose_below(c, LAYOUTS);
}

static void random_entry(struct entry *entry, const struct key *target, bool repeats)
{
	static const uint16_t sizes[] = {0, 0, 1, 2, 3, 7, 8, 16, 20, 64, 100, 300};
	struct choose *c = &world.choose;
	uint64_t room = target->length ? target->length : 1;

	entry->key = target->number;
	entry->bytes = chance(c, 90) ? CHOOSE_OF(c, sizes) : choose_below(c, repeats ? 65536 : 5000);
	/* Forward, in place, or back over earlier bytes. */
	entry->stride = !repeats        ? 0
			: chance(c, 60) ? (entry->bytes + CHOOSE_OF(c, sizes)) & 0xffff
					: choose_below(c, 80);
	entry->address = target->start + choose_below(c, room) - (chance(c, 5) ? choose_below(c, 3) : 0);
	/* Not a list entry of length zero, which has another meaning: the driver omits those. */
	if (!repeats && !entry->bytes)
		entry->bytes = 1 + choose_below(c, 50);
}

static void random_layout(int slot)
{
	static const uint32_t repeats_of[] = {0, 1, 1, 2, 3, 10, 50, 1000};
	struct choose *c = &world.choose;
	struct key *key = &world.reference.key[slot];
	bool repeats = chance(c, 60);
	uint64_t period = 0;

	key->count = 1 + (uint32_t)choose_below(c, WORLD_ENTRIES);
	key->repeat = repeats ? CHOOSE_OF(c, repeats_of) : 1;
	key->rights = LOCAL_READ | (chance(c, 80) ? LOCAL_WRITE | REMOTE_READ | REMOTE_WRITE | ATOMIC
						  : (unsigned int)choose_below(c, 32));
	for (uint32_t i = 0; i < key->count; i++) {
		random_entry(&key->entries[i], &world.reference.key[random_target()], repeats);
		period += key->entries[i].bytes;
	}
	/* The length is a separate field: it may be shorter or longer than what the entries translate. */
	key->length = period * key->repeat;
	if (chance(c, 10))
		key->length += choose_below(c, 40) - 20;
	world_lay_out(&world, slot, repeats);
}

static bool random_access_(void)
{
	static const unsigned int wants[] = {LOCAL_READ, LOCAL_WRITE, REMOTE_READ, REMOTE_WRITE, ATOMIC};
	struct choose *c = &world.choose;
	int slot = chance(c, 80) ? FIRST_LAYOUT + (int)choose_below(c, LAYOUTS) : (int)choose_below(c, OTHER_REGIONS);
	const struct key *key = &world.reference.key[slot];
	uint64_t longest = key->length < LONGEST ? key->length : LONGEST, length = 1 + choose_below(c, longest + 2);
	uint64_t address =
		key->start + choose_below(c, key->length - (length < key->length ? length : key->length) + 1);
	uint64_t most = chance(c, 50) ? UINT64_MAX : 1 + choose_below(c, 40);

	if (chance(c, 10))
		address = key->start + key->length - length + choose_below(c, 3) - 1;
	if (chance(c, 5))
		address = key->start - 1;
	return compare(key->number, address, length, CHOOSE_OF(c, wants), most);
}

TEST(layouts_at_random)
{
	unsigned int allowed = 0;

	for (int slot = FIRST_LAYOUT; slot < FIRST_LAYOUT + LAYOUTS; slot++)
		world_mkey(&world, slot);
	for (int round = 0; round < ROUNDS; round++) {
		random_regions();
		for (int slot = FIRST_LAYOUT; slot < FIRST_LAYOUT + LAYOUTS; slot++)
			random_layout(slot);
		for (int i = 0; i < ACCESSES; i++)
			allowed += random_access_();
	}
	/* Neither result of the comparison may be rare. */
	assert_in_range(allowed, ROUNDS * ACCESSES / 10, ROUNDS * ACCESSES * 9 / 10);
}

/* ---- one by one ------------------------------------------------------------------------------------------------ */

static struct key *layout(int slot, uint64_t repeat)
{
	struct key *key = &world.reference.key[slot];

	if (!world.key[slot])
		world_mkey(&world, slot);
	key->count = 0;
	key->length = 0;
	key->repeat = repeat;
	key->rights = LOCAL_READ | LOCAL_WRITE | REMOTE_READ | REMOTE_WRITE | ATOMIC;
	return key;
}

static void add(struct key *key, int target, uint64_t address, uint64_t bytes, uint64_t stride)
{
	key->entries[key->count++] = (struct entry){world.reference.key[target].number, address, bytes, stride};
	key->length += bytes * key->repeat;
}

static bool writes(const struct key *key, uint64_t address, uint64_t length)
{
	return compare(key->number, address, length, REMOTE_WRITE, UINT64_MAX);
}

/* An unreachable part refuses exactly the accesses that touch it, even by one byte. */
TEST(only_what_is_touched_counts)
{
	struct key *list = layout(FIRST_LAYOUT, 1), *records;

	world_region(&world, 1, 0, 100, 0, ALL_ACCESS);
	add(list, 1, 0, 50, 0);
	add(list, 1, 60, 50, 0); /* its last 10 bytes are outside the region */
	add(list, 1, 20, 30, 0);
	world_lay_out(&world, FIRST_LAYOUT, false);
	assert_true(writes(list, 0, 90));
	assert_false(writes(list, 0, 91));
	assert_false(writes(list, 89, 2));
	assert_true(writes(list, 100, 30));
	assert_false(writes(list, 99, 2));
	assert_false(writes(list, 0, 130));

	/* Repetition 9 of the second entry ends at 95, repetition 10 would end at 105. */
	records = layout(FIRST_LAYOUT + 1, 12);
	add(records, 1, 0, 2, 2);
	add(records, 1, 0, 5, 10);
	world_lay_out(&world, FIRST_LAYOUT + 1, true);
	assert_true(writes(records, 0, 7 * 10));
	/* Bytes from 100 on belong to the eleventh repetition: only its first entry is there. */
	assert_true(writes(records, 0, 7 * 10 + 2));
	assert_false(writes(records, 0, 7 * 10 + 3));
	assert_false(writes(records, 7 * 10 + 2, 1));
	assert_true(writes(records, 7 * 11, 2));
	assert_false(writes(records, 7 * 11, 3));
}

TEST(entries_of_no_bytes)
{
	struct key *key = layout(FIRST_LAYOUT, 3);

	world_region(&world, 1, 0, 100, 0, ALL_ACCESS);
	/* Their targets do not matter. */
	add(key, 1, UINT64_MAX, 0, 0);
	add(key, 1, 0, 4, 10);
	add(key, 1, UINT64_MAX, 0, 7);
	add(key, 1, UINT64_MAX, 0, 7);
	add(key, 1, 50, 4, 10);
	add(key, 1, 5000, 0, 0);
	world_lay_out(&world, FIRST_LAYOUT, true);
	for (uint64_t from = 0; from < key->length; from++)
		for (uint64_t length = 1; from + length <= key->length; length++)
			assert_true(writes(key, from, length));
	assert_false(writes(key, 0, key->length + 1));
}

TEST(layouts_without_bytes)
{
	struct key *key = layout(FIRST_LAYOUT, 0);

	world_region(&world, 1, 0, 100, 0, ALL_ACCESS);
	add(key, 1, 0, 10, 10);
	world_lay_out(&world, FIRST_LAYOUT, true);
	assert_false(writes(key, 0, 1));
	/* The length differs: still nothing is translated. */
	key->length = 10;
	world_lay_out(&world, FIRST_LAYOUT, true);
	assert_false(writes(key, 0, 1));

	key = layout(FIRST_LAYOUT + 1, 5);
	add(key, 1, 0, 0, 10);
	key->length = 10;
	world_lay_out(&world, FIRST_LAYOUT + 1, true);
	assert_false(writes(key, 0, 1));
}

/* A stride below the size leads back over earlier bytes; a stride of 0 to the same bytes again. */
TEST(records_that_overlap)
{
	world_region(&world, 1, 0, 100, 0, ALL_ACCESS);
	for (uint64_t stride = 0; stride < 12; stride++) {
		struct key *key = layout(FIRST_LAYOUT, 10);

		add(key, 1, 0, 10, stride);
		world_lay_out(&world, FIRST_LAYOUT, true);
		/* The last repetition ends at 9 * stride + 10. */
		assert_int_equal(writes(key, 0, 100), 9 * stride + 10 <= 100);
		assert_int_equal(writes(key, 0, 99), 9 * stride + 9 <= 100);
	}
}

/*
 * The lowest and highest bytes of overlapping records depend on where an access begins and ends: each start, length and
 * stride, with the region's bounds anywhere in between.
 */
TEST(overlapping_records_at_the_bounds)
{
	enum { BYTES = 6, REPEAT = 4, START = 1000, REGION = 16 };

	world_region(&world, 1, 0, REGION, START, ALL_ACCESS);
	for (uint64_t stride = 0; stride <= BYTES + 1; stride++) {
		for (uint64_t address = START - BYTES; address < START + REGION; address++) {
			struct key *key = layout(FIRST_LAYOUT, REPEAT);

			add(key, 1, address, BYTES, stride);
			add(key, 1, START, 1, 0);
			world_lay_out(&world, FIRST_LAYOUT, true);
			for (uint64_t from = 0; from < key->length; from++)
				for (uint64_t length = 1; from + length <= key->length; length++)
					writes(key, from, length);
		}
	}
}

/* docs/reference/limits.md, MKEY_DEPTH: four keys may lie between the request and memory. */
TEST(keys_in_keys)
{
	world_region(&world, 1, 0, 100, 0, ALL_ACCESS);
	for (int slot = FIRST_LAYOUT; slot < FIRST_LAYOUT + 6; slot++) {
		struct key *key = layout(slot, 1);

		add(key, slot == FIRST_LAYOUT ? 1 : slot - 1, 1, 90, 0);
		world_lay_out(&world, slot, false);
		/* Each level starts one byte further in. */
		key->length = 90 + 5;
		assert_int_equal(writes(key, 0, 80), slot - FIRST_LAYOUT < 4);
	}
}

TEST(key_in_itself)
{
	struct key *key = layout(FIRST_LAYOUT, 1);

	world_region(&world, 1, 0, 100, 0, ALL_ACCESS);
	add(key, 1, 0, 10, 0);
	add(key, FIRST_LAYOUT, 0, 10, 0);  /* its own first part */
	add(key, FIRST_LAYOUT, 10, 10, 0); /* its second part, hence its first */
	add(key, FIRST_LAYOUT, 30, 10, 0); /* itself, infinitely */
	world_lay_out(&world, FIRST_LAYOUT, false);
	assert_true(writes(key, 0, 30));
	assert_false(writes(key, 0, 31));
	assert_false(writes(key, 35, 1));
}

TEST(addresses_near_the_end)
{
	struct key *key = layout(FIRST_LAYOUT, 2);

	world_region(&world, 1, 0, 100, 0 - UINT64_C(100), ALL_ACCESS);
	assert_true(compare(world.reference.key[1].number, UINT64_MAX, 1, REMOTE_WRITE, UINT64_MAX));
	assert_true(compare(world.reference.key[1].number, UINT64_MAX - 99, 100, REMOTE_WRITE, UINT64_MAX));
	assert_false(compare(world.reference.key[1].number, UINT64_MAX, 2, REMOTE_WRITE, UINT64_MAX));
	assert_false(compare(world.reference.key[1].number, UINT64_MAX - 100, 1, REMOTE_WRITE, UINT64_MAX));
	assert_false(compare(world.reference.key[1].number, 0, 1, REMOTE_WRITE, UINT64_MAX));
	/* The second repetition would begin beyond the end, at 0 if sums wrapped. */
	world_region(&world, 2, 0, 100, 0, ALL_ACCESS);
	add(key, 1, UINT64_MAX - 9, 10, 10);
	world_lay_out(&world, FIRST_LAYOUT, true);
	assert_true(writes(key, 0, 10));
	assert_false(writes(key, 0, 11));
	key = layout(FIRST_LAYOUT + 1, 2);
	add(key, 2, UINT64_MAX - 9, 10, 10);
	world_lay_out(&world, FIRST_LAYOUT + 1, true);
	assert_false(writes(key, 10, 1));
	/* An access at the address of a request. */
	assert_false(writes(key, UINT64_MAX, 2));
}

/* The time of a check does not grow with the repetitions: 2^31 records of one byte, in one call. */
TEST(many_repetitions)
{
	struct key *key = layout(FIRST_LAYOUT, UINT64_C(1) << 31);
	struct refusal why;
	struct walk walk;

	world_null_region(&world, NULL_SLOT);
	add(key, NULL_SLOT, 0, 1, 65535);
	world_lay_out(&world, FIRST_LAYOUT, true);
	epoch_enter();
	assert_int_equal(walk_begin(&walk, &world.access, RIGHT_REMOTE_WRITE, key->number, 0, key->length, &why), 0);
	assert_int_equal(walk_begin(&walk, &world.access, RIGHT_REMOTE_WRITE, key->number, 1, key->length, &why),
			 -EACCES);
	assert_int_equal(why.rule, RULE_KEY_RANGE);
	epoch_leave();
}

/* Rights of a request are checked in the key that it names; keys below it must be readable or writable. */
TEST(rights_below)
{
	struct key *key = layout(FIRST_LAYOUT, 1);

	world_region(&world, 1, 0, 100, 0, 0);                      /* local read only */
	world_region(&world, 2, 0, 100, 0, IBV_ACCESS_LOCAL_WRITE); /* no remote access */
	add(key, 1, 0, 50, 0);
	add(key, 2, 0, 50, 0);
	world_lay_out(&world, FIRST_LAYOUT, false);
	assert_true(compare(key->number, 0, 100, REMOTE_READ, UINT64_MAX));
	assert_true(compare(key->number, 0, 100, LOCAL_READ, UINT64_MAX));
	assert_true(compare(key->number, 50, 50, REMOTE_WRITE, UINT64_MAX));
	assert_true(compare(key->number, 56, 8, ATOMIC, UINT64_MAX));
	assert_false(compare(key->number, 49, 2, REMOTE_WRITE, UINT64_MAX));
	assert_false(compare(key->number, 48, 8, ATOMIC, UINT64_MAX));
	assert_false(compare(key->number, 0, 1, LOCAL_WRITE, UINT64_MAX));
}

/* A walk may begin anywhere, with pieces of any size. */
TEST(every_start_and_piece)
{
	struct key *key = layout(FIRST_LAYOUT, 7);

	world_region(&world, 1, 0, 1000, 0, ALL_ACCESS);
	world_region(&world, 2, 2000, 1000, 0x5000, ALL_ACCESS);
	add(key, 1, 10, 5, 11);
	add(key, 2, 0x5000, 3, 3);
	add(key, 1, 500, 8, 20);
	world_lay_out(&world, FIRST_LAYOUT, true);
	for (uint64_t from = 0; from < key->length; from++)
		for (uint64_t most = 1; most < 10; most++)
			assert_true(compare(key->number, from, key->length - from, REMOTE_READ, most));
}

int main(void)
{
	return run_cases(.setup = open_world, .teardown = close_world);
}
