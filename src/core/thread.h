/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Scheduling of the library's threads: the device thread and the watcher. Such a thread sleeps nearly all the time.
 * When it is woken, another thread waits for it, often a program that spins on the same processor.
 */
#ifndef SOFTHCA_CORE_THREAD_H
#define SOFTHCA_CORE_THREAD_H

#include <signal.h>

/**
 * Asks the kernel to run the calling thread as soon as it is woken, by two settings. Exact timers: otherwise a sleep
 * takes 50 us longer than requested. Under SCHED_OTHER and SCHED_BATCH, the shortest time slice, 100 us: since Linux
 * 6.12 a waking thread with a shorter slice preempts the running one, which otherwise runs to the end of its slice,
 * some milliseconds (sched_setattr(2), sched_runtime). Neither requires a privilege, nor takes more than the thread's
 * share of the processor. If the kernel refuses, everything works with more delay. Priority and policy stay unchanged.
 */
void thread_run_soon(void);

/**
 * Fills @signals with the signals that a thread of the library blocks: the program's signals are for its own threads.
 * Signals of a fault of this thread are excluded, because the kernel does not call the program's handler for a blocked
 * fault.
 */
void thread_signals_to_block(sigset_t *signals);

#endif
