/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Block stages in isolation (mkey/stage.h): data arriving in packets, wherever they end, is stored in memory as if it
 * had arrived at once. Each case covers a past bug.
 */
#include "test_case.h"

#include "mkey/bsf.h"
#include "mkey/stage.h"
#include "../support/device_fixture.h"

enum { KEY_BYTES = 8192, MOST_PACKETS = 3 };

static struct mkey *key;
static uint32_t psv, dek;
static uint8_t message[2 * KEY_BYTES], at_once[KEY_BYTES];

static int set_up(void **state)
{
	struct hca_mkey_attr attr = {.max_entries = 4, .bsf_octowords = 8};
	struct dek_attr dek_attr = {.key_bytes = 32, .key = {1}};

	(void)state;
	device_open(&device);
	dek_attr.pd = hca_pd_number(device.pd);
	assert_int_equal(hca_psv_create(device.pd, &psv), 0);
	assert_int_equal(dek_create(device.hca, &dek_attr, &dek), 0);
	assert_int_equal(hca_mkey_create(device.pd, &attr, &key), 0);
	for (size_t i = 0; i < sizeof(message); i++)
		message[i] = (uint8_t)(i * 13 + i / 256 + 1);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	assert_int_equal(hca_mkey_destroy(key), 0);
	assert_int_equal(dek_destroy(device.hca, dek), 0);
	assert_int_equal(hca_psv_destroy(device.hca, psv), 0);
	device_close(&device);
	return 0;
}

static struct walk_access access_of(struct block_progress *progress)
{
	return (struct walk_access){.hca = device.hca, .pd = hca_pd_number(device.pd), .progress = progress};
}

/* Configures a key over the first @bytes of the device's memory with @bsf of @octowords. */
static void configure(const uint8_t *bsf, uint32_t octowords, uint64_t bytes)
{
	const struct walk_access access = access_of(NULL);
	struct mapping *next = mkey_edit(key);
	struct refusal why;

	assert_non_null(next);
	epoch_enter();
	assert_int_equal(bsf_parse(&access, next->number, bsf, octowords, next->blocks, &why), 0);
	epoch_leave();
	next->form = LAYOUT_LIST;
	next->count = next->repeat = 1;
	next->period = next->length = bytes;
	next->entries[0] = (struct layout_entry){
		.address = (uintptr_t)device.memory, .bytes = bytes, .key = mkey_number(device.region)};
	next->rights = RIGHT_LOCAL_READ | RIGHT_LOCAL_WRITE;
	next->free = false;
	next->staged = true;
	mkey_publish(key, next);
}

/* Receives the first bytes of the message, in packets that end at @ends; the last packet ends the message. */
static void receive(const uint64_t *ends, int packets)
{
	struct block_progress progress = {0};
	struct walk_access access = access_of(&progress);
	uint64_t at = 0;

	memset(device.memory, 0xc5, KEY_BYTES);
	key->has_reached = false;
	epoch_enter();
	for (int i = 0; i < packets; at = ends[i++]) {
		uint8_t scratch[STAGE_SCRATCH];
		struct block_stage stage;
		struct refusal why;

		access.unfinished = access.more = i + 1 < packets;
		assert_int_equal(stage_begin(&stage, &access, RIGHT_LOCAL_WRITE, mkey_mapping(key), at, ends[i] - at,
					     at, &why),
				 0);
		stage_receive(&stage, message + at, ends[i] - at, scratch);
		stage_end(&stage);
	}
	epoch_leave();
	block_progress_release(&progress);
}

static void put(uint8_t *bsf, int at, uint64_t value, int bytes)
{
	for (int i = 0; i < bytes; i++)
		bsf[at + i] = (uint8_t)(value >> 8 * (bytes - 1 - i));
}

/* mlx5-formats 1.11, 1.12: CRC64 of 512 bytes on the wire, and a cipher over memory in units of 4096 bytes. */
static void configure_cipher_over_memory(uint8_t order, uint64_t bytes)
{
	uint8_t bsf[128] = {0xc0, 0xff, 1, 0};

	put(bsf, 4, 0xffffffff, 4);
	put(bsf, 8, 0x52000000 | psv, 4);
	bsf[64] = 0xc1;
	bsf[65] = order;
	bsf[72] = 3;
	put(bsf, 96, dek, 4);
	configure(bsf, 8, bytes);
}

/*
 * A message that ends inside a field on the wire, with its last data in the packet before: the last packet completes the
 * data unit that the cipher holds, and adds no data to memory.
 */
TEST(last_packet_brings_no_data)
{
	for (uint8_t order = 1; order <= 2; order++)
		for (uint64_t end = 513; end < 520; end++)
			for (uint64_t cut = 512; cut < end; cut++) {
				const uint64_t ends[MOST_PACKETS] = {256, cut, end};

				configure_cipher_over_memory(order, KEY_BYTES);
				receive(&ends[2], 1);
				memcpy(at_once, device.memory, KEY_BYTES);
				/* All data was written, and nothing else. */
				for (int i = 512; i < KEY_BYTES; i++)
					assert_int_equal(at_once[i], 0xc5);
				receive(ends, 3);
				assert_memory_equal(at_once, device.memory, KEY_BYTES);
				receive(&ends[1], 2);
				assert_memory_equal(at_once, device.memory, KEY_BYTES);
			}
}

/* As above, where the key ends with the data: its last unit, which is short, was complete in the packet before. */
TEST(last_unit_without_its_field)
{
	for (uint8_t order = 1; order <= 2; order++)
		for (uint64_t end = 513; end <= 520; end++)
			for (uint64_t cut = 512; cut < end; cut++) {
				const uint64_t ends[MOST_PACKETS] = {256, cut, end};

				configure_cipher_over_memory(order, 512);
				receive(&ends[2], 1);
				memcpy(at_once, device.memory, KEY_BYTES);
				receive(ends, 3);
				assert_memory_equal(at_once, device.memory, KEY_BYTES);
			}
}

int main(void)
{
	return run_cases(.group_setup = set_up, .group_teardown = tear_down);
}
