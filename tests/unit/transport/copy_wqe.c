/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * MMO WQEs: the device copies local memory (mlx5-formats 1.14 and 4.9). Tests copies through all kinds of keys,
 * refusals, and that a refused WQE has written nothing.
 */
#include "test_case.h"

#include <sys/mman.h>

#include "../support/device_fixture.h"

#include "transport/control/commands.h"

enum { MMO = 0x2f, DMA = 1, FROM = 4096, TO = 32768, SHARED = 512, BLOCKS = 64 };

struct copy_wqe {
	struct mlx5_wqe_ctrl_seg ctrl;
	struct mlx5_wqe_data_seg opaque, source, destination;
};

static struct raw_cq cq;
static struct raw_qp end;
static const struct ibv_qp_attr defaults = {.rnr_retry = 7, .retry_cnt = 7, .min_rnr_timer = 1};
static uint8_t before[1 << 16];

/* Makes a QP that is connected to a number without a QP. */
static void make_end(enum ibv_qp_type type)
{
	raw_cq_make(&device, &cq, 256);
	raw_qp_make(&device, &end, type, &cq, BLOCKS);
	raw_qp_connect(&device, &end, 0xfffff0, &defaults);
	for (size_t i = 0; i < sizeof(device.memory); i++)
		device.memory[i] = (uint8_t)(i * 7 + i / 251);
	memcpy(before, device.memory, sizeof(before));
}

static int begin(void **state)
{
	(void)state;
	make_end(IBV_QPT_RC);
	return 0;
}

static int finish(void **state)
{
	(void)state;
	raw_qp_destroy(&end);
	raw_cq_destroy(&cq);
	return 0;
}

static struct copy_wqe copy(uint32_t from, uint32_t to, uint32_t length)
{
	struct copy_wqe wqe = {
		.ctrl = ctrl_segment(&end, MMO, 4),
		.opaque = data_segment(&device, 0, 0),
		.source = data_segment(&device, from, length),
		.destination = data_segment(&device, to, length),
	};

	wqe.ctrl.opmod_idx_opcode |= htobe32(DMA << 24);
	return wqe;
}

/* Executes the WQE: the next completion belongs to it, with @syndrome and, if that is an error, @rule. */
static void expect_copy(const struct copy_wqe *wqe, uint8_t syndrome, enum explain_rule rule)
{
	uint16_t index = end.posted;
	const struct mlx5_err_cqe *cqe;

	put_wqe(&end, wqe, 4, 1);
	ring(&end);
	cqe = raw_cq_poll(&cq);
	assert_non_null(cqe);
	assert_int_equal(cqe->op_own >> 4, syndrome ? MLX5_CQE_REQ_ERR : MLX5_CQE_REQ);
	assert_int_equal(be32toh(cqe->s_wqe_opcode_qpn), MMO << 24 | end.qp->number);
	assert_int_equal(be16toh(cqe->wqe_counter), index);
	if (syndrome) {
		assert_int_equal(cqe->syndrome, syndrome);
		assert_int_equal(cqe->vendor_err_synd, rule);
	}
	assert_null(raw_cq_poll(&cq));
}

/* Expects the old content of memory, with @length bytes of @from at @to. */
static void expect_moved(uint32_t from, uint32_t to, uint32_t length)
{
	memmove(before + to, before + from, length);
	assert_memory_equal(device.memory, before, sizeof(before));
}

/* ---- copies ------------------------------------------------------------------------------------------------------ */

TEST(lengths_and_places)
{
	for (uint32_t length = 1; length < 20000; length += 1 + length / 3) {
		for (uint32_t shift = 0; shift < 9; shift += 4) {
			struct copy_wqe wqe = copy(FROM + shift, TO + 8 - shift, length);

			expect_copy(&wqe, 0, RULE_NONE);
			expect_moved(FROM + shift, TO + 8 - shift, length);
		}
	}
	assert_int_equal(hca_qp_state(end.qp), IBV_QPS_RTS);
}

/* mlx5-formats 6, point 49: the result for overlapping ranges is undefined, but adjacent bytes do not change. */
TEST(overlap)
{
	struct copy_wqe wqe = copy(FROM, FROM + 100, 1000);

	expect_copy(&wqe, 0, RULE_NONE);
	assert_memory_equal(device.memory, before, FROM + 100);
	assert_memory_equal(device.memory + FROM + 1100, before + FROM + 1100, sizeof(before) - FROM - 1100);
}

/* The third word of the control segment, the opaque buffer: it is neither read nor written. */
TEST(opaque_is_not_used)
{
	struct copy_wqe wqe = copy(FROM, TO, 64);

	memset(&wqe.opaque, 0xff, sizeof(wqe.opaque));
	wqe.ctrl.imm = htobe32(0xdeadbeef);
	expect_copy(&wqe, 0, RULE_NONE);
	expect_moved(FROM, TO, 64);
}

static struct mkey *region(struct hca_pd *pd, uint32_t offset, uint32_t length, unsigned int access)
{
	struct hca_mr_attr attr = {.addr = device.memory + offset, .start = 0, .length = length, .access = access};
	struct mkey *key;

