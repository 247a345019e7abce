/* SPDX-License-Identifier: BSD-2-Clause */
/* Adds the range of a key and its memory: rows, regions and slots. */
#include <inttypes.h>
#include <stdlib.h>

#include "draw/parts.h"
#include "draw/words.h"
#include "explain/names.h"

enum {
	HEAD = 6,        /* pieces shown first… */
	HEAD_ROUNDS = 2, /* …or repetitions… */
	HEAD_MOST = 10,  /* …of at most this many pieces */
	TAIL_MOST = 4,
	THOUSANDTHS = 1000,
};

/* The bytes of an access, by offsets in the range. */
struct cover {
	uint64_t front;         /* bytes before the range */
	uint64_t first, inside; /* offset and bytes inside the range */
	uint64_t behind_at;     /* offset of… */
	uint64_t behind;        /* …bytes after the range */
};

/* A part of the range that lies in one place. */
struct part {
	uint64_t offset, bytes, address, round;
	uint32_t entry;
};

static struct cover cover_of(const struct picture_subject *subject)
{
	const struct mapping *map = subject->map;
	const struct refused_access *access = &subject->access;
	struct cover cover = {0};
	uint64_t rest = access->length, room;

	/* Staged: a wire position. */
	if (!subject->refused || mapping_is_staged(map))
		return cover;
	if (access->address < map->start) {
		room = map->start - access->address;
		cover.front = rest < room ? rest : room;
		rest -= cover.front;
	} else {
		cover.first = access->address - map->start;
	}
	cover.behind_at = cover.first;
	if (cover.first < map->length) {
		room = map->length - cover.first;
		cover.inside = rest < room ? rest : room;
		cover.behind_at = map->length;
	}
	cover.behind = rest - cover.inside;
	return cover;
}

/* ---- parts ---------------------------------------------------------------------------------------------------- */

/* Returns the entry with byte @offset of a repetition. Skips empty entries. */
static uint32_t entry_at(const struct mapping *map, uint64_t offset)
{
	uint32_t entry = 0;

	for (uint32_t i = 1; i < map->count && map->entries[i].before <= offset; i++)
		entry = i;
	return entry;
}

/* Returns the bytes of the range that have memory. */
static uint64_t bytes_laid_out(const struct mapping *map)
{
	uint64_t translated = mapping_is_direct(map) ? map->length : mapping_translated(map);

	return translated < map->length ? translated : map->length;
}

/* Returns the part with byte @offset, which must have memory. */
static uint64_t part_at(const struct mapping *map, uint64_t offset)
{
	uint64_t round;

	if (mapping_is_direct(map))
		return 0;
	round = offset / map->period;
	return round * map->count + entry_at(map, offset - round * map->period);
}

static struct part key_part(const struct mapping *map, uint64_t number)
{
	const struct layout_entry *entry;
	const uint64_t count = map->count ? map->count : 1; /* no parts without entries */
	struct part part;
	uint64_t left;

	if (mapping_is_direct(map))
		return (struct part){.bytes = map->length, .address = (uintptr_t)map->base};
	part.round = number / count;
	part.entry = (uint32_t)(number - part.round * count);
	entry = &map->entries[part.entry];
	part.offset = part.round * map->period + entry->before;
	part.address = entry->address + part.round * entry->stride;
	left = bytes_laid_out(map) - part.offset;
	part.bytes = entry->bytes < left ? entry->bytes : left;
	return part;
}

/* ---- their memory --------------------------------------------------------------------------------------------- */

static const struct mapping *target_of(const struct picture_subject *subject, const struct layout_entry *entry)
{
	const struct mkey *key = mkey_find(subject->key->hca, entry->key);

	return key ? mkey_mapping(key) : NULL;
}

/* Sets @why to the reason why @entry allows no access at all, or "". */
static void entry_problem(const struct picture_subject *subject, const struct layout_entry *entry,
			  const struct mapping *target, char *why, size_t size)
{
	const struct refused_access *access = &subject->access;

	if (!target)
		words_put(why, size, "no key 0x%x", entry->key);
	else if (entry->serial && target->serial != entry->serial)
		words_put(why, size, "the region was deregistered");
	else if (target->number != entry->key)
		words_put(why, size, "no key 0x%x: it is 0x%x now", entry->key, target->number);
	else if (target->free)
		words_put(why, size, "key 0x%x is not configured", entry->key);
	else if (target->pd != subject->map->pd)
		words_put(why, size, "in another protection domain, 0x%x", target->pd);
	else if (subject->refused && access->why.rule == RULE_KEY_RIGHTS && access->why.args[0] == entry->key)
		words_put(why, size, "does not allow %s", RIGHTS((uint8_t)access->why.args[3]));
}

