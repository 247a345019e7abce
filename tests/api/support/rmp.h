/* SPDX-License-Identifier: BSD-2-Clause */
/* Receives shared by queue pairs, created by command (CREATE_RMP) in a umem of their own. */
#ifndef SOFTHCA_TESTS_API_SUPPORT_RMP_H
#define SOFTHCA_TESTS_API_SUPPORT_RMP_H

#include "support/devx.h"

/* The ring does not start at the beginning of its umem. */
enum {
	SHARED_BYTES = 64,
	ENTRIES = 16,
	ENTRY_BYTES = 32,
	RING = 128,
	RECORD = 2048,
	PAGE = 4096,
	LIST = 0,
	CYCLIC = 1
};

struct shared {
	struct side *side;
	uint8_t *memory; /* entries, and the record at RECORD */
	struct mlx5dv_devx_umem *umem;
	struct mlx5dv_devx_obj *rmp;
	uint32_t number, posted;
};

static inline void shared_open(struct shared *shared, struct side *side, uint32_t type)
{
	struct command command = command_of(0x90c);

	*shared = (struct shared){.side = side};
	shared->memory = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(shared->memory != MAP_FAILED);
	/* Initial list: each entry links to the next. Cyclic queues ignore the links. */
	for (uint32_t i = 0; i < ENTRIES; i++)
		put32(shared->memory, RING + (size_t)i * ENTRY_BYTES, type == LIST ? (i + 1) % ENTRIES : 0xffff);
	shared->umem = mlx5dv_devx_umem_reg(side->context, shared->memory, PAGE, IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(shared->umem);
	put32(command.in, 32, 1u << 20);
	put32(command.in, 80, type << 28);
	put32(command.in, 88, pd_number(side->pd));
	put32(command.in, 100, RECORD);
	put32(command.in, 112, 5u << 16 | 4);
	put32(command.in, 120, shared->umem->umem_id);
	put32(command.in, 124, shared->umem->umem_id);
	put32(command.in, 132, RING);
	shared->rmp = create(side->context, &command, 272);
	assert_non_null(shared->rmp);
	shared->number = created_number(&command);
}

static inline void shared_close(struct shared *shared)
{
	assert_int_equal(mlx5dv_devx_obj_destroy(shared->rmp), 0);
	assert_int_equal(mlx5dv_devx_umem_dereg(shared->umem), 0);
	munmap(shared->memory, PAGE);
}

/* Entries are freed in the order in which they were taken, so the list stays unchanged. */
static inline void shared_receive(struct shared *shared, uint64_t address)
{
	uint8_t *entry = shared->memory + RING + (size_t)(shared->posted % ENTRIES) * ENTRY_BYTES + 16;

	put32(entry, 0, SHARED_BYTES);
	put32(entry, 4, shared->side->mr->lkey);
	put32(entry, 8, (uint32_t)(address >> 32));
	put32(entry, 12, (uint32_t)address);
	shared->posted++;
	__atomic_thread_fence(__ATOMIC_RELEASE);
	put32(shared->memory, RECORD, shared->posted & 0xffff);
}

/** Creates an RC queue pair on the CQ of @own that receives from @shared. */
static inline void shared_join(const struct shared *shared, struct own *own)
{
	struct command command = qp_command(own, 0);

	put32(command.in, 32, 6u << 11);
	put32(command.in, 196, 1u << 24 | shared->number);
	own->qp = create(own->side->context, &command, 272);
	assert_non_null(own->qp);
	own->qpn = created_number(&command);
}

#endif
