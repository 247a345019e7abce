/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Handlers of SIGSEGV and SIGBUS that coexist with the program's own. softhca's handler is installed before the
 * existing one and passes on every fault that it does not repair. A handler that the program installs later replaces
 * softhca's, until the program restores the one before. The handler is installed only if the user enabled a feature
 * that needs it (explanations, a timeline), or while the program has queues in its own memory
 * (progress/program_memory.h).
 *
 * Owner: the process. A leaf lock covers installing; watchers are never removed.
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

/** Adds @watcher once, and installs the handlers if it is the first. Any thread may call. */
void fault_signal_watch(fault_watcher *watcher);

/**
 * Install the handlers for guarded_copy(), and remove them after as many calls of fault_signal_release()
 * unless a watcher remains. Any thread may call.
 */
void fault_signal_hold(void);
void fault_signal_release(void);

/** Returns true between the installation and the removal of the handlers. Any thread may call. */
bool fault_signal_is_held(void);

/**
 * Returns true if a fault of the calling thread would reach the handlers now: the program has not replaced them, and
 * the thread blocks neither signal. Three system calls.
 */
bool fault_signal_reaches_thread(void);

/* Around fork(2). */
void fault_signal_before_fork(void);
void fault_signal_after_fork(bool child);

/**
 * Returns true if the handler with @context has at least @bytes of stack left: it may run on a small sigaltstack(2).
 */
bool fault_signal_has_stack(const void *context, size_t bytes);

#endif
