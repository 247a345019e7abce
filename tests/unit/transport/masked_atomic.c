/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Masked and extended atomics (mlx5-formats 1.5): WQEs of every form against a model that works bit by bit, on memory in
 * one word and in pieces; and malformed WQEs. On a wire: each is executed once, however often it is sent.
 */
#include "test_case.h"

#include "mkey/umr.h"
#include "../support/wire_fixture.h"
#include "test_random.h"

enum { MASKED_CS = 0x14, MASKED_FA = 0x15, TARGET = HALF + 256, RESULT = 512 };

/* Returns a mask with few bits, many bits, all, none, or any. */
static uint64_t random_mask(void)
{
	switch (random64() % 6) {
	case 0:
		return 0;
	case 1:
		return UINT64_MAX;
	case 2:
		return random64() & random64() & random64();
	case 3:
		return random64() | random64() | random64();
	case 4:
		return UINT64_C(0x8080808080808080);
	default:
		return random64();
	}
}

/* ---- the model -------------------------------------------------------------------------------------------------- */

struct operation {
	uint8_t opcode, opmod;
	uint32_t bytes; /* of an operand */
	uint64_t value, compare, value_mask, compare_mask;
};

/* Adds from the lowest bit up: a carry ends at a bit that is set in the boundary. */
static uint64_t model_add(uint64_t before, uint64_t value, uint64_t boundary, uint32_t bits)
{
	uint64_t sum = 0;
	unsigned int carry = 0;

	for (uint32_t bit = 0; bit < bits; bit++) {
		unsigned int total = (before >> bit & 1) + (value >> bit & 1) + carry;

		sum |= (uint64_t)(total & 1) << bit;
		carry = boundary >> bit & 1 ? 0 : total >> 1;
	}
	return sum;
}

static uint64_t model_swap(const struct operation *operation, uint64_t before, uint32_t bits)
{
	uint64_t after = 0;

	for (uint32_t bit = 0; bit < bits; bit++) {
		if (operation->compare_mask >> bit & 1 && (before >> bit & 1) != (operation->compare >> bit & 1))
			return before;
		after |= (operation->value_mask >> bit & 1 ? operation->value >> bit & 1 : before >> bit & 1) << bit;
	}
	return after;
}

static uint64_t model(const struct operation *operation, uint64_t before)
{
	uint32_t bits = operation->bytes * 8;

	if (operation->opcode == MASKED_FA)
		return model_add(before, operation->value, operation->value_mask, bits);
	return model_swap(operation, before, bits);
}

/* ---- WQEs ------------------------------------------------------------------------------------------------------- */

static uint8_t *put_operand(uint8_t *at, uint64_t value, uint32_t bytes)
{
	for (uint32_t i = bytes; i-- > 0;)
		*at++ = (uint8_t)(value >> 8 * i);
	return at;
}

/* Writes the operand segments of @operation at @at; returns their units of 16 bytes. */
static uint32_t put_operands(uint8_t *at, const struct operation *operation)
{
	uint8_t *start = at;
	uint32_t bytes = operation->bytes;

	at = put_operand(at, operation->value, bytes);
	if (operation->opcode == MASKED_CS) {
		at = put_operand(at, operation->compare, bytes);
		at = put_operand(at, operation->value_mask, bytes);
		at = put_operand(at, operation->compare_mask, bytes);
	} else if (operation->opmod) {
		at = put_operand(at, operation->value_mask, bytes);
	} else {
		/* The comparison fields are ignored. */
		at = put_operand(at, random64(), bytes);
		at = put_operand(at, operation->value_mask, bytes);
		at = put_operand(at, random64(), bytes);
	}
	return (uint32_t)(at - start + 15) / 16;
}

