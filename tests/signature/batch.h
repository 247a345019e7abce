/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Many cases, a process of its own for each few hundred: a crash is told like a difference, and a device can be opened in another
 * profile. Keys and queues live through the cases of a process, so a case may fail only after others: then the lines of
 * all that matter are printed.
 */
#ifndef SOFTHCA_TESTS_SIGNATURE_BATCH_H
#define SOFTHCA_TESTS_SIGNATURE_BATCH_H

#include "case.h"

/** Runs the lines one after the other in this process. Returns the exit status; a difference ends the process. */
int replay_lines(int count, char **lines);

/** Runs @cases random ones, of @flips of the corruption campaign. Returns the number of differences. */
unsigned int run_batches(uint64_t seed, uint64_t first, uint64_t cases, bool flips);

#endif
