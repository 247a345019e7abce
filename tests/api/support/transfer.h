/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operations that are checked against a model. Each of them
 *
 *   - compares the memory, then gives all memory of both sides new contents: no byte of one occurs on the other,
 *   - posts one signalled request and polls its completion, which must have the given status,
 *   - on success changes the copies by a plain loop, byte by byte; a rejected operation must have changed nothing,
 *   - compares every byte of both sides, guards included,
 *   - makes a new pair if the status was an error.
 *
 * A view has the place of bytes, for the request (key, address) and for the model (offsets in the side's memory). The
 * views determine which endpoint posts.
 */
#ifndef SOFTHCA_TESTS_API_SUPPORT_TRANSFER_H
#define SOFTHCA_TESTS_API_SUPPORT_TRANSFER_H

#include "support/completion.h"

struct view {
	struct side *side;
	uint32_t key;     /* lkey or rkey */
	uint64_t address; /* of the first byte, as used in a request */
	size_t length;
	size_t start;        /* offset of the first byte in the memory, or index in the map if there is one */
	const uint32_t *map; /* offset of each byte in the memory */
	bool outside;        /* exceeds the view it is a part of: for requests that must be rejected */
};

/** [@start, +@length) of the memory of @side through side.mr. */
struct view view_memory(struct side *side, size_t start, size_t length);
/** As view_memory(), with another key at the same addresses. */
struct view view_with_key(struct side *side, uint32_t key, size_t start, size_t length);
/** Returns [@offset, +@length) of @view; may exceed it on either end. */
struct view view_part(struct view view, int64_t offset, size_t length);

/** Updates the copies as if the bytes of @source were written to the first bytes of @target. */
void model_copy(const struct view *source, const struct view *target);

/** Runs an RDMA WRITE from @source to @target on the other side. */
#define expect_write(pair, source, target, status) expect_write_(HERE, pair, IBV_WR_RDMA_WRITE, source, target, status)
/** As expect_write(), with immediate; on success the peer's receive completes with it and the length. */
#define expect_write_imm(pair, source, target, status)                                                                 \
	expect_write_(HERE, pair, IBV_WR_RDMA_WRITE_WITH_IMM, source, target, status)
void expect_write_(struct place place, struct pair *pair, enum ibv_wr_opcode opcode, struct view source,
		   struct view target, enum ibv_wc_status status);

/** Runs an RDMA READ of @source into @sink, posted on the side of @sink. */
#define expect_read(pair, sink, source, status) expect_read_(HERE, pair, sink, source, status)
void expect_read_(struct place place, struct pair *pair, struct view sink, struct view source,
		  enum ibv_wc_status status);

/**
 * Runs a SEND of @source into a receive of @sink, which may be longer. @receive_status: of the receive; ignored if the
 * SEND fails at its own end (a status that the peer does not see: LOC_…).
 */
#define expect_send(pair, source, sink, status, receive_status)                                                        \
	expect_send_(HERE, pair, IBV_WR_SEND, source, sink, status, receive_status)
#define expect_send_imm(pair, source, sink, status, receive_status)                                                    \
	expect_send_(HERE, pair, IBV_WR_SEND_WITH_IMM, source, sink, status, receive_status)
void expect_send_(struct place place, struct pair *pair, enum ibv_wr_opcode opcode, struct view source,
		  struct view sink, enum ibv_wc_status status, enum ibv_wc_status receive_status);

/**
 * Runs an atomic on the 8 bytes of @target; the previous value goes to the 8 bytes of @result, and the side of @result
 * posts.
 */
#define expect_fetch_add(pair, result, target, status)                                                                 \
	expect_atomic_(HERE, pair, IBV_WR_ATOMIC_FETCH_AND_ADD, false, result, target, status)
/** @equal: the compared value equals the one in memory. */
#define expect_compare_swap(pair, result, target, equal, status)                                                       \
	expect_atomic_(HERE, pair, IBV_WR_ATOMIC_CMP_AND_SWP, equal, result, target, status)
void expect_atomic_(struct place place, struct pair *pair, enum ibv_wr_opcode opcode, bool equal, struct view result,
		    struct view target, enum ibv_wc_status status);

#endif
