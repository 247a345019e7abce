/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Commands of the device, word by word, as a program writes them from the adapter's manual: the byte and bit positions
 * are independent of those in src/devx.
 */
#ifndef SOFTHCA_TESTS_API_SUPPORT_DEVX_H
#define SOFTHCA_TESTS_API_SUPPORT_DEVX_H

#include <endian.h>
#include <sys/mman.h>

#include "test_clock.h"
#include "support/program.h"

enum { COMMAND_BYTES = 464 };

struct command {
	uint8_t in[COMMAND_BYTES], out[COMMAND_BYTES];
};

static inline void put32(uint8_t *bytes, size_t at, uint32_t value)
{
	value = htobe32(value);
	memcpy(bytes + at, &value, sizeof(value));
}

static inline void put64(uint8_t *bytes, size_t at, uint64_t value)
{
	put32(bytes, at, (uint32_t)(value >> 32));
	put32(bytes, at + 4, (uint32_t)value);
}

static inline uint32_t get32(const uint8_t *bytes, size_t at)
{
	uint32_t value;

	memcpy(&value, bytes + at, sizeof(value));
	return be32toh(value);
}

static inline struct command command_of(uint16_t opcode)
{
	struct command command = {0};

	put32(command.in, 0, (uint32_t)opcode << 16);
	return command;
}

/** Checks that the device rejected the command: EREMOTEIO, and the output has @status and the number of @rule. */
static inline void expect_device_refusal(int error, const struct command *command, uint8_t status, uint32_t rule)
{
	assert_int_equal(error, EREMOTEIO);
	assert_int_equal(errno, EREMOTEIO);
	assert_int_equal(command->out[0], status);
	assert_int_equal(get32(command->out, 4), rule);
}

static inline struct mlx5dv_devx_obj *create(struct ibv_context *context, struct command *command, size_t in_bytes)
{
	return mlx5dv_devx_obj_create(context, command->in, in_bytes, command->out, 16);
}

static inline uint32_t created_number(const struct command *command)
{
	return get32(command->out, 8) & 0xffffff;
}

/* A word that makes a command invalid, and the expected error. */
struct wrong {
	size_t byte;
	uint32_t value;
	uint8_t status;
	uint32_t rule;
};

/** Runs CREATE commands of @bytes, each with one invalid word. */
static inline void refuse_each(struct ibv_context *context, const struct command *right, size_t bytes,
			       const struct wrong *wrong, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct command command = *right;

		put32(command.in, wrong[i].byte, wrong[i].value);
		errno = 0;
		assert_null(create(context, &command, bytes));
		expect_device_refusal(errno, &command, wrong[i].status, wrong[i].rule);
	}
}

/** Checks that @bytes are too few for the CREATE command. */
static inline void expect_short(struct ibv_context *context, const struct command *right, size_t bytes)
{
	struct command command = *right;

	errno = 0;
	assert_null(create(context, &command, bytes));
	expect_device_refusal(errno, &command, 0x50, 950);
}

/* ---- a queue pair with its CQ and rings in one umem ------------------------------------------------------------------ */

enum {
	OWN_CQES = 64,
	OWN_RECEIVES = 16,
	OWN_BLOCKS = 64,
	OWN_RING = 0, /* of CQEs; offsets in the umem */
	OWN_CQ_RECORD = 4096,
	OWN_QP_RECORD = 4096 + 64,
	OWN_QUEUES = 8192, /* receives, then requests */
	OWN_REQUESTS = OWN_QUEUES + OWN_RECEIVES * 16,
	OWN_BYTES = 16384,
};

struct own {
	struct side *side;
	uint8_t *memory;
	struct mlx5dv_devx_umem *umem;
	struct mlx5dv_devx_uar *uar;
	struct mlx5dv_devx_obj *cq, *qp;
	uint32_t cqn, qpn, pdn, eqn;
	uint32_t requests, receives, consumed;
	size_t mapped; /* bytes of `memory` that are still mapped */
};

static inline uint32_t pd_number(struct ibv_pd *pd)
{
	struct mlx5dv_pd out = {0};
	struct mlx5dv_obj object = {.pd = {.in = pd, .out = &out}};

	assert_int_equal(mlx5dv_init_obj(&object, MLX5DV_OBJ_PD), 0);
	return out.pdn;
}

static inline struct command cq_command(const struct own *own)
{
	struct command command = command_of(0x400);

	put32(command.in, 20, own->umem->umem_id);
	put32(command.in, 28, 6u << 24 | own->uar->page_id);
	put32(command.in, 36, own->eqn);
	put32(command.in, 76, OWN_CQ_RECORD);
	put32(command.in, 84, OWN_RING);
	put32(command.in, 88, own->umem->umem_id);
	return command;
}

