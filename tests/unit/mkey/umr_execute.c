/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * UMR WQEs that only a program that fills its ring itself can write (mlx5-formats 1.8): each check, in order; only
 * selected fields change; a WQE that fails changes nothing.
 */
#include "test_case.h"

#include "../support/device_fixture.h"
#include "explain/explain.h"

enum { BLOCKS = 64, CAPACITY = 8, FIXED = 128, MOST = 1008, ALL_BITS_ALLOWED = 24 };

static struct raw_cq cq;
static struct raw_qp end;
static struct mkey *key;

/* A UMR WQE, addressed by the offsets of the format sheet. */
struct umr {
	uint8_t bytes[MOST];
	uint32_t length;
};

static void put(struct umr *umr, uint32_t offset, uint64_t value, int bytes)
{
	for (int i = 0; i < bytes; i++)
		umr->bytes[offset + (uint32_t)i] = (uint8_t)(value >> 8 * (bytes - 1 - i));
}

enum {
	IMM = 12,
	FLAGS = 16,
	KLM_OCTOWORDS = 20,
	BSF_OCTOWORDS = 22,
	MASK = 24,
	CONTEXT = 64,
	FREE = CONTEXT,
	ACCESS = CONTEXT + 2,
	QPN_TAG = CONTEXT + 4,
	FLAGS_PD = CONTEXT + 12,
	START = CONTEXT + 16,
	LENGTH = CONTEXT + 24,
	PAYLOAD = FIXED,
};

/* Bits of mkey_mask. */
enum {
	LEN_BIT = 0,
	PAGE_SIZE_BIT = 1,
	START_BIT = 6,
	PD_BIT = 7,
	RINVAL_BIT = 8,
	MKEY_BIT = 13,
	QPN_BIT = 14,
	LR_BIT = 17,
	LW_BIT = 18,
	RR_BIT = 19,
	RW_BIT = 20,
	A_BIT = 21,
	FREE_BIT = 29
};

#define BIT(name) (UINT64_C(1) << name##_BIT)

/* Makes the key live, with one entry of 100 bytes. */
static struct umr configuring(void)
{
	struct umr umr = {.length = FIXED + 64};

	put(&umr, IMM, mkey_number(key), 4);
	put(&umr, FLAGS, 0x80, 1);
	put(&umr, KLM_OCTOWORDS, 4, 2);
	put(&umr, MASK, BIT(LEN) | BIT(FREE) | BIT(MKEY), 8);
	put(&umr, QPN_TAG, 0xffffff00, 4);
	put(&umr, LENGTH, 100, 8);
	put(&umr, PAYLOAD, 100, 4);
	put(&umr, PAYLOAD + 4, mkey_number(device.region), 4);
	put(&umr, PAYLOAD + 8, (uintptr_t)device.memory, 8);
	return umr;
}

static int open_all(void **state)
{
	struct hca_mkey_attr attr = {.max_entries = CAPACITY};

	(void)state;
	device_open(&device);
	raw_cq_make(&device, &cq, 64);
	raw_qp_make(&device, &end, IBV_QPT_RC, &cq, BLOCKS);
	raw_qp_connect(&device, &end, end.qp->number, &(struct ibv_qp_attr){0});
	assert_int_equal(hca_mkey_create(device.pd, &attr, &key), 0);
	return 0;
}

static int close_all(void **state)
{
	(void)state;
	assert_int_equal(hca_mkey_destroy(key), 0);
	raw_qp_destroy(&end);
	raw_cq_destroy(&cq);
	device_close(&device);
	return 0;
}

static uint8_t run(const struct umr *umr)
{
	const struct mlx5_err_cqe *cqe;
	struct umr wqe = *umr;
	uint8_t syndrome;

	put(&wqe, 0, (uint32_t)end.posted << 8 | MLX5_OPCODE_UMR, 4);
	put(&wqe, 4, end.qp->number << 8 | wqe.length / 16, 4);
	put(&wqe, 11, MLX5_WQE_CTRL_CQ_UPDATE, 1);
	put_wqe(&end, wqe.bytes, wqe.length / 16, (wqe.length + 63) / 64);
	ring(&end);
	cqe = raw_cq_poll(&cq);
	assert_non_null(cqe);
	syndrome = cqe->op_own >> 4 == MLX5_CQE_REQ ? 0 : cqe->syndrome;
	if (syndrome)
		raw_qp_connect(&device, &end, end.qp->number, &(struct ibv_qp_attr){0});
	return syndrome;
}

