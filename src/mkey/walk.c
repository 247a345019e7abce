/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks accesses and walks through layouts. */
#include "mkey/walk.h"

#include <errno.h>

#include "mkey/ended.h"
#include "mkey/stage.h"
#include "hca/hca.h"
#include "observe/page_guard.h"
#include "mkey/pages.h"

#define READING (RIGHT_LOCAL_READ | RIGHT_REMOTE_READ | RIGHT_ATOMIC)
#define WRITING (RIGHT_LOCAL_WRITE | RIGHT_REMOTE_WRITE | RIGHT_ATOMIC)

/* Returns the local rights that nested keys must grant to a request that needs @rights. */
static uint8_t inner_rights(uint8_t rights)
{
	return (rights & READING ? RIGHT_LOCAL_READ : 0) | (rights & WRITING ? RIGHT_LOCAL_WRITE : 0);
}

/* Returns @number with its bytes swapped if a key in use has that number, otherwise 0. */
static RARE uint32_t swapped_key(struct hca *hca, uint32_t number)
{
	uint32_t swapped = __builtin_bswap32(number);
	const struct mkey *key = mkey_find(hca, swapped);
	const struct mapping *map = key ? mkey_mapping(key) : NULL;

	return map && !map->free && map->number == swapped ? swapped : 0;
}

/* Explains a number that no key has. @map: of another key with the same index, or NULL. */
static RARE void explain_no_key(struct hca *hca, uint32_t number, const struct mapping *map, uint64_t address,
				uint64_t length, struct refusal *why)
{
	struct ended_key key;

	if (ended_find(hca, number, &key))
		*why = (struct refusal){RULE_KEY_ENDED, {number, key.kind, ended_ms(&key), address, length}};
	else if (map)
		*why = (struct refusal){RULE_KEY_STALE,
					{number, map->kind, map->number, address, length, swapped_key(hca, number)}};
	else
		*why = (struct refusal){RULE_KEY_UNKNOWN, {number, address, length, swapped_key(hca, number)}};
}

/* Finds key @number and checks state, tag, domain, queue pair, rights and range (IBTA C10-56 and C10-57). */
static int key_resolve(const struct walk_access *access, uint8_t rights, uint32_t number, uint64_t address,
		       uint64_t length, const struct mapping **out, struct refusal *why)
{
	const struct mkey *key = mkey_find(access->hca, number);
	const struct mapping *map;

	if (!key) {
		explain_no_key(access->hca, number, NULL, address, length, why);
		return -EACCES;
	}
	map = mkey_mapping(key);
	if (map->free)
		return REFUSAL(why, EACCES, RULE_KEY_FREE, number, map->kind, address, length);
	if (map->number != number) {
		explain_no_key(access->hca, number, map, address, length, why);
		return -EACCES;
	}
	if (map->pd != access->pd)
		return REFUSAL(why, EACCES, RULE_KEY_DOMAIN, number, map->kind, map->pd, access->pd);
	if (map->qpn != KEY_QPN_ANY &&
	    (map->qpn != access->qpn || (map->qp_serial && map->qp_serial != access->qp_serial)))
		return REFUSAL(why, EACCES, RULE_KEY_OTHER_QP, number, map->kind, map->qpn, access->qpn);
	if ((map->rights & rights) != rights)
		return REFUSAL(why, EACCES, RULE_KEY_RIGHTS, number, map->kind, map->rights, rights, address, length);
	/* With a block stage, the range counts memory bytes but the address wire bytes; the stage compares them. */
	if (!mapping_is_staged(map) && !mapping_covers(map, address, length))
		return REFUSAL(why, EACCES, RULE_KEY_RANGE, number, map->kind, map->start, map->length, address,
			       length);
	*out = map;
	return 0;
}

static RARE void guard_piece(const struct piece *piece, uint8_t rights)
{
	if (piece->address)
		page_guard_device_access(piece->address, piece->length, rights & RIGHT_LOCAL_WRITE);
}

