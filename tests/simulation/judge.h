/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions shared by the checks of a run. */
#ifndef SOFTHCA_TESTS_SIMULATION_JUDGE_H
#define SOFTHCA_TESTS_SIMULATION_JUDGE_H

#include "../unit/support/wire_link.h"
#include "play.h"

/**
 * Checks the number of READs and atomics in flight by the packets on the wire (IBTA C10-79, 9.7.4.1.5): a requester has
 * no more than max_rd_atomic, and a responder refuses none as invalid while there are no more than max_dest_rd_atomic.
 */
void judge_depth_begin(const struct plan *plan);
/** Records that @packet was sent, or has arrived. */
void judge_depth_sent(const struct wire_packet *packet);
void judge_depth_arrived(const struct wire_packet *packet);

/** Checks that no queue has pending work. */
void judge_queues(void);

/**
 * Checks UC and UD (IBTA 9.8.2.2, 9.8.3.2): the sender gets no error; a message is received each time that its packets
 * arrived in sequence, and no other message. Based on the packets that the weather let through.
 */
void judge_unreliable(const struct plan *plan, bool fair, const struct record *record);

#endif
