/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs many cases, a few hundred per process: a crash is reported like a difference, and a device can be opened in
 * another profile. Keys and queues persist through the cases of a process, so a case may fail only after others: then
 * the lines of all relevant cases are printed.
 */
#ifndef SOFTHCA_TESTS_SIGNATURE_BATCH_H
#define SOFTHCA_TESTS_SIGNATURE_BATCH_H

#include "case.h"

/** Runs the lines one after the other in this process. Returns the exit status; a difference ends the process. */
int replay_lines(int count, char **lines);

/** Runs @cases random cases, or @flips, of the corruption campaign. Returns the number of differences. */
unsigned int run_batches(uint64_t seed, uint64_t first, uint64_t cases, bool flips);

#endif
