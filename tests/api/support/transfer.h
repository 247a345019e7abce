/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operations that are checked against a model. Each of them
 *
 *   - compares what is there, then gives all memory of both sides new contents: no byte of one occurs on the other,
 *   - posts one signalled request and polls its completion, which must have the status given,
 *   - on success changes the copies by a plain loop, byte by byte; a refused operation must have changed nothing,
 *   - compares every byte of both sides, guards included,
 *   - makes a fresh pair if the status was an error.
 *
 * A view says where bytes are, for the request (key, address) and for the model (offsets in the side's memory). Which
 * endpoint posts follows from the views.
 */
#ifndef SOFTHCA_TESTS_API_SUPPORT_TRANSFER_H
#define SOFTHCA_TESTS_API_SUPPORT_TRANSFER_H

#include "support/completion.h"

struct view {
	struct side *side;
	uint32_t key;     /* lkey or rkey */
	uint64_t address; /* of the first byte, as a request names it */
	size_t length;
	size_t start; /* where the first byte is in the memory, the others behind it; or, if there is a map, in the map */
	const uint32_t *map; /* where each byte is in the memory */
	bool outside;        /* reaches beyond what it is a part of: for the request only, it must be refused */
};

/** [@start, +@length) of the memory of @side through side.mr. */
struct view view_memory(struct side *side, size_t start, size_t length);
/** The same with another key, at the same addresses. */
struct view view_with_key(struct side *side, uint32_t key, size_t start, size_t length);
/** [@offset, +@length) of @view; may reach beyond it on either end. */
struct view view_part(struct view view, int64_t offset, size_t length);

/** What the copies must hold after the bytes of @source went to the first ones of @target. */
void model_copy(const struct view *source, const struct view *target);

/** RDMA WRITE from @source to @target on the other side. */
#define expect_write(pair, source, target, status) expect_write_(HERE, pair, IBV_WR_RDMA_WRITE, source, target, status)
/** With immediate; on success the peer's receive completes with it and the length. */
#define expect_write_imm(pair, source, target, status)                                                                 \
	expect_write_(HERE, pair, IBV_WR_RDMA_WRITE_WITH_IMM, source, target, status)
void expect_write_(struct place place, struct pair *pair, enum ibv_wr_opcode opcode, struct view source,
		   struct view target, enum ibv_wc_status status);

/** RDMA READ of @source into @sink, posted on the side of @sink. */
#define expect_read(pair, sink, source, status) expect_read_(HERE, pair, sink, source, status)
void expect_read_(struct place place, struct pair *pair, struct view sink, struct view source,
		  enum ibv_wc_status status);

/**
 * SEND of @source into a receive of @sink, which may be longer. @receive_status: of the receive; not looked at if the
 * SEND fails at its own end (a status that the peer does not see: LOC_…).
 */
#define expect_send(pair, source, sink, status, receive_status)                                                        \
	expect_send_(HERE, pair, IBV_WR_SEND, source, sink, status, receive_status)
#define expect_send_imm(pair, source, sink, status, receive_status)                                                    \
	expect_send_(HERE, pair, IBV_WR_SEND_WITH_IMM, source, sink, status, receive_status)
void expect_send_(struct place place, struct pair *pair, enum ibv_wr_opcode opcode, struct view source,
		  struct view sink, enum ibv_wc_status status, enum ibv_wc_status receive_status);

/** Atomics on the 8 bytes of @target, what was there goes to the 8 bytes of @result, on whose side it is posted. */
#define expect_fetch_add(pair, result, target, status)                                                                 \
	expect_atomic_(HERE, pair, IBV_WR_ATOMIC_FETCH_AND_ADD, false, result, target, status)
/** @equal: whether the value compared is the one that is there. */
#define expect_compare_swap(pair, result, target, equal, status)                                                       \
	expect_atomic_(HERE, pair, IBV_WR_ATOMIC_CMP_AND_SWP, equal, result, target, status)
void expect_atomic_(struct place place, struct pair *pair, enum ibv_wr_opcode opcode, bool equal, struct view result,
		    struct view target, enum ibv_wc_status status);

#endif
