/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Everything in libsofthca.so.0 is hidden but the functions marked SOFTHCA_API: those that libibverbs.so.1,
 * libmlx5.so.1 or the softhca command call. src/softhca.map gives them their version node.
 */
#ifndef SOFTHCA_CORE_VISIBILITY_H
#define SOFTHCA_CORE_VISIBILITY_H

#define SOFTHCA_API __attribute__((visibility("default")))

/* At the declaration of a variable: the library has it itself. Else compilers look up where it is at each access. */
#define SOFTHCA_OWN __attribute__((visibility("hidden")))

#endif
