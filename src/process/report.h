/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Work at process exit, if requested: sends frames delayed by faults, writes the summary of faults with the
 * explanations, and writes the counters to SOFTHCA_COUNTERS.
 */
#ifndef SOFTHCA_PROCESS_REPORT_H
#define SOFTHCA_PROCESS_REPORT_H

/** Registers the report for exit(3). Any thread may call; further calls have no effect. */
void report_at_exit(void);

#endif
