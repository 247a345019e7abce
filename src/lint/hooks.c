/* SPDX-License-Identifier: BSD-2-Clause */
/* Registers the functions of src/lint/ with the driver (verbs/lint.h). */
#include "lint/state.h"

static const struct lint_hooks hooks = {
#define LINT_HOOK(name, parameters) .name = lint_##name,
#include "verbs/lint_hooks.def"
#undef LINT_HOOK
};

static const struct lint_driver driver = {
	.start = lint_driver_start,
	.fork_prepared = lint_driver_fork_prepared,
};

void lint_hooks_enable(void)
{
	lint_hooks = &hooks;
}

static void __attribute__((constructor)) register_driver(void)
{
	lint_driver = &driver;
}
