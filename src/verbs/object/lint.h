/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The driver's interface to warnings about misuse (SOFTHCA_LINT, docs/use/lint.md): a table of hooks that src/lint/
 * registers when the library is loaded.
 *
 * Without warnings a call that creates or destroys an object tests one pointer, and the data path tests nothing:
 * posting and polling with hooks are separate functions, selected when a context is opened or a queue pair or CQ is
 * created.
 */
#ifndef SOFTHCA_VERBS_OBJECT_LINT_H
#define SOFTHCA_VERBS_OBJECT_LINT_H

#include <stdbool.h>
#include <stdint.h>

#include "core/compiler.h"
#include "verbs/object/objects.h"

/* The hooks, each as verbs/object/lint_hooks.def describes it. All are set. */
struct lint_hooks {
#define LINT_HOOK(name, parameters) void(*name) parameters;
#include "verbs/object/lint_hooks.def"
#undef LINT_HOOK
};

/* Functions that src/lint/ registers. Both are set. */
struct lint_driver {
	/*
	 * Reads the setting on the first call, and sets lint_hooks if it requests warnings. The caller holds no lock.
	 * Any thread, several at once.
	 */
	void (*start)(void);
	/*
	 * Records that the program called ibv_fork_init(3), or ibv_is_fork_initialized(3), which reports that it is
	 * not needed. Any thread, at any time, also before start().
	 */
	void (*fork_prepared)(void);
};

/* Constant from the time when the library is loaded. NULL in a program that is linked without src/lint/. */
extern const struct lint_driver *lint_driver;

/* NULL unless warnings are requested. Constant after the first lint_start(). */
extern const struct lint_hooks *lint_hooks;

static inline bool lint_is_on(void)
{
	return unlikely(lint_hooks);
}

/* LINT(qp_created, qp) calls the hook if warnings are on. */
#define LINT(hook, ...)                                                                                                \
	do {                                                                                                           \
		if (lint_is_on())                                                                                      \
			lint_hooks->hook(__VA_ARGS__);                                                                 \
	} while (0)

/** Calls lint_driver->start(). The caller holds no lock. Any thread, several at once. */
static inline void lint_start(void)
{
	if (lint_driver)
		lint_driver->start();
}

/** Calls lint_driver->fork_prepared(). Any thread, at any time. */
static inline void lint_fork_prepared(void)
{
	if (lint_driver)
		lint_driver->fork_prepared();
}

#endif
