/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The bodies behind the two front-ends: softhca_NAME for each symbol NAME that the tables call IMPLEMENTED,
 * with the prototype and the contract of NAME's man page. Defined in src/verbs and src/mlx5dv, whose files
 * include this header, so that the compiler holds definition and forward to one prototype.
 */
#ifndef SOFTHCA_ABI_ENTRY_POINTS_H
#define SOFTHCA_ABI_ENTRY_POINTS_H

#include <stdbool.h>
#include <stdio.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

#include "abi/undeclared.h"
#include "core/visibility.h"

#define ENTRY_IMPLEMENTED(body, type, parameters) SOFTHCA_API type body parameters;
#define ENTRY_LATER(body, type, parameters)
#define ENTRY_UNSUPPORTED(body, type, parameters)
#define ENTRY_PROBED(body, type, parameters)

#define SYMBOL(name, version, state, kind, test, type, parameters, arguments)                                          \
	ENTRY_##state(softhca_##name, type, parameters)
#define OLD(name, suffix, version, state, kind, test, type, parameters, arguments)                                     \
	ENTRY_##state(softhca_##name##_##suffix, type, parameters)
#include "abi/verbs.def"

#define SYMBOL(name, version, state, kind, test, type, parameters, arguments)                                          \
	ENTRY_##state(softhca_##name, type, parameters)
#define OLD(name, suffix, version, state, kind, test, type, parameters, arguments)                                     \
	ENTRY_##state(softhca_##name##_##suffix, type, parameters)
#include "abi/mlx5dv.def"

#undef ENTRY_IMPLEMENTED
#undef ENTRY_LATER
#undef ENTRY_UNSUPPORTED
#undef ENTRY_PROBED

/**
 * What every symbol calls that is not implemented: leaves an explanation under the name @call (a constant
 * string). Returns EOPNOTSUPP. Any thread.
 */
SOFTHCA_API int softhca_not_supported(const char *call);

/** The same for a call by which a program only asks: the record has no line. */
SOFTHCA_API int softhca_not_offered(const char *call);

#endif
