/* SPDX-License-Identifier: BSD-2-Clause */
/* Steps that create and destroy keys, see steps.h. */
#include <errno.h>
#include <string.h>

#include "draw.h"
#include "steps.h"

static int absent_slot(const struct world *world, int first, int count)
{
	for (int i = first; i < first + count; i++)
		if (world->model.keys.key[i].kind == MODEL_ABSENT)
			return i;
	return -1;
}

static struct key *new_key(struct world *world, int slot, enum model_kind kind, uint32_t number, int domain)
{
	struct key *key = &world->model.keys.key[slot];

	/* A number must refer to one key only. */
	if (keys_find(&world->model.keys, number) >= 0)
		world_fail(world, "number %#x is given out twice", number);
	*key = (struct key){
		.kind = kind,
		.number = number,
		.domain = domain,
		.rights = LOCAL_READ, /* ibv_reg_mr(3): "always enabled"; mlx5-formats 4.3 */
		.qp = ANY_QP,
		.serial = ++world->model.keys.last_serial,
	};
	return key;
}

static unsigned int draw_access(struct world *world)
{
	static const unsigned int all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
					IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND;
	unsigned int access = chance(&world->choose, 50) ? all : (unsigned int)choose_bits(&world->choose) & all;

	/* ibv_reg_mr(3): remote write and atomics need local write. */
	if (access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC))
		access |= IBV_ACCESS_LOCAL_WRITE;
	return access;
}

static void set_rights(struct key *key, unsigned int access)
{
	key->rights = LOCAL_READ | (access & IBV_ACCESS_LOCAL_WRITE ? LOCAL_WRITE : 0) |
		      (access & IBV_ACCESS_REMOTE_READ ? REMOTE_READ : 0) |
		      (access & IBV_ACCESS_REMOTE_WRITE ? REMOTE_WRITE : 0) |
		      (access & IBV_ACCESS_REMOTE_ATOMIC ? ATOMIC : 0);
	key->bindable = access & IBV_ACCESS_MW_BIND;
}

static void draw_piece(struct world *world, uint64_t align, uint64_t *offset, uint64_t *length)
{
	struct choose *c = &world->choose;

	*length = chance(c, 70) ? 1000 + choose_below(c, BLOCK_BYTES - 1000) : 1 + choose_below(c, 300);
	*length = (*length + align - 1) / align * align;
	*offset = choose_below(c, BLOCK_BYTES - *length + 1) / align * align;
}

/* ---- regions --------------------------------------------------------------------------------------------------- */

static struct ibv_mr *register_plain(struct world *world, int domain, int block, uint64_t offset, uint64_t length,
				     unsigned int access, uint64_t *start, bool *zero_based)
{
	struct choose *c = &world->choose;
	uint8_t *memory = world->model.memory.real[block] + offset;
	unsigned int style = (unsigned int)choose_below(c, 100);
	/* Flags that do not change the meaning of a key. */
	unsigned int extra =
		(chance(c, 10) ? IBV_ACCESS_ON_DEMAND : 0) | (chance(c, 10) ? IBV_ACCESS_RELAXED_ORDERING : 0);

	*start = (uintptr_t)memory;
	if (style < 50)
		return ibv_reg_mr(world->domain[domain], memory, length, (int)(access | extra));
	*start = 0;
	*zero_based = style < 65;
	if (*zero_based)
		return ibv_reg_mr(world->domain[domain], memory, length, (int)(access | extra | IBV_ACCESS_ZERO_BASED));
	if (style < 75)
		*start = 0;
	else if (style < 85)
		*start = 0 - length; /* the last byte is the last of the address space */
	else
		*start = choose_bits(c) >> 1;
	/* A ConnectX keeps the offset in the page. */
	if (world->model.connectx)
		*start = (choose_bits(c) >> 1 & ~UINT64_C(4095)) | ((uintptr_t)memory & 4095);
	say(world, " iova %#lx", *start);
	return ibv_reg_mr_iova(world->domain[domain], memory, length, *start, (int)(access | extra));
}

static void register_null(struct world *world, int slot, int domain)
{
	struct ibv_mr *mr = ibv_alloc_null_mr(world->domain[domain]);
	struct key *key;

	say(world, " null region");
	if (!mr)
		world_fail(world, "ibv_alloc_null_mr: %s", strerror(errno));
	world->region[slot] = mr;
	key = new_key(world, slot, MODEL_NULL, mr->lkey, domain);
	key->live = true;
	key->rights |= LOCAL_WRITE;
	key->length = UINT64_MAX;
	say(world, " key %#x", mr->lkey);
}

