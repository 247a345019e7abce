/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages of 8 bytes, for tests of queues. Each wr_id has a word of memory for its message and one for its receive;
 * the copies change with them, so side_compare() shows which message went to which receive.
 */
#ifndef SOFTHCA_TESTS_API_SUPPORT_WORDS_H
#define SOFTHCA_TESTS_API_SUPPORT_WORDS_H

#include "support/completion.h"

/** Posts a signalled WRITE to the peer; it must succeed. */
#define write_word(endpoint, wr_id) write_word_(HERE, endpoint, wr_id)
void write_word_(struct place place, struct endpoint *endpoint, uint64_t wr_id);

/**
 * Posts a signalled SEND into the peer's receive of @receive_wr_id; it must succeed. @flags: IBV_SEND_SOLICITED or 0.
 */
#define send_word(endpoint, wr_id, receive_wr_id, flags) send_word_(HERE, endpoint, wr_id, receive_wr_id, flags)
void send_word_(struct place place, struct endpoint *endpoint, uint64_t wr_id, uint64_t receive_wr_id,
		unsigned int flags);

/** Returns the sink of the receive of @wr_id. */
struct ibv_sge word_sink(const struct side *side, uint64_t wr_id);

#endif