/** Builds CREATE_QP. @service: st, 0 RC, 1 UC, 2 UD, 5 DCI. No valid bits, because some programs do not set them. */
static inline struct command qp_command(const struct own *own, uint32_t service)
{
	struct command command = command_of(0x500);

	put32(command.in, 24, service << 16 | 0x1800);
	put32(command.in, 28, own->pdn);
	put32(command.in, 32, 4u << 19 | 0u << 16 | 6u << 11);
	put32(command.in, 36, own->uar->page_id);
	put32(command.in, 40, 0xffffff);
	put32(command.in, 148, own->cqn);
	put32(command.in, 180, own->cqn);
	put32(command.in, 188, OWN_QP_RECORD);
	put32(command.in, 252, own->umem->umem_id);
	put32(command.in, 260, OWN_QUEUES);
	put32(command.in, 264, own->umem->umem_id);
	return command;
}

static inline void own_open_cq(struct own *own, struct side *side)
{
	struct command command;

	*own = (struct own){.side = side, .pdn = pd_number(side->pd), .mapped = OWN_BYTES};
	own->memory = mmap(NULL, OWN_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(own->memory != MAP_FAILED);
	memset(own->memory + OWN_RING, 0xff, OWN_CQES * 64);
	own->umem = mlx5dv_devx_umem_reg(side->context, own->memory, OWN_BYTES, IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(own->umem);
	own->uar = mlx5dv_devx_alloc_uar(side->context, 0);
	assert_non_null(own->uar);
	assert_int_equal(mlx5dv_devx_query_eqn(side->context, 0, &own->eqn), 0);
	command = cq_command(own);
	own->cq = create(side->context, &command, 272);
	assert_non_null(own->cq);
	own->cqn = created_number(&command);
}

/** Creates the queue pair; the CQ exists already. */
static inline void own_open_qp(struct own *own, uint32_t service)
{
	struct command command = qp_command(own, service);

	own->qp = create(own->side->context, &command, 272);
	assert_non_null(own->qp);
	own->qpn = created_number(&command);
}

static inline void own_open(struct own *own, struct side *side, uint32_t service)
{
	own_open_cq(own, side);
	own_open_qp(own, service);
}

/** Unmaps everything after the first @left bytes. The address range stays reserved until own_close(). */
static inline void own_unmap(struct own *own, size_t left)
{
	if (own->mapped > left)
		assert_ptr_equal(mmap(own->memory + left, own->mapped - left, PROT_NONE,
				      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
				 own->memory + left);
	own->mapped = left;
}

static inline void own_close(struct own *own)
{
	if (own->qp)
		assert_int_equal(mlx5dv_devx_obj_destroy(own->qp), 0);
	if (own->cq)
		assert_int_equal(mlx5dv_devx_obj_destroy(own->cq), 0);
	assert_int_equal(mlx5dv_devx_umem_dereg(own->umem), 0);
	mlx5dv_devx_free_uar(own->uar);
	assert_int_equal(munmap(own->memory, OWN_BYTES), 0);
}

static inline int own_modify(const struct own *own, struct command *command, size_t in_bytes)
{
	put32(command->in, 8, own->qpn);
	errno = 0;
	return mlx5dv_devx_obj_modify(own->qp, command->in, in_bytes, command->out, 16);
}

static inline void own_to_init(const struct own *own)
{
	struct command command = command_of(0x502);

	put32(command.in, 84, 1u << 16);
	put32(command.in, 168, 0xe000);
	put32(command.in, 192, 0x11111111);
	assert_int_equal(own_modify(own, &command, 272), 0);
}

static inline void own_to_rtr(const struct own *own, const struct side *peer, uint32_t qpn)
{
	struct command command = command_of(0x503);

	put32(command.in, 32, 3u << 29 | 30u << 24);
	put32(command.in, 44, qpn);
	put32(command.in, 56, (uint32_t)own->side->gid_index << 16 | 64);
	memcpy(command.in + 64, peer->gid.raw, 16);
	put32(command.in, 84, 1u << 16);
	put32(command.in, 168, 3u << 21);
	put32(command.in, 172, 12u << 24 | 0x123);
	assert_int_equal(own_modify(own, &command, 272), 0);
}

/** @timeout: as ibv_qp_attr.timeout. */
static inline void own_to_rts_with(const struct own *own, uint32_t timeout)
{
	struct command command = command_of(0x504);

	put32(command.in, 56, timeout << 27);
	put32(command.in, 136, 3u << 21 | 7u << 16 | 7u << 13);
	put32(command.in, 144, 0x123);
	assert_int_equal(own_modify(own, &command, 272), 0);
}

static inline void own_to_rts(const struct own *own)
{
	own_to_rts_with(own, 12);
}

static inline void own_connect(const struct own *one, const struct own *other)
{
	own_to_init(one);
	own_to_rtr(one, other->side, other->qpn);
	own_to_rts(one);
}

static inline void own_receive(struct own *own, uint64_t address, uint32_t length)
{
	uint8_t *entry = own->memory + OWN_QUEUES + own->receives % OWN_RECEIVES * 16;

	put32(entry, 0, length);
	put32(entry, 4, own->side->mr->lkey);
	put32(entry, 8, (uint32_t)(address >> 32));
	put32(entry, 12, (uint32_t)address);
	own->receives++;
	__atomic_thread_fence(__ATOMIC_RELEASE);
	put32(own->memory + OWN_QP_RECORD, 0, own->receives & 0xffff);
}

/** Stores the first 8 bytes of the control segment of the request at @index to the register, as a doorbell (mlx5-formats 1.16). */
static inline void own_ring_register(const struct own *own, uint32_t index)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	*(volatile uint64_t *)own->uar->reg_addr =
		htobe64((uint64_t)(index & 0xffff) << 40 | (uint64_t)own->qpn << 8 | 1);
}

/** Writes the record, then the register. */
static inline void own_ring(struct own *own, uint32_t blocks)
{
	own->requests += blocks;
	__atomic_thread_fence(__ATOMIC_RELEASE);
	put32(own->memory + OWN_QP_RECORD, 4, own->requests & 0xffff);
	own_ring_register(own, own->requests - blocks);
}

/** Posts @wqe of whole octowords; fills in index, opcode, number and length of its control segment. */
static inline void own_post(struct own *own, uint32_t opcode, void *wqe, size_t bytes)
{
	uint8_t *from = wqe;
	uint32_t blocks = (uint32_t)(bytes + 63) / 64;

	assert_int_equal(bytes % 16, 0);
	put32(from, 0, (own->requests & 0xffff) << 8 | opcode);
	put32(from, 4, own->qpn << 8 | (uint32_t)(bytes / 16));
	for (size_t at = 0; at < bytes; at += 64)
		memcpy(own->memory + OWN_REQUESTS + (own->requests + at / 64) % OWN_BLOCKS * 64, from + at,
		       bytes - at < 64 ? bytes - at : 64);
	own_ring(own, blocks);
}

static inline void put_data(uint8_t *wqe, size_t at, uint32_t length, uint32_t lkey, uint64_t address)
{
	put32(wqe, at, length);
	put32(wqe, at + 4, lkey);
	put64(wqe, at + 8, address);
}

/** Posts one block: @opcode, with @rkey at @remote unless 0, and data of @length at @address of @lkey. */
static inline void own_request_of(struct own *own, uint32_t lkey, uint8_t opcode, uint64_t remote, uint32_t rkey,
				  uint64_t address, uint32_t length, uint32_t immediate)
{
	uint8_t wqe[64] = {0};
	size_t at = 16;

	put32(wqe, 8, 8);
	put32(wqe, 12, immediate);
	if (rkey) {
		put64(wqe, 16, remote);
		put32(wqe, 24, rkey);
		at = 32;
	}
	put_data(wqe, at, length, lkey, address);
	own_post(own, opcode, wqe, at + 16);
}

/** As own_request_of(), with the side's own memory. */
static inline void own_request(struct own *own, uint8_t opcode, uint64_t remote, uint32_t rkey, uint64_t address,
			       uint32_t length, uint32_t immediate)
{
	own_request_of(own, own->side->mr->lkey, opcode, remote, rkey, address, length, immediate);
}

/**
 * Posts an atomic of 8 bytes: @opcode, the value to add or swap in, the value to compare with; the previous value goes
 * to @address.
 */
static inline void own_atomic(struct own *own, uint8_t opcode, uint64_t remote, uint32_t rkey, uint64_t address,
			      uint64_t swap_add, uint64_t compare)
{
	uint8_t wqe[64] = {0};

	put32(wqe, 8, 8);
	put64(wqe, 16, remote);
	put32(wqe, 24, rkey);
	put64(wqe, 32, swap_add);
	put64(wqe, 40, compare);
	put_data(wqe, 48, 8, own->side->mr->lkey, address);
	own_post(own, opcode, wqe, sizeof(wqe));
}

static inline bool own_has_cqe(const struct own *own)
{
	const uint8_t *cqe = own->memory + OWN_RING + own->consumed % OWN_CQES * 64;
	uint8_t op_own = __atomic_load_n(cqe + 63, __ATOMIC_ACQUIRE);

	return op_own >> 4 != 0xf && (op_own & 1) == (own->consumed / OWN_CQES & 1);
}

/** Returns the next CQE and frees its entry. */
static inline struct mlx5_cqe64 own_next_cqe(struct own *own)
{
	double deadline = seconds_now() + 20;
	struct mlx5_cqe64 cqe;

	while (!own_has_cqe(own))
		assert_true(seconds_now() < deadline);
	memcpy(&cqe, own->memory + OWN_RING + own->consumed % OWN_CQES * 64, sizeof(cqe));
	own->consumed++;
	put32(own->memory + OWN_CQ_RECORD, 0, own->consumed & 0xffffff);
	return cqe;
}

#endif