/* Sets @piece to the memory of a checked range of the direct mapping @map. */
static int direct_piece(const struct mapping *map, uint8_t rights, uint64_t address, uint64_t length,
			struct piece *piece, struct refusal *why)
{
	*piece = (struct piece){.length = length};
	if (map->kind != KEY_NULL)
		piece->address = mapping_memory(map, address);
	if (page_guard_is_on())
		guard_piece(piece, rights);
	if ((map->kind == KEY_ON_DEMAND || map->kind == KEY_IMPLICIT) &&
	    pages_present(piece->address, length, rights & WRITING) != 0)
		return REFUSAL(why, EACCES, RULE_KEY_NOT_MAPPED, map->number, map->kind, address, length);
	return 0;
}

int walk_direct(const struct walk_access *access, uint8_t rights, uint32_t number, uint64_t address, uint64_t length,
		struct piece *piece, const struct mapping **layout, struct refusal *why)
{
	const struct mapping *map;
	int error = key_resolve(access, rights, number, address, length, &map, why);

	if (error)
		return error;
	*layout = NULL;
	if (mapping_is_direct(map))
		return direct_piece(map, rights, address, length, piece, why);
	*piece = (struct piece){.length = length, .wire = address};
	if (mapping_is_staged(map))
		piece->stage = map;
	else
		*layout = map;
	return 0;
}

/* ---- checking ------------------------------------------------------------------------------------------------- */

static int check_layout(const struct walk_access *access, uint8_t rights, const struct mapping *map, uint64_t offset,
			uint64_t length, uint32_t depth, struct refusal *why);

/*
 * Returns true if the region of a window's @entry still exists, not a later key with its number (mlx5-formats 6, point
 * 57).
 */
static bool region_is_there(const struct walk_access *access, const struct layout_entry *entry)
{
	const struct mkey *key = mkey_find(access->hca, entry->key);

	return key && mkey_mapping(key)->serial == entry->serial;
}

/* Checks [@inside, +@length) of @entry. @shift: bytes from the first repetition to this one. */
static int check_entry(const struct walk_access *access, uint8_t rights, const struct layout_entry *entry,
		       uint64_t shift, uint64_t inside, uint64_t length, uint32_t depth, struct refusal *why)
{
	struct walk_access ended;
	const struct mapping *map;
	struct piece piece;
	uint64_t address;
	int error;

	/* Passed on only if the range ends inside the entry: then the continuation is in the same inner key. */
	if (access->more && inside + length == entry->bytes) {
		ended = *access;
		ended.more = false;
		access = &ended;
	}
	if (__builtin_add_overflow(entry->address, shift, &address) ||
	    __builtin_add_overflow(address, inside, &address))
		return REFUSAL(why, EACCES, RULE_LAYOUT_WRAPS, entry->key, entry->address, shift, inside, length);
	if (entry->serial && !region_is_there(access, entry))
		return REFUSAL(why, EACCES, RULE_WINDOW_REGION_GONE, entry->key, address, length);
	error = key_resolve(access, rights, entry->key, address, length, &map, why);
	if (error)
		return error;
	if (mapping_is_direct(map))
		return direct_piece(map, rights, address, length, &piece, why);
	if (depth == LIMIT_MKEY_DEPTH)
		return REFUSAL(why, EACCES, RULE_KEY_DEPTH, entry->key, LIMIT_MKEY_DEPTH);
	if (mapping_is_staged(map))
		return stage_check(access, rights, map, address, length, depth + 1, why);
	return check_layout(access, rights, map, address - map->start, length, depth + 1, why);
}

/* Returns the entry of a layout (of one repetition) with byte @offset < period. Skips empty entries. */
static uint32_t layout_entry_at(const struct mapping *map, uint64_t offset)
{
	uint32_t low = 0, high = map->count - 1;

	while (low < high) {
		uint32_t middle = low + (high - low + 1) / 2;

		if (map->entries[middle].before <= offset)
			low = middle;
		else
			high = middle - 1;
	}
	return low;
}

