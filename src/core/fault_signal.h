/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Handlers of SIGSEGV and SIGBUS that let the program have its own: softhca's handler is put before the one that was there, and passes
 * every fault on that it does not repair. A program that installs a handler later replaces softhca's. The handler is
 * installed only if the user asked for something that needs it (explanations, a timeline).
 *
 * Owner: the process. Watchers are added while devices are made, by one thread at a time, and stay.
 */
#ifndef SOFTHCA_CORE_FAULT_SIGNAL_H
#define SOFTHCA_CORE_FAULT_SIGNAL_H

#include <signal.h>
#include <stdbool.h>

/**
 * Called in the handler, on the thread of the fault. Returns true if the fault is repaired, and the instruction may run again. Must be
 * async-signal-safe unless it knows which code has faulted. errno is kept.
 */
typedef bool fault_watcher(int signal, const siginfo_t *info, const void *context);

/** Adds @watcher, and installs the handlers if it is the first. A watcher that is there already is not added again. */
void fault_signal_watch(fault_watcher *watcher);

/** Returns true if at least @bytes of stack are left for the handler with @context: it may run on a small sigaltstack(2). */
bool fault_signal_has_stack(const void *context, size_t bytes);

#endif
