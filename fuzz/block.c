/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzzes BSFs and the block stage: any setup that bsf_parse() takes, any transfer through it, passed in any parts
 * (block_input.h).
 *
 * Whatever they are: no byte of memory is read or written outside of what transfer_range() says; parts do not matter, be
 * they of one stage or each a packet with a stage of its own; a part of a key is sent as in the whole; what was received
 * and is sent again is received as it was, and if it begins with a block no check speaks against it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sanitizer/asan_interface.h>
#include <sys/mman.h>

#include "block/bsf.h"
#include "block/report.h"
#include "block/stage.h"
#include "block_input.h"
#include "hca/epoch.h"
#include "world.h"

#define MOST_BYTES 20480u          /* of a key: four of the largest blocks, and more */
#define MOST_WIRE (2 * MOST_BYTES) /* of a transfer */
#define MEMORY_BYTES (6u * 4096)   /* that exist, … */
#define BARRIER_BYTES (16u * 4096) /* …between as many that do not, whichever part of the key is placed there */
#define GAP 32u                    /* between two entries, not to be touched */
#define START UINT64_C(0x123456789)

enum manner { AT_ONCE, IN_PARTS, IN_PACKETS };

struct reports {
	struct signature_observer observer;
	uint32_t count;
	struct signature_error first;
};

static struct input input;
static struct mkey *key, *nested;
static uint8_t *memory;     /* MEMORY_BYTES between barriers */
static struct mkey *region; /* over them and the barriers, by address */
static uint64_t key_bytes, key_start;
static uint64_t entry_start[INPUT_CUTS / 2 + 2];
static uint32_t entries;
static uint8_t *first_entry;
static struct reports reports;
static struct block_progress progress;
static uint8_t background[MOST_BYTES]; /* of the key, before anything is received */

/* ---- memory --------------------------------------------------------------------------------------------------- */

static void make_memory(void)
{
	struct hca_mr_attr attr = {.length = MEMORY_BYTES, .access = IBV_ACCESS_LOCAL_WRITE};
	uint8_t *area = mmap(NULL, MEMORY_BYTES + 2 * BARRIER_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct mapping *next;

	WORLD_CHECK(area != MAP_FAILED);
	memory = area + BARRIER_BYTES;
	WORLD_CHECK(!mprotect(memory, MEMORY_BYTES, PROT_READ | PROT_WRITE));
	attr.addr = memory;
	WORLD_CHECK(!hca_mr_register(world.pd, &attr, &region));
	/* Nothing but the range of a transfer keeps the device from the barriers. */
	next = mkey_edit(region);
	WORLD_CHECK(next);
	next->base = area;
	next->start = (uintptr_t)area;
	next->length = MEMORY_BYTES + 2 * BARRIER_BYTES;
	mkey_publish(region, next);
}

static void fill(uint8_t *bytes, size_t count, uint32_t salt)
{
	uint64_t state = (input.seed + 1) * UINT64_C(0x9e3779b97f4a7c15) + salt;

	for (size_t i = 0; i < count; i++) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		bytes[i] = (uint8_t)(state >> 32);
	}
	if (input.contents % CONTENTS_COUNT != CONTENTS_RANDOM)
		memset(bytes, input.contents % CONTENTS_COUNT == CONTENTS_ZERO ? 0 : 0xff, count);
}

static uint32_t le16(const uint8_t *bytes)
{
	return bytes[0] | (uint32_t)bytes[1] << 8;
}

/* Where the entries of the layout begin, and the last one ends. */
static void cut_key(void)
{
	uint64_t at = 0;

	entries = 0;
	for (uint32_t i = 0; i < INPUT_CUTS / 2; i++) {
		uint64_t bytes = le16(input.entry[i]);

		if (bytes && bytes < key_bytes - at) {
			entry_start[entries++] = at;
			at += bytes;
		}
	}
	entry_start[entries++] = at;
	entry_start[entries] = key_bytes;
}

static uint32_t entry_of(uint64_t offset)
{
	uint32_t i = 0;

	while (i + 1 < entries && offset >= entry_start[i + 1])
		i++;
	return i;
}

