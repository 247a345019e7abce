/* SPDX-License-Identifier: BSD-2-Clause */
/* See block_key.h. */
#include "block_key.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sanitizer/asan_interface.h>
#include <sys/mman.h>

#include "mkey/bsf.h"

#define MEMORY_BYTES (6u * 4096)   /* of existing memory */
#define BARRIER_BYTES (16u * 4096) /* of missing pages on both sides, enough for any part of the key */
#define GAP 32u                    /* between two entries; must not be touched */
#define START UINT64_C(0x123456789)

struct mkey *key;
uint64_t key_bytes, key_start;

static struct input input; /* input that defines the key */
static struct mkey *nested;
static uint8_t *memory;     /* MEMORY_BYTES between barriers */
static struct mkey *region; /* over them and the barriers, by address */
static uint64_t entry_start[INPUT_CUTS / 2 + 2];
static uint32_t entries;
static uint8_t *first_entry;

/* ---- memory --------------------------------------------------------------------------------------------------- */

void key_make(void)
{
	struct hca_mr_attr attr = {.length = MEMORY_BYTES, .access = IBV_ACCESS_LOCAL_WRITE};
	uint8_t *area = mmap(NULL, MEMORY_BYTES + 2 * BARRIER_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct mapping *next;

	WORLD_CHECK(area != MAP_FAILED);
	memory = area + BARRIER_BYTES;
	WORLD_CHECK(!mprotect(memory, MEMORY_BYTES, PROT_READ | PROT_WRITE));
	attr.addr = memory;
	key = world.key[WORLD_MKEY_64];
	nested = world.key[WORLD_MKEY_8];
	WORLD_CHECK(!hca_mr_register(world.pd, &attr, &region));
	/* Only the range of a transfer keeps the device from the barriers. */
	next = mkey_edit(region);
	WORLD_CHECK(next);
	next->base = area;
	next->start = (uintptr_t)area;
	next->length = MEMORY_BYTES + 2 * BARRIER_BYTES;
	mkey_publish(region, next);
}

/* Sets the beginnings of the layout's entries, and the end of the last one. */
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

/* Returns byte 0 of entry @i in memory. */
static uint8_t *entry_memory(uint32_t i)
{
	return first_entry + entry_start[i] + (uint64_t)i * GAP;
}

/* Places the key such that @range lies at a barrier. */
static void place(struct byte_range range)
{
	uint32_t i = input.form & FORM_AT_END && range.end ? entry_of(range.end - 1) : entry_of(range.first);
	uint64_t offset = (input.form & FORM_AT_END ? range.end : range.first) + (uint64_t)i * GAP;

	first_entry = memory + (input.form & FORM_AT_END ? MEMORY_BYTES : 0) - offset;
}

/* Returns the part of @range that is in entry @i. */
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

/* Returns the number of their octowords. */
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

/* Parses as in a WQE: the memory ends after @bsf. */
static int parse(struct mapping *next, const uint8_t *bsf, uint32_t octowords, struct refusal *why)
{
	struct walk_access access = {.hca = world.hca, .pd = world.pd->number};
	uint8_t *exact = malloc(octowords * 16);
	int error;

	memcpy(exact, bsf, octowords * 16);
	error = bsf_parse(&access, next->number, exact, octowords, next->blocks, why);
	free(exact);
	return error;
}

bool key_configure(const struct input *from)
{
	struct block_setup before;
	uint8_t bsf[128] = {0};
	struct mapping *next;
	struct refusal why;
	int error;

	input = *from;
	key_bytes = 1 + le16(input.bytes) % MOST_BYTES;
	key_start = input.form & FORM_STARTS ? START : 0;
	cut_key();
	world_reset_key(WORLD_MKEY_64);
	world_reset_key(WORLD_MKEY_8);
	next = mkey_edit(key);
	WORLD_CHECK(next);
	memcpy(&before, next->blocks, sizeof(before));
	error = parse(next, bsf, put_bsfs(bsf), &why);
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

/* Makes a key over [@address, +@bytes), in two entries. */
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

/* Gives @of the entries described by @segments. */
static void lay_out_segments(struct mkey *of, const struct mlx5_wqe_data_seg *segments, uint32_t count)
{
	struct mapping *next = begin_layout(of);

	for (uint32_t i = 0; i < count; i++)
		add_entry(next, be32toh(segments[i].lkey), be64toh(segments[i].addr), be32toh(segments[i].byte_count));
	next->free = false;
	next->rights = RIGHT_LOCAL_READ | RIGHT_LOCAL_WRITE;
	next->length = next->period;
	mkey_publish(of, next);
}

void key_join(struct mlx5_wqe_data_seg segments[2], bool deep)
{
	struct mkey *inner = world.key[WORLD_MKEY_SIGNATURE], *outer = world.key[WORLD_MKEY_4];
	const struct mlx5_wqe_data_seg longer = {htobe32(be32toh(segments[0].byte_count) + 100), segments[0].lkey,
						 segments[0].addr};

	if (deep) {
		lay_out_segments(inner, &longer, 1);
		segments[0].lkey = htobe32(mkey_number(inner));
		segments[0].addr = 0;
	}
	lay_out_segments(outer, segments, 2);
	segments[0].byte_count = htobe32(be32toh(segments[0].byte_count) + be32toh(segments[1].byte_count));
	segments[0].lkey = htobe32(mkey_number(outer));
	segments[0].addr = 0;
}

/* ---- contents ------------------------------------------------------------------------------------------------- */

void key_load(const uint8_t *contents, struct byte_range range)
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
	lay_out();
}

void key_store(uint8_t *contents, struct byte_range range)
{
	for (uint32_t i = 0; i < entries; i++) {
		struct byte_range part = part_in(i, range);

		if (part.first < part.end)
			memcpy(contents + part.first, entry_memory(i) + (part.first - entry_start[i]),
			       part.end - part.first);
	}
}

void key_end(void)
{
	__asan_unpoison_memory_region(memory, MEMORY_BYTES);
}
