/* SPDX-License-Identifier: BSD-2-Clause */
/* The pointers by which src/lint/ is called, see lint.h. */
#include "verbs/object/lint.h"

const struct lint_driver *lint_driver;
const struct lint_hooks *lint_hooks;
