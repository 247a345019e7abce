/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Explains (rule 123) that the device accessed registered memory that the program had unmapped, protected or truncated,
 * before the signal is handled as usual. The access is an ordinary load or store on the thread that posts or polls or
 * on a thread of the library.
 */
#ifndef SOFTHCA_PROCESS_MEMORY_FAULT_H
#define SOFTHCA_PROCESS_MEMORY_FAULT_H

/** Enables such explanations. Any number of times; while devices are made, by one thread. */
void memory_fault_explain(void);

#endif