/* Byte 0 of entry @i in memory. */
static uint8_t *entry_memory(uint32_t i)
{
	return first_entry + entry_start[i] + (uint64_t)i * GAP;
}

/* Places the key so that @range lies at a barrier. */
static void place(struct byte_range range)
{
	uint32_t i = input.form & FORM_AT_END && range.end ? entry_of(range.end - 1) : entry_of(range.first);
	uint64_t offset = (input.form & FORM_AT_END ? range.end : range.first) + (uint64_t)i * GAP;

	first_entry = memory + (input.form & FORM_AT_END ? MEMORY_BYTES : 0) - offset;
}

/* The part of @range that is in entry @i. */
static struct byte_range part_in(uint32_t i, struct byte_range range)
{
	if (range.first < entry_start[i])
		range.first = entry_start[i];
	if (range.end > entry_start[i + 1])
		range.end = entry_start[i + 1];
	if (range.end < range.first)
		range.end = range.first;
	return range;
}

/* The part of @contents, of the whole key, that is in @range; AddressSanitizer shall know of all beside it. */
static void load(const uint8_t *contents, struct byte_range range)
{
	place(range);
	__asan_poison_memory_region(memory, MEMORY_BYTES);
	for (uint32_t i = 0; i < entries; i++) {
		struct byte_range part = part_in(i, range);
		uint8_t *at = entry_memory(i) + (part.first - entry_start[i]);

		if (part.first == part.end)
			continue;
		__asan_unpoison_memory_region(at, part.end - part.first);
		memcpy(at, contents + part.first, part.end - part.first);
	}
}

static void store(uint8_t *contents, struct byte_range range)
{
	for (uint32_t i = 0; i < entries; i++) {
		struct byte_range part = part_in(i, range);

		if (part.first < part.end)
			memcpy(contents + part.first, entry_memory(i) + (part.first - entry_start[i]),
			       part.end - part.first);
	}
}

/* ---- the key -------------------------------------------------------------------------------------------------- */

static void put_be(uint8_t *at, uint64_t value, int bytes)
{
	for (int i = 0; i < bytes; i++)
		at[i] = (uint8_t)(value >> 8 * (bytes - 1 - i));
}

static uint8_t selector_of(uint8_t choice)
{
	return (uint8_t[]){1, 2, 3, 4, 6}[choice % 5];
}

static bool has_tags(uint8_t kind)
{
	return kind == GUARD_T10_CRC || kind == GUARD_IP_CHECKSUM;
}

/* mlx5-formats 1.11 */
static void put_domain(uint8_t *format, uint8_t *section, const struct input_domain *domain, uint8_t kind, uint32_t psv)
{
	static const uint8_t formats[GUARD_TYPE_COUNT] = {
		[GUARD_CRC32] = 0x22, [GUARD_CRC32C] = 0x42, [GUARD_CRC64_XP10] = 0x52};

	put_be(format, psv, 4);
	if (!has_tags(kind)) {
		format[0] = kind ? formats[kind] | !(domain->seed & 1) : 0;
		return;
	}
	section[0] = 0xc0;
	memcpy(section + 2, domain->app, 2);
	memcpy(section + 4, domain->ref, 4);
	section[8] = kind == GUARD_T10_CRC ? 1 : 2;
	section[9] = 0x80 | (domain->seed & 1 ? 8 : 0);
	section[13] = domain->checks & 0x43;
}

static bool put_signature(uint8_t *bsf)
{
	uint8_t memory_kind = input.memory.kind % GUARD_TYPE_COUNT, wire_kind = input.wire.kind % GUARD_TYPE_COUNT;
	bool same = input.form & FORM_SAME && memory_kind;

	if (same && !(has_tags(memory_kind) && has_tags(wire_kind)))
		wire_kind = memory_kind;
	if (!memory_kind && !wire_kind)
		return false;
	bsf[0] = (uint8_t)((input.form & FORM_CIPHER ? 3 : 2) << 6 | (same ? 0x10 : 0));
	bsf[1] = input.check_mask;
	bsf[2] = same ? input.copy_mask : wire_kind ? selector_of(input.wire.block) : 0;
	bsf[3] = memory_kind ? selector_of(input.memory.block) : 0;
	put_be(bsf + 4, le16(input.limit) ? le16(input.limit) : UINT32_MAX, 4);
	put_domain(bsf + 8, bsf + 32, &input.wire, wire_kind, WORLD_PSV + 1);
	put_domain(bsf + 12, bsf + 48, &input.memory, memory_kind, WORLD_PSV);
	return true;
}

