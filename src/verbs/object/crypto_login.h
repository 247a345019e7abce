/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Crypto logins: the session of a context (mlx5dv_crypto_login(3)) and the login object
 * (mlx5dv_crypto_login_create(3)). A context has one of them at a time. Its mutex covers the session; the program owns
 * the object.
 */
#ifndef SOFTHCA_VERBS_OBJECT_CRYPTO_LOGIN_H
#define SOFTHCA_VERBS_OBJECT_CRYPTO_LOGIN_H

#include "verbs/object/objects.h"

struct user_crypto_login {
	struct ibv_context *context;
	struct hca_login *device;
	struct alive alive;
};

#endif
