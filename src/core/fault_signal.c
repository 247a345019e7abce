/* SPDX-License-Identifier: BSD-2-Clause */
/* Chained handlers of SIGSEGV and SIGBUS. */
#include "core/fault_signal.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>

#include "core/guarded_copy.h"
#include "core/thread.h"

#define MOST_WATCHERS 3

static fault_watcher *watchers[MOST_WATCHERS]; /* atomic */
static struct sigaction before_segv, before_bus;

/* Protects the next variables, and the addition of watchers. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t holders;
static bool installed;                 /* atomic */
static bool chained_segv, chained_bus; /* a later handler of the program may call softhca's */

/* Blocks the signals that are blocked when the kernel calls the handler of @action. */
static void fault_block_as(const struct sigaction *action, int signal, const ucontext_t *context)
{
	sigset_t blocked;

	sigorset(&blocked, &context->uc_sigmask, &action->sa_mask);
	if (!(action->sa_flags & SA_NODEFER))
		sigaddset(&blocked, signal);
	pthread_sigmask(SIG_SETMASK, &blocked, NULL);
}

/* Handles the fault as if softhca's handler were not installed. */
static void fault_pass_on(struct sigaction *before, int signal, siginfo_t *info, void *context)
{
	const struct sigaction plain = {.sa_handler = SIG_DFL};
	struct sigaction now = *before;

	if (now.sa_flags & SA_RESETHAND)
		*before = plain;
	fault_block_as(&now, signal, context);
	if (now.sa_flags & SA_SIGINFO) {
		now.sa_sigaction(signal, info, context);
	} else if (now.sa_handler != SIG_DFL && now.sa_handler != SIG_IGN) {
		now.sa_handler(signal);
	} else if (info->si_code > 0) {
		/* The instruction faults again and ends the process. */
		sigaction(signal, &plain, NULL);
	} else if (now.sa_handler == SIG_DFL) {
		/* A signal that was sent must be sent again. */
		sigaction(signal, &plain, NULL);
		raise(signal);
	}
}

static void fault_handle(int signal, siginfo_t *info, void *context)
{
	int error = errno;

	/* A signal that was sent has no address. */
	bool repaired = info->si_code > 0 && guarded_copy_end(context);

	for (int i = 0; i < MOST_WATCHERS && !repaired && info->si_code > 0; i++) {
		fault_watcher *watcher = __atomic_load_n(&watchers[i], __ATOMIC_ACQUIRE);

		repaired = watcher && watcher(signal, info, context);
	}
	if (!repaired)
		fault_pass_on(signal == SIGBUS ? &before_bus : &before_segv, signal, info, context);
	errno = error;
}

static bool handler_is(const struct sigaction *action, const struct sigaction *other)
{
	return (action->sa_flags & SA_SIGINFO) == (other->sa_flags & SA_SIGINFO) &&
	       action->sa_handler == other->sa_handler;
}

static bool handler_is_function(const struct sigaction *action)
{
	return action->sa_flags & SA_SIGINFO || (action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN);
}

static bool fault_handler_is_there(int signal)
{
	const struct sigaction ours = {.sa_sigaction = fault_handle, .sa_flags = SA_SIGINFO};
	struct sigaction now;

	return !sigaction(signal, NULL, &now) && handler_is(&now, &ours);
}

/*
 * Installs the handler on the stack of the current one. It blocks all signals but those of faults, since a watcher may
 * run the device. A handler that the program installed after softhca's may call softhca's, so softhca's must not call
 * it in turn.
 */
static void fault_handler_install(int signal, struct sigaction *before, bool *chained)
{
	struct sigaction action = {.sa_sigaction = fault_handle}, now;

	if (fault_handler_is_there(signal) || sigaction(signal, NULL, &now) ||
	    (*chained && handler_is_function(&now) && !handler_is(&now, before)))
		return;
	*before = now;
	*chained = true;
	action.sa_flags = SA_SIGINFO | SA_NODEFER | (now.sa_flags & (SA_ONSTACK | SA_RESTART));
	thread_signals_to_block(&action.sa_mask);
	if (!(now.sa_flags & SA_SIGINFO) && now.sa_handler == SIG_DFL)
		action.sa_flags |= SA_ONSTACK;
	sigaction(signal, &action, NULL);
}

/* The lock is held. */
static void fault_handlers_install(void)
{
	fault_handler_install(SIGSEGV, &before_segv, &chained_segv);
	fault_handler_install(SIGBUS, &before_bus, &chained_bus);
	__atomic_store_n(&installed, true, __ATOMIC_RELEASE);
}

/* Restores one handler unless the program has replaced softhca's. The lock is held. */
static void fault_handler_remove(int signal, const struct sigaction *before, bool *chained)
{
	if (fault_handler_is_there(signal))
		*chained = sigaction(signal, before, NULL);
}

void fault_signal_hold(void)
{
	pthread_mutex_lock(&lock);
	holders++;
	fault_handlers_install();
	pthread_mutex_unlock(&lock);
}

void fault_signal_release(void)
{
	pthread_mutex_lock(&lock);
	if (!--holders && installed) {
		__atomic_store_n(&installed, false, __ATOMIC_RELEASE);
		fault_handler_remove(SIGSEGV, &before_segv, &chained_segv);
		fault_handler_remove(SIGBUS, &before_bus, &chained_bus);
	}
	pthread_mutex_unlock(&lock);
}

bool fault_signal_is_held(void)
{
	return __atomic_load_n(&installed, __ATOMIC_ACQUIRE);
}

bool fault_signal_reaches_thread(void)
{
	sigset_t blocked;

	return !pthread_sigmask(SIG_BLOCK, NULL, &blocked) && !sigismember(&blocked, SIGSEGV) &&
	       !sigismember(&blocked, SIGBUS) && fault_handler_is_there(SIGSEGV) && fault_handler_is_there(SIGBUS);
}

bool fault_signal_add(fault_watcher *watcher)
{
	int free = 0;
	bool added;

	pthread_mutex_lock(&lock);
	while (free < MOST_WATCHERS && watchers[free] && watchers[free] != watcher)
		free++;
	added = free < MOST_WATCHERS && !watchers[free];
	if (added)
		__atomic_store_n(&watchers[free], watcher, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&lock);
	return added;
}

void fault_signal_watch(fault_watcher *watcher)
{
	if (fault_signal_add(watcher))
		fault_signal_hold();
}

void fault_signal_before_fork(void)
{
	pthread_mutex_lock(&lock);
}

void fault_signal_after_fork(bool child)
{
	(void)child;
	pthread_mutex_unlock(&lock);
}

bool fault_signal_has_stack(const void *context, size_t bytes)
{
	const stack_t *stack = &((const ucontext_t *)context)->uc_stack;
	uintptr_t here = (uintptr_t)__builtin_frame_address(0), bottom = (uintptr_t)stack->ss_sp;

	return stack->ss_flags & SS_DISABLE || here - bottom >= stack->ss_size || here - bottom >= bytes;
}