static void register_memory(struct world *world, int slot, int domain, bool device)
{
	unsigned int access = draw_access(world);
	int block = device ? DEVICE_BLOCK : (int)choose_below(&world->choose, PLAIN_BLOCKS);
	uint64_t offset, length, start = 0;
	bool zero_based = device;
	struct ibv_mr *mr;
	struct key *key;

	draw_piece(world, device ? 8 : 1, &offset, &length);
	if (device) {
		access &= ~(unsigned int)IBV_ACCESS_MW_BIND;
		mr = ibv_reg_dm_mr(world->domain[domain], world->model.memory.device_memory, offset, length,
				   access | IBV_ACCESS_ZERO_BASED);
	} else {
		mr = register_plain(world, domain, block, offset, length, access, &start, &zero_based);
	}
	say(world, " block %d [%lu, +%lu) access %#x", block, offset, length, access);
	if (!mr)
		world_fail(world, "region was not registered: %s", strerror(errno));
	world->region[slot] = mr;
	key = new_key(world, slot, MODEL_REGION, mr->lkey, domain);
	set_rights(key, access);
	key->live = true;
	key->start = start;
	key->zero_based = zero_based;
	key->length = length;
	key->block = block;
	key->offset = offset;
	say(world, " key %#x at %#lx", mr->lkey, start);
	if (mr->rkey != mr->lkey)
		world_fail(world, "lkey %#x, rkey %#x", mr->lkey, mr->rkey);
}

void step_register(struct world *world)
{
	int slot = absent_slot(world, 0, REGIONS), domain = (int)choose_below(&world->choose, DOMAINS);
	unsigned int style = (unsigned int)choose_below(&world->choose, 100);

	if (slot < 0)
		return;
	say(world, " region slot %d, domain %d:", slot, domain);
	if (style < 7)
		register_null(world, slot, domain);
	else
		register_memory(world, slot, domain, style < 20 && context_of(domain) == 0);
}

static bool has_window(const struct world *world, const struct key *region)
{
	for (int i = FIRST_WINDOW; i < KEYS; i++) {
		const struct key *window = &world->model.keys.key[i];

		if (window->kind != MODEL_ABSENT && window->live && window->region_serial == region->serial)
			return true;
	}
	return false;
}

/* ibv_dereg_mr(3): "fails if any memory window is still bound to this MR"; a ConnectX does not track them. */
void step_deregister(struct world *world)
{
	int slot = draw_existing(world, 0, REGIONS), error, expected;

	if (slot < 0)
		return;
	say(world, " deregister region slot %d, key %#x", slot, world->model.keys.key[slot].number);
	expected = has_window(world, &world->model.keys.key[slot]) && !world->model.connectx ? EBUSY : 0;
	error = ibv_dereg_mr(world->region[slot]);
	if (error != expected)
		world_fail(world, "ibv_dereg_mr returns %d, not %d", error, expected);
	if (error)
		return;
	world->region[slot] = NULL;
	world->model.keys.key[slot].kind = MODEL_ABSENT;
}

/* ibv_rereg_mr(3): the key stays, its memory changes. Not under a window: that case is undefined. */
void step_reregister(struct world *world)
{
	int slot = draw_existing(world, 0, REGIONS), flags = 0, domain, error;
	struct key *key = &world->model.keys.key[slot < 0 ? 0 : slot];
	unsigned int access = draw_access(world);
	uint64_t offset, length;
	int block = (int)choose_below(&world->choose, PLAIN_BLOCKS);

	if (slot < 0 || key->kind != MODEL_REGION || key->block == DEVICE_BLOCK || has_window(world, key))
		return;
	draw_piece(world, 1, &offset, &length);
	domain = (int)choose_below(&world->choose, DOMAINS - 1);
	flags |= chance(&world->choose, 50) ? IBV_REREG_MR_CHANGE_TRANSLATION : 0;
	flags |= chance(&world->choose, 50) ? IBV_REREG_MR_CHANGE_ACCESS : 0;
	flags |= key->domain != DOMAINS - 1 && chance(&world->choose, 30) ? IBV_REREG_MR_CHANGE_PD : 0;
	if (!flags)
		return;
	if (key->zero_based)
		return; /* would that last? */
	say(world, " reregister slot %d, key %#x, flags %d: block %d [%lu, +%lu) access %#x domain %d", slot,
	    key->number, flags, block, offset, length, access, domain);
	error = ibv_rereg_mr(world->region[slot], flags, flags & IBV_REREG_MR_CHANGE_PD ? world->domain[domain] : NULL,
			     flags & IBV_REREG_MR_CHANGE_TRANSLATION ? world->model.memory.real[block] + offset : NULL,
			     length, flags & IBV_REREG_MR_CHANGE_ACCESS ? (int)access : 0);
	if (error)
		world_fail(world, "ibv_rereg_mr returns %d: %s", error, strerror(errno));
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
		key->block = block;
		key->offset = offset;
		key->length = length;
		key->start = (uintptr_t)world->model.memory.real[block] + offset;
	}
	if (flags & IBV_REREG_MR_CHANGE_ACCESS)
		set_rights(key, access);
	if (flags & IBV_REREG_MR_CHANGE_PD)
		key->domain = domain;
	if (world->region[slot]->lkey != key->number)
		world_fail(world, "lkey is %#x now", world->region[slot]->lkey);
}

