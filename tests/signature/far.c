/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Offsets far into a key: block numbers beyond 16 bits, places in memory up to the longest key with a signature (2^32 -
 * 1 bytes, mlx5-formats 4.5) and beyond that on the wire. Nested keys map one region repeatedly, so the expected data is
 * a formula.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../model/link.h"
#include "world.h"

#define MIB (UINT64_C(1) << 20)
#define KEY_BYTES UINT64_C(0xffffffff)

enum { ENTRIES = 24, BLOCK = 512, TUPLE = 8, EXTENDED = BLOCK + TUPLE };

static struct world world;
static struct mlx5dv_mkey *inner, *middle;
static unsigned int checks;

static const struct domain none = {.kind = KIND_NONE};
static const struct domain t10 = {KIND_T10, BLOCK, GUARD_T10_CRC, true, 0x5678, 0xfffffff0, true, false, false};

static const uint64_t numbers[] = {0, 1, 65534, 65535, 65536, 65537, 0x3ffffe, 0x3fffff, 0x400000, 0x400001, 0x7e0000};

/* Lays out @count entries of the key, the last one with @last bytes. */
static void lay(struct mlx5dv_mkey *mkey, uint32_t lkey, uint64_t address, uint32_t bytes, uint32_t last,
		uint16_t count, const struct mlx5dv_sig_block_attr *signature)
{
	struct real_qp *real = &world.qp[RC][TARGET];
	struct mlx5dv_mkey_conf_attr attr = {0};
	struct ibv_sge sge[ENTRIES];
	int error;

	for (uint16_t i = 0; i < count; i++)
		sge[i] = (struct ibv_sge){.addr = address, .length = i + 1 < count ? bytes : last, .lkey = lkey};
	ibv_wr_start(real->ex);
	real->ex->wr_flags = IBV_SEND_INLINE;
	mlx5dv_wr_mkey_configure(real->dv, mkey, signature ? 3 : 2, &attr);
	mlx5dv_wr_set_mkey_access_flags(real->dv,
					IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
	mlx5dv_wr_set_mkey_layout_list(real->dv, count, sge);
	if (signature)
		mlx5dv_wr_set_mkey_sig_block(real->dv, signature);
	error = ibv_wr_complete(real->ex);
	if (error)
		world_fail("ibv_wr_complete: %s", strerror(error));
}

/* 24 x 24 MiB are 576 MiB; at most seven of these and 64 MiB less a byte fit. */
static void lay_out(const struct domain *memory, const struct domain *wire, uint8_t check)
{
	struct mlx5dv_sig_t10dif tuple = {
		.bg_type = MLX5DV_SIG_T10DIF_CRC,
		.bg = 0xffff,
		.app_tag = t10.app,
		.ref_tag = t10.ref,
		.flags = MLX5DV_SIG_T10DIF_FLAG_REF_REMAP,
	};
	struct mlx5dv_sig_block_domain domain = {
		.sig_type = MLX5DV_SIG_TYPE_T10DIF, .sig.dif = &tuple, .block_size = MLX5DV_BLOCK_SIZE_512};
	struct mlx5dv_sig_block_attr attr = {
		.mem = memory->kind ? &domain : NULL, .wire = wire->kind ? &domain : NULL, .check_mask = check};
	uint32_t most = (uint32_t)(ENTRIES * ENTRIES * MIB);
	uint16_t count = (uint16_t)(KEY_BYTES / most);

	lay(inner, world.mr[TARGET]->lkey, (uintptr_t)world.memory[TARGET], MIB, MIB, ENTRIES, NULL);
	lay(middle, inner->lkey, 0, ENTRIES * MIB, ENTRIES * MIB, ENTRIES, NULL);
	lay(world.key[TARGET][0], middle->lkey, 0, most, (uint32_t)(KEY_BYTES - (uint64_t)count * most),
	    (uint16_t)(count + 1), &attr);
}

static enum ibv_wc_status request(enum ibv_wr_opcode opcode, uint64_t at, uint32_t bytes)
{
	struct ibv_sge sge = {.addr = (uintptr_t)world.memory[SOURCE], .length = bytes, .lkey = world.mr[SOURCE]->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = opcode,
				 .send_flags = IBV_SEND_SIGNALED,
				 .wr.rdma = {.remote_addr = at, .rkey = world.key[TARGET][0]->rkey}},
			   *bad;
	struct ibv_wc wc;
	int error = ibv_post_send(world.qp[RC][SOURCE].qp, &wr, &bad), got;

	if (error)
		world_fail("ibv_post_send: %s", strerror(error));
	do {
		got = ibv_poll_cq(ibv_cq_ex_to_cq(world.cq[SOURCE_SEND]), 1, &wc);
	} while (!got);
	if (got < 0)
		world_fail("ibv_poll_cq: %d", got);
	if (wc.status)
		world_reconnect(&world, RC);
	else
		world_expect_idle(&world, TARGET_RECEIVE);
	return wc.status;
}

static void must_succeed(enum ibv_wr_opcode opcode, uint64_t at, uint32_t bytes)
{
	enum ibv_wc_status status = request(opcode, at, bytes);

	if (status)
		world_fail("%u bytes at %lu: %s", bytes, at, ibv_wc_status_str(status));
}

static void expect_error(enum mlx5dv_mkey_err_type type, uint64_t actual, uint64_t expected, uint64_t offset)
{
	struct mlx5dv_mkey_err error;

	if (mlx5dv_mkey_check(world.key[TARGET][0], &error))
		world_fail("mlx5dv_mkey_check fails");
	checks++;
	if (error.err_type != type)
		world_fail("error %d in place of %d, at %lu", error.err_type, type, offset);
	if (type && (error.err.sig.actual_value != actual || error.err.sig.expected_value != expected ||
		     error.err.sig.offset != offset))
		world_fail("actual %lx, expected %lx, offset %lu; not %lx, %lx, %lu", error.err.sig.actual_value,
			   error.err.sig.expected_value, error.err.sig.offset, actual, expected, offset);
}

static void expect_bytes(const uint8_t *is, const uint8_t *expected, size_t bytes, uint64_t number)
{
	for (size_t i = 0; i < bytes; i++)
		if (is[i] != expected[i])
			world_fail("block %lu: byte %zu is %02x, not %02x", number, i, is[i], expected[i]);
}

/* Returns byte @at of the memory of the key. */
static uint8_t *memory_at(uint64_t at)
{
	return &world.memory[TARGET][at % MIB];
}

static void stir(uint8_t *bytes, size_t count, unsigned int seed)
{
	for (size_t i = 0; i < count; i++)
		bytes[i] = (uint8_t)((i * 2654435761u + seed) >> 11);
}

/* Checks the fields generated for the wire. */
static void reads_far(uint64_t number)
{
	uint8_t expected[2 * EXTENDED];

	for (uint64_t i = 0; i < 2; i++) {
		for (uint64_t b = 0; b < BLOCK; b++)
			expected[i * EXTENDED + b] = *memory_at((number + i) * BLOCK + b);
		field_make(&t10, expected + i * EXTENDED, number + i, expected + i * EXTENDED + BLOCK);
	}
	must_succeed(IBV_WR_RDMA_READ, number * EXTENDED, sizeof(expected));
	expect_bytes(world.memory[SOURCE], expected, sizeof(expected), number);
	/* From the middle of the first block on: the same bytes. */
	must_succeed(IBV_WR_RDMA_READ, number * EXTENDED + 100, sizeof(expected) - 100);
	expect_bytes(world.memory[SOURCE], expected + 100, sizeof(expected) - 100, number);
}

/* Checks the verification of fields that come from the wire. */
static void writes_far(uint64_t number)
{
	uint8_t *block = world.memory[SOURCE], data[BLOCK];
	uint64_t right = (uint32_t)(t10.ref + number), wrong = (uint32_t)(right - 65536);

	stir(block, BLOCK, (unsigned int)number);
	field_make(&t10, block, number, block + BLOCK);
	memcpy(data, block, BLOCK);
	must_succeed(IBV_WR_RDMA_WRITE, number * EXTENDED, EXTENDED);
	expect_error(MLX5DV_MKEY_NO_ERR, 0, 0, 0);
	for (uint64_t b = 0; b < BLOCK; b++)
		expect_bytes(memory_at(number * BLOCK + b), data + b, 1, number);
	/* The tag that a block number of 16 bits would give. */
	field_make(&t10, block, (uint32_t)(number - 65536), block + BLOCK);
	must_succeed(IBV_WR_RDMA_WRITE, number * EXTENDED, EXTENDED);
	expect_error(MLX5DV_MKEY_SIG_BLOCK_BAD_REFTAG, right, wrong, 0);
	lay_out(&none, &t10, 0xff);
}

/* Checks the verification of fields in memory; their content is not the tag of this block. */
static void checks_far(uint64_t number)
{
	uint64_t field = number * EXTENDED + BLOCK, found = 0;

	for (uint64_t i = 0; i < 4; i++)
		found = found << 8 | *memory_at(field + 4 + i);
	lay_out(&t10, &none, 0x0f);
	must_succeed(IBV_WR_RDMA_READ, number * BLOCK, BLOCK);
	expect_error(MLX5DV_MKEY_SIG_BLOCK_BAD_REFTAG, (uint32_t)(t10.ref + number), found, 0);
}

/* Accesses up to the last byte work, and not beyond. */
static void ends_where_it_ends(void)
{
	uint64_t last = KEY_BYTES / BLOCK - 1, tail = (last + 1) * EXTENDED;
	uint32_t rest = KEY_BYTES % BLOCK;

	lay_out(&none, &t10, 0xff);
	reads_far(last - 1);
	must_succeed(IBV_WR_RDMA_READ, tail, rest);
	if (request(IBV_WR_RDMA_READ, tail, rest + 1) != IBV_WC_REM_ACCESS_ERR)
		world_fail("a byte beyond the key is read");
	if (request(IBV_WR_RDMA_READ, UINT64_MAX - 5, 4) != IBV_WC_REM_ACCESS_ERR)
		world_fail("the end of all addresses is read");
}

int main(void)
{
	setenv("SOFTHCA_PROFILE", "man", 1);
	link_open(0);
	world_open(&world);
	inner = world.under[TARGET];
	middle = world.over[TARGET];
	stir(world.memory[TARGET], REGION, 12345);
	lay_out(&none, &t10, 0xff);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		reads_far(numbers[i]);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		writes_far(numbers[i]);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		checks_far(numbers[i] < KEY_BYTES / EXTENDED ? numbers[i] : KEY_BYTES / EXTENDED - 1);
	ends_where_it_ends();
	world_close(&world);
	printf("%u checks of keys, blocks up to %lu\n", checks, KEY_BYTES / BLOCK - 1);
	return 0;
}
