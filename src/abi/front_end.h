/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Generates the functions of a front-end from a table: each calls its implementation in libsofthca.so.0 or, without
 * one, fails with EOPNOTSUPP as its kind prescribes. Included once by each front-end, before its table.
 *
 * A function is called front_NAME here and gets its real name and version from .symver: verbs.h defines macros with the
 * names of several symbols, and two versions of one name need two functions. The version script hides front_NAME.
 */
#ifndef SOFTHCA_ABI_FRONT_END_H
#define SOFTHCA_ABI_FRONT_END_H

#include <errno.h>
#include <stdarg.h>

#include "abi/entry_points.h"
#include "abi/private_nodes.h"
#include "abi/probes.h"

/* A stub does not read its arguments. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

#define EXPORT __attribute__((visibility("default")))

#define REFUSE_ERRNO(answer) return answer;
#define REFUSE_NEGATIVE_ERRNO(answer) return -(answer);
#define REFUSE_MINUS_ONE(answer)                                                                                       \
	errno = answer;                                                                                                \
	return -1;
#define REFUSE_NULL_ERRNO(answer)                                                                                      \
	errno = answer;                                                                                                \
	return NULL;
#define REFUSE_ZERO(answer)                                                                                            \
	errno = answer;                                                                                                \
	return 0;
#define REFUSE_NOTHING(answer) answer;

/* The optional argument after @last; undefined if the caller passed none. */
#define LONG_ARGUMENT_AFTER(last)                                                                                      \
	__extension__({                                                                                                \
		va_list list_;                                                                                         \
		long value_;                                                                                           \
		va_start(list_, last);                                                                                 \
		value_ = va_arg(list_, long);                                                                          \
		va_end(list_);                                                                                         \
		value_;                                                                                                \
	})

/* The arguments after @last, as a va_list * that stays valid until the function returns. */
#define LIST_AFTER(last)                                                                                               \
	__extension__({                                                                                                \
		va_list list_, *copy_ = __builtin_alloca(sizeof(list_));                                               \
		va_start(list_, last);                                                                                 \
		va_copy(*copy_, list_);                                                                                \
		va_end(list_);                                                                                         \
		copy_;                                                                                                 \
	})

/* Return types of symbols without a prototype. */
#define RETURNS_ERRNO int
#define RETURNS_MINUS_ONE int
#define RETURNS_NULL_ERRNO void *
#define RETURNS_ZERO __be64
#define RETURNS_NOTHING void

#define BODY_IMPLEMENTED(kind, call, body, arguments) return body arguments;
#define BODY_LATER(kind, call, body, arguments) REFUSE_##kind(softhca_not_supported(call))
#define BODY_UNSUPPORTED(kind, call, body, arguments) REFUSE_##kind(softhca_not_supported(call))
/* NAME_asks() recognises calls that only find out whether the device has the feature (abi/probes.h). */
#define BODY_PROBED(kind, call, body, arguments)                                                                       \
	REFUSE_##kind(body##_asks arguments ? softhca_not_offered(call) : softhca_not_supported(call))

#define DEFINE(front, versioned_name, type, parameters, ...)                                                           \
	EXPORT type front parameters;                                                                                  \
	__asm__(".symver " #front ", " versioned_name);                                                                \
	type front parameters                                                                                          \
	{                                                                                                              \
		__VA_ARGS__                                                                                            \
	}

#define SYMBOL(name, version, state, kind, test, type, parameters, arguments)                                          \
	DEFINE(front_##name, #name "@@" version, type, parameters,                                                     \
	       BODY_##state(kind, #name, softhca_##name, arguments))                                                   \
	_Static_assert(__builtin_types_compatible_p(__typeof__(name), __typeof__(front_##name)),                       \
		       #name ": the table and the header disagree");

#define STUB(name, version, kind, test)                                                                                \
	DEFINE(front_##name, #name "@@" version, RETURNS_##kind, (void), REFUSE_##kind(softhca_not_supported(#name)))

#define DATA(name, version, test, type)                                                                                \
	EXPORT extern type front_##name;                                                                               \
	__asm__(".symver front_" #name ", " #name "@@" version);                                                       \
	type front_##name;

/* Exports the function in a later private node as well, through an alias, since an assembler name has one version. */
#define AGAIN(node, name)                                                                                              \
	EXPORT extern __typeof__(front_##name) front_##name##_##node __attribute__((alias("front_" #name)));           \
	__asm__(".symver front_" #name "_" #node ", " #name "@IBVERBS_PRIVATE_" #node);

#define PRIVATE_SYMBOL(name, node, ...)                                                                                \
	SYMBOL(name, "IBVERBS_PRIVATE_" #node, __VA_ARGS__)                                                            \
	AFTER_##node(name)
#define PRIVATE_STUB(name, node, ...)                                                                                  \
	STUB(name, "IBVERBS_PRIVATE_" #node, __VA_ARGS__)                                                              \
	AFTER_##node(name)
#define PRIVATE_DATA(name, node, ...)                                                                                  \
	DATA(name, "IBVERBS_PRIVATE_" #node, __VA_ARGS__)                                                              \
	AFTER_##node(name)

#define OLD(name, suffix, version, state, kind, test, type, parameters, arguments)                                     \
	DEFINE(front_##name##_##suffix, #name "@" version, type, parameters,                                           \
	       BODY_##state(kind, #name "@" version, softhca_##name##_##suffix, arguments))

#define OLD_STUB(name, suffix, version, kind, test)                                                                    \
	DEFINE(front_##name##_##suffix, #name "@" version, RETURNS_##kind, (void),                                     \
	       REFUSE_##kind(softhca_not_supported(#name "@" version)))

#endif
