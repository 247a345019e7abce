/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests that change keys, in the model: configure, bind, invalidate (mlx5-formats 1.8, 1.15, 4.4, 4.12, 6). */
#include "transfer.h"

#define TAG 0xffu

static unsigned int rights_of(unsigned int access)
{
	return (access & IBV_ACCESS_LOCAL_WRITE ? LOCAL_WRITE : 0) |
	       (access & IBV_ACCESS_REMOTE_READ ? REMOTE_READ : 0) |
	       (access & IBV_ACCESS_REMOTE_WRITE ? REMOTE_WRITE : 0) | (access & IBV_ACCESS_REMOTE_ATOMIC ? ATOMIC : 0);
}

/* Returns the key entries of a layout, in groups of four; the header of an interleaved one is an entry, too. */
static uint32_t entries_taken(const struct configure *configure)
{
	uint32_t entries = configure->interleaved ? 1 : 0;

	for (uint16_t i = 0; i < configure->count; i++)
		entries += configure->interleaved || configure->entries[i].bytes;
	return (entries + 3) / 4 * 4;
}

static void set_layout(struct key *key, const struct configure *configure)
{
	uint64_t length = 0;

	key->count = 0;
	for (uint16_t i = 0; i < configure->count; i++) {
		struct entry *entry = &key->entries[key->count];
		uint32_t bytes = configure->entries[i].bytes;

		length += bytes;
		if (!configure->interleaved && !bytes)
			continue;
		entry->key = configure->entries[i].key;
		entry->address = configure->entries[i].address;
		/* A ConnectX truncates to the 16 bits of the format (mlx5-formats 1.10), but not the length of the key. */
		entry->bytes = configure->interleaved ? (uint16_t)bytes : bytes;
		entry->stride = configure->interleaved ? (uint16_t)(bytes + configure->entries[i].skip) : 0;
		key->count++;
	}
	key->repeat = configure->interleaved ? configure->repeat : 1;
	key->length = configure->interleaved ? length * configure->repeat : length;
}

bool key_configure(struct model *model, const struct configure *configure, struct accessor accessor)
{
	struct key *key = &model->keys.key[configure->slot];

	if (key->domain != accessor.domain)
		return false;
	if (configure->set_layout && entries_taken(configure) > key->capacity)
		return false;
	key->live = true;
	/* mlx5dv_wr_mkey_configure(3): attributes without a setter keep their value. */
	if (configure->set_access)
		key->rights = LOCAL_READ | rights_of(configure->access);
	if (configure->set_layout)
		set_layout(key, configure);
	return true;
}

static bool may_bind(const struct model *model, const struct key *window, const struct key *region,
		     const struct bind *bind, struct accessor accessor)
{
	unsigned int writing = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;

	if (window->domain != accessor.domain || region->domain != accessor.domain)
		return false;
	if (region->kind != MODEL_REGION)
		return false;
	/* mlx5-formats 4.12: a ConnectX requires no rights of the region. */
	if (!model->connectx && (!region->bindable || (bind->access & writing && !(region->rights & LOCAL_WRITE))))
		return false;
	if (bind->address < region->start || bind->address - region->start > region->length)
		return false;
	return bind->length <= region->length - (bind->address - region->start);
}

/* Unbinds a type 1 window (length 0): it keeps its place and gets the new tag. */
static bool unbind(struct key *window, const struct bind *bind, struct accessor accessor)
{
	if (window->domain != accessor.domain)
		return false;
	if (window->live && window->qp != ANY_QP && window->qp != accessor.qp)
		return false;
	window->live = false;
	window->qp = ANY_QP;
	window->number = (window->number & ~TAG) | (bind->new_number & TAG);
	return true;
}

bool key_bind(struct model *model, const struct bind *bind, struct accessor accessor)
{
	struct key *window = &model->keys.key[bind->slot];
	const struct key *region = &model->keys.key[bind->region < 0 ? 0 : bind->region];

	/* IBTA o10-37.2.40 */
	if (!bind->length)
		return window->kind == MODEL_WINDOW_1 && unbind(window, bind, accessor);
	/* mlx5-formats 1.15: a type 2 window must be free, a type 1 window is rebound. */
	if (window->kind == MODEL_WINDOW_2 && window->live)
		return false;
	if (!may_bind(model, window, region, bind, accessor))
		return false;
	window->live = true;
	window->number = (window->number & ~TAG) | (bind->new_number & TAG);
	if (window->kind == MODEL_WINDOW_2)
		window->qp = accessor.qp;
	window->rights = LOCAL_READ | rights_of(bind->access);
	window->start = bind->access & IBV_ACCESS_ZERO_BASED ? 0 : bind->address;
	window->length = bind->length;
	window->region = region->number;
	window->region_serial = region->serial;
	window->region_address = bind->address;
	return true;
}

/* mlx5-formats 6, points 34 to 37. */
bool key_invalidate(struct model *model, uint32_t number, struct accessor accessor)
{
	int slot = keys_find(&model->keys, number);
	struct key *key = &model->keys.key[slot < 0 ? 0 : slot];

	if (slot < 0 || key->kind == MODEL_REGION || key->kind == MODEL_NULL || key->domain != accessor.domain)
		return false;
	if (key->live && (key->number != number || (key->qp != ANY_QP && key->qp != accessor.qp)))
		return false;
	key->live = false;
	key->qp = ANY_QP;
	key->number &= ~TAG;
	/* mlx5dv_wr_mkey_configure(3): "To clear configuration of mkey, use ... IBV_WR_LOCAL_INV" */
	if (key->kind == MODEL_LAYOUT && !model->connectx) {
		key->rights = LOCAL_READ;
		key->count = 0;
		key->length = 0;
	}
	return true;
}

/* mlx5-formats 6, point 51. */
bool key_invalidate_remotely(struct model *model, uint32_t number, struct accessor accessor, bool act)
{
	int slot = keys_find(&model->keys, number);
	struct key *key = &model->keys.key[slot < 0 ? 0 : slot];
	bool allowed = slot >= 0 && key->live && key->number == number && key->domain == accessor.domain &&
		       (key->qp == ANY_QP || key->qp == accessor.qp) &&
		       (key->kind == MODEL_WINDOW_2 || (key->kind == MODEL_LAYOUT && key->remote_invalidate));

	if (allowed && act) {
		key->live = false;
		key->qp = ANY_QP;
	}
	return allowed;
}