/* Sets @why to the reason why @part cannot be reached through @entry, or "". */
static void part_problem(const struct picture_subject *subject, const struct layout_entry *entry,
			 const struct part *part, char *why, size_t size)
{
	const struct mapping *target = target_of(subject, entry);
	uint64_t offset;

	*why = '\0';
	entry_problem(subject, entry, target, why, size);
	if (*why || mapping_is_staged(target))
		return;
	offset = part->address - target->start;
	if (part->address < target->start)
		words_put(why, size, "begins %s bytes before it", COMMAS(target->start - part->address));
	else if (offset == target->length)
		words_put(why, size, "begins at its end");
	else if (offset > target->length)
		words_put(why, size, "begins %s bytes after its end", COMMAS(offset - target->length));
	else if (part->bytes > target->length - offset)
		words_put(why, size, "%s bytes past its end", COMMAS(part->bytes - (target->length - offset)));
}

static const char *memory_name(const struct mapping *map)
{
	switch (map->kind) {
	case KEY_DEVICE_MEMORY:
		return "memory of the device";
	case KEY_NULL:
		return "no memory: reads return zeros, writes are discarded";
	default:
		return "memory of the process";
	}
}

static void describe_memory(struct picture_region *region, const struct mapping *map)
{
	SAY(region->name, "%s", memory_name(map));
	region->bounded = map->kind != KEY_NULL;
	region->start = (uintptr_t)map->base;
	region->length = map->length;
}

static void describe_target(const struct picture_subject *subject, struct picture_region *region,
			    const struct layout_entry *entry)
{
	const struct mapping *target = target_of(subject, entry);

	SAY(region->name, "%s 0x%x", target ? key_kind_name(target->kind) : "key", entry->key);
	entry_problem(subject, entry, target, region->rights, sizeof(region->rights));
	region->bad = *region->rights;
	/* The number has a different key now. */
	if (!target || target->number != entry->key || (entry->serial && target->serial != entry->serial))
		return;
	region->bounded = !mapping_is_staged(target);
	region->start = target->start;
	region->length = target->length;
	if (!region->bad)
		SAY(region->rights, "%s", RIGHTS(target->rights));
}

/* Returns the region of @entry (NULL: of a direct key), adding it if needed. */
static uint32_t region_of(struct picture *picture, const struct picture_subject *subject,
			  const struct layout_entry *entry)
{
	uint32_t key = entry ? entry->key : subject->map->number, i;
	struct picture_region *region;

	for (i = 0; i < picture->regions; i++)
		if (picture->region[i].key == key)
			return i;
	if (i == PICTURE_REGIONS)
		return i;
	region = &picture->region[picture->regions++];
	region->key = key;
	if (entry)
		describe_target(subject, region, entry);
	else
		describe_memory(region, subject->map);
	if (region->bounded)
		SAY(region->range, "[0x%" PRIx64 ", +%s)", region->start, COMMAS(region->length));
	return i;
}

/* ---- rows ----------------------------------------------------------------------------------------------------- */

static struct picture_row *picture_add_row(struct picture *picture, enum picture_row_kind kind)
{
	struct picture_row *row;

	if (picture->rows == PICTURE_ROWS)
		return NULL;
	row = &picture->row[picture->rows++];
	row->kind = kind;
	row->region = PICTURE_REGIONS;
	return row;
}

/* Returns true if @part lies in the key that refused the access. */
static bool refused_by_target(const struct picture_subject *subject, const struct part *part)
{
	return !mapping_is_direct(subject->map) && subject->access.why.rule <= RULE_KEY_DEPTH &&
	       subject->access.why.args[0] == subject->map->entries[part->entry].key;
}

static void row_mark(struct picture_row *row, const struct picture_subject *subject, const struct cover *cover,
		     const struct part *part)
{
	uint64_t first = cover->first, end = cover->first + cover->inside, part_end = part->offset + part->bytes;

	if (!cover->inside || end <= part->offset || first >= part_end)
		return;
	first = first > part->offset ? first - part->offset : 0;
	end = end < part_end ? end - part->offset : part->bytes;
	row->first = (uint16_t)((double)first / (double)part->bytes * THOUSANDTHS);
	row->last = (uint16_t)((double)end / (double)part->bytes * THOUSANDTHS);
	/* With RULE_KEY_RANGE, the reason is the part outside the range. */
	if (*row->problem || (subject->access.why.rule != RULE_KEY_RANGE &&
			      (refused_by_key(subject) || refused_by_target(subject, part))))
		row->mark = MARK_REFUSED;
	else
		row->mark = MARK_TOUCHED;
}