static int check_list(const struct walk_access *access, uint8_t rights, const struct mapping *map, uint64_t offset,
		      uint64_t length, uint32_t depth, struct refusal *why)
{
	for (uint32_t i = layout_entry_at(map, offset); length && i < map->count; i++) {
		const struct layout_entry *entry = &map->entries[i];
		uint64_t inside = offset - entry->before;
		uint64_t bytes = entry->bytes - inside < length ? entry->bytes - inside : length;
		int error;

		if (!bytes)
			continue;
		error = check_entry(access, rights, entry, 0, inside, bytes, depth, why);
		if (error)
			return error;
		offset += bytes;
		length -= bytes;
	}
	return 0;
}

static bool refers_to_memory(const struct walk_access *access, const struct layout_entry *entry)
{
	const struct mkey *key = mkey_find(access->hca, entry->key);
	const struct mapping *map = key ? mkey_mapping(key) : NULL;

	return map && mapping_is_direct(map) && map->kind != KEY_ON_DEMAND && map->kind != KEY_IMPLICIT;
}

/*
 * Checks the repetitions @first … @last of one entry, from @skip of the first to @end of the last. Regions are
 * contiguous, so checking from the lowest to the highest byte suffices.
 */
static int check_extent(const struct walk_access *access, uint8_t rights, const struct layout_entry *entry,
			uint64_t first, uint64_t last, uint64_t skip, uint64_t end, uint32_t depth, struct refusal *why)
{
	uint64_t low = first * entry->stride + skip, high = last * entry->stride + end;

	if (last > first) {
		if ((first + 1) * entry->stride < low)
			low = (first + 1) * entry->stride;
		if ((last - 1) * entry->stride + entry->bytes > high)
			high = (last - 1) * entry->stride + entry->bytes;
	}
	return check_entry(access, rights, entry, low, 0, high - low, depth, why);
}

static int check_each(const struct walk_access *access, uint8_t rights, const struct layout_entry *entry,
		      uint64_t first, uint64_t last, uint64_t skip, uint64_t end, uint32_t depth, struct refusal *why)
{
	for (uint64_t i = first; i <= last; i++) {
		uint64_t from = i == first ? skip : 0, to = i == last ? end : entry->bytes;
		int error = check_entry(access, rights, entry, i * entry->stride, from, to - from, depth, why);

		if (error)
			return error;
	}
	return 0;
}

static int check_repeat(const struct walk_access *access, uint8_t rights, const struct mapping *map, uint64_t offset,
			uint64_t length, uint32_t depth, struct refusal *why)
{
	uint64_t end_byte = offset + length - 1;
	uint64_t first_round = periods_in(offset, map->period), last_round = periods_in(end_byte, map->period);
	uint64_t first_byte = offset - first_round * map->period, last_byte = end_byte - last_round * map->period;

	for (uint32_t i = 0; i < map->count; i++) {
		const struct layout_entry *entry = &map->entries[i];
		uint64_t first = first_round, last = last_round, skip = 0, end = entry->bytes;
		int error;

		if (!entry->bytes)
			continue;
		if (first_byte >= entry->before + entry->bytes)
			first++;
		else if (first_byte > entry->before)
			skip = first_byte - entry->before;
		if (last_byte < entry->before) {
			if (last == 0)
				continue;
			last--;
		} else if (last_byte < entry->before + entry->bytes) {
			end = last_byte - entry->before + 1;
		}
		if (first > last)
			continue;
		error = (refers_to_memory(access, entry) ? check_extent : check_each)(access, rights, entry, first,
										      last, skip, end, depth, why);
		if (error)
			return error;
	}
	return 0;
}

static int check_layout(const struct walk_access *access, uint8_t rights, const struct mapping *map, uint64_t offset,
			uint64_t length, uint32_t depth, struct refusal *why)
{
	uint64_t translated = mapping_translated(map);

	if (offset > translated || length > translated - offset)
		return REFUSAL(why, EACCES, RULE_LAYOUT_SHORT, map->number, map->kind, translated, offset, length);
	if (!length)
		return 0;
	if (map->form == LAYOUT_LIST)
		return check_list(access, rights, map, offset, length, depth, why);
	return check_repeat(access, rights, map, offset, length, depth, why);
}

/* ---- walking -------------------------------------------------------------------------------------------------- */

