/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a thread of the library is scheduled: the device thread, the watcher. Such a thread sleeps nearly all the time, and when it
 * is woken somebody waits for it, often a program that spins on the same processor.
 */
#ifndef SOFTHCA_CORE_THREAD_H
#define SOFTHCA_CORE_THREAD_H

#include <signal.h>

/**
 * Asks the kernel to run the calling thread as soon as it is woken: exact timers (else a sleep takes 50 us longer than was asked
 * for), and, under the policies SCHED_OTHER and SCHED_BATCH, time slices of 100 us, the shortest there are: since Linux 6.12 a
 * thread that wakes with a shorter slice than that of the one that runs preempts it, which else runs to the end of its own, some
 * milliseconds (sched_setattr(2), sched_runtime). Neither takes a privilege, nor more of the processor than its share. Where the
 * kernel refuses, all works, later. Priority and policy stay as they are.
 */
void thread_run_soon(void);

/**
 * Fills @signals with all that a thread of the library blocks: the program's signals are for its own threads, except those of a fault of
 * this thread, for which the kernel would not call the program's handler if they were blocked.
 */
void thread_signals_to_block(sigset_t *signals);

#endif