static void picture_add_part(struct picture *picture, const struct picture_subject *subject, const struct cover *cover,
			     uint64_t number)
{
	const struct mapping *map = subject->map;
	const struct part part = key_part(map, number);
	const struct layout_entry *entry = mapping_is_direct(map) ? NULL : &map->entries[part.entry];
	struct picture_row *row = picture_add_row(picture, ROW_PIECE);

	if (!row)
		return;
	row->colour = part.entry;
	row->address = part.address;
	row->bytes = part.bytes;
	row->region = region_of(picture, subject, entry);
	SAY(row->offset, "+0x%" PRIx64, part.offset);
	SAY(row->size, "%s bytes", COMMAS(part.bytes));
	if (map->kind != KEY_NULL)
		SAY(row->memory, "0x%" PRIx64, part.address);
	if (map->form == LAYOUT_REPEAT)
		SAY(row->note, "entry %u, repetition %s", part.entry, COMMAS(part.round));
	else if (map->kind == KEY_INDIRECT)
		SAY(row->note, "entry %u", part.entry);
	if (entry)
		part_problem(subject, entry, &part, row->problem, sizeof(row->problem));
	row_mark(row, subject, cover, &part);
}

static void picture_add_elision(struct picture *picture, const struct picture_subject *subject,
				const struct cover *cover, uint64_t first, uint64_t end)
{
	const struct part from = key_part(subject->map, first), last = key_part(subject->map, end - 1);
	const struct part all = {.offset = from.offset, .bytes = last.offset + last.bytes - from.offset};
	struct picture_row *row = picture_add_row(picture, ROW_ELIDED);

	if (!row)
		return;
	SAY(row->size, "… %s more (%s bytes)", COMMAS(end - first), COMMAS(all.bytes));
	row_mark(row, subject, cover, &all);
	if (row->mark)
		row->mark = MARK_TOUCHED;
}

static void picture_add_outside(struct picture *picture, const struct picture_subject *subject, const char *sign,
				uint64_t offset, uint64_t bytes, const char *problem)
{
	struct picture_row *row = picture_add_row(picture, ROW_OUTSIDE);

	if (!row)
		return;
	SAY(row->offset, "%s0x%" PRIx64, sign, offset);
	SAY(row->size, "%s bytes", COMMAS(bytes));
	SAY(row->problem, "%s", problem);
	row->last = THOUSANDTHS;
	row->bytes = bytes;
	row->mark = subject->refused ? MARK_REFUSED : MARK_NONE;
}

/* Chooses the first repetition of each entry that leaves its region. */
static void choose_problems(struct chosen *chosen, const struct picture_subject *subject)
{
	const struct mapping *map = subject->map;
	char why[96];

	for (uint32_t i = 0; i < map->count; i++) {
		const struct layout_entry *entry = &map->entries[i];
		const struct mapping *target = target_of(subject, entry);
		struct part part = {.address = entry->address, .bytes = entry->bytes, .entry = i};
		uint64_t rounds = 0, room;

		part_problem(subject, entry, &part, why, sizeof(why));
		if (!*why && map->form == LAYOUT_REPEAT && entry->stride && !mapping_is_staged(target)) {
			room = target->length - (entry->address - target->start) - entry->bytes;
			rounds = room / entry->stride + 1;
		}
		if (*why || rounds)
			chosen_add_around(chosen, rounds * map->count + i, 0);
	}
}

static struct chosen choose_parts(const struct picture_subject *subject, const struct cover *cover)
{
	const struct mapping *map = subject->map;
	uint64_t bytes = bytes_laid_out(map), head = HEAD, tail = 2;
	struct chosen chosen = {.limit = bytes ? part_at(map, bytes - 1) + 1 : 0};

	if (!chosen.limit)
		return chosen;
	if (map->form == LAYOUT_REPEAT) {
		head = map->count * HEAD_ROUNDS > HEAD ? (uint64_t)map->count * HEAD_ROUNDS : HEAD;
		tail = map->count < TAIL_MOST ? map->count : TAIL_MOST;
	}
	chosen_add(&chosen, 0, head < HEAD_MOST ? head : HEAD_MOST);
	chosen_add(&chosen, chosen.limit > tail ? chosen.limit - tail : 0, chosen.limit);
	if (cover->inside && cover->first < bytes) {
		uint64_t end = cover->first + cover->inside;

		chosen_add_around(&chosen, part_at(map, cover->first), 1);
		chosen_add_around(&chosen, part_at(map, (end < bytes ? end : bytes) - 1), 1);
	}
	if (!mapping_is_direct(map))
		choose_problems(&chosen, subject);
	return chosen;
}

