/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * System calls that are made only if a word of memory still has a value. If the thread is interrupted between the check
 * and the call (preempted, stopped, handling a signal), the call is not made. So if a thread changes the word and then
 * finds the other thread stopped outside the call, the call will not be made.
 *
 * Implemented as a restartable sequence (rseq(2)), on x86-64 and aarch64 with glibc from 2.35 on. Its last instruction
 * is the system call.
 */
#ifndef SOFTHCA_CORE_GUARDED_CALL_H
#define SOFTHCA_CORE_GUARDED_CALL_H

#include <stdbool.h>
#include <stdint.h>

/** Returns true if this thread supports guarded calls. Any thread may call. */
bool guarded_call_works(void);

/**
 * Makes system call @number if *@word is @expected at that very moment. Returns the kernel's result (a negative errno
 * for an error), or -EAGAIN if the word differs or the thread was interrupted. guarded_call_works() must be true for
 * this thread. Not a cancellation point.
 */
long guarded_call(const uint64_t *word, uint64_t expected, long number, const long arguments[5]);

#endif
