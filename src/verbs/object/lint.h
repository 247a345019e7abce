/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The driver's interface to warnings about misuse (SOFTHCA_LINT, docs/use/lint.md).
 *
 * Without warnings a call that creates or destroys an object tests one pointer, and the data path tests nothing
 * (verbs/object/observed.h).
 */
#ifndef SOFTHCA_VERBS_OBJECT_LINT_H
#define SOFTHCA_VERBS_OBJECT_LINT_H

#include <stdbool.h>
#include <stdint.h>

#include "core/compiler.h"
#include "verbs/object/objects.h"

/* The hooks of verbs/object/lint_hooks.def. All are set. */
struct lint_hooks {
#define LINT_HOOK(name, parameters) void(*name) parameters;
#include "verbs/object/lint_hooks.def"
#undef LINT_HOOK
};

/* Functions of src/lint/. Both are set. */
struct lint_driver {
	/*
	 * Reads the setting on the first call, and sets lint_hooks if warnings are on. The caller holds no lock. Any
	 * thread, several at once.
	 */
	void (*start)(void);
	/*
	 * Records a call of ibv_fork_init(3), or of ibv_is_fork_initialized(3), which reports that it is not needed.
	 * Any thread, at any time, also before start().
	 */
	void (*fork_prepared)(void);
};

/* Constant once the library is loaded. NULL in a program linked without src/lint/. */
extern const struct lint_driver *lint_driver;

/* NULL unless warnings are requested. Constant after the first lint_start(). */
extern const struct lint_hooks *lint_hooks;

static inline bool lint_is_on(void)
{
	return unlikely(lint_hooks);
}

#define LINT(hook, ...)                                                                                                \
	do {                                                                                                           \
		if (lint_is_on())                                                                                      \
			lint_hooks->hook(__VA_ARGS__);                                                                 \
	} while (0)

static inline void lint_start(void)
{
	if (lint_driver)
		lint_driver->start();
}

static inline void lint_fork_prepared(void)
{
	if (lint_driver)
		lint_driver->fork_prepared();
}

#endif
