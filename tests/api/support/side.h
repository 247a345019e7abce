/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One side of a test: its own context, a PD, and memory with a copy that the test maintains. The memory lies between
 * guards. `expected` is the required content of memory and guards: a test updates it by plain loops as the operation
 * should have changed the memory, and side_compare() compares every byte. A side owns every object created through it:
 * side_close() destroys them and fails if any is still in use.
 */
#ifndef SOFTHCA_TESTS_API_SUPPORT_SIDE_H
#define SOFTHCA_TESTS_API_SUPPORT_SIDE_H

#include "support/check.h"

enum {
	SIDE_BYTES = 64 * 1024,
	SIDE_GUARD = 8192, /* before and after the memory */
	SIDE_OBJECTS = 32,
	/* Rights of side.mr and of QPs: all valid ones. */
	SIDE_REMOTE = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
	SIDE_ACCESS = IBV_ACCESS_LOCAL_WRITE | SIDE_REMOTE | IBV_ACCESS_MW_BIND,
};

struct side {
	const char *name;
	struct ibv_context *context;
	struct ibv_pd *pd;
	union ibv_gid gid;
	uint8_t gid_index;
	struct ibv_mr *mr; /* all of the memory, SIDE_ACCESS */

	uint8_t *memory; /* `bytes` of memory, with SIDE_GUARD more on both ends */
	uint8_t *expected;
	size_t bytes;
	uint64_t random;
	uint8_t mark; /* top bit of all bytes that side_stir() writes: bytes of one side never occur on the other */

	/* Objects that side_close() destroys: struct ibv_mr, struct mlx5dv_mkey, struct ibv_mw. */
	void *mrs[SIDE_OBJECTS], *mkeys[SIDE_OBJECTS], *mws[SIDE_OBJECTS];
};

/** Opens the first device (mlx5dv_open_device(3), DEVX), or the one of side_use_device(). */
struct ibv_context *open_device(void);
/** Selects device @index for sides opened from now on. */
void side_use_device(size_t index);

/** Opens a side with @bytes of memory, a multiple of the page size. @mark: 0 or 0x80, different on the other side. */
void side_open(struct side *side, const char *name, size_t bytes, uint8_t mark);
/** Compares the memory and destroys everything. */
void side_close(struct side *side);

/** Fills the memory and the copy with new contents. */
void side_stir(struct side *side);

/** Fails if any byte of memory or guards differs from the copy. */
#define side_compare(side) side_compare_(HERE, side)
void side_compare_(struct place place, struct side *side);

/** Returns the address of byte @offset of the memory. */
uint64_t side_address(const struct side *side, size_t offset);

/** Registers [@offset, +@length) of the memory in the side's PD. */
struct ibv_mr *side_register(struct side *side, size_t offset, size_t length, unsigned int access);
/** Ends a registration before side_close() does. */
void side_deregister(struct side *side, struct ibv_mr *mr);

/** Returns an entry over [@offset, +@length) of the memory with the lkey of side.mr. */
struct ibv_sge side_sge(const struct side *side, size_t offset, uint32_t length);

/** Creates a key for @entries; @got gets the number that mlx5dv_create_mkey(3) returned (may be NULL). */
struct mlx5dv_mkey *side_create_mkey(struct side *side, uint16_t entries, uint16_t *got);
/** As side_create_mkey(), with @flags instead of INDIRECT alone. */
struct mlx5dv_mkey *side_create_mkey_with(struct side *side, uint32_t flags, uint16_t entries);

struct ibv_mw *side_alloc_mw(struct side *side, enum ibv_mw_type type);

#endif
