/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copies between memory that may be unmapped or protected at any time. A fault ends the copy instead of the process:
 * the handler of SIGSEGV and SIGBUS (core/fault_signal.h) continues the thread at the end of the copy. Safe only while
 * that handler is installed and the calling thread does not block the two signals.
 */
#ifndef SOFTHCA_CORE_GUARDED_COPY_H
#define SOFTHCA_CORE_GUARDED_COPY_H

#include <stdbool.h>
#include <stddef.h>

/** Returns true if this processor is supported. */
bool guarded_copy_works(void);

/**
 * Copies @size bytes. The last 1, 2, 4 or 8 bytes, and all aligned words before them, are copied by one load and one
 * store each, in ascending order. Returns false after a fault: a part may have been copied.
 */
bool guarded_copy(void *to, const void *from, size_t size);

/**
 * If the ucontext_t @context of a signal handler is inside guarded_copy(), moves it to the end of the copy, which then
 * returns false. Returns false if it is elsewhere. Async-signal-safe.
 */
bool guarded_copy_end(void *context);

#endif
