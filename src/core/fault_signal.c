/* SPDX-License-Identifier: BSD-2-Clause */
/* Chained handlers of SIGSEGV and SIGBUS, see fault_signal.h. */
#include "core/fault_signal.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>

#define MOST_WATCHERS 2

static fault_watcher *watchers[MOST_WATCHERS]; /* atomic */
static struct sigaction before_segv, before_bus;

/* Handles the fault as if softhca's handler were not installed. */
static void fault_pass_on(struct sigaction *before, int signal, siginfo_t *info, void *context)
{
	const struct sigaction plain = {.sa_handler = SIG_DFL};
	struct sigaction now = *before;

	if (now.sa_flags & SA_RESETHAND)
		*before = plain;
	if (now.sa_flags & SA_SIGINFO) {
		now.sa_sigaction(signal, info, context);
	} else if (now.sa_handler != SIG_DFL && now.sa_handler != SIG_IGN) {
		now.sa_handler(signal);
	} else if (info->si_code > 0) {
		/* The instruction faults again, and the process ends there. */
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
	bool repaired = false;

	/* Only faults are examined: a signal that was sent has no address. */
	for (int i = 0; i < MOST_WATCHERS && !repaired && info->si_code > 0; i++) {
		fault_watcher *watcher = __atomic_load_n(&watchers[i], __ATOMIC_ACQUIRE);

		repaired = watcher && watcher(signal, info, context);
	}
	if (!repaired)
		fault_pass_on(signal == SIGBUS ? &before_bus : &before_segv, signal, info, context);
	errno = error;
}

/* Installs the handler with the stack and mask of the previous one. */
static void fault_handler_install(int signal, struct sigaction *before)
{
	struct sigaction action = {.sa_sigaction = fault_handle};

	if (sigaction(signal, NULL, before))
		return;
	action.sa_flags = SA_SIGINFO | (before->sa_flags & (SA_ONSTACK | SA_NODEFER | SA_RESTART));
	action.sa_mask = before->sa_mask;
	if (!(before->sa_flags & SA_SIGINFO) && before->sa_handler == SIG_DFL)
		action.sa_flags |= SA_ONSTACK;
	sigaction(signal, &action, NULL);
}

void fault_signal_watch(fault_watcher *watcher)
{
	int free = 0;

	while (free < MOST_WATCHERS && watchers[free] && watchers[free] != watcher)
		free++;
	if (free == MOST_WATCHERS || watchers[free])
		return;
	if (!free) {
		fault_handler_install(SIGSEGV, &before_segv);
		fault_handler_install(SIGBUS, &before_bus);
	}
	__atomic_store_n(&watchers[free], watcher, __ATOMIC_RELEASE);
}

bool fault_signal_has_stack(const void *context, size_t bytes)
{
	const stack_t *stack = &((const ucontext_t *)context)->uc_stack;
	uintptr_t here = (uintptr_t)__builtin_frame_address(0), bottom = (uintptr_t)stack->ss_sp;

	return stack->ss_flags & SS_DISABLE || here - bottom >= stack->ss_size || here - bottom >= bytes;
}
