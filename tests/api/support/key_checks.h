/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks from both ends whether a key of the server of program.h is usable. */
#ifndef SOFTHCA_TESTS_API_SUPPORT_KEY_CHECKS_H
#define SOFTHCA_TESTS_API_SUPPORT_KEY_CHECKS_H

#include "support/program.h"

/** Configures a key over two pieces, with all rights. @layout gets the model. */
struct view lay_sample(struct mlx5dv_mkey *mkey, struct layout *layout);

/** Checks that the key has all rights and the layout of @key: every byte is accessible, and none after it. */
#define expect_key_reaches(key) expect_key_reaches_(HERE, key)
void expect_key_reaches_(struct place place, struct view key);

/** Checks that neither the peer nor the key's own side can use the first byte of the key. */
#define expect_key_unusable(key) expect_key_unusable_(HERE, key)
void expect_key_unusable_(struct place place, struct view key);

#endif