/* mlx5-formats 1.12 */
static void put_cipher(uint8_t *bsf, bool alone)
{
	bsf[0] = (uint8_t)((alone ? 2 : 3) << 6 | 1);
	bsf[1] = input.order % 4;
	put_be(bsf + 4, UINT32_MAX, 4);
	bsf[8] = selector_of(input.unit);
	memcpy(bsf + 16, input.tweak, sizeof(input.tweak));
	put_be(bsf + 32, WORLD_DEK, 4);
}

/* Returns their octowords. */
static uint32_t put_bsfs(uint8_t *bsf)
{
	bool has_signature = put_signature(bsf);
	uint32_t octowords = has_signature && input.form & FORM_CIPHER ? 8 : 4;

	if (input.form & FORM_CIPHER || !has_signature)
		put_cipher(bsf + (has_signature ? 64 : 0), !has_signature);
	for (int i = 0; i < INPUT_PATCHES; i++)
		bsf[input.patch[i].place % 128] ^= input.patch[i].change;
	return octowords;
}

static bool configure(void)
{
	/* As in a WQE: what is behind them is not there. */
	uint8_t *bsf = calloc(8, 16), *exact;
	struct walk_access access = {.hca = world.hca, .pd = world.pd->number};
	uint32_t octowords = put_bsfs(bsf);
	struct mapping *next = mkey_edit(key);
	struct block_setup before;
	struct refusal why;
	int error;

	WORLD_CHECK(next);
	exact = malloc(octowords * 16);
	memcpy(exact, bsf, octowords * 16);
	memcpy(&before, next->blocks, sizeof(before));
	error = bsf_parse(&access, next->number, exact, octowords, next->blocks, &why);
	free(exact);
	free(bsf);
	if (error) {
		WORLD_CHECK(error == -EACCES && why.rule);
		WORLD_CHECK(!memcmp(&before, next->blocks, sizeof(before)));
		mkey_discard(key, next);
		return false;
	}
	next->free = false;
	next->rights = RIGHT_LOCAL_READ | RIGHT_LOCAL_WRITE | RIGHT_REMOTE_READ | RIGHT_REMOTE_WRITE;
	next->staged = next->blocks->signature.enabled || next->blocks->cipher.enabled;
	next->start = key_start;
	next->length = key_bytes;
	mkey_publish(key, next);
	return true;
}

static void add_entry(struct mapping *map, uint32_t number, uint64_t address, uint64_t bytes)
{
	if (!bytes)
		return;
	map->entries[map->count++] =
		(struct layout_entry){.address = address, .bytes = bytes, .before = map->period, .key = number};
	map->period += bytes;
}

static struct mapping *begin_layout(struct mkey *of)
{
	struct mapping *next = mkey_edit(of);

	WORLD_CHECK(next);
	next->form = LAYOUT_LIST;
	next->count = 0;
	next->repeat = 1;
	next->period = 0;
	return next;
}

/* A key over [@address, +@bytes), in two entries. */
static void lay_out_nested(uint64_t address, uint64_t bytes)
{
	struct mapping *next = begin_layout(nested);

	add_entry(next, mkey_number(region), address, bytes / 2);
	add_entry(next, mkey_number(region), address + bytes / 2, bytes - bytes / 2);
	next->free = false;
	next->rights = RIGHT_LOCAL_READ | RIGHT_LOCAL_WRITE;
	next->length = bytes;
	mkey_publish(nested, next);
}

