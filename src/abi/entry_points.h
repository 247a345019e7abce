/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * softhca_NAME for each symbol NAME of libibverbs.so.1 and libmlx5.so.1 that is IMPLEMENTED in the tables, with the
 * contract of NAME's man page. Their definitions include this header, so that the compiler checks definition and
 * front-end against one prototype.
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

/** Explains that @call (a constant string) is not supported. Returns EOPNOTSUPP. Any thread. */
SOFTHCA_API int softhca_not_supported(const char *call);

/** For a call that only probes for the feature: the explanation is recorded but not printed. */
SOFTHCA_API int softhca_not_offered(const char *call);

#endif