static void enter_level(struct walk *walk, const struct mapping *map, uint64_t offset, uint64_t length)
{
	struct walk_level *level = &walk->level[walk->depth++];

	level->map = map;
	level->left = level->reach = length;
	level->repetition = 0;
	if (map->form == LAYOUT_REPEAT) {
		level->repetition = periods_in(offset, map->period);
		offset -= level->repetition * map->period;
	}
	level->entry = layout_entry_at(map, offset);
	level->inside = offset - map->entries[level->entry].before;
}

/*
 * Returns NULL unless all repetitions of @entry lie in one region: another thread may have reregistered it since
 * walk_begin() checked it.
 */
static uint8_t *entry_base(const struct walk *walk, const struct mapping *map, const struct layout_entry *entry)
{
	const struct mkey *key = mkey_find(walk->hca, entry->key);
	const struct mapping *target = key ? mkey_mapping(key) : NULL;
	uint64_t bytes = (uint64_t)(map->repeat - 1) * entry->stride + entry->bytes;

	if (!target || !mapping_is_direct(target) || target->kind == KEY_NULL ||
	    !mapping_covers(target, entry->address, bytes))
		return NULL;
	return mapping_memory(target, entry->address);
}

/* Sets `base` if the layout is repeated and has few entries, all direct. */
static void resolve_bases(struct walk *walk)
{
	const struct mapping *map = walk->level[0].map;

	walk->resolved = map->form == LAYOUT_REPEAT && map->count <= WALK_BASES;
	for (uint32_t i = 0; walk->resolved && i < map->count; i++) {
		walk->base[i] = entry_base(walk, map, &map->entries[i]);
		walk->resolved = walk->base[i];
	}
}

int walk_check(const struct walk_access *access, uint8_t rights, const struct mapping *map, uint64_t offset,
	       uint64_t length, uint32_t depth, struct refusal *why)
{
	return check_layout(access, inner_rights(rights), map, offset, length, depth, why);
}

bool walk_at_once(const struct walk_access *access, uint8_t rights, const struct mapping *map, uint64_t offset,
		  uint64_t length, struct piece *piece)
{
	const struct layout_entry *entry;
	const struct mapping *target;
	const struct mkey *key;
	uint64_t address;

	if (map->form != LAYOUT_LIST || !length || offset >= map->period)
		return false;
	entry = &map->entries[map->count == 1 ? 0 : layout_entry_at(map, offset)];
	offset -= entry->before;
	if (length > entry->bytes - offset || __builtin_add_overflow(entry->address, offset, &address))
		return false;
	key = mkey_find(access->hca, entry->key);
	target = key ? mkey_mapping(key) : NULL;
	rights = inner_rights(rights);
	if (!target || target->number != entry->key || target->pd != access->pd ||
	    (entry->serial && entry->serial != target->serial) || (target->plain_rights & rights) != rights ||
	    !mapping_covers(target, address, length))
		return false;
	*piece = (struct piece){.address = mapping_memory(target, address), .length = length};
	return true;
}

/* Checks as key_resolve() does, without a block stage and without a reason. */
static bool mapping_allows(const struct mapping *map, const struct walk_access *access, uint8_t rights, uint32_t number,
			   uint64_t address, uint64_t length)
{
	return !map->free && map->number == number && map->pd == access->pd &&
	       (map->qpn == KEY_QPN_ANY ||
		(map->qpn == access->qpn && (!map->qp_serial || map->qp_serial == access->qp_serial))) &&
	       (map->rights & rights) == rights && mapping_covers(map, address, length);
}

uint8_t *walk_contiguous(const struct walk_access *access, uint8_t rights, uint32_t number, uint64_t address,
			 uint64_t length)
{
	const struct mkey *key = mkey_find(access->hca, number);
	const struct mapping *map = key ? mkey_mapping(key) : NULL;
	struct piece piece;

	if (!map || map->form != LAYOUT_LIST || map->staged ||
	    !mapping_allows(map, access, rights, number, address, length))
		return NULL;
	/* These accesses are reported to the observer (stream.c). */
	if (unlikely(access->hca->key_observer))
		return NULL;
	return walk_at_once(access, rights, map, address - map->start, length, &piece) ? piece.address : NULL;
}

