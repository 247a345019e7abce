/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which bytes of memory a transfer through a key with a signature or a cipher needs (block/range.h;
 * docs/inside/decisions.md, Block signatures and Ciphers). The model walks the wire byte by byte and records the bytes
 * of memory that each one touches: for all pairs of domains, both directions, all starts and ends near a boundary of
 * either domain.
 */
#include "test_case.h"

#include "block/range.h"

enum {
	WALKED = 10000, /* bytes of the wire: more than two of the largest blocks */
	NOTHING = -1,
	MOST_PLACES = 600,
};

static const uint32_t blocks[] = {512, 520, 4048, 4096, 4160};
static const uint8_t fields[] = {0, 4, 8};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define HUGE_KEY (UINT64_C(1) << 60)

/* ---- the model ------------------------------------------------------------------------------------------------ */

/* A byte of the wire. */
struct place {
	int raw;                   /* data bytes before it */
	int field;                 /* NOTHING for data, otherwise its index in a field */
	int memory;                /* the place of a data byte; for a byte of a field that of the data byte before it */
	int sent_low, sent_high;   /* first and last byte of memory touched by sending it; or NOTHING */
	int taken_low, taken_high; /* likewise for receiving it */
	int memory_block;          /* raw position of the first data byte of its block of memory (for fields, of the
				    * block before)… */
	int wire_block;            /* …and of its block of the wire */
};

static struct place wire[WALKED];
static int memory_of[WALKED]; /* place of data byte n */

static void touch(int *low, int *high, int first, int last)
{
	if (*low == NOTHING)
		*low = first;
	*high = last;
}

/* Adds a data byte at @memory. @ends: it is the last one of a block of memory, followed there by @field bytes. */
static void walk_data(struct place *at, bool ends, int field)
{
	at->field = NOTHING;
	at->sent_low = at->sent_high = at->taken_low = at->taken_high = at->memory;
	if (ends && field)
		at->sent_high = at->taken_high = at->memory + field;
}

/*
 * Adds byte @number of a field of @bytes after the data byte at @memory. @field: bytes of the field there in memory, or
 * 0.
 */
static void walk_field(struct place *at, int number, int bytes, int field)
{
	at->field = number;
	at->sent_low = at->sent_high = at->taken_low = at->taken_high = NOTHING;
	if (!field)
		return;
	/*
	 * Any byte that is sent may be copied from memory, or ends the check. A received field is written to memory
	 * when it is complete.
	 */
	touch(&at->sent_low, &at->sent_high, at->memory + 1, at->memory + field);
	if (number == bytes - 1)
		touch(&at->taken_low, &at->taken_high, at->memory + 1, at->memory + field);
}

static void walk(const struct signature_domain *from, const struct signature_domain *to)
{
	int raw = 0, memory = 0, in_memory = 0, in_wire = 0, at = 0;

	while (at < WALKED) {
		bool ends_memory = in_memory == (int)from->block - 1, ends_wire = in_wire == (int)to->block - 1;
		int memory_block = raw - in_memory, wire_block = raw - in_wire;
		/*
		 * The field of a block of memory that ends where a field on the wire follows belongs to the field on
		 * the wire.
		 */
		bool joined = ends_memory && ends_wire && to->field;

		wire[at] = (struct place){
			.raw = raw, .memory = memory, .memory_block = memory_block, .wire_block = wire_block};
		walk_data(&wire[at++], ends_memory && !joined, from->field);
		memory_of[raw++] = memory;
		for (int i = 0; ends_wire && i < to->field && at < WALKED; i++) {
			wire[at] = (struct place){
				.raw = raw, .memory = memory, .memory_block = memory_block, .wire_block = wire_block};
			walk_field(&wire[at++], i, to->field, joined ? from->field : 0);
		}
		memory += ends_memory ? 1 + from->field : 1;
		in_memory = ends_memory ? 0 : in_memory + 1;
		in_wire = ends_wire ? 0 : in_wire + 1;
	}
}

