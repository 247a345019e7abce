/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Handlers of SIGSEGV and SIGBUS that coexist with the program's own: softhca's passes faults that it does not repair
 * to the handler that was there before. A handler that the program installs later replaces softhca's, until the program
 * restores the one before. Installed only if the user enabled explanations or a timeline, or while the program has
 * queues in its own memory (progress/program_memory.h) or storing threads ring their doorbells
 * (progress/storing_thread.h). A leaf lock covers installing; watchers are never removed.
 */
#ifndef SOFTHCA_CORE_FAULT_SIGNAL_H
#define SOFTHCA_CORE_FAULT_SIGNAL_H

#include <signal.h>
#include <stdbool.h>

/**
 * Called in the handler, on the faulting thread. Returns true if the instruction may run again. Must be
 * async-signal-safe unless it knows which code has faulted. errno is preserved.
 */
typedef bool fault_watcher(int signal, const siginfo_t *info, const void *context);

/** Adds @watcher, which is called while the handlers are installed. Returns false if it is there. Any thread may call. */
bool fault_signal_add(fault_watcher *watcher);

/** Adds @watcher, and installs the handlers permanently. Any thread may call. */
void fault_signal_watch(fault_watcher *watcher);

/** Install the handlers, and remove them after as many releases. Any thread may call. */
void fault_signal_hold(void);
void fault_signal_release(void);

/** Returns true while the handlers are installed. Any thread may call. */
bool fault_signal_is_held(void);

/** Returns true if a fault of the calling thread would reach the handlers now. Three system calls. */
bool fault_signal_reaches_thread(void);

/**
 * Returns true if a fault of any thread of the process would reach the handlers now: no thread blocks SIGSEGV, which
 * would end the process, and no debugger stops the program at each signal (proc(5), task/TID/status). Reads a file for
 * each thread. A thread that blocks the signal later is not seen.
 */
bool fault_signal_reaches_all_threads(void);

/* Around fork(2). */
void fault_signal_before_fork(void);
void fault_signal_after_fork(bool child);

/**
 * Returns true if the handler with @context, which may run on a small sigaltstack(2), has at least @bytes of stack
 * left.
 */
bool fault_signal_has_stack(const void *context, size_t bytes);

#endif
