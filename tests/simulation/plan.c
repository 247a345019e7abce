/* SPDX-License-Identifier: BSD-2-Clause */
/* Expected results of a plan, see plan.h. */
#include "plan.h"

#include <stdio.h>
#include <string.h>
#include <infiniband/mlx5dv.h>

#include "process/commands.h"
#include "opcodes.h"

bool plan_is_reliable(const struct plan *plan)
{
	return plan->type != IBV_QPT_UC && plan->type != IBV_QPT_UD;
}

bool opcode_is_masked(uint8_t opcode)
{
	return opcode == OPCODE_MASKED_CS || opcode == OPCODE_MASKED_FA;
}

bool opcode_is_atomic(uint8_t opcode)
{
	return opcode == MLX5_OPCODE_ATOMIC_CS || opcode == MLX5_OPCODE_ATOMIC_FA || opcode_is_masked(opcode);
}

bool opcode_is_rdma(uint8_t opcode)
{
	return opcode == MLX5_OPCODE_RDMA_WRITE || opcode == MLX5_OPCODE_RDMA_WRITE_IMM ||
	       opcode == MLX5_OPCODE_RDMA_READ;
}

bool opcode_is_send(uint8_t opcode)
{
	return opcode == MLX5_OPCODE_SEND || opcode == MLX5_OPCODE_SEND_IMM || opcode == MLX5_OPCODE_SEND_INVAL;
}

bool opcode_takes_receive(uint8_t opcode)
{
	return opcode_is_send(opcode) || opcode == MLX5_OPCODE_RDMA_WRITE_IMM;
}

uint32_t request_wire_bytes(const struct request *request)
{
	return request->keys == KEYS_SIGNATURE ? request->length / BLOCK * (BLOCK + FIELD) : request->length;
}

/* IBTA table 45, in units of 10 us. */
uint64_t rnr_ns(uint8_t code)
{
	static const uint32_t tens[32] = {65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,   32,
					  48,    64,   96,   128,  192,  256,   384,   512,   768,   1024, 1536,
					  2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};

	return tens[code] * UINT64_C(10000);
}

const uint8_t *plan_memory(int end)
{
	static uint8_t memory[ENDS][MEMORY];
	uint32_t state = 12345;

	if (!memory[0][MEMORY - 1]) {
		for (uint32_t i = 0; i < ENDS * MEMORY; i++) {
			state = state * 1664525 + 1013904223;
			memory[i / MEMORY][i % MEMORY] = (uint8_t)(state >> 24);
		}
		for (int e = 0; e < ENDS; e++) {
			for (int remote = 0; remote < 2; remote++)
				memset(memory[e] + area_of(remote), 0, COUNTERS * 8);
			memory[e][MEMORY - 1] = 1; /* made */
		}
	}
	return memory[end];
}

/* ---- atomics, bit by bit ---------------------------------------------------------------------------------------- */

/* Adds; a carry ends at a bit that is set in the boundary. */
static uint64_t add(uint64_t before, const struct request *request, uint64_t boundary, uint32_t bits)
{
	uint64_t sum = 0;
	unsigned int carry = 0;

	for (uint32_t bit = 0; bit < bits; bit++) {
		unsigned int total = (before >> bit & 1) + (request->swap_add >> bit & 1) + carry;

		sum |= (uint64_t)(total & 1) << bit;
		carry = boundary >> bit & 1 ? 0 : total >> 1;
	}
	return sum;
}

static uint64_t swap(uint64_t before, const struct request *request, uint32_t bits)
{
	uint64_t after = 0;

	for (uint32_t bit = 0; bit < bits; bit++) {
		if (request->compare_mask >> bit & 1 && (before >> bit & 1) != (request->compare >> bit & 1))
			return before;
		after |= (request->swap_mask >> bit & 1 ? request->swap_add >> bit & 1 : before >> bit & 1) << bit;
	}
	return after;
}

static void change_counter(const struct request *request, uint8_t *there, uint8_t *here)
{
	uint32_t bits = request->operand_bytes * 8u;
	uint64_t before = 0, after;

	/* Byte order of this machine, little-endian, as for every user of the mlx5 fast path here. */
	memcpy(&before, there, request->operand_bytes);
	if (request->opcode == MLX5_OPCODE_ATOMIC_FA)
		after = add(before, request, 0, bits);
	else if (request->opcode == OPCODE_MASKED_FA)
		after = add(before, request, request->swap_mask, bits);
	else
		after = swap(before, request, bits);
	memcpy(there, &after, request->operand_bytes);
	memcpy(here, &before, request->operand_bytes);
}