struct expected {
	int start;
	int first, end;
};

/*
 * Returns the expectation for [@first, @end) of the wire, at least a byte. @checks, @makes: a guard of the input or of
 * the output is computed.
 */
static struct expected expect(bool sends, bool checks, bool makes, int first, int end)
{
	const struct place *begin = &wire[first];
	struct expected expected = {.start = begin->raw};
	int low = NOTHING, high = NOTHING;

	if (sends && checks && begin->memory_block < expected.start)
		expected.start = begin->memory_block;
	if (sends && makes && begin->wire_block < expected.start)
		expected.start = begin->wire_block;
	/* Data before the transfer is read again. */
	if (expected.start < begin->raw)
		touch(&low, &high, memory_of[expected.start], memory_of[begin->raw - 1]);
	for (int at = first; at < end; at++) {
		int from = sends ? wire[at].sent_low : wire[at].taken_low;

		if (from == NOTHING)
			continue;
		touch(&low, &high, from, sends ? wire[at].sent_high : wire[at].taken_high);
		/* Only the first and the last such byte matter; the last is at most a field away from the end. */
		if (at < end - FIELD_LARGEST - 2)
			at = end - FIELD_LARGEST - 2;
	}
	/* Bytes of a field alone touch nothing, but the data of its block must be present. */
	if (low == NOTHING)
		return (struct expected){expected.start, begin->memory + 1, begin->memory + 1};
	expected.first = low;
	expected.end = high + 1;
	return expected;
}

/* ---- setups and places ---------------------------------------------------------------------------------------- */

/* Without a field, the block is that of the other domain (block/setup.h). */
static struct block_setup setup_of(uint8_t memory_field, uint32_t memory_block, uint8_t wire_field, uint32_t wire_block)
{
	static const uint8_t guards[] = {[0] = GUARD_NONE, [4] = GUARD_CRC32, [8] = GUARD_CRC64_XP10};

	return (struct block_setup){.signature = {
					    .enabled = true,
					    .limit = UINT64_MAX,
					    .memory = {.guard = guards[memory_field],
						       .field = memory_field,
						       .block = memory_field ? memory_block : wire_block},
					    .wire = {.guard = guards[wire_field],
						     .field = wire_field,
						     .block = wire_field ? wire_block : memory_block},
				    }};
}

/* Calls @function with every pair of domains of which at least one has a field. */
static void for_all_domains(void (*function)(struct block_setup *setup))
{
	for (size_t i = 0; i < COUNT(fields); i++)
		for (size_t j = 0; j < COUNT(fields); j++)
			for (size_t m = 0; m < COUNT(blocks); m++)
				for (size_t w = 0; w < COUNT(blocks); w++) {
					struct block_setup setup = setup_of(fields[i], blocks[m], fields[j], blocks[w]);

					if ((!fields[i] && !fields[j]) || (!fields[i] && m) || (!fields[j] && w))
						continue;
					walk(&setup.signature.memory, &setup.signature.wire);
					function(&setup);
				}
}

/* Returns true if @at is within two bytes of the end of a block of either domain, or in a field or just after it. */
static bool is_near_boundary(int at)
{
	for (int i = at < 2 ? 0 : at - 2; i <= at + 2; i++)
		if (i == 0 || wire[i].field != NOTHING || wire[i].memory_block != wire[i - 1].memory_block)
			return true;
	return false;
}

static int find_places(int *places)
{
	int count = 0;

	for (int at = 0; at < WALKED - 2 && count < MOST_PLACES; at++)
		if (is_near_boundary(at))
			places[count++] = at;
	return count;
}

/* ---- signatures ----------------------------------------------------------------------------------------------- */

