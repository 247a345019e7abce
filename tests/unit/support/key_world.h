/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random keys, in the device and in the reference, which finds the place of each single byte by the rules of
 * tests/model/keys.h. For tests of walks and streams.
 */
#ifndef SOFTHCA_TESTS_KEY_WORLD_H
#define SOFTHCA_TESTS_KEY_WORLD_H

#include "test_case.h"

#include "../../model/keys.h"
#include "device_fixture.h"
#include "mkey/layout.h"
#include "mkey/walk.h"

enum { WORLD_BLOCK = 0, WORLD_ENTRIES = 12 };

struct key_world {
	struct device device;
	struct keys reference;
	struct mkey *key[KEYS];
	uint8_t *memory; /* BLOCK_BYTES, the block that all regions share */
	struct walk_access access;
	struct accessor accessor;
	struct choose choose;
};

static inline void world_open(struct key_world *world, uint64_t seed)
{
	memset(world, 0, sizeof(*world));
	device_open(&world->device);
	world->memory = world->device.memory;
	world->choose = choose_for(seed, 0);
	world->access = (struct walk_access){
		.hca = world->device.hca, .pd = hca_pd_number(world->device.pd), .qpn = 0x1234, .qp_serial = 1};
}

static inline void world_close(struct key_world *world)
{
	/* Layouts first: the device counts the objects of a domain, and regions do not refer to layouts. */
	for (int i = KEYS - 1; i >= 0; i--) {
		if (world->key[i])
			assert_int_equal(
				i < REGIONS ? hca_mr_deregister(world->key[i]) : hca_mkey_destroy(world->key[i]), 0);
	}
	device_close(&world->device);
}

/* enum want and enum key_rights, each from its own definition. */
static inline uint8_t rights_wanted(unsigned int wanted)
{
	return (uint8_t)((wanted & LOCAL_READ ? RIGHT_LOCAL_READ : 0) | (wanted & LOCAL_WRITE ? RIGHT_LOCAL_WRITE : 0) |
			 (wanted & REMOTE_READ ? RIGHT_REMOTE_READ : 0) |
			 (wanted & REMOTE_WRITE ? RIGHT_REMOTE_WRITE : 0) | (wanted & ATOMIC ? RIGHT_ATOMIC : 0));
}

static inline struct key *world_enter(struct key_world *world, int slot, enum model_kind kind, struct mkey *key)
{
	struct key *reference = &world->reference.key[slot];

	world->key[slot] = key;
	*reference = (struct key){.kind = kind,
				  .number = mkey_number(key),
				  .live = true,
				  .rights = LOCAL_READ,
				  .qp = ANY_QP,
				  .serial = ++world->reference.last_serial};
	return reference;
}

/* Makes a region over [@offset, +@length) of the block; its first byte has the address @start. */
static inline void world_region(struct key_world *world, int slot, uint64_t offset, uint64_t length, uint64_t start,
				unsigned int access)
{
	struct hca_mr_attr attr = {.addr = world->memory + offset, .start = start, .length = length, .access = access};
	struct key *reference;
	struct mkey *key;

	assert_int_equal(hca_mr_register(world->device.pd, &attr, &key), 0);
	reference = world_enter(world, slot, MODEL_REGION, key);
	reference->block = WORLD_BLOCK;
	reference->offset = offset;
	reference->start = start;
	reference->length = length;
	reference->rights |= (access & IBV_ACCESS_LOCAL_WRITE ? LOCAL_WRITE : 0) |
			     (access & IBV_ACCESS_REMOTE_READ ? REMOTE_READ : 0) |
			     (access & IBV_ACCESS_REMOTE_WRITE ? REMOTE_WRITE : 0) |
			     (access & IBV_ACCESS_REMOTE_ATOMIC ? ATOMIC : 0);
}

static inline void world_null_region(struct key_world *world, int slot)
{
	struct hca_mr_attr attr = {.kind = MR_NULL, .length = SIZE_MAX, .access = IBV_ACCESS_LOCAL_WRITE};
	struct key *reference;
	struct mkey *key;

	assert_int_equal(hca_mr_register(world->device.pd, &attr, &key), 0);
	reference = world_enter(world, slot, MODEL_NULL, key);
	reference->rights |= LOCAL_WRITE;
	reference->length = UINT64_MAX;
}

/* Makes a key without a layout; world_lay_out() sets one. */
static inline void world_mkey(struct key_world *world, int slot)
{
	struct hca_mkey_attr attr = {.max_entries = WORLD_ENTRIES + 4};
	struct mkey *key;

	assert_int_equal(hca_mkey_create(world->device.pd, &attr, &key), 0);
	world_enter(world, slot, MODEL_LAYOUT, key);
}

static inline void put_be(uint8_t *at, uint64_t value, int bytes)
{
	for (int i = 0; i < bytes; i++)
		at[i] = (uint8_t)(value >> 8 * (bytes - 1 - i));
}

/*
 * Writes the entries of @reference in the wire format (mlx5-formats 1.9, 1.10); @repeats: as a repeat block. Returns
 * the number of bytes.
 */
static inline uint32_t wire_layout(const struct key *reference, bool repeats, uint8_t *wire)
{
	uint64_t period = 0;

	memset(wire, 0, (WORLD_ENTRIES + 4) * 16);
	for (uint32_t i = 0; i < reference->count; i++) {
		const struct entry *entry = &reference->entries[i];
		uint8_t *at = wire + (i + repeats) * 16;

		period += entry->bytes;
		if (repeats) {
			put_be(at, entry->stride, 2);
			put_be(at + 2, entry->bytes, 2);
		} else {
			put_be(at, entry->bytes, 4);
		}
		put_be(at + 4, entry->key, 4);
		put_be(at + 8, entry->address, 8);
	}
	if (repeats) {
		put_be(wire, period, 4);
		put_be(wire + 4, 0x400, 4);
		put_be(wire + 8, reference->repeat, 4);
		put_be(wire + 14, reference->count, 2);
	}
	return (reference->count + repeats + 3) / 4 * 4 * 16;
}

/* Sets the layout, length and rights of the device's key to those of the reference key in @slot. */
static inline void world_lay_out(struct key_world *world, int slot, bool repeats)
{
	const struct key *reference = &world->reference.key[slot];
	struct mapping *next = mkey_edit(world->key[slot]);
	uint8_t wire[(WORLD_ENTRIES + 4) * 16];
	uint32_t bytes = wire_layout(reference, repeats, wire);
	struct refusal why;

	assert_non_null(next);
	if (bytes)
		assert_int_equal(layout_parse(next, next->number, wire, bytes, &why), 0);
	next->free = false;
	next->rights = rights_wanted(reference->rights);
	next->length = reference->length;
	mkey_publish(world->key[slot], next);
}

#endif
