/* SPDX-License-Identifier: BSD-2-Clause */
/* LIMIT_MAX_QP, …, from limits.def. Each has its own enum, so that a limit of 64 bits does not widen the others. */
#ifndef SOFTHCA_CORE_LIMITS_H
#define SOFTHCA_CORE_LIMITS_H

#include <stdint.h>

#define LIMIT(NAME, value, ...) enum { LIMIT_##NAME = (value) };
#include "core/limits.def"

#endif