static void expect_position(const struct signature_setup *signature, int at)
{
	const struct wire_position position = wire_position(signature, (uint64_t)at);

	if (position.raw != (uint64_t)wire[at].raw || position.in_field != (wire[at].field != NOTHING) ||
	    position.field != (wire[at].field == NOTHING ? 0 : (uint32_t)wire[at].field))
		fail_msg("%u+%u on the wire, byte %d: raw %llu, field %d %u", signature->wire.block,
			 signature->wire.field, at, (unsigned long long)position.raw, position.in_field,
			 position.field);
}

static void positions_of(struct block_setup *setup)
{
	for (int at = 0; at < WALKED; at++)
		expect_position(&setup->signature, at);
}

TEST(positions)
{
	for_all_domains(positions_of);
}

/* Checks the number of wire bytes before the first data byte that is not within the first @memory bytes. */
static void lengths_of(struct block_setup *setup)
{
	int at = 0;

	for (int memory = 0; memory < 9000; memory++) {
		while (wire[at].field != NOTHING || wire[at].memory < memory)
			at++;
		assert_int_equal(wire_length(setup, (uint64_t)memory), at);
	}
}

TEST(lengths)
{
	for_all_domains(lengths_of);
}

static void compare(const struct block_setup *setup, bool sends, int first, int end, const struct expected *expected)
{
	const struct transfer_range range =
		transfer_range(setup, sends, (uint64_t)first, (uint64_t)(end - first), HUGE_KEY);
	const struct signature_setup *signature = &setup->signature;

	if (range.start == (uint64_t)expected->start && range.needed.first == (uint64_t)expected->first &&
	    range.needed.end == (uint64_t)expected->end && range.memory.first == range.needed.first &&
	    range.memory.end == range.needed.end && range.wire.first == (uint64_t)first &&
	    range.wire.end == (uint64_t)end && range.position.raw == (uint64_t)wire[first].raw)
		return;
	fail_msg(
		"%s [%d, %d), memory %u+%u, wire %u+%u, checked %llx, copied %llx: from %llu, [%llu, %llu), not %d, [%d, %d)",
		sends ? "sending" : "taking", first, end, signature->memory.block, signature->memory.field,
		signature->wire.block, signature->wire.field, (unsigned long long)signature->checked,
		(unsigned long long)signature->copied, (unsigned long long)range.start,
		(unsigned long long)range.needed.first, (unsigned long long)range.needed.end, expected->start,
		expected->first, expected->end);
}

/* With the guards of the input checked or not, and those of the output made or copied. */
static void ranges_of(struct block_setup *setup)
{
	struct signature_setup *signature = &setup->signature;
	int places[MOST_PLACES], count = find_places(places);

	for (int guards = 0; guards < 4; guards++) {
		signature->checked = guards & 1 ? ~UINT64_C(0) : 0;
		signature->copied = guards & 2 ? 0 : ~UINT64_C(0);
		for (int i = 0; i < count; i++)
			for (int j = i + 1; j < count; j++)
				for (int sends = 0; sends < 2; sends++) {
					struct expected expected =
						expect(sends, guards & 1 && signature->memory.field,
						       guards & 2 && signature->wire.field, places[i], places[j]);

					compare(setup, sends, places[i], places[j], &expected);
				}
	}
}

TEST(ranges)
{
	for_all_domains(ranges_of);
}

/* Bytes of an application or reference tag alone do not require a guard: nothing is read again for them. */
TEST(tags_need_no_guard)
{
	struct block_setup setup = setup_of(8, 512, 8, 512);
	struct signature_setup *signature = &setup.signature;

	signature->memory.guard = signature->wire.guard = GUARD_T10_CRC;
	signature->memory.tags = signature->wire.tags = true;
	signature->checked = UINT64_C(0x0000ffffffffffff);
	signature->copied = UINT64_C(0xffff000000000000);
	assert_false(input_guarded(signature, &signature->memory));
	assert_false(output_guarded(signature, &signature->wire));
	assert_int_equal(transfer_range(&setup, true, 100, 10, HUGE_KEY).needed.first, 100);
	signature->checked |= UINT64_C(1) << 48;
	assert_true(input_guarded(signature, &signature->memory));
	assert_int_equal(transfer_range(&setup, true, 100, 10, HUGE_KEY).needed.first, 0);
	signature->checked = 0;
	signature->copied = UINT64_C(0x00ffffffffffffff);
	assert_true(output_guarded(signature, &signature->wire));
	assert_int_equal(transfer_range(&setup, true, 100, 10, HUGE_KEY).needed.first, 0);
}

