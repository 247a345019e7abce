/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A system call that is made only if a word of memory still has a value. Between the look at the word and the call a thread may
 * lose its processor, be stopped by a signal, or handle one; when it goes on, the look is done again. So whoever changes the
 * word, and then finds the thread stopped outside of the call, knows that it will not make it.
 *
 * That is a restartable sequence (rseq(2)), which the C library registers for each thread since glibc 2.35. Its last
 * instruction is that of the system call: what is interrupted before it goes to the abort handler.
 */
#ifndef SOFTHCA_CORE_GUARDED_CALL_H
#define SOFTHCA_CORE_GUARDED_CALL_H

#include <stdbool.h>
#include <stdint.h>

/** True if this thread can. Any thread. */
bool guarded_call_works(void);

/**
 * System call @number with five arguments, if *@word is @expected at the very moment. Returns what the kernel returns (a negative
 * errno for an error), or -EAGAIN: the word is another, or the thread was interrupted; nothing was called. The thread must be one
 * of which guarded_call_works() is true. No cancellation point.
 */
long guarded_call(const uint64_t *word, uint64_t expected, long number, const long arguments[5]);

#endif
