/* SPDX-License-Identifier: BSD-2-Clause */
/* Work at exit: sends frames delayed by faults, writes the summary of faults and the counters. */
#ifndef SOFTHCA_PROCESS_REPORT_H
#define SOFTHCA_PROCESS_REPORT_H

/** Registers the report for exit(3). Any thread, any number of times. */
void report_at_exit(void);

#endif