static void put_atomic(const struct operation *operation, uint32_t rkey, uint64_t address, uint32_t result_bytes)
{
	struct mlx5_wqe_raddr_seg remote = {.raddr = htobe64(address), .rkey = htobe32(rkey)};
	struct mlx5_wqe_data_seg data = data_segment(&device, RESULT, result_bytes);
	struct mlx5_wqe_ctrl_seg ctrl;
	uint8_t wqe[8 * 16] = {0};
	uint32_t units = 2;

	memcpy(wqe + 16, &remote, 16);
	units += put_operands(wqe + 32, operation);
	memcpy(wqe + 16 * units++, &data, 16);
	ctrl = ctrl_segment(&client, operation->opcode, units);
	ctrl.opmod_idx_opcode |= htobe32((uint32_t)operation->opmod << 24);
	memcpy(wqe, &ctrl, sizeof(ctrl));
	put_wqe(&client, wqe, units, (units + 3) / 4);
}

static struct operation draw(void)
{
	static const struct {
		uint8_t opmod, bytes;
	} forms[] = {{0, 8}, {8, 4}, {9, 8}};
	uint32_t form = random64() % 3;
	struct operation operation = {
		.opcode = random64() & 1 ? MASKED_CS : MASKED_FA,
		.opmod = forms[form].opmod,
		.bytes = forms[form].bytes,
		.value = random64(),
		.compare = random64(),
		.value_mask = random_mask(),
		.compare_mask = random_mask(),
	};
	uint64_t all = operation.bytes == 4 ? UINT32_MAX : UINT64_MAX;

	operation.value &= all;
	operation.compare &= all;
	operation.value_mask &= all;
	operation.compare_mask &= all;
	return operation;
}

static uint32_t region_key(void)
{
	return mkey_number(device.region);
}

static uint64_t load(uint32_t offset, uint32_t bytes)
{
	uint32_t narrow;
	uint64_t wide;

	if (bytes == 4)
		return memcpy(&narrow, device.memory + offset, 4), narrow;
	return memcpy(&wide, device.memory + offset, 8), wide;
}

static void patient(void)
{
	struct ibv_qp_attr options = wire_options();

	wire_connect(&options, NULL, NULL);
}

/* ---- execution -------------------------------------------------------------------------------------------------- */

/* Runs one operation. Half of the time the compared bits are taken from memory, so that the compare succeeds. */
static void run_one(uint32_t rkey, uint64_t address, uint32_t offset)
{
	struct operation operation = draw();
	uint64_t before = load(offset, operation.bytes), expected;
	uint8_t around[32];
	uint16_t index = client.posted;

	if (random64() & 1)
		operation.compare = before ^ (operation.compare & ~operation.compare_mask);
	expected = model(&operation, before);
	memcpy(around, device.memory + offset - 8, 32);
	memset(device.memory + RESULT - 4, 0x5c, 16);
	put_atomic(&operation, rkey, address, operation.bytes);
	ring(&client);
	wire_settle();
	expect_cqe(&client_cq, index, 0);
	assert_int_equal(load(offset, operation.bytes), expected);
	assert_int_equal(load(RESULT, operation.bytes), before);
	/* No byte next to the result or the target has changed. */
	for (uint32_t i = operation.bytes; i < 12; i++)
		assert_int_equal(device.memory[RESULT + i], 0x5c);
	assert_int_equal(load(RESULT - 4, 4), 0x5c5c5c5c);
	assert_memory_equal(device.memory + offset - 8, around, 8);
	assert_memory_equal(device.memory + offset + operation.bytes, around + 8 + operation.bytes,
			    24 - operation.bytes);
}

TEST(random_operands)
{
	patient();
	for (int i = 0; i < 20000; i++)
		run_one(region_key(), (uintptr_t)device.memory + TARGET + i % 16 * 8, TARGET + i % 16 * 8);
	expect_no_more();
}

/* Earlier WQEs moved the producer to any place: these straddle the end of the ring. */
TEST(over_the_end_of_the_ring)
{
	for (uint16_t start = BLOCKS - 3; start < BLOCKS; start++) {
		patient();
		for (uint16_t i = 0; i < start; i++)
			put_nop(&client);
		ring(&client);
		for (uint16_t i = 0; i < start; i++)
			expect_cqe(&client_cq, i, 0);
		for (int i = 0; i < 50; i++)
			run_one(region_key(), (uintptr_t)device.memory + TARGET, TARGET);
	}
}