static void walk_reset(struct walk *walk, const struct walk_access *access, uint64_t length)
{
	walk->hca = access->hca;
	walk->left = length;
	walk->depth = 0;
	walk->staged = access->staged;
	walk->more = access->more;
	walk->resolved = false;
	walk->region = NULL;
}

/* Returns true if @length bytes of the list @map, from byte @inside of @entry on, lie in the plain region @target. */
static bool lies_in_region(const struct mapping *map, const struct mapping *target, uint32_t entry, uint64_t inside,
			   uint64_t length)
{
	for (; length; entry++, inside = 0) {
		const struct layout_entry *at = &map->entries[entry];
		uint64_t bytes = at->bytes - inside;

		if (bytes > length)
			bytes = length;
		if (at->key != target->number || (at->serial && at->serial != target->serial) ||
		    at->address + inside < inside || !mapping_covers(target, at->address + inside, bytes))
			return false;
		length -= bytes;
	}
	return true;
}

bool walk_enter_list(struct walk *walk, const struct walk_access *access, uint8_t rights, const struct mapping *map,
		     uint64_t offset, uint64_t length)
{
	const struct mapping *target;
	const struct mkey *key;
	uint32_t entry;

	if (map->form != LAYOUT_LIST || !length || offset > map->period || length > map->period - offset)
		return false;
	entry = layout_entry_at(map, offset);
	key = mkey_find(access->hca, map->entries[entry].key);
	target = key ? mkey_mapping(key) : NULL;
	rights = inner_rights(rights);
	if (!target || target->pd != access->pd || (target->plain_rights & rights) != rights ||
	    !lies_in_region(map, target, entry, offset - map->entries[entry].before, length))
		return false;
	walk_reset(walk, access, length);
	enter_level(walk, map, offset, length);
	walk->region = target;
	return true;
}

void walk_enter(struct walk *walk, const struct walk_access *access, const struct mapping *map, uint64_t offset,
		uint64_t length)
{
	walk_reset(walk, access, length);
	if (!length)
		return;
	enter_level(walk, map, offset, length);
	resolve_bases(walk);
}

int walk_begin(struct walk *walk, const struct walk_access *access, uint8_t rights, uint32_t number, uint64_t address,
	       uint64_t length, struct refusal *why)
{
	const struct mapping *map;
	int error = key_resolve(access, rights, number, address, length, &map, why);

	if (error)
		return error;
	error = walk_check(access, rights, map, address - map->start, length, 1, why);
	if (error)
		return error;
	walk_enter(walk, access, map, address - map->start, length);
	return 0;
}

static void level_step(struct walk_level *level, uint64_t bytes)
{
	level->left -= bytes;
	level->inside += bytes;
	while (level->left && level->inside == level->map->entries[level->entry].bytes) {
		level->inside = 0;
		if (++level->entry == level->map->count) {
			level->entry = 0;
			level->repetition++;
		}
	}
}

/*
 * Returns true if the next @bytes of the current level are the last of the walk, and end inside an entry on every level.
 */
static bool ends_inside_entries(const struct walk *walk, uint64_t bytes)
{
	const struct walk_level *level = &walk->level[walk->depth - 1];

	if (bytes != level->left || level->inside + bytes == level->map->entries[level->entry].bytes)
		return false;
	/* These levels have already advanced. */
	for (uint32_t i = 0; i < walk->depth - 1; i++) {
		level = &walk->level[i];
		if (level->left || level->inside == level->map->entries[level->entry].bytes)
			return false;
	}
	return true;
}

static uint64_t entry_address(const struct layout_entry *entry, uint64_t repetition)
{
	return entry->address + repetition * entry->stride;
}

/* Returns false at the beginning of the layout. */
static bool step_back(const struct mapping *map, uint32_t *entry, uint64_t *repetition)
{
	if (*entry) {
		--*entry;
		return true;
	}
	if (!*repetition)
		return false;
	--*repetition;
	*entry = map->count - 1;
	return true;
}

