/* SPDX-License-Identifier: BSD-2-Clause */
/* Pointers through which the driver calls src/lint/, see lint.h. */
#include "verbs/object/lint.h"

const struct lint_driver *lint_driver;
const struct lint_hooks *lint_hooks;
