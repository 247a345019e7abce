/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Symbols of libsofthca.so.0 are hidden except SOFTHCA_API functions, which libibverbs.so.1, libmlx5.so.1 and the
 * softhca command call. src/softhca.map gives them their version node.
 */
#ifndef SOFTHCA_CORE_VISIBILITY_H
#define SOFTHCA_CORE_VISIBILITY_H

#define SOFTHCA_API __attribute__((visibility("default")))

/* Marks a variable as defined in the library itself; otherwise compilers look up its address at each access. */
#define SOFTHCA_OWN __attribute__((visibility("hidden")))

#endif
