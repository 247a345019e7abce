/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The names of the public API, for a program that contains the library instead of linking the two front-ends, as
 * required to replace the device's link. Generated from the tables of the front-ends.
 */
#include "abi/entry_points.h"

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

/* In parentheses, since some are also macros of verbs.h. */
#define NAME_IMPLEMENTED(name, type, parameters, arguments)                                                            \
	type(name) parameters                                                                                          \
	{                                                                                                              \
		return softhca_##name arguments;                                                                       \
	}
#define NAME_LATER(name, type, parameters, arguments)
#define NAME_UNSUPPORTED(name, type, parameters, arguments)
#define NAME_PROBED(name, type, parameters, arguments)

#define SYMBOL(name, version, state, kind, test, type, parameters, arguments)                                          \
	NAME_##state(name, type, parameters, arguments)
#define PRIVATE_SYMBOL(...)
#include "abi/verbs.def"

#define SYMBOL(name, version, state, kind, test, type, parameters, arguments)                                          \
	NAME_##state(name, type, parameters, arguments)
#include "abi/mlx5dv.def"
