/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reregisters the memory region of a key, elsewhere and shorter, while another thread walks the key: no piece lies
 * outside the region's old or new memory (mkey/walk.h).
 */
#include "test_case.h"

#include <pthread.h>

#include "../unit/support/device_fixture.h"
#include "mkey/walk.h"

enum {
	LONG = 1 << 16,
	SHORT = 4096,
	RECORD = 64,
	STRIDE = 600,
	RECORDS = 100,
	SECONDS = 2,
};

static struct mkey *region;
static int stop; /* atomic */

static struct hca_mr_attr attr_of(bool is_short)
{
	return (struct hca_mr_attr){
		.kind = MR_MEMORY,
		.addr = device.memory + (is_short ? LONG - SHORT : 0),
		.length = is_short ? SHORT : LONG,
		.access = ALL_ACCESS,
	};
}

static void *register_anew(void *argument)
{
	bool is_short = true;

	(void)argument;
	for (; !__atomic_load_n(&stop, __ATOMIC_ACQUIRE); is_short = !is_short) {
		const struct hca_mr_attr attr = attr_of(is_short);

		if (hca_mr_reregister(region, IBV_REREG_MR_CHANGE_TRANSLATION, device.pd, &attr))
			abort();
	}
	return NULL;
}

/* Creates a key with RECORDS records of the region, more than fit in its shorter form. */
static struct mkey *make_key(void)
{
	const struct hca_mkey_attr attr = {.max_entries = 4};
	struct mapping *map;
	struct mkey *key;

	assert_int_equal(hca_mkey_create(device.pd, &attr, &key), 0);
	map = mkey_edit(key);
	map->free = false;
	map->length = RECORD * RECORDS;
	map->form = LAYOUT_REPEAT;
	map->count = 1;
	map->repeat = RECORDS;
	map->period = RECORD;
	map->entries[0] = (struct layout_entry){.bytes = RECORD, .stride = STRIDE, .key = mkey_number(region)};
	mkey_publish(key, map);
	return key;
}

/* Returns false if the walk failed. */
static bool walk_all(const struct walk_access *access, uint32_t key)
{
	struct refusal why;
	struct piece piece;
	struct walk walk;
	bool begun;

	epoch_enter();
	begun = !walk_begin(&walk, access, RIGHT_LOCAL_READ, key, 0, RECORD * RECORDS, &why);
	while (begun && walk_next(&walk, UINT64_MAX, &piece))
		if (piece.address && (piece.address < device.memory || piece.length > RECORD ||
				      piece.address + piece.length > device.memory + LONG))
			fail_msg("a piece at %p is outside of the memory at %p", (void *)piece.address,
				 (void *)device.memory);
	epoch_leave();
	return begun;
}

TEST(region_registered_anew)
{
	const struct hca_mr_attr attr = attr_of(false);
	uint64_t end = clock_now_ns() + SECONDS * UINT64_C(1000000000), walked = 0, refused = 0;
	struct walk_access access;
	struct mkey *key;
	pthread_t thread;

	device_open(&device);
	assert_int_equal(hca_mr_register(device.pd, &attr, &region), 0);
	key = make_key();
	access = (struct walk_access){.hca = device.hca, .pd = hca_pd_number(device.pd)};
	assert_int_equal(pthread_create(&thread, NULL, register_anew, NULL), 0);
	while (clock_now_ns() < end)
		for (int i = 0; i < 100; i++)
			*(walk_all(&access, mkey_number(key)) ? &walked : &refused) += 1;
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(walked > 0 && refused > 0);
	assert_int_equal(hca_mkey_destroy(key), 0);
	assert_int_equal(hca_mr_deregister(region), 0);
	device_close(&device);
}
