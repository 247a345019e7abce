/* SPDX-License-Identifier: BSD-2-Clause */
/* Whether a key of the server of program.h is usable, seen from both ends. */
#ifndef SOFTHCA_TESTS_API_SUPPORT_KEY_CHECKS_H
#define SOFTHCA_TESTS_API_SUPPORT_KEY_CHECKS_H

#include "support/program.h"

/** A key over two pieces, with all rights. @layout gets the model. */
struct view lay_sample(struct mlx5dv_mkey *mkey, struct layout *layout);

/** The key has all rights, and its layout is that of @key: all of it is reached, and nothing behind it. */
#define expect_key_reaches(key) expect_key_reaches_(HERE, key)
void expect_key_reaches_(struct place place, struct view key);

/** Neither the peer nor its own side can use the first byte of the key. */
#define expect_key_unusable(key) expect_key_unusable_(HERE, key)
void expect_key_unusable_(struct place place, struct view key);

#endif
