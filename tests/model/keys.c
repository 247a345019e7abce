/* SPDX-License-Identifier: BSD-2-Clause */
/* The rules of keys, byte by byte, see keys.h. */
#include "keys.h"

static bool locate(const struct keys *keys, uint32_t number, wide address, unsigned int wanted,
		   struct accessor accessor, int depth, struct spot *spot);

int keys_find(const struct keys *keys, uint32_t number)
{
	for (int i = 0; i < KEYS; i++)
		if (keys->key[i].kind != MODEL_ABSENT && keys->key[i].number >> 8 == number >> 8)
			return i;
	return -1;
}

/* Memory below a key is accessed with local rights: entries hold lkeys. */
static unsigned int wanted_below(unsigned int wanted)
{
	unsigned int below = 0;

	if (wanted & (LOCAL_READ | REMOTE_READ | ATOMIC))
		below |= LOCAL_READ;
	if (wanted & (LOCAL_WRITE | REMOTE_WRITE | ATOMIC))
		below |= LOCAL_WRITE;
	return below;
}

static void shorten(struct spot *spot, uint64_t run)
{
	if (spot->run > run)
		spot->run = run;
}

/* mlx5-formats 1.9 and 1.10: the entries in order, all of them as often as the layout repeats. */
static bool locate_in_layout(const struct keys *keys, const struct key *key, uint64_t offset, unsigned int wanted,
			     struct accessor accessor, int depth, struct spot *spot)
{
	uint64_t period = 0, repetition, inside;

	for (uint32_t i = 0; i < key->count; i++)
		period += key->entries[i].bytes;
	if (!period)
		return false;
	repetition = offset / period;
	inside = offset % period;
	if (repetition >= key->repeat)
		return false;
	for (uint32_t i = 0; i < key->count; i++) {
		const struct entry *entry = &key->entries[i];
		wide address = entry->address;

		if (inside >= entry->bytes) {
			inside -= entry->bytes;
			continue;
		}
		address += (wide)repetition * entry->stride + inside;
		if (!locate(keys, entry->key, address, wanted, accessor, depth + 1, spot))
			return false;
		shorten(spot, entry->bytes - inside);
		return true;
	}
	return false;
}

/* mlx5-formats 6, point 57: a window ends with its region, even if another one gets the same number. */
static bool locate_in_window(const struct keys *keys, const struct key *key, uint64_t offset, unsigned int wanted,
			     struct accessor accessor, int depth, struct spot *spot)
{
	int region = keys_find(keys, key->region);

	if (region < 0 || keys->key[region].serial != key->region_serial)
		return false;
	return locate(keys, key->region, (wide)key->region_address + offset, wanted, accessor, depth + 1, spot);
}

static bool locate(const struct keys *keys, uint32_t number, wide address, unsigned int wanted,
		   struct accessor accessor, int depth, struct spot *spot)
{
	int slot = keys_find(keys, number);
	const struct key *key = &keys->key[slot < 0 ? 0 : slot];
	uint64_t offset;
	bool found = true;

	if (slot < 0 || key->number != number || !key->live || key->domain != accessor.domain)
		return false;
	if (key->qp != ANY_QP && key->qp != accessor.qp)
		return false;
	if ((key->rights & wanted) != wanted)
		return false;
	if (address < key->start || address - key->start >= key->length)
		return false;
	offset = (uint64_t)(address - key->start);
	spot->run = key->length - offset;
	if (key->kind == MODEL_NULL) {
		spot->block = NOWHERE;
		return true;
	}
	if (key->kind == MODEL_REGION) {
		spot->block = key->block;
		spot->offset = key->offset + offset;
		return true;
	}
	if (depth == DEPTH)
		return false;
	found = (key->kind == MODEL_LAYOUT ? locate_in_layout : locate_in_window)(
		keys, key, offset, wanted_below(wanted), accessor, depth, spot);
	shorten(spot, key->length - offset);
	return found;
}

bool keys_locate(const struct keys *keys, uint32_t number, uint64_t address, unsigned int wanted,
		 struct accessor accessor, struct spot *spot)
{
	return locate(keys, number, address, wanted, accessor, 0, spot);
}

bool keys_allow(const struct keys *keys, uint32_t number, uint64_t address, uint64_t length, unsigned int wanted,
		struct accessor accessor)
{
	wide at = address;

	while (length) {
		struct spot spot;

		if (!locate(keys, number, at, wanted, accessor, 0, &spot))
			return false;
		shorten(&spot, length);
		at += spot.run;
		length -= spot.run;
	}
	return true;
}
