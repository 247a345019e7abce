/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Work at process exit, if requested: frames delayed by faults are sent, the summary of faults is written with the
 * explanations, and the counters to SOFTHCA_COUNTERS.
 */
#ifndef SOFTHCA_PROCESS_REPORT_H
#define SOFTHCA_PROCESS_REPORT_H

/** Registers the report for exit(3). Any thread may call; further calls have no effect. */
void report_at_exit(void);

#endif
