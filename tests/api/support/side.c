/* SPDX-License-Identifier: BSD-2-Clause */
/* Context, PD, memory and the objects created from them, see side.h. */
#include "support/side.h"

#include <sys/mman.h>

static size_t device_index;

void side_use_device(size_t index)
{
	device_index = index;
}

struct ibv_context *open_device(void)
{
	struct mlx5dv_context_attr attr = {.flags = MLX5DV_CONTEXT_FLAGS_DEVX};
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context;

	assert_non_null(list);
	for (size_t i = 0; i <= device_index; i++)
		assert_non_null(list[i]);
	context = mlx5dv_open_device(list[device_index], &attr);
	ibv_free_device_list(list);
	assert_non_null(context);
	return context;
}

static void find_gid(struct side *side)
{
	struct ibv_gid_entry entry;

	for (side->gid_index = 0; side->gid_index < 64; side->gid_index++) {
		if (ibv_query_gid_ex(side->context, 1, side->gid_index, &entry, 0) ||
		    entry.gid_type != IBV_GID_TYPE_ROCE_V2)
			continue;
		side->gid = entry.gid;
		return;
	}
	fail_at(HERE, "the device has no GID of RoCE v2");
}

/* Maps memory or its copy, including guards. Returns the first byte after the first guard. */
static uint8_t *map_memory(size_t bytes)
{
	uint8_t *base = mmap(NULL, bytes + 2 * SIDE_GUARD, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(base, MAP_FAILED);
	return base + SIDE_GUARD;
}

void side_open(struct side *side, const char *name, size_t bytes, uint8_t mark)
{
	*side = (struct side){.name = name, .bytes = bytes, .mark = mark, .random = 0x9e3779b97f4a7c15 + mark};
	side->context = open_device();
	side->pd = ibv_alloc_pd(side->context);
	assert_non_null(side->pd);
	find_gid(side);
	side->memory = map_memory(bytes);
	side->expected = map_memory(bytes);
	memset(side->memory - SIDE_GUARD, 0x55, bytes + 2 * SIDE_GUARD);
	memset(side->expected - SIDE_GUARD, 0x55, bytes + 2 * SIDE_GUARD);
	side_stir(side);
	side->mr = side_register(side, 0, bytes, SIDE_ACCESS);
}

void side_close(struct side *side)
{
	side_compare(side);
	for (int i = 0; i < SIDE_OBJECTS; i++) {
		if (side->mws[i])
			expect_error(ibv_dealloc_mw(side->mws[i]), 0);
		if (side->mkeys[i])
			expect_error(mlx5dv_destroy_mkey(side->mkeys[i]), 0);
	}
	for (int i = 0; i < SIDE_OBJECTS; i++)
		if (side->mrs[i])
			expect_error(ibv_dereg_mr(side->mrs[i]), 0);
	expect_error(ibv_dealloc_pd(side->pd), 0);
	expect_error(ibv_close_device(side->context), 0);
	munmap(side->memory - SIDE_GUARD, side->bytes + 2 * SIDE_GUARD);
	munmap(side->expected - SIDE_GUARD, side->bytes + 2 * SIDE_GUARD);
}

static uint64_t next_random(struct side *side)
{
	side->random ^= side->random << 13;
	side->random ^= side->random >> 7;
	side->random ^= side->random << 17;
	return side->random;
}

void side_stir(struct side *side)
{
	const uint64_t tops = UINT64_C(0x8080808080808080);

	for (size_t i = 0; i < side->bytes; i += sizeof(uint64_t)) {
		uint64_t word = (next_random(side) & ~tops) | (side->mark ? tops : 0);

		memcpy(side->memory + i, &word, sizeof(word));
	}
	memcpy(side->expected, side->memory, side->bytes);
}

void side_compare_(struct place place, struct side *side)
{
	const uint8_t *memory = side->memory - SIDE_GUARD, *expected = side->expected - SIDE_GUARD;
	size_t bytes = side->bytes + 2 * SIDE_GUARD;

	if (!memcmp(memory, expected, bytes))
		return;
	for (size_t i = 0; i < bytes; i++)
		if (memory[i] != expected[i])
			fail_at(place, "byte %ld of the %s's memory is %02x, not %02x", (long)i - SIDE_GUARD,
				side->name, memory[i], expected[i]);
}

uint64_t side_address(const struct side *side, size_t offset)
{
	return (uintptr_t)side->memory + offset;
}

/* Adds @object to the side's objects. */
static void *keep(void **objects, void *object)
{
	assert_non_null(object);
	for (size_t i = 0; i < SIDE_OBJECTS; i++)
		if (!objects[i])
			return objects[i] = object;
	fail_at(HERE, "a side has more than %d objects of a kind", SIDE_OBJECTS);
}

struct ibv_mr *side_register(struct side *side, size_t offset, size_t length, unsigned int access)
{
	return keep(side->mrs, ibv_reg_mr(side->pd, side->memory + offset, length, access));
}

void side_deregister(struct side *side, struct ibv_mr *mr)
{
	for (int i = 0; i < SIDE_OBJECTS; i++)
		if (side->mrs[i] == mr)
			side->mrs[i] = NULL;
	expect_error(ibv_dereg_mr(mr), 0);
}

struct ibv_sge side_sge(const struct side *side, size_t offset, uint32_t length)
{
	return (struct ibv_sge){.addr = side_address(side, offset), .length = length, .lkey = side->mr->lkey};
}

struct mlx5dv_mkey *side_create_mkey(struct side *side, uint16_t entries, uint16_t *got)
{
	struct mlx5dv_mkey_init_attr attr = {
		.pd = side->pd,
		.create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT,
		.max_entries = entries,
	};
	struct mlx5dv_mkey *mkey = keep(side->mkeys, mlx5dv_create_mkey(&attr));

	if (got)
		*got = attr.max_entries;
	return mkey;
}

struct mlx5dv_mkey *side_create_mkey_with(struct side *side, uint32_t flags, uint16_t entries)
{
	struct mlx5dv_mkey_init_attr attr = {.pd = side->pd, .create_flags = flags, .max_entries = entries};

	return keep(side->mkeys, mlx5dv_create_mkey(&attr));
}

struct ibv_mw *side_alloc_mw(struct side *side, enum ibv_mw_type type)
{
	return keep(side->mws, ibv_alloc_mw(side->pd, type));
}
