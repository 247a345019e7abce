/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Symbols of libsofthca.so.0 are hidden except the functions marked SOFTHCA_API, which libibverbs.so.1, libmlx5.so.1
 * and the softhca command call. src/softhca.map gives them their version node.
 */
#ifndef SOFTHCA_CORE_VISIBILITY_H
#define SOFTHCA_CORE_VISIBILITY_H

#define SOFTHCA_API __attribute__((visibility("default")))

/*
 * Marks a variable declaration as defined in the library itself. Without it compilers look up its address at each
 * access.
 */
#define SOFTHCA_OWN __attribute__((visibility("hidden")))

#endif
