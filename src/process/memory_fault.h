/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Explains (rule 123) that the device has met memory which the program unmapped, protected or cut while it was registered, before the
 * signal takes its course: the program's handler, or the end of the process. The device copies on the thread that posts,
 * polls or is the library's own, by ordinary loads and stores.
 */
#ifndef SOFTHCA_PROCESS_MEMORY_FAULT_H
#define SOFTHCA_PROCESS_MEMORY_FAULT_H

/** Begins to explain such faults. Any number of times; while devices are made, by one thread. */
void memory_fault_explain(void);

#endif
