/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files that judge share. */
#ifndef SOFTHCA_TESTS_SIMULATION_JUDGE_H
#define SOFTHCA_TESTS_SIMULATION_JUDGE_H

#include "../unit/support/wire_link.h"
#include "play.h"

/**
 * Judges the number of READs and atomics under way by the packets on the wire (IBTA C10-79, 9.7.4.1.5): a requester has no more than
 * max_rd_atomic, and a responder refuses none as invalid while there are no more than max_dest_rd_atomic.
 */
void judge_depth_begin(const struct plan *plan);
/** @packet was sent, or has arrived. */
void judge_depth_sent(const struct wire_packet *packet);
void judge_depth_arrived(const struct wire_packet *packet);

/** Nobody has anything left to do. */
void judge_queues(void);

/**
 * UC and UD (IBTA 9.8.2.2, 9.8.3.2): the sender never knows; a message is received for each time that its packets came one
 * after the other, and no other message. Goes by what the weather let through.
 */
void judge_unreliable(const struct plan *plan, bool fair, const struct record *record);

#endif
