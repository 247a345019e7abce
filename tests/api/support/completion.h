/* SPDX-License-Identifier: BSD-2-Clause */
/* Posting a work request and waiting for completions with a deadline. */
#ifndef SOFTHCA_TESTS_API_SUPPORT_COMPLETION_H
#define SOFTHCA_TESTS_API_SUPPORT_COMPLETION_H

#include "support/pair.h"

enum { DEADLINE_SECONDS = 10 };

/** Posts @wr; fails if the call does. */
#define post_send(endpoint, wr) post_send_(HERE, endpoint, wr)
void post_send_(struct place place, struct endpoint *endpoint, struct ibv_send_wr *wr);

/** Posts a receive into the @count entries of @sge. */
#define post_receive(endpoint, wr_id, sge, count) post_receive_(HERE, endpoint, wr_id, sge, count)
void post_receive_(struct place place, struct endpoint *endpoint, uint64_t wr_id, struct ibv_sge *sge, int count);

/** Returns the next completion of the endpoint's CQ. */
#define next_completion(endpoint) next_completion_(HERE, endpoint)
struct ibv_wc next_completion_(struct place place, struct endpoint *endpoint);

/** Expects the successful completion of @wr_id of the endpoint's QP next. @opcode: IBV_WC_… or MLX5DV_WC_…. */
#define expect_completion(endpoint, wr_id, opcode) expect_completion_(HERE, endpoint, wr_id, opcode)
struct ibv_wc expect_completion_(struct place place, struct endpoint *endpoint, uint64_t wr_id, int opcode);

/** Expects the completion of @wr_id of the endpoint's QP next, with @status. */
#define expect_status(endpoint, wr_id, status) expect_status_(HERE, endpoint, wr_id, status)
struct ibv_wc expect_status_(struct place place, struct endpoint *endpoint, uint64_t wr_id, enum ibv_wc_status status);

/** Expects no completion. */
#define expect_idle(endpoint) expect_idle_(HERE, endpoint)
void expect_idle_(struct place place, struct endpoint *endpoint);

/**
 * Checks that no request was posted before: an empty signalled SEND to the peer has the only completion on either end.
 */
#define expect_nothing_posted(endpoint) expect_nothing_posted_(HERE, endpoint)
void expect_nothing_posted_(struct place place, struct endpoint *endpoint);

#endif