static void lay_out(void)
{
	struct mapping *next = begin_layout(key);

	for (uint32_t i = 0; i < entries; i++) {
		uint64_t address = (uintptr_t)entry_memory(i), bytes = entry_start[i + 1] - entry_start[i];

		if (i == 1 && input.form & FORM_NULL) {
			add_entry(next, WORLD_KEY(WORLD_NULL), 0, bytes);
		} else if (i == 2 && input.form & FORM_NESTED) {
			lay_out_nested(address, bytes);
			add_entry(next, WORLD_KEY(WORLD_MKEY_8), 0, bytes);
		} else {
			add_entry(next, mkey_number(region), address, bytes);
		}
	}
	mkey_publish(key, next);
}

/* ---- transfers ------------------------------------------------------------------------------------------------ */

static const struct block_setup *setup(void)
{
	return mkey_mapping(key)->blocks;
}

static void take_report(struct signature_observer *observer, const struct signature_error *error)
{
	struct reports *to = (struct reports *)observer;

	if (!to->count++)
		to->first = *error;
}

/* mlx5-formats 3.5 and 6, points 4 to 7. */
static void check_report(bool transmits, const struct transfer_range *range)
{
	const struct signature_error *error = &reports.first;
	const struct signature_domain *domain = transmits ? &setup()->signature.memory : &setup()->signature.wire;

	WORLD_CHECK(reports.count <= 1);
	if (!reports.count)
		return;
	WORLD_CHECK(error->key == mkey_number(key) && error->memory == transmits);
	WORLD_CHECK(error->syndrome == SYNDROME_GUARD ||
		    (domain->tags && (error->syndrome == SYNDROME_APP_TAG || error->syndrome == SYNDROME_REF_TAG)));
	WORLD_CHECK((error->expected ^ error->found) & setup()->signature.checked);
	WORLD_CHECK(error->offset == (error->block + 1) * extended_block(domain) - 1);
	WORLD_CHECK((error->block + 1) * domain->block >= range->start);
	WORLD_CHECK((error->block + 1) * domain->block <= wire_position(&setup()->signature, range->wire.end).raw);
}

static uint64_t part_of(uint32_t number, uint64_t left)
{
	uint64_t bytes = le16(input.cut[number % INPUT_CUTS]);

	return bytes && bytes < left ? bytes : left;
}

/* [@first, +@length) of the wire, to or from @wire. False: refused. */
static bool pass(bool transmits, uint8_t *wire, uint64_t first, uint64_t length, enum manner manner, bool vanishes)
{
	bool remote = input.form & FORM_REMOTE;
	uint8_t rights = transmits ? (remote ? RIGHT_REMOTE_READ : RIGHT_LOCAL_READ)
				   : (remote ? RIGHT_REMOTE_WRITE : RIGHT_LOCAL_WRITE);
	struct walk_access access = {
		.hca = world.hca, .pd = world.pd->number, .progress = &progress, .observer = &reports.observer};
	const struct mapping *map = mkey_mapping(key);
	uint8_t *scratch = setup()->cipher.enabled ? malloc(STAGE_SCRATCH) : NULL;
	struct refusal why = {RULE_NONE, {0}};
	struct block_stage stage;
	uint32_t parts = 0;
	int error;

	/* What is left in it from other data must not matter. */
	if (scratch)
		memset(scratch, 1 + manner, STAGE_SCRATCH);
	reports = (struct reports){.observer = {take_report}};
	progress.valid = key->progress.valid = key->signature_error = false;
	error = stage_check(&access, rights, map, key_start + first, length, 1, &why);
	for (uint64_t at = 0, bytes; !error && at < length; at += bytes, parts++) {
		bytes = manner == AT_ONCE ? length : part_of(parts, length - at);
		access.more = !transmits && manner == IN_PACKETS && at + bytes < length;
		if (!parts || manner == IN_PACKETS) {
			/* A message is sent again from any packet on; it arrives packet by packet. */
			error = stage_begin(&stage, &access, rights, map, key_start + first + at,
					    access.more ? bytes : length - at, &why);
			/* What is good as a whole is good in packets. */
			WORLD_CHECK(!error);
		}
		if (transmits)
			stage_transmit(&stage, wire + at, bytes, scratch);
		else
			stage_receive(&stage, wire + at, bytes, scratch);
		if (manner == IN_PACKETS || at + bytes == length)
			stage_end(&stage);
		if (!parts && vanishes)
			world_reset_key(WORLD_MKEY_8);
	}
	free(scratch);
	WORLD_CHECK(!error || (error == -EACCES && why.rule));
	return !error;
}