static void picture_add_rows(struct picture *picture, const struct picture_subject *subject, const struct cover *cover)
{
	const struct chosen chosen = choose_parts(subject, cover);
	uint64_t next = 0;

	for (uint32_t i = 0; i < chosen.count; i++) {
		if (chosen.range[i].first > next)
			picture_add_elision(picture, subject, cover, next, chosen.range[i].first);
		for (next = chosen.range[i].first; next < chosen.range[i].end; next++)
			picture_add_part(picture, subject, cover, next);
	}
}

/* ---- slots ---------------------------------------------------------------------------------------------------- */

static struct picture_slot *picture_add_slot(struct picture *picture, uint32_t region, uint32_t row)
{
	struct picture_slot *slot = &picture->slot[picture->slots];

	if (picture->slots < PICTURE_SLOTS - 1)
		picture->slots++;
	*slot = (struct picture_slot){.region = region, .row = row};
	return slot;
}

static void picture_add_gap(struct picture *picture, uint32_t region, uint64_t bytes, const char *where)
{
	if (bytes)
		SAY(picture_add_slot(picture, region, PICTURE_ROWS)->gap, "%s bytes %s", COMMAS(bytes), where);
}

static void picture_add_end(struct picture *picture, uint32_t region)
{
	SAY(picture_add_slot(picture, region, PICTURE_ROWS)->gap, "end of the region");
}

/* Returns the row of @region after @from (PICTURE_ROWS: the first) by address, then by number; PICTURE_ROWS if none. */
static uint32_t next_row(const struct picture *picture, uint32_t region, uint32_t from)
{
	uint32_t best = PICTURE_ROWS;

	for (uint32_t i = 0; i < picture->rows; i++) {
		const struct picture_row *row = &picture->row[i];

		if (row->kind != ROW_PIECE || row->region != region)
			continue;
		if (from != PICTURE_ROWS && (row->address < picture->row[from].address ||
					     (row->address == picture->row[from].address && i <= from)))
			continue;
		if (best == PICTURE_ROWS || row->address < picture->row[best].address)
			best = i;
	}
	return best;
}

/* Adds the gap between @end and the row at @address. @limit: end of the region. */
static void picture_add_between(struct picture *picture, uint32_t number, uint64_t end, uint64_t limit,
				uint64_t address, const char *where)
{
	if (end <= limit && address >= limit) {
		picture_add_gap(picture, number, limit - end, where);
		picture_add_end(picture, number);
		end = limit;
	}
	if (address > end)
		picture_add_gap(picture, number, address - end, where);
}

static void picture_add_slots(struct picture *picture, uint32_t number)
{
	const struct picture_region *region = &picture->region[number];
	uint64_t end = region->start, limit = region->bounded ? region->start + region->length : UINT64_MAX;
	bool first = true;

	for (uint32_t row = PICTURE_ROWS; (row = next_row(picture, number, row)) != PICTURE_ROWS; first = false) {
		uint64_t address = picture->row[row].address;

		if (region->bounded || !first)
			picture_add_between(picture, number, end, limit, address, first ? "before" : "between");
		picture_add_slot(picture, number, row);
		if (first || address + picture->row[row].bytes > end)
			end = address + picture->row[row].bytes;
	}
	if (region->bounded && end < limit)
		picture_add_gap(picture, number, limit - end, "after");
}

void picture_layout(struct picture *picture, const struct picture_subject *subject)
{
	const struct mapping *map = subject->map;
	const struct cover cover = cover_of(subject);
	uint64_t bytes = bytes_laid_out(map);

	if (cover.front)
		picture_add_outside(picture, subject, "-", map->start - subject->access.address, cover.front,
				    "before the range");
	picture_add_rows(picture, subject, &cover);
	if (bytes < map->length)
		picture_add_outside(picture, subject, "+", bytes, map->length - bytes, "of the range have no memory");
	if (cover.behind)
		picture_add_outside(picture, subject, "+", cover.behind_at, cover.behind, "past the end of the range");
	for (uint32_t i = 0; i < picture->regions; i++)
		picture_add_slots(picture, i);
}
