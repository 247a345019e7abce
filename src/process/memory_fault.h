/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Explains (rule 123) that the device accessed registered memory that the program had unmapped, protected or truncated,
 * before the signal is handled as usual: by the program's handler, or by ending the process. The device copies by
 * ordinary loads and stores, on the thread that posts or polls or on a thread of the library.
 */
#ifndef SOFTHCA_PROCESS_MEMORY_FAULT_H
#define SOFTHCA_PROCESS_MEMORY_FAULT_H

/** Enables such explanations. May be called any number of times; while devices are made, by one thread. */
void memory_fault_explain(void);

#endif