/*
 * docs/decisions.md: of a block of memory that was begun before, the bytes of the field that are copied are written, and no
 * others; none at all if the field on the wire did not come whole. A block of the wire that was begun before is not checked.
 */
static void check_first_block(const uint8_t *contents, uint64_t first)
{
	const struct signature_setup *signature = &setup()->signature;
	const struct signature_domain *domain = &signature->memory;
	const struct wire_position position = wire_position(signature, first);
	uint64_t number = (position.raw - position.in_field) / domain->block;
	uint64_t field = number * extended_block(domain) + domain->block;
	bool cipher_on_memory = setup()->cipher.enabled && !setup()->cipher.on_wire;

	if (reports.count)
		WORLD_CHECK(reports.first.block * extended_block(&signature->wire) >= first);
	if (cipher_on_memory || (!position.in_field && position.raw % domain->block == 0))
		return;
	for (uint32_t i = 0; i < domain->field && field + i < key_bytes; i++)
		if (position.field || !(signature->copied >> (56 - 8 * i) & 0xff))
			WORLD_CHECK(contents[field + i] == background[field + i]);
}

static bool same_reports(const struct reports *one, const struct reports *other)
{
	const struct signature_error *a = &one->first, *b = &other->first;

	return one->count == other->count && a->syndrome == b->syndrome && a->expected == b->expected &&
	       a->found == b->found && a->block == b->block;
}

/* Out of a key with @contents; @wire: exactly as large. */
static bool transmit(const uint8_t *contents, uint8_t *wire, uint64_t first, uint64_t length, enum manner manner)
{
	struct transfer_range range = transfer_range(setup(), true, first, length, key_bytes);
	uint8_t after[MOST_BYTES];
	bool passed;

	if (range.memory.end > key_bytes)
		range.memory = (struct byte_range){0, 0};
	load(contents, range.memory);
	lay_out();
	passed = pass(true, wire, first, length, manner, false);
	memcpy(after, contents, sizeof(after));
	store(after, range.memory);
	WORLD_CHECK(!memcmp(after, contents, key_bytes));
	if (passed)
		check_report(true, &range);
	return passed;
}

/* Into a key with @contents. */
static bool receive(uint8_t *contents, uint8_t *wire, uint64_t first, uint64_t length, enum manner manner)
{
	struct transfer_range range = transfer_range(setup(), false, first, length, key_bytes);
	bool passed;

	if (range.memory.end > key_bytes)
		range.memory = (struct byte_range){0, 0};
	load(contents, range.memory);
	lay_out();
	passed = pass(false, wire, first, length, manner, false);
	store(contents, range.memory);
	if (passed)
		check_report(false, &range);
	return passed;
}

/* ---- what must hold ------------------------------------------------------------------------------------------- */

/*
 * True if the last bytes of a message that ends at @end are what they are in longer ones. The exception: a message may end
 * with a block of AES that is followed by less than another one, in the last data unit of a key, which is short. As the
 * end of a message it is a block; with the rest of the key, ciphertext is stolen from it.
 */
static bool ends_alike(bool transmits, uint64_t end)
{
	const struct cipher_setup *cipher = &setup()->cipher;
	uint64_t all = key_bytes;

	if (!cipher->enabled)
		return true;
	if (cipher->on_wire)
		all = wire_length(setup(), key_bytes);
	else
		end = transfer_range(setup(), transmits, 0, end, key_bytes).needed.end;
	return !ends_inside_unit(cipher, end) || all - end >= CIPHER_BLOCK || all == end;
}