	assert_int_equal(hca_mr_register(pd, &attr, &key), 0);
	return key;
}

/* Makes a key for @count records of 24 bytes, 40 apart, from @offset on. */
static struct mkey *records(uint32_t offset, uint32_t count)
{
	struct hca_mkey_attr attr = {.max_entries = 4};
	struct mapping *map;
	struct mkey *key;

	assert_int_equal(hca_mkey_create(device.pd, &attr, &key), 0);
	map = mkey_edit(key);
	map->free = false;
	map->rights = RIGHT_LOCAL_READ | RIGHT_LOCAL_WRITE;
	map->form = LAYOUT_REPEAT;
	map->count = 1;
	map->repeat = count;
	map->period = 24;
	map->length = 24 * count;
	map->entries[0] = (struct layout_entry){.address = (uintptr_t)device.memory + offset,
						.bytes = 24,
						.stride = 40,
						.key = mkey_number(device.region)};
	mkey_publish(key, map);
	return key;
}

TEST(through_layouts)
{
	struct mkey *from = records(FROM, 100), *to = records(TO, 100);
	struct copy_wqe wqe = copy(0, 0, 2000);

	wqe.source.lkey = htobe32(mkey_number(from));
	wqe.source.addr = htobe64(7);
	wqe.destination.lkey = htobe32(mkey_number(to));
	wqe.destination.addr = htobe64(31);
	expect_copy(&wqe, 0, RULE_NONE);
	for (uint32_t i = 0; i < 2000; i++)
		before[TO + (i + 31) / 24 * 40 + (i + 31) % 24] = before[FROM + (i + 7) / 24 * 40 + (i + 7) % 24];
	assert_memory_equal(device.memory, before, sizeof(before));
	assert_int_equal(hca_mkey_destroy(from), 0);
	assert_int_equal(hca_mkey_destroy(to), 0);
}

/* A byte count of 0 is 2 GiB: from the null key to the null key, and one byte too many. */
TEST(two_gibibytes)
{
	const uint64_t length = UINT64_C(1) << 31;
	uint8_t *memory =
		mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct hca_mr_attr attr = {
		.kind = MR_ON_DEMAND, .addr = memory, .length = length - 1, .access = IBV_ACCESS_LOCAL_WRITE};
	struct hca_mr_attr null = {.kind = MR_NULL, .length = UINT64_MAX, .access = IBV_ACCESS_LOCAL_WRITE};
	struct copy_wqe wqe = copy(0, 0, 0);
	struct mkey *from, *to;

	assert_ptr_not_equal(memory, MAP_FAILED);
	assert_int_equal(hca_mr_register(device.pd, &null, &to), 0);
	wqe.source.lkey = wqe.destination.lkey = htobe32(mkey_number(to));
	expect_copy(&wqe, 0, RULE_NONE);
	wqe = copy(0, 0, 0);
	assert_int_equal(hca_mr_register(device.pd, &attr, &from), 0);
	wqe.source.lkey = htobe32(mkey_number(from));
	wqe.source.addr = 0;
	wqe.destination.lkey = htobe32(mkey_number(to));
	expect_copy(&wqe, MLX5_CQE_SYNDROME_LOCAL_PROT_ERR, RULE_KEY_RANGE);
	assert_int_equal(hca_mr_deregister(from), 0);
	assert_int_equal(hca_mr_deregister(to), 0);
	munmap(memory, length);
}

/* Copies execute in the order of the ring: in a chain, each copies the result of the one before. */
TEST(in_order)
{
	for (uint32_t i = 0; i < 20; i++) {
		struct copy_wqe wqe = copy(FROM + i * 64, FROM + (i + 1) * 64, 64);

		wqe.ctrl.fm_ce_se = i == 19 ? MLX5_WQE_CTRL_CQ_UPDATE : i % 2 ? MLX5_WQE_CTRL_FENCE : 0;
		put_wqe(&end, &wqe, 4, 1);
	}
	put_nop(&end);
	ring(&end);
	expect_cqe(&cq, 19, 0);
	expect_cqe(&cq, 20, 0);
	for (uint32_t i = 0; i < 20; i++)
		memcpy(before + FROM + (i + 1) * 64, before + FROM + i * 64, 64);
	assert_memory_equal(device.memory, before, sizeof(before));
}

/* ---- refused ----------------------------------------------------------------------------------------------------- */

static void expect_refused(const struct copy_wqe *wqe, uint8_t syndrome, enum explain_rule rule)
{
	expect_copy(wqe, syndrome, rule);
	assert_int_equal(hca_qp_state(end.qp), IBV_QPS_ERR);
	assert_memory_equal(device.memory, before, sizeof(before));
	raw_qp_connect(&device, &end, 0xfffff0, &defaults);
}