static void expect_done(const struct umr *umr)
{
	assert_int_equal(run(umr), 0);
}

/* Any failure is MW_BIND_ERR (mlx5-formats 1.8) and leaves the key as it was. */
static void expect_refused(const struct umr *umr, enum explain_rule rule)
{
	static uint8_t before[sizeof(struct mapping) + CAPACITY * sizeof(struct layout_entry)];
	const struct mapping *map = mkey_mapping(key);
	struct explain_record record;

	memcpy(before, map, sizeof(before));
	assert_int_equal(run(umr), MLX5_CQE_SYNDROME_MW_BIND_ERR);
	assert_ptr_equal(mkey_mapping(key), map);
	assert_memory_equal(before, map, sizeof(before));
	assert_true(explain_previous(device.hca, end.qp->number, 0, &record));
	assert_int_equal(record.rule, rule);
}

TEST(lengths)
{
	struct umr umr = configuring();

	expect_done(&umr);
	/* Shorter than its fixed parts, or than the length that it announces. */
	for (umr.length = 16; umr.length < FIXED + 64; umr.length += 16)
		expect_refused(&umr, RULE_UMR_SHORT);
	put(&umr, KLM_OCTOWORDS, 8, 2);
	expect_refused(&umr, RULE_UMR_SHORT);
	put(&umr, KLM_OCTOWORDS, 0xffff, 2);
	umr.length = MOST;
	expect_refused(&umr, RULE_UMR_SHORT);
	/* Block setup after the entries counts as well. */
	umr = configuring();
	put(&umr, BSF_OCTOWORDS, 4, 2);
	expect_refused(&umr, RULE_UMR_SHORT);
	umr.length += 64;
	expect_refused(&umr, RULE_UMR_BSF_CAPACITY);
	/* With a translation offset the same two bytes have another meaning (0: none). */
	umr = configuring();
	put(&umr, FLAGS, 0x90, 1);
	expect_done(&umr);
}

/* Writes @count entries of 16 bytes each, with lengths from @first on, at @offset of the device's memory. */
static void entries_at(uint32_t offset, uint32_t count, uint32_t first)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct mlx5_wqe_data_seg entry = data_segment(&device, 4096 + 64 * i, first + i);

		memcpy(device.memory + offset + i * 16, &entry, sizeof(entry));
	}
}

/* Without the inline flag: one segment that names the memory of the entries. */
static struct umr configuring_from(uint32_t lkey, uint64_t address, uint32_t named, uint32_t octowords)
{
	struct umr umr = configuring();

	put(&umr, FLAGS, 0, 1);
	put(&umr, KLM_OCTOWORDS, octowords, 2);
	put(&umr, PAYLOAD, named, 4);
	put(&umr, PAYLOAD + 4, lkey, 4);
	put(&umr, PAYLOAD + 8, address, 8);
	umr.length = FIXED + 16;
	return umr;
}

static void expect_entries(uint32_t count, uint32_t first)
{
	const struct mapping *map = mkey_mapping(key);
	uint64_t before = 0;

	assert_int_equal(map->form, LAYOUT_LIST);
	assert_int_equal(map->count, count);
	for (uint32_t i = 0; i < count; i++) {
		assert_int_equal(map->entries[i].bytes, first + i);
		assert_int_equal(map->entries[i].address, (uintptr_t)device.memory + 4096 + 64 * i);
		assert_int_equal(map->entries[i].before, before);
		before += first + i;
	}
	assert_int_equal(map->period, before);
}

