/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a process does and says about its devices when it ends, if it was asked to: what faults delay leaves; their summary
 * goes where explanations go, the counters to SOFTHCA_COUNTERS.
 */
#ifndef SOFTHCA_PROCESS_REPORT_H
#define SOFTHCA_PROCESS_REPORT_H

/** Lets exit(3) report. Any thread; more calls change nothing. */
void report_at_exit(void);

#endif
