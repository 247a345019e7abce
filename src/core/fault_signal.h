/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Handlers of SIGSEGV and SIGBUS that coexist with the program's own. softhca's handler is installed before the
 * existing one and passes on every fault that it does not repair. A handler that the program installs later replaces
 * softhca's. The handler is installed only if the user enabled a feature that needs it (explanations, a timeline).
 *
 * Owner: the process. Watchers are added while devices are made, by one thread at a time, and are never removed.
 */
#ifndef SOFTHCA_CORE_FAULT_SIGNAL_H
#define SOFTHCA_CORE_FAULT_SIGNAL_H

#include <signal.h>
#include <stdbool.h>

/**
 * Called in the handler, on the faulting thread. Returns true if the fault is repaired and the instruction may run
 * again. Must be async-signal-safe unless it knows which code has faulted. errno is preserved.
 */
typedef bool fault_watcher(int signal, const siginfo_t *info, const void *context);

/** Adds @watcher once, and installs the handlers if it is the first. */
void fault_signal_watch(fault_watcher *watcher);

/**
 * Returns true if the handler with @context has at least @bytes of stack left: it may run on a small sigaltstack(2).
 */
bool fault_signal_has_stack(const void *context, size_t bytes);

#endif