TEST(entries_in_memory)
{
	const uint32_t region = mkey_number(device.region);
	const uintptr_t memory = (uintptr_t)device.memory;
	struct umr umr = configuring_from(region, memory + 1000, 64, 4);

	entries_at(1000, 8, 10);
	expect_done(&umr);
	expect_entries(4, 10);
	/* Later changes of that memory have no effect; memory beyond the needed part is not read. */
	entries_at(1000, 8, 500);
	expect_entries(4, 10);
	umr = configuring_from(region, memory + 1000, 192, 8);
	expect_done(&umr);
	expect_entries(8, 500);
	/* Too little memory, no segment, or inline after all. */
	umr = configuring_from(region, memory + 1000, 127, 8);
	expect_refused(&umr, RULE_UMR_NOT_INLINE);
	umr = configuring_from(region, memory + 1000, 0, 4);
	expect_refused(&umr, RULE_UMR_NOT_INLINE);
	umr = configuring_from(region, memory + 1000, 0x80000000 | 64, 4);
	expect_refused(&umr, RULE_UMR_NOT_INLINE);
	umr = configuring_from(region, memory + 1000, 64, 4);
	umr.length = FIXED;
	expect_refused(&umr, RULE_UMR_SHORT);
	/* Block setup is read from the same memory, after the entries. */
	put(&umr, BSF_OCTOWORDS, 4, 2);
	umr.length = FIXED + 16;
	expect_refused(&umr, RULE_UMR_NOT_INLINE);
	put(&umr, PAYLOAD, 128, 4);
	expect_refused(&umr, RULE_UMR_BSF_CAPACITY);
	/* Memory without read access. */
	umr = configuring_from(0xabcdef00, memory + 1000, 64, 4);
	expect_refused(&umr, RULE_KEY_UNKNOWN);
	umr = configuring_from(region, memory + sizeof(device.memory) - 63, 64, 4);
	expect_refused(&umr, RULE_KEY_RANGE);
	/* Without entries the flag has no effect. */
	umr = configuring_from(0, 0, 0, 0);
	umr.length = FIXED;
	expect_done(&umr);
}

/* The entries may be in a key with a layout; also in the key that is being configured. */
TEST(entries_through_a_key)
{
	struct umr umr = configuring();

	entries_at(2000, 4, 30);
	put(&umr, MASK, BIT(LEN) | BIT(FREE) | BIT(MKEY) | BIT(LR), 8);
	put(&umr, ACCESS, 0x04, 1);
	put(&umr, LENGTH, 64, 8);
	put(&umr, KLM_OCTOWORDS, 4, 2);
	put(&umr, PAYLOAD, 40, 4);
	put(&umr, PAYLOAD + 8, (uintptr_t)device.memory + 2000, 8);
	put(&umr, PAYLOAD + 16, 24, 4);
	put(&umr, PAYLOAD + 20, mkey_number(device.region), 4);
	put(&umr, PAYLOAD + 24, (uintptr_t)device.memory + 2040, 8);
	expect_done(&umr);
	umr = configuring_from(mkey_number(key), 0, 64, 4);
	expect_done(&umr);
	expect_entries(4, 30);
}

/*
 * Entries replaced one by one: the model is the table of an adapter, in which zeros mean no entry. An entry after a
 * missing one makes the table replaceable only as a whole.
 */
TEST(offsets)
{
	uint32_t table[CAPACITY] = {0}, random = 1, refused = 0, done = 0;

	for (int round = 0; round < 3000; round++) {
		uint32_t at, octowords, count = 0, next[CAPACITY];
		bool hole = false, gaps = false;
		const struct mapping *map;
		struct umr umr;

		random = random * 1664525 + 1013904223;
		at = (random >> 16) % (CAPACITY + 1);
		octowords = 1 + (random >> 20) % 4;
		if (round % 7 == 0) {
			at = 0;
			octowords = CAPACITY;
		}
		umr = configuring();
		umr.length = FIXED + octowords * 16;
		put(&umr, FLAGS, 0x90, 1);
		put(&umr, KLM_OCTOWORDS, octowords, 2);
		put(&umr, BSF_OCTOWORDS, at, 2);
		memcpy(next, table, sizeof(next));
		/* An offset of 0 replaces all entries. */
		if (!at)
			memset(next, 0, sizeof(next));
		for (uint32_t i = 0; i < octowords; i++) {
			bool none = (random >> (8 + i) & 7) == 0;
			uint32_t bytes = none ? 0 : (uint32_t)round * 8 + i + 1;

			put(&umr, PAYLOAD + i * 16, bytes, 4);
			put(&umr, PAYLOAD + i * 16 + 4, none ? 0 : mkey_number(device.region), 4);
			put(&umr, PAYLOAD + i * 16 + 8, i, 8);
			if (at + i < CAPACITY)
				next[at + i] = bytes;
		}
		for (uint32_t i = 0; i < CAPACITY; i++) {
			gaps |= table[i] && hole;
			hole |= !table[i];
		}
		if (at + octowords > CAPACITY) {
			expect_refused(&umr, RULE_UMR_CAPACITY);
			continue;
		}
		if (at && gaps) {
			expect_refused(&umr, RULE_UMR_OFFSET);
			refused++;
			continue;
		}
		expect_done(&umr);
		done++;
		memcpy(table, next, sizeof(table));
		map = mkey_mapping(key);
		for (uint32_t i = 0; i < CAPACITY; i++) {
			if (!table[i])
				continue;
			assert_true(count < map->count);
			assert_int_equal(map->entries[count++].bytes, table[i]);
		}
		assert_int_equal(map->count, count);
	}
	assert_true(refused > 100 && done > 500);
}