/* ---- mkeys and windows ----------------------------------------------------------------------------------------- */

static void create_mkey(struct world *world, int slot)
{
	struct choose *c = &world->choose;
	int domain = (int)choose_below(c, DOMAINS);
	bool remote_invalidate = chance(c, 40);
	struct mlx5dv_mkey_init_attr attr = {
		.pd = world->domain[domain],
		.create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT |
				(remote_invalidate ? MLX5DV_MKEY_INIT_ATTR_FLAGS_REMOTE_INVALIDATE : 0),
		.max_entries = (uint16_t)(1 + choose_below(c, ENTRIES)),
	};
	uint16_t wanted = attr.max_entries;
	struct mlx5dv_mkey *mkey = mlx5dv_create_mkey(&attr);
	struct key *key;

	say(world, " create mkey slot %d, domain %d, %u entries", slot, domain, wanted);
	if (!mkey)
		world_fail(world, "mlx5dv_create_mkey: %s", strerror(errno));
	/* mlx5-formats 4.3: rounded up to a multiple of 4, and written back. */
	if (attr.max_entries != (wanted + 3) / 4 * 4)
		world_fail(world, "max_entries %u is %u now", wanted, attr.max_entries);
	world->layout[slot - FIRST_LAYOUT] = mkey;
	key = new_key(world, slot, MODEL_LAYOUT, mkey->lkey, domain);
	key->capacity = attr.max_entries;
	key->remote_invalidate = remote_invalidate;
	say(world, " key %#x", mkey->lkey);
}

void step_mkey(struct world *world)
{
	int slot = absent_slot(world, FIRST_LAYOUT, LAYOUTS), error;

	if (slot >= 0 && !chance(&world->choose, 20)) {
		create_mkey(world, slot);
		return;
	}
	slot = draw_existing(world, FIRST_LAYOUT, LAYOUTS);
	if (slot < 0)
		return;
	say(world, " destroy mkey slot %d, key %#x", slot, world->model.keys.key[slot].number);
	error = mlx5dv_destroy_mkey(world->layout[slot - FIRST_LAYOUT]);
	if (error)
		world_fail(world, "mlx5dv_destroy_mkey: %s", strerror(error));
	world->layout[slot - FIRST_LAYOUT] = NULL;
	world->model.keys.key[slot].kind = MODEL_ABSENT;
}

void step_window(struct world *world)
{
	int slot = absent_slot(world, FIRST_WINDOW, WINDOWS), domain = (int)choose_below(&world->choose, DOMAINS),
	    error;
	enum ibv_mw_type type = chance(&world->choose, 50) ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2;
	struct ibv_mw *mw;

	if (slot >= 0 && !chance(&world->choose, 20)) {
		say(world, " allocate window slot %d of type %d, domain %d", slot, type, domain);
		mw = ibv_alloc_mw(world->domain[domain], type);
		if (!mw)
			world_fail(world, "ibv_alloc_mw: %s", strerror(errno));
		world->window[slot - FIRST_WINDOW] = mw;
		new_key(world, slot, type == IBV_MW_TYPE_1 ? MODEL_WINDOW_1 : MODEL_WINDOW_2, mw->rkey, domain);
		say(world, " key %#x", mw->rkey);
		return;
	}
	slot = draw_existing(world, FIRST_WINDOW, WINDOWS);
	if (slot < 0)
		return;
	say(world, " deallocate window slot %d, key %#x", slot, world->model.keys.key[slot].number);
	error = ibv_dealloc_mw(world->window[slot - FIRST_WINDOW]);
	if (error)
		world_fail(world, "ibv_dealloc_mw: %s", strerror(error));
	world->window[slot - FIRST_WINDOW] = NULL;
	world->model.keys.key[slot].kind = MODEL_ABSENT;
}