/* ---- requests, one after the other ------------------------------------------------------------------------------ */

static void move(const struct request *request, uint8_t *here, uint8_t *there)
{
	uint32_t at = 0;

	for (uint8_t i = 0; i < request->pieces; i++) {
		const struct range *piece = &request->local[i];

		if (request->opcode == MLX5_OPCODE_RDMA_READ)
			memcpy(here + piece->offset, there + request->remote + at, piece->length);
		else
			memcpy(there + request->remote + at, here + piece->offset, piece->length);
		at += piece->length;
	}
}

static uint8_t received_opcode(uint8_t opcode)
{
	switch (opcode) {
	case MLX5_OPCODE_SEND_IMM:
		return MLX5_CQE_RESP_SEND_IMM;
	case MLX5_OPCODE_SEND_INVAL:
		return MLX5_CQE_RESP_SEND_INV;
	case MLX5_OPCODE_RDMA_WRITE_IMM:
		return MLX5_CQE_RESP_WR_IMM;
	default:
		return MLX5_CQE_RESP_SEND;
	}
}

static void expect_received(struct direction *direction, const struct request *request)
{
	uint32_t number = direction->received[request->target]++;

	direction->expected[request->target][number] = (struct received){
		.opcode = received_opcode(request->opcode),
		.bytes = request_wire_bytes(request),
		.imm = request->imm,
		.number = number,
	};
}

void plan_carry_out(struct plan *plan)
{
	for (int end = 0; end < ENDS; end++) {
		const struct direction *own = &plan->direction[end], *other = &plan->direction[!end];

		memcpy(plan->expected[end], plan_memory(end), own->local_used + SLACK);
		memcpy(plan->expected[end] + AREA, plan_memory(end) + AREA, other->remote_used + SLACK);
	}
	if (!plan_is_reliable(plan))
		return;
	for (int end = 0; end < ENDS; end++) {
		struct direction *direction = &plan->direction[end];
		uint8_t *here = plan->expected[end], *there = plan->expected[!end];

		for (uint32_t i = 0; i < direction->requests; i++) {
			const struct request *request = &direction->request[i];

			if (opcode_is_atomic(request->opcode))
				change_counter(request, there + request->remote, here + request->local[0].offset);
			else
				move(request, here, there);
			if (opcode_takes_receive(request->opcode))
				expect_received(direction, request);
			if (request->opcode == MLX5_OPCODE_SEND_INVAL)
				plan->invalidated[!end][request->invalidates] = true;
		}
	}
}

static const char *type_name(enum ibv_qp_type type)
{
	switch ((int)type) {
	case IBV_QPT_RC:
		return "RC";
	case IBV_QPT_UC:
		return "UC";
	case IBV_QPT_UD:
		return "UD";
	case IBV_QPT_XRC_SEND:
		return "XRC";
	default:
		return "DC";
	}
}

void plan_print(const struct plan *plan)
{
	const struct weather *weather = &plan->weather;

	printf("seed %lu: %s%s%s, %u and %u requests, mtu %u, psn %06x %06x, rd_atomic %u/%u, timeout %u, retry %u, rnr %u "
	       "code %u\n  %s link, pieces of %u, window %u; lost %u%%, doubled %u%%, late %u%% by %lu us, busy %u%%, dead "
	       "after %lu\n",
	       plan->seed, type_name(plan->type), plan->srq ? " with SRQ" : "", plan->mortal ? ", mortal" : "",
	       plan->direction[0].requests, plan->direction[1].requests, 128u << plan->attr.path_mtu, plan->psn[0],
	       plan->psn[1], plan->attr.max_rd_atomic, plan->attr.max_dest_rd_atomic, plan->attr.timeout,
	       plan->attr.retry_cnt, plan->attr.rnr_retry, plan->attr.min_rnr_timer,
	       plan->immediate ? "immediate" : "sending", plan->most, plan->window, weather->drop, weather->twice,
	       weather->late, weather->lateness_ns / 1000, weather->busy, weather->dead_after);
}