/* 48 bits of offset, of which 32 are in another place. */
TEST(far_offset)
{
	struct umr umr = configuring();

	put(&umr, FLAGS, 0x90, 1);
	for (int bit = 0; bit < 32; bit++) {
		put(&umr, 32, UINT64_C(1) << bit, 4);
		expect_refused(&umr, RULE_UMR_CAPACITY);
	}
	/* Without the flag they are not read. */
	put(&umr, FLAGS, 0x80, 1);
	expect_done(&umr);
}

TEST(capacity)
{
	struct umr umr = configuring();

	umr.length = FIXED + 12 * 16;
	put(&umr, KLM_OCTOWORDS, 8, 2);
	expect_done(&umr);
	put(&umr, KLM_OCTOWORDS, 12, 2);
	expect_refused(&umr, RULE_UMR_CAPACITY);
}

TEST(keys)
{
	struct umr umr = configuring();
	struct hca_mkey_attr attr = {.max_entries = CAPACITY};
	struct mkey *mine = key;
	struct hca_pd *other;

	put(&umr, IMM, 0xffffff00, 4);
	expect_refused(&umr, RULE_UMR_UNKNOWN);
	put(&umr, IMM, mkey_number(device.region), 4);
	expect_refused(&umr, RULE_UMR_NOT_ENABLED);
	assert_int_equal(hca_pd_alloc(device.context, &other), 0);
	assert_int_equal(hca_mkey_create(other, &attr, &key), 0);
	umr = configuring();
	expect_refused(&umr, RULE_KEY_DOMAIN);
	assert_int_equal(hca_mkey_destroy(key), 0);
	assert_int_equal(hca_pd_dealloc(other), 0);
	key = mine;
}

/* mlx5-formats 6, no. 35: a WQE names a live key by its tag, a free one by any tag. */
TEST(tags)
{
	struct umr umr = configuring();

	put(&umr, IMM, mkey_number(key) | 0x55, 4);
	put(&umr, QPN_TAG, 0xffffff33, 4);
	expect_done(&umr);
	assert_int_equal(mkey_number(key) & 0xff, 0x33);
	expect_refused(&umr, RULE_UMR_STALE);
	put(&umr, IMM, mkey_number(key), 4);
	expect_done(&umr);
	/* Not selected: the tag stays. */
	put(&umr, QPN_TAG, 0xffffff44, 4);
	put(&umr, MASK, BIT(LEN), 8);
	expect_done(&umr);
	assert_int_equal(mkey_number(key) & 0xff, 0x33);
}

/* mlx5-formats 6, no. 33 and 34. */
TEST(free_or_live)
{
	struct umr umr = configuring();

	put(&umr, FLAGS, 0x80 | 0x40, 1);
	expect_refused(&umr, RULE_UMR_FREE);
	put(&umr, FLAGS, 0x80 | 0x20, 1);
	expect_done(&umr);
	assert_false(mkey_mapping(key)->free);
	expect_refused(&umr, RULE_UMR_NOT_FREE);
	put(&umr, FLAGS, 0x80 | 0x40, 1);
	expect_done(&umr);
	/* Both at once are always refused. */
	put(&umr, FLAGS, 0x80 | 0x60, 1);
	expect_refused(&umr, RULE_UMR_NOT_FREE);
	/* Profile connectx: a freed key with its entries kept can be restored. Man: see clears_what_it_frees. */
	((struct settings *)hca_settings(hca_device(0)))->profile = PROFILE_CONNECTX;
	put(&umr, FLAGS, 0x80, 1);
	put(&umr, FREE, 0x40, 1);
	put(&umr, KLM_OCTOWORDS, 0, 2);
	put(&umr, MASK, BIT(FREE), 8);
	umr.length = FIXED;
	expect_done(&umr);
	assert_true(mkey_mapping(key)->free);
	put(&umr, FREE, 0, 1);
	expect_done(&umr);
	assert_false(mkey_mapping(key)->free);
	assert_int_equal(mkey_mapping(key)->length, 100);
	assert_int_equal(mkey_mapping(key)->count, 1);
	((struct settings *)hca_settings(hca_device(0)))->profile = PROFILE_MAN;
}