/* Four bytes need an address divisible by four, eight bytes one divisible by eight. */
TEST(alignment)
{
	for (uint32_t bytes = 4; bytes <= 8; bytes += 4) {
		for (uint32_t offset = 0; offset < 8; offset++) {
			struct operation add = {MASKED_FA, bytes == 4 ? 8 : 9, bytes, 1, 0, 0, 0};
			bool fits = offset % bytes == 0;
			uint64_t before;

			patient();
			before = load(TARGET + offset, bytes);
			put_atomic(&add, region_key(), (uintptr_t)device.memory + TARGET + offset, bytes);
			ring(&client);
			wire_settle();
			expect_cqe(&client_cq, 0, fits ? 0 : MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR);
			assert_int_equal(load(TARGET + offset, bytes), model_add(before, fits, 0, bytes * 8));
		}
	}
}

/* A key with a layout that splits the word in two: no instruction can do it, the device can. */
TEST(in_pieces)
{
	struct hca_mkey_attr attr = {.max_entries = 4};
	struct mkey *key;
	struct mapping *map;

	patient();
	assert_int_equal(hca_mkey_create(device.pd, &attr, &key), 0);
	map = mkey_edit(key);
	map->free = false;
	map->rights = RIGHT_ATOMIC | RIGHT_LOCAL_READ | RIGHT_LOCAL_WRITE;
	map->form = LAYOUT_LIST;
	map->count = 2;
	map->period = map->length = 16;
	map->entries[0] = (struct layout_entry){
		.address = (uintptr_t)device.memory + TARGET + 1, .bytes = 3, .key = region_key()};
	map->entries[1] = (struct layout_entry){
		.address = (uintptr_t)device.memory + TARGET + 4, .bytes = 13, .before = 3, .key = region_key()};
	mkey_publish(key, map);
	for (int i = 0; i < 2000; i++)
		run_one(mkey_number(key), 0, TARGET + 1);
	assert_int_equal(hca_mkey_destroy(key), 0);
}

/* ---- refused ---------------------------------------------------------------------------------------------------- */

static void expect_refused(const struct operation *operation, uint32_t rkey, uint32_t result_bytes, uint8_t syndrome,
			   enum explain_rule rule)
{
	uint64_t before = load(TARGET, 8);
	const struct mlx5_err_cqe *cqe;