/* The same, a number of whole blocks of both domains further on. */
static void far_of(struct block_setup *setup)
{
	const struct signature_domain *from = &setup->signature.memory, *to = &setup->signature.wire;
	uint64_t common = (uint64_t)from->block * to->block, times[] = {1, UINT64_C(1) << 14, UINT64_C(1) << 30};
	int places[MOST_PLACES], count = find_places(places);

	setup->signature.checked = ~UINT64_C(0);
	for (size_t t = 0; t < COUNT(times); t++) {
		uint64_t wire_step = times[t] * from->block * extended_block(to);
		uint64_t memory_step = times[t] * to->block * extended_block(from);

		for (int i = 0; i + 1 < count; i += 7)
			for (int sends = 0; sends < 2; sends++) {
				uint64_t first = (uint64_t)places[i], length = (uint64_t)places[count - 1] - first;
				struct transfer_range near = transfer_range(setup, sends, first, length, HUGE_KEY);
				struct transfer_range far =
					transfer_range(setup, sends, first + wire_step, length, HUGE_KEY);

				assert_int_equal(far.start - near.start, times[t] * common);
				assert_int_equal(far.needed.first - near.needed.first, memory_step);
				assert_int_equal(far.needed.end - near.needed.end, memory_step);
				assert_int_equal(far.position.field, near.position.field);
			}
	}
}

TEST(far_away)
{
	for_all_domains(far_of);
}

/* ---- ciphers -------------------------------------------------------------------------------------------------- */

/*
 * Data sent from a key: all units that the transfer touches are read. Data received into a key: the units that the
 * transfer completes are written. But a message may end after an AES block that at least one more block follows in the
 * unit (docs/inside/decisions.md, Ciphers).
 */
static struct byte_range expect_units(uint32_t unit, bool sends, struct byte_range range, uint64_t all)
{
	struct byte_range expected = {0, 0};

	while (expected.first + unit <= range.first)
		expected.first += unit;
	expected.end = expected.first;
	while (expected.end + unit <= range.end)
		expected.end += unit;
	if (range.end - expected.end >= CIPHER_BLOCK && (range.end - expected.end) % CIPHER_BLOCK == 0 &&
	    expected.end + unit - range.end >= CIPHER_BLOCK)
		expected.end = range.end;
	else if (sends && expected.end < range.end)
		expected.end = expected.end + unit < all ? expected.end + unit : all;
	else if (!sends && range.end == all)
		expected.end = all;
	return expected;
}

static void expect_range(struct byte_range range, uint64_t first, uint64_t end, const char *what)
{
	if (range.first != first || range.end != end)
		fail_msg("%s: [%llu, %llu), not [%llu, %llu)", what, (unsigned long long)range.first,
			 (unsigned long long)range.end, (unsigned long long)first, (unsigned long long)end);
}

/* Returns a place near the ends of data units, of AES blocks in them, and of the key. */
static uint64_t cipher_place(uint32_t unit, uint64_t all, int number)
{
	static const int offsets[] = {-33, -32, -31, -17, -16, -15, -1, 0, 1, 15, 16, 17, 32, 100};
	uint64_t ends[] = {0, unit, 2 * (uint64_t)unit, all};
	uint64_t at = ends[(size_t)number / COUNT(offsets) % COUNT(ends)];
	int offset = offsets[(size_t)number % COUNT(offsets)];

	if (offset < 0 && at < (uint64_t)-offset)
		return 0;
	return at + (uint64_t)offset < all ? at + (uint64_t)offset : all;
}