/* mlx5dv_wr_mkey_configure(3): an invalidation clears the configuration. */
TEST(clears_what_it_frees)
{
	struct umr umr = configuring();

	expect_done(&umr);
	assert_int_equal(mkey_mapping(key)->count, 1);
	put(&umr, FREE, 0x40, 1);
	put(&umr, KLM_OCTOWORDS, 0, 2);
	put(&umr, MASK, BIT(FREE), 8);
	umr.length = FIXED;
	expect_done(&umr);
	put(&umr, FREE, 0, 1);
	expect_done(&umr);
	assert_false(mkey_mapping(key)->free);
	assert_int_equal(mkey_mapping(key)->length, 0);
	assert_int_equal(mkey_mapping(key)->count, 0);
	assert_int_equal(mkey_mapping(key)->rights, RIGHT_LOCAL_READ);
}

TEST(queue_pairs)
{
	struct umr umr = configuring();

	put(&umr, MASK, BIT(LEN) | BIT(FREE) | BIT(QPN), 8);
	/* Any QP is accepted. */
	put(&umr, FLAGS, 0x80 | 0x08, 1);
	put(&umr, QPN_TAG, (uint64_t)end.qp->number << 8, 4);
	expect_done(&umr);
	assert_int_equal(mkey_mapping(key)->qpn, end.qp->number);
	expect_done(&umr);
	put(&umr, QPN_TAG, (uint64_t)(end.qp->number + 1) << 8, 4);
	expect_done(&umr);
	/* It belongs to another QP now. */
	expect_refused(&umr, RULE_KEY_OTHER_QP);
	/* NULL: the caller does not need it. */
	put(&umr, FLAGS, 0x80, 1);
	put(&umr, QPN_TAG, 0xffffff00, 4);
	expect_done(&umr);
}

/* Fields reserved for the kernel, and bits without a meaning: setting them would let a program leave its domain. */
TEST(masks)
{
	static const int allowed[] = {0, 6, 9, 12, 13, 14, 17, 18, 19, 20, 21, 23, 25, 26, 29};

	for (int bit = 0; bit < 64; bit++) {
		struct umr umr = configuring();
		bool good = false;

		for (size_t i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++)
			good |= allowed[i] == bit;
		put(&umr, MASK, BIT(LEN) | UINT64_C(1) << bit, 8);
		put(&umr, FLAGS_PD, 0x00ffffff, 4);
		if (good)
			expect_done(&umr);
		else
			expect_refused(&umr, RULE_UMR_MASK);
		assert_int_equal(mkey_mapping(key)->pd, hca_pd_number(device.pd));
	}
}

/* Each right has its own bit, in both directions. */
TEST(rights)
{
	static const struct {
		int mask;
		uint8_t access;
	} bits[] = {{LR_BIT, 0x04}, {LW_BIT, 0x08}, {RR_BIT, 0x10}, {RW_BIT, 0x20}, {A_BIT, 0x40}};

	for (int way = 0; way < 2; way++) {
		for (size_t i = 0; i < sizeof(bits) / sizeof(bits[0]); i++) {
			struct umr umr = configuring();
			uint8_t before = mkey_mapping(key)->rights;

			put(&umr, ACCESS, way ? (uint8_t)~bits[i].access : 0xff, 1);
			put(&umr, MASK, BIT(LEN) | UINT64_C(1) << bits[i].mask, 8);
			expect_done(&umr);
			assert_int_equal(mkey_mapping(key)->rights,
					 way ? before & ~bits[i].access : before | bits[i].access);
		}
	}
}

TEST(range)
{
	struct umr umr = configuring();

	put(&umr, START, UINT64_C(0x1122334455667788), 8);
	put(&umr, LENGTH, UINT64_C(0xffffffffffffffff), 8);
	expect_done(&umr);
	assert_int_equal(mkey_mapping(key)->start, 0);
	assert_int_equal(mkey_mapping(key)->length, UINT64_MAX);
	put(&umr, MASK, BIT(START), 8);
	put(&umr, LENGTH, 7, 8);
	expect_done(&umr);
	assert_int_equal(mkey_mapping(key)->start, UINT64_C(0x1122334455667788));
	assert_int_equal(mkey_mapping(key)->length, UINT64_MAX);
	/* Neither affects the entries. */
	assert_int_equal(mkey_mapping(key)->count, 1);
	assert_int_equal(mapping_translated(mkey_mapping(key)), 100);
}

int main(void)
{
	return run_cases(.setup = open_all, .teardown = close_all);
}