TEST(rights_and_ranges)
{
	struct mkey *read_only = region(device.pd, SHARED, 512, 0), *foreign;
	struct hca_pd *other;
	struct copy_wqe wqe;

	assert_int_equal(hca_pd_alloc(device.context, &other), 0);
	foreign = region(other, SHARED, 512, IBV_ACCESS_LOCAL_WRITE);
	/* Memory of a key without remote rights may be the source, … */
	wqe = copy(0, TO, 512);
	wqe.source.lkey = htobe32(mkey_number(read_only));
	wqe.source.addr = 0;
	expect_copy(&wqe, 0, RULE_NONE);
	expect_moved(SHARED, TO, 512);
	/* … but not the target; ranges beyond its end, keys of another domain and missing keys are refused. */
	wqe = copy(FROM, 0, 512);
	wqe.destination.lkey = htobe32(mkey_number(read_only));
	wqe.destination.addr = 0;
	expect_refused(&wqe, MLX5_CQE_SYNDROME_LOCAL_PROT_ERR, RULE_KEY_RIGHTS);
	wqe = copy(0, TO, 513);
	wqe.source.lkey = htobe32(mkey_number(read_only));
	wqe.source.addr = 0;
	expect_refused(&wqe, MLX5_CQE_SYNDROME_LOCAL_PROT_ERR, RULE_KEY_RANGE);
	for (int which = 0; which < 2; which++) {
		wqe = copy(FROM, TO, 16);
		(which ? &wqe.source : &wqe.destination)->lkey = htobe32(mkey_number(foreign));
		(which ? &wqe.source : &wqe.destination)->addr = 0;
		expect_refused(&wqe, MLX5_CQE_SYNDROME_LOCAL_PROT_ERR, RULE_KEY_DOMAIN);
		(which ? &wqe.source : &wqe.destination)->lkey = htobe32(0xabcdef00);
		expect_refused(&wqe, MLX5_CQE_SYNDROME_LOCAL_PROT_ERR, RULE_KEY_UNKNOWN);
	}
	wqe = copy(FROM, sizeof(device.memory) - 100, 101);
	expect_refused(&wqe, MLX5_CQE_SYNDROME_LOCAL_PROT_ERR, RULE_KEY_RANGE);
	assert_int_equal(hca_mr_deregister(read_only), 0);
	assert_int_equal(hca_mr_deregister(foreign), 0);
	assert_int_equal(hca_pd_dealloc(other), 0);
}

TEST(malformed)
{
	struct copy_wqe wqe;

	for (uint32_t opmod = 0; opmod < 256; opmod++) {
		if (opmod == DMA)
			continue;
		wqe = copy(FROM, TO, 64);
		wqe.ctrl.opmod_idx_opcode = htobe32(opmod << 24 | (uint32_t)end.posted << 8 | MMO);
		expect_refused(&wqe, MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR, RULE_MMO_OPERATION);
	}
	for (uint32_t units = 1; units < 4; units++) {
		wqe = copy(FROM, TO, 64);
		wqe.ctrl.qpn_ds = htobe32(end.qp->number << 8 | units);
		expect_refused(&wqe, MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR, RULE_WQE_SHORT);
	}
	for (int which = 0; which < 2; which++) {
		wqe = copy(FROM, TO, 64);
		(which ? &wqe.source : &wqe.destination)->byte_count = htobe32(0x80000000 | 8);
		expect_refused(&wqe, MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR, RULE_MMO_INLINE);
		wqe = copy(FROM, TO, 64);
		(which ? &wqe.source : &wqe.destination)->byte_count = htobe32(which ? 63 : 0);
		expect_refused(&wqe, MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR, RULE_MMO_LENGTHS);
	}
}

TEST(not_on_other_types)
{
	static const enum ibv_qp_type types[] = {IBV_QPT_UC, IBV_QPT_UD};

	for (size_t i = 0; i < 2; i++) {
		struct copy_wqe wqe;

		finish(NULL);
		make_end(types[i]);
		wqe = copy(FROM, TO, 64);
		expect_copy(&wqe, MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR, RULE_WQE_OPCODE_TRANSPORT);
		assert_int_equal(hca_qp_state(end.qp), IBV_QPS_SQE);
		assert_memory_equal(device.memory, before, sizeof(before));
	}
}

/* Earlier requests that are not acknowledged yet complete before the copy; a fence waits for them. */
TEST(completes_in_order)
{
	const struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
	struct copy_wqe wqe;

	put_rdma(&device, &end, MLX5_OPCODE_RDMA_READ, 0, 8192, 8); /* has no peer */
	wqe = copy(FROM, TO, 64);
	put_wqe(&end, &wqe, 4, 1);
	wqe = copy(FROM, TO + 64, 64);
	wqe.ctrl.fm_ce_se |= MLX5_WQE_CTRL_FENCE;
	put_wqe(&end, &wqe, 4, 1);
	ring(&end);
	assert_null(raw_cq_poll(&cq));
	/* The first copy was made, the second waits for the READ. */
	expect_moved(FROM, TO, 64);
	assert_int_equal(hca_qp_modify(end.qp, &error, IBV_QP_STATE), 0);
	for (uint16_t i = 0; i < 3; i++)
		expect_cqe(&cq, i, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
	assert_memory_equal(device.memory, before, sizeof(before));
}

int main(void)
{
	return run_cases(.setup = begin, .teardown = finish, .group_setup = device_group_open,
			 .group_teardown = device_group_close);
}