	put_atomic(operation, rkey, (uintptr_t)device.memory + TARGET, result_bytes);
	put_nop(&client);
	ring(&client);
	wire_settle();
	cqe = raw_cq_poll(&client_cq);
	assert_non_null(cqe);
	assert_int_equal(cqe->op_own >> 4, MLX5_CQE_REQ_ERR);
	assert_int_equal(cqe->syndrome, syndrome);
	assert_int_equal(cqe->vendor_err_synd, rule);
	assert_non_null(cqe = raw_cq_poll(&client_cq));
	assert_int_equal(cqe->syndrome, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
	assert_int_equal(hca_qp_state(client.qp), IBV_QPS_ERR);
	assert_int_equal(load(TARGET, 8), before);
}

TEST(widths_that_there_are_not)
{
	for (uint32_t opmod = 1; opmod < 256; opmod++) {
		struct operation add = {MASKED_FA, (uint8_t)opmod, 8, 1, 0, 0, 0};

		if (opmod == 8 || opmod == 9)
			continue;
		patient();
		add.opcode = opmod & 1 ? MASKED_FA : MASKED_CS;
		expect_refused(&add, region_key(), 8, MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR, RULE_ATOMIC_OPERANDS);
	}
}

TEST(length_of_the_result)
{
	for (uint32_t bytes = 0; bytes <= 16; bytes++) {
		struct operation wide = {MASKED_CS, 9, 8, 1, 2, 3, 4}, narrow = {MASKED_CS, 8, 4, 1, 2, 3, 4};

		patient();
		if (bytes != 8)
			expect_refused(&wide, region_key(), bytes, MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR,
				       RULE_ATOMIC_LENGTH);
		patient();
		if (bytes != 4)
			expect_refused(&narrow, region_key(), bytes, MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR,
				       RULE_ATOMIC_LENGTH);
	}
}

/* Over a wire the requester learns only the kind of refusal. */
TEST(rights)
{
	const struct operation add = {MASKED_FA, 8, 4, 1, 0, 0, 0};
	struct hca_mr_attr attr = {.addr = device.memory,
				   .start = (uintptr_t)device.memory,
				   .length = sizeof(device.memory),
				   .access = ALL_ACCESS & ~IBV_ACCESS_REMOTE_ATOMIC};
	struct mkey *key;

	assert_int_equal(hca_mr_register(device.pd, &attr, &key), 0);
	patient();
	expect_refused(&add, mkey_number(key), 4, MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR, RULE_NAK_REMOTE_ACCESS);
	assert_int_equal(hca_mr_deregister(key), 0);
	patient();
	server.qp->attr.qp_access_flags &= ~IBV_ACCESS_REMOTE_ATOMIC;
	expect_refused(&add, region_key(), 4, MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR, RULE_NAK_INVALID_REQUEST);
	patient();
	server.qp->attr.max_dest_rd_atomic = 0;
	expect_refused(&add, region_key(), 4, MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR, RULE_NAK_INVALID_REQUEST);
}

/* Truncated after any unit. */
TEST(too_short)
{
	for (uint32_t units = 1; units < 5; units++) {
		struct operation swap = {MASKED_CS, 0, 8, 1, 2, 3, 4};
		uint16_t index;

		patient();
		index = client.posted;
		put_atomic(&swap, region_key(), (uintptr_t)device.memory + TARGET, 8);
		client.sq[index % BLOCKS * 64 + 7] = (uint8_t)units;
		client.posted = (uint16_t)(index + (units + 3) / 4);
		ring(&client);
		/* With all operands, but without room for the result, its length is wrong. */
		expect_cqe(&client_cq, index,
			   units < 4 ? MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR : MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR);
	}
}

/* ---- on a wire -------------------------------------------------------------------------------------------------- */

/* Loses the requests and answers selected by the bits of the argument; they are resent until one gets through. */
static enum wire_verdict lose_some(void *argument, uint64_t number, const struct wire_packet *packet)
{
	const uint32_t *lost = argument;

	(void)packet;
	return number <= 32 && *lost >> (number - 1) & 1 ? WIRE_DROP : WIRE_PASS;
}

TEST(executed_once)
{
	struct ibv_qp_attr options = wire_options();

	for (uint32_t lost = 0; lost < 64; lost++) {
		struct operation add = {MASKED_FA, lost & 1 ? 8 : 9, lost & 1 ? 4 : 8, 3, 0, 0, 0};
		uint64_t before[2];

		wire_connect(&options, lose_some, &lost);
		before[0] = load(TARGET, add.bytes);
		for (int i = 0; i < 3; i++)
			put_atomic(&add, region_key(), (uintptr_t)device.memory + TARGET, add.bytes);
		ring(&client);
		wire_settle();
		for (uint16_t i = 0; i < 3; i++)
			expect_cqe(&client_cq, i, 0);
		before[1] = add.bytes == 4 ? (uint32_t)before[0] + 9u : before[0] + 9;
		assert_int_equal(load(TARGET, add.bytes), before[1]);
		/* All three wrote their answer to the same place. */
		assert_int_equal(load(RESULT, add.bytes), add.bytes == 4 ? (uint32_t)before[0] + 6u : before[0] + 6);
	}
}

int main(void)
{
	return run_cases(.group_setup = wire_open, .group_teardown = wire_close);
}
