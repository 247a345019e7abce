/* SPDX-License-Identifier: BSD-2-Clause */
/* The world of the fuzzers, see world.h. */
#include "world.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "process/commands.h"
#include "mkey/bsf.h"
#include "hca/hca.h"

#define PAGE 4096u
#define PAGES 16
#define ALL_ACCESS                                                                                                     \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |        \
	 IBV_ACCESS_MW_BIND)
#define UNTOUCHED 0xc5
#define CONTENTS 0x3a
#define DEVICE_BYTES PAGE

struct world world;

void world_abort(const char *file, int line, const char *condition)
{
	fprintf(stderr, "%s:%d: %s does not hold\n", file, line, condition);
	abort();
}

/* Regions over memory of the arena; the rest of their pages must never change. */
static const struct region {
	enum world_key key;
	uint32_t page, pages;    /* mapped */
	uint32_t offset, length; /* registered, from WORLD_BASE */
	unsigned int access;
	bool foreign, zero_based;
	enum mr_kind kind;
} regions[] = {
	{WORLD_FULL, 1, 2, 0x1040, 0x1f80, ALL_ACCESS, false, false, MR_MEMORY},
	{WORLD_ZERO_BASED, 4, 1, 0x4100, 0xe00, ALL_ACCESS, false, true, MR_MEMORY},
	{WORLD_READ_ONLY, 6, 1, 0x6000, PAGE, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_MW_BIND, false, false, MR_MEMORY},
	{WORLD_LOCAL, 8, 1, 0x8000, PAGE, IBV_ACCESS_LOCAL_WRITE, false, false, MR_MEMORY},
	{WORLD_FOREIGN, 10, 1, 0xa000, PAGE, ALL_ACCESS, true, false, MR_MEMORY},
	{WORLD_ON_DEMAND, 12, 1, 0xc000, 2 * PAGE, ALL_ACCESS, false, false, MR_ON_DEMAND},
};

#define REGIONS (sizeof(regions) / sizeof(regions[0]))

static uint8_t *at(uint64_t offset)
{
	return (uint8_t *)(uintptr_t)(WORLD_BASE + offset);
}

static bool may_change(const struct region *region)
{
	return !region->foreign && region->access & IBV_ACCESS_LOCAL_WRITE;
}

static uint32_t mapped_length(const struct region *region)
{
	uint32_t end = (region->page + region->pages) * PAGE, wanted = region->offset + region->length;

	return (wanted < end ? wanted : end) - region->offset;
}