enum { CIPHER_PLACES = 4 * 14 };

TEST(ciphers_alone)
{
	for (size_t u = 0; u < COUNT(blocks); u++)
		for (uint32_t rest = 0; rest < 600; rest += 97)
			for (int i = 0; i < CIPHER_PLACES * CIPHER_PLACES * 2; i++) {
				uint32_t unit = blocks[u];
				uint64_t all = 3 * (uint64_t)unit - rest;
				struct block_setup setup = {.cipher = {.enabled = true, .on_wire = true, .unit = unit}};
				struct byte_range wanted = {cipher_place(unit, all, i / 2 % CIPHER_PLACES),
							    cipher_place(unit, all, i / 2 / CIPHER_PLACES)};
				struct byte_range expected = expect_units(unit, i & 1, wanted, all);
				struct transfer_range range;

				if (wanted.first >= wanted.end)
					continue;
				range = transfer_range(&setup, i & 1, wanted.first, wanted.end - wanted.first, all);
				expect_range(range.wire, expected.first, expected.end, "wire");
				expect_range(range.memory, expected.first, expected.end, "memory");
			}
}

/* Data sent from beyond the end of a key must be reported as needed, so that it is refused. */
TEST(beyond_the_key)
{
	for (size_t u = 0; u < COUNT(blocks); u++)
		for (uint64_t rest = 0; rest < 40; rest++)
			for (uint64_t more = 1; more < 40; more++)
				for (int on_wire = 0; on_wire < 2; on_wire++) {
					uint64_t all = 2 * (uint64_t)blocks[u] - rest;
					struct block_setup setup = {
						.cipher = {.enabled = true, .on_wire = on_wire, .unit = blocks[u]}};

					assert_true(transfer_range(&setup, true, 0, all + more, all).memory.end > all);
				}
}

/*
 * On the wire side the units determine the data that the signature processes; on the memory side the signature
 * determines the units.
 */
static void ciphers_of(struct block_setup *setup)
{
	int places[MOST_PLACES], count = find_places(places);
	uint64_t all_memory = 9000, all_wire = wire_length(setup, all_memory);

	setup->signature.checked = ~UINT64_C(0);
	for (size_t u = 0; u < COUNT(blocks); u++)
		for (int i = 0; i < count; i += 3)
			for (int j = i + 1; j < count; j += 5)
				for (int way = 0; way < 4; way++) {
					struct block_setup plain = *setup;
					struct byte_range units, wanted = {(uint64_t)places[i], (uint64_t)places[j]};
					struct transfer_range range, inner;
					bool sends = way & 1, on_wire = way & 2;

					if (wanted.end > all_wire)
						continue;
					setup->cipher = (struct cipher_setup){
						.enabled = true, .on_wire = on_wire, .unit = blocks[u]};
					range = transfer_range(setup, sends, wanted.first, wanted.end - wanted.first,
							       all_memory);
					setup->cipher = (struct cipher_setup){0};
					units = on_wire ? expect_units(blocks[u], sends, wanted, all_wire) : wanted;
					inner = transfer_range(&plain, sends, units.first, units.end - units.first,
							       all_memory);
					expect_range(range.wire, units.first, units.end, "wire");
					expect_range(range.needed, inner.needed.first, inner.needed.end, "needed");
					if (!on_wire)
						units = expect_units(blocks[u], sends, range.needed, all_memory);
					else
						units = range.needed;
					/*
					 * A unit that the message does not complete is pending: its bytes must be
					 * present.
					 */
					if (units.end < range.needed.end)
						units.end = range.needed.end;
					expect_range(range.memory, units.first, units.end, "memory");
				}
}

TEST(ciphers_with_signatures)
{
	for_all_domains(ciphers_of);
}
