/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files that judge share. */
#ifndef SOFTHCA_TESTS_SIMULATION_JUDGE_H
#define SOFTHCA_TESTS_SIMULATION_JUDGE_H

#include "play.h"

/** Nobody has anything left to do. */
void judge_queues(void);

/**
 * UC and UD (IBTA 9.8.2.2, 9.8.3.2): the sender never knows; a message is received for each time that its packets came one
 * after the other, and no other message. Goes by what the weather let through.
 */
void judge_unreliable(const struct plan *plan, bool fair, const struct record *record);

#endif