/*
 * Returns the bytes of the message directly before the next byte of @level in the same key: of its entry, and of
 * previous entries that adjoin it. Stops after the length of a block.
 */
static RARE uint64_t level_bytes_before(const struct walk_level *level)
{
	const struct mapping *map = level->map;
	const struct layout_entry *first = &map->entries[level->entry];
	uint64_t before = level->inside, most = level->reach - level->left, repetition = level->repetition;
	uint32_t entry = level->entry;

	while (before < most && before <= BLOCK_LARGEST + FIELD_LARGEST && step_back(map, &entry, &repetition)) {
		const struct layout_entry *previous = &map->entries[entry];

		if (!previous->bytes)
			continue;
		if (previous->key != first->key || entry_address(previous, repetition) + previous->bytes + before !=
							   entry_address(first, level->repetition) + level->inside)
			break;
		before += previous->bytes;
	}
	return before < most ? before : most;
}

/* Turns @piece, whose length is set, into wire bytes. */
static RARE void staged_piece(struct walk *walk, const struct mapping *map, uint64_t address, struct piece *piece)
{
	walk->entered = address - level_bytes_before(&walk->level[walk->depth - 1]);
	piece->stage = map;
	piece->wire = address;
	piece->more = walk->more && ends_inside_entries(walk, piece->length);
}

static RARE void enter_inner(struct walk *walk, const struct mapping *map, uint64_t offset, uint64_t length)
{
	uint64_t lead = level_bytes_before(&walk->level[walk->depth - 1]);

	enter_level(walk, map, offset, length);
	walk->level[walk->depth - 1].reach += lead;
}

/*
 * Sets @piece to the next piece of the entry, or enters its layout and returns false. If another thread has replaced a
 * mapping since the check, a piece that would leave its region becomes a null piece.
 */
static bool target_piece(struct walk *walk, const struct layout_entry *entry, uint64_t address, uint64_t length,
			 struct piece *piece)
{
	const struct mkey *key = mkey_find(walk->hca, entry->key);
	const struct mapping *map = key ? mkey_mapping(key) : NULL;
	uint64_t offset;

	*piece = (struct piece){.length = length};
	if (!map || map->free)
		return true;
	if (mapping_is_staged(map)) {
		if (!walk->staged)
			staged_piece(walk, map, address, piece);
		return true;
	}
	if (!mapping_covers(map, address, length))
		return true;
	if (mapping_is_direct(map)) {
		if (map->kind != KEY_NULL)
			piece->address = mapping_memory(map, address);
		return true;
	}
	offset = address - map->start;
	if (walk->depth == LIMIT_MKEY_DEPTH || offset > mapping_translated(map) ||
	    length > mapping_translated(map) - offset)
		return true;
	enter_inner(walk, map, offset, length);
	return false;
}

bool walk_next(struct walk *walk, uint64_t max, struct piece *piece)
{
	while (walk->left) {
		struct walk_level *level = &walk->level[walk->depth - 1];
		const struct layout_entry *entry;
		uint64_t bytes, address;

		if (!level->left) {
			walk->depth--;
			continue;
		}
		entry = &level->map->entries[level->entry];
		bytes = entry->bytes - level->inside;
		if (bytes > level->left)
			bytes = level->left;
		if (walk->resolved) {
			if (bytes > max)
				bytes = max;
			*piece = (struct piece){
				.address = (uint8_t *)((uintptr_t)walk->base[level->entry] +
						       level->repetition * entry->stride + level->inside),
				.length = bytes,
			};
			level_step(level, bytes);
			walk->left -= bytes;
			return true;
		}
		address = entry_address(entry, level->repetition) + level->inside;
		if (walk->region) {
			if (bytes > max)
				bytes = max;
			*piece = (struct piece){.address = mapping_memory(walk->region, address), .length = bytes};
			level_step(level, bytes);
			walk->left -= bytes;
			return true;
		}
		if (target_piece(walk, entry, address, bytes, piece)) {
			if (piece->length > max)
				piece->length = max;
			level_step(level, piece->length);
			walk->left -= piece->length;
			return true;
		}
		/* This level continues after the one just entered. */
		level_step(level, bytes);
	}
	return false;
}
