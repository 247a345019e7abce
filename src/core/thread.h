/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Scheduling of the library's threads. They sleep nearly all the time; when one is woken, another thread waits for it,
 * often one that spins on the same processor.
 */
#ifndef SOFTHCA_CORE_THREAD_H
#define SOFTHCA_CORE_THREAD_H

#include <signal.h>
#include <stdint.h>

/**
 * Asks the kernel to run the calling thread as soon as it is woken. Exact timers: otherwise a sleep takes 50 us longer
 * than requested. Under SCHED_OTHER and SCHED_BATCH, the shortest time slice, 100 us: since Linux 6.12 a waking thread
 * with a shorter slice preempts the running one; otherwise it waits for the end of that slice, some milliseconds
 * (sched_setattr(2), sched_runtime). Neither requires a privilege. A refusal costs only delay. Priority and policy stay
 * unchanged.
 */
void thread_run_soon(void);

/**
 * Returns the ns for which the calling thread has been ready to run and waited for a processor (proc(5), schedstat), or 0
 * if the kernel does not say. Opens a file.
 */
uint64_t thread_waited_ns(void);

/**
 * Fills @signals with the signals that a thread of the library blocks: all but those of faults, because the kernel does
 * not call the program's handler for a blocked fault.
 */
void thread_signals_to_block(sigset_t *signals);

#endif
