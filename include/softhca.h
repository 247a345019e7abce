/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * softhca.h: what a program may ask of the software device beyond verbs and mlx5dv.
 *
 * Link with `pkg-config --libs softhca`. All functions may be called from any thread.
 */
#ifndef SOFTHCA_H
#define SOFTHCA_H

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/* Version of the loaded library as "major.minor.patch"; a constant string. */
const char *softhca_version(void);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