static void check_transmission(uint64_t first, uint64_t length, uint64_t all)
{
	uint8_t *once = malloc(length), *parts = malloc(length), *whole = malloc(all);

	if (transmit(background, once, first, length, AT_ONCE)) {
		const struct reports expected = reports;

		for (enum manner manner = IN_PARTS; manner <= IN_PACKETS; manner++) {
			WORLD_CHECK(transmit(background, parts, first, length, manner));
			WORLD_CHECK(!memcmp(once, parts, length));
			WORLD_CHECK(same_reports(&reports, &expected));
		}
		if (first + length <= all && ends_alike(true, first + length) &&
		    transmit(background, whole, 0, all, AT_ONCE))
			WORLD_CHECK(!memcmp(once, whole + first, length));
	}
	free(once);
	free(parts);
	free(whole);
}

/* What was received comes out as it was sent, but for what a field in the wrong would be corrected in. */
static void check_return(uint8_t *contents, uint8_t *wire, uint64_t first, uint64_t length)
{
	const struct signature_setup *signature = &setup()->signature;
	const struct wire_position position = wire_position(signature, first);
	bool begins = !signature->enabled || (!position.in_field && position.raw % signature->memory.block == 0 &&
					      position.raw % signature->wire.block == 0);
	uint8_t again[MOST_BYTES];

	if (!ends_alike(false, first + length) || !transmit(contents, wire, first, length, AT_ONCE))
		return;
	WORLD_CHECK(!reports.count || !begins || signature->copied);
	memcpy(again, background, sizeof(again));
	WORLD_CHECK(receive(again, wire, first, length, AT_ONCE));
	WORLD_CHECK(!memcmp(again, contents, key_bytes));
	WORLD_CHECK(!reports.count || !begins || signature->copied);
}

static void check_reception(uint64_t first, uint64_t length)
{
	uint8_t once[MOST_BYTES], parts[MOST_BYTES], *wire = malloc(length);

	fill(wire, length, 1);
	memcpy(once, background, sizeof(once));
	if (receive(once, wire, first, length, AT_ONCE)) {
		const struct reports expected = reports;

		if (setup()->signature.enabled)
			check_first_block(once, first);
		for (enum manner manner = IN_PARTS; manner <= IN_PACKETS; manner++) {
			memcpy(parts, background, sizeof(parts));
			WORLD_CHECK(receive(parts, wire, first, length, manner));
			WORLD_CHECK(!memcmp(once, parts, key_bytes));
			WORLD_CHECK(same_reports(&reports, &expected));
		}
		if (!(input.form & FORM_NULL))
			check_return(once, wire, first, length);
	}
	free(wire);
}

/* A key inside the key goes while the transfer is under way. */
static void check_vanishing(bool transmits, uint64_t first, uint64_t length)
{
	struct transfer_range range = transfer_range(setup(), transmits, first, length, key_bytes);
	uint8_t *wire = calloc(1, length);

	if (range.memory.end <= key_bytes) {
		load(background, range.memory);
		lay_out();
		pass(transmits, wire, first, length, IN_PARTS, true);
	}
	free(wire);
}

static void check_transfer(uint64_t first, uint64_t length, uint64_t all)
{
	check_transmission(first, length, all);
	check_reception(first, length);
	if (input.form & FORM_VANISHES && input.form & FORM_NESTED) {
		check_vanishing(true, first, length);
		check_vanishing(false, first, length);
	}
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	world_make();
	make_memory();
	key = world.key[WORLD_MKEY_64];
	nested = world.key[WORLD_MKEY_8];
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t all, first;

	memset(&input, 0, sizeof(input));
	memcpy(&input, data, size < sizeof(input) ? size : sizeof(input));
	key_bytes = 1 + le16(input.bytes) % MOST_BYTES;
	key_start = input.form & FORM_STARTS ? START : 0;
	cut_key();
	epoch_enter();
	world_reset_key(WORLD_MKEY_64);
	world_reset_key(WORLD_MKEY_8);
	if (configure()) {
		fill(background, sizeof(background), 0);
		all = wire_length(setup(), key_bytes);
		WORLD_CHECK(all <= MOST_WIRE);
		/* Some go a little beyond the end. */
		first = le16(input.wire_first) % (all + 8);
		check_transfer(first, 1 + le16(input.length) % (all - (first < all ? first : all) + 8), all);
	}
	epoch_leave();
	__asan_unpoison_memory_region(memory, MEMORY_BYTES);
	block_progress_release(&progress);
	return 0;
}
