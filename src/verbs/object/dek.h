/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The driver's DEKs (mlx5dv_dek_create(3)), owned by the program. A DEK keeps a reference to its PD. Constant once
 * created.
 */
#ifndef SOFTHCA_VERBS_OBJECT_DEK_H
#define SOFTHCA_VERBS_OBJECT_DEK_H

#include "verbs/object/objects.h"

struct user_dek {
	struct user_pd *pd;
	uint32_t id;
	bool wrapped;
	char opaque[8];
	struct alive alive;
};

/** Returns the object id, 24 bits, by which a crypto BSF names @dek (mlx5-formats 1.12). */
static inline uint32_t user_dek_id(const struct mlx5dv_dek *dek)
{
	return ((const struct user_dek *)dek)->id;
}

#endif
