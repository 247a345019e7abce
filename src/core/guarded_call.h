/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * System calls that are made only if a word of memory still has a value. A thread may lose its processor, be stopped by
 * a signal or handle one between the check of the word and the call; when it continues, the check is repeated. So if a
 * thread changes the word and then finds the other thread stopped outside the call, the call will not be made.
 *
 * The implementation, for x86-64 and aarch64, is a restartable sequence (rseq(2)), which the C library registers for each
 * thread since glibc 2.35. Its last instruction is the system call; an interruption before it jumps to the abort handler.
 */
#ifndef SOFTHCA_CORE_GUARDED_CALL_H
#define SOFTHCA_CORE_GUARDED_CALL_H

#include <stdbool.h>
#include <stdint.h>

/** Returns true if this thread supports guarded calls. Any thread may call. */
bool guarded_call_works(void);

/**
 * Makes system call @number with five arguments if *@word is @expected at that very moment. Returns the kernel's result
 * (a negative errno for an error), or -EAGAIN if the word differs or the thread was interrupted, in which case no call
 * was made. guarded_call_works() must be true for this thread. Not a cancellation point.
 */
long guarded_call(const uint64_t *word, uint64_t expected, long number, const long arguments[5]);

#endif