/* Places each writable page between two missing ones. */
static void make_arena(void)
{
	void *arena = mmap(at(0), PAGES * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	WORLD_CHECK(arena == at(0));
	for (size_t i = 0; i < REGIONS; i++) {
		uint8_t *first = at(regions[i].page * PAGE);
		size_t bytes = regions[i].pages * PAGE;

		WORLD_CHECK(!mprotect(first, bytes, PROT_READ | PROT_WRITE));
		memset(first, UNTOUCHED, bytes);
		if (regions[i].key == WORLD_READ_ONLY)
			WORLD_CHECK(!mprotect(first, bytes, PROT_READ));
	}
}

static struct hca_mr_attr attr_of(const struct region *region)
{
	return (struct hca_mr_attr){
		.kind = region->kind,
		.addr = at(region->offset),
		.start = region->zero_based ? 0 : WORLD_BASE + region->offset,
		.length = region->length,
		.access = region->access,
	};
}

static void make_regions(void)
{
	for (size_t i = 0; i < REGIONS; i++) {
		const struct hca_mr_attr attr = attr_of(&regions[i]);

		WORLD_CHECK(!hca_mr_register(regions[i].foreign ? world.foreign_pd : world.pd, &attr,
					     &world.key[regions[i].key]));
	}
}

static void register_full(const struct hca_mr_attr *attr)
{
	WORLD_CHECK(!hca_mr_reregister(world.key[WORLD_FULL],
				       IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_ACCESS, world.pd, attr));
}

void world_narrow(void)
{
	struct hca_mr_attr attr = attr_of(&regions[0]);

	attr.length /= 2;
	attr.access = IBV_ACCESS_LOCAL_WRITE;
	register_full(&attr);
	world.narrowed = true;
}

static void make_other_keys(void)
{
	struct hca_mr_attr attr = {.kind = MR_NULL, .length = UINT64_MAX, .access = ALL_ACCESS};
	struct hca_mkey_attr mkey = {.max_entries = 4};

	WORLD_CHECK(!hca_mr_register(world.pd, &attr, &world.key[WORLD_NULL]));
	WORLD_CHECK(!hca_dm_alloc(world.context, DEVICE_BYTES, 6, &world.device_memory));
	attr = (struct hca_mr_attr){
		.kind = MR_DEVICE_MEMORY, .addr = world.device_memory, .length = DEVICE_BYTES, .access = ALL_ACCESS};
	WORLD_CHECK(!hca_mr_register(world.pd, &attr, &world.key[WORLD_DEVICE]));
	WORLD_CHECK(!hca_mr_register(world.pd, &attr, &world.key[WORLD_GONE]));
	WORLD_CHECK(!hca_mr_deregister(world.key[WORLD_GONE]));
	world.key[WORLD_GONE] = NULL;
	WORLD_CHECK(!hca_mkey_create(world.pd, &mkey, &world.key[WORLD_MKEY_4]));
	mkey.max_entries = 8;
	WORLD_CHECK(!hca_mkey_create(world.pd, &mkey, &world.key[WORLD_MKEY_8]));
	mkey = (struct hca_mkey_attr){
		.max_entries = 64, .bsf_octowords = 4, .remote_invalidate = true, .update_tag = true};
	WORLD_CHECK(!hca_mkey_create(world.pd, &mkey, &world.key[WORLD_MKEY_64]));
	WORLD_CHECK(!hca_mkey_create(world.foreign_pd, &mkey, &world.key[WORLD_MKEY_FOREIGN]));
	WORLD_CHECK(!hca_mw_alloc(world.pd, IBV_MW_TYPE_1, &world.key[WORLD_WINDOW_1]));
	WORLD_CHECK(!hca_mw_alloc(world.pd, IBV_MW_TYPE_2, &world.key[WORLD_WINDOW_2]));
	WORLD_CHECK(!hca_mw_alloc(world.pd, IBV_MW_TYPE_2, &world.key[WORLD_WINDOW_2_ALSO]));
	mkey = (struct hca_mkey_attr){.max_entries = 8, .bsf_octowords = 4};
	WORLD_CHECK(!hca_mkey_create(world.pd, &mkey, &world.key[WORLD_MKEY_SIGNATURE]));
	mkey = (struct hca_mkey_attr){.max_entries = 8, .bsf_octowords = 8, .cipher = true};
	WORLD_CHECK(!hca_mkey_create(world.pd, &mkey, &world.key[WORLD_MKEY_CIPHER]));
	for (uint32_t i = 0; i < WORLD_KEYS; i++)
		WORLD_CHECK(!world.key[i] || mkey_number(world.key[i]) == WORLD_KEY(i));
}

/* PSVs and DEKs for block setups. */
static void make_psvs_and_deks(void)
{
	struct dek_attr attr = {.key_bytes = 32};
	uint32_t number;

	for (uint32_t i = 0; i < WORLD_PSVS; i++) {
		WORLD_CHECK(!hca_psv_create(i == WORLD_PSVS - 1 ? world.foreign_pd : world.pd, &number));
		WORLD_CHECK(number == WORLD_PSV + i);
	}
	for (uint8_t i = 0; i < sizeof(attr.key); i++)
		attr.key[i] = i;
	memset(attr.keytag, WORLD_KEYTAG, sizeof(attr.keytag));
	for (uint32_t i = 0; i < WORLD_DEKS; i++) {
		attr.pd = (i == 2 ? world.foreign_pd : world.pd)->number;
		attr.has_keytag = i == 1;
		WORLD_CHECK(!dek_create(world.hca, &attr, &number) && number == WORLD_DEK + i);
	}
}

void *world_exact(size_t size)
{
	void *memory = aligned_alloc(64, size);

	WORLD_CHECK(memory);
	memset(memory, 0, size);
	return memory;
}

void world_make(void)
{
	const struct hca_gid *gids;
	size_t count;

	/* The program's environment must not change the behaviour of an input. */
	for (int i = 0; i < SETTING_COUNT; i++)
		unsetenv(setting_info(i)->variable);
	setenv("SOFTHCA_SEED", "1", 1);
	setenv("SOFTHCA_GIDS", "loopback", 1);
	/* No sockets: the input alone decides. */
	setenv("SOFTHCA_LINK", "local", 1);
	world.hca = hca_device(0);
	WORLD_CHECK(world.hca);
	/* Inputs name keys by number, without tags, counted from the first possible one. */
	world.hca->keys.fresh = WORLD_KEY(0) >> 8;
	world.hca->keys.limit = 1u << ID_BITS;
	world.hca->keys.wrap_limit = 0;
	memset(world.hca->key_tags, 0, ID_LEAF_SIZE);
	gids = hca_gids(world.hca, &count);
	WORLD_CHECK(count);
	world.gid = gids[0].gid;
	WORLD_CHECK(!event_queue_init(&world.async));
	WORLD_CHECK(!fcntl(world.async.fd, F_SETFL, O_NONBLOCK));
	WORLD_CHECK(!hca_open(world.hca, &world.async, &world.context));
	WORLD_CHECK(!hca_pd_alloc(world.context, &world.pd));
	WORLD_CHECK(!hca_pd_alloc(world.context, &world.foreign_pd));
	make_arena();
	make_regions();
	make_other_keys();
	make_psvs_and_deks();
	world_make_queues();
	world_reset();
}

void world_reset_key(enum world_key number)
{
	struct mkey *key = world.key[number];
	struct mapping *next;

	if (number < WORLD_MKEY_4)
		return;
	next = mkey_edit(key);
	WORLD_CHECK(next);
	next->number = WORLD_KEY(number);
	next->free = true;
	next->rights = RIGHT_LOCAL_READ;
	next->qpn = KEY_QPN_ANY;
	next->qp_serial = 0;
	next->start = 0;
	next->length = 0;
	next->form = LAYOUT_NONE;
	next->count = 0;
	next->repeat = 0;
	next->period = 0;
	if (next->blocks)
		block_setup_clear(next->blocks);
	next->staged = next->needs_cipher;
	mkey_publish(key, next);
	key->has_reached = false;
	key->error_state = KEY_ERROR_NONE;
	key->error_reported = false;
}

void world_reset(void)
{
	for (size_t i = 0; i < REGIONS; i++)
		if (may_change(&regions[i]))
			memset(at(regions[i].offset), CONTENTS, mapped_length(&regions[i]));
	memset(world.device_memory, CONTENTS, DEVICE_BYTES);
	for (int i = WORLD_MKEY_4; i < WORLD_KEYS; i++)
		world_reset_key(i);
	world_reset_queues();
	if (world.narrowed) {
		const struct hca_mr_attr attr = attr_of(&regions[0]);

		register_full(&attr);
		world.narrowed = false;
	}
}

static void check_untouched(const uint8_t *bytes, const uint8_t *end)
{
	static const uint8_t untouched[PAGE] = {[0 ... PAGE - 1] = UNTOUCHED};

	WORLD_CHECK(!memcmp(bytes, untouched, (size_t)(end - bytes)));
}

void world_check_memory(void)
{
	for (size_t i = 0; i < REGIONS; i++) {
		const struct region *region = &regions[i];
		uint8_t *first = at(region->page * PAGE), *end = at((region->page + region->pages) * PAGE);

		if (!may_change(region)) {
			check_untouched(first, end);
			continue;
		}
		check_untouched(first, at(region->offset));
		check_untouched(at(region->offset + mapped_length(region)), end);
	}
}
