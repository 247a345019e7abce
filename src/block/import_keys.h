/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a crypto officer stores on an adapter before wrapped keys can be used: import KEKs and credentials, by id
 * (mlx5dv_crypto_login(3)). Here a file does it, SOFTHCA_CRYPTO_FILE:
 *
 *   # comment
 *   import_kek ID HEX    16 or 32 bytes
 *   credential ID HEX    40 bytes
 *
 * Read once, when the device is made; constant afterwards. Part of struct hca.
 */
#ifndef SOFTHCA_BLOCK_IMPORT_KEYS_H
#define SOFTHCA_BLOCK_IMPORT_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/limits.h"

#define CREDENTIAL_BYTES 40

struct import_kek {
	uint32_t id;
	unsigned int bytes;
	uint8_t value[32];
};

struct credential {
	uint32_t id;
	uint8_t value[CREDENTIAL_BYTES];
};

struct import_keys {
	struct import_kek keks[LIMIT_MAX_IMPORT_KEK];
	struct credential credentials[LIMIT_MAX_CREDENTIAL];
	unsigned int kek_count, credential_count;
};

/** The text of SOFTHCA_CRYPTO_FILE that stands for keys known to everybody: KEK 0 and credential 0. */
#define IMPORT_KEYS_BUILT_IN "built-in"

/**
 * Fills @keys from the file @path, or IMPORT_KEYS_BUILT_IN. Returns 0, or -EINVAL or another -errno with a line on
 * what is wrong in @error, and @keys empty.
 */
int import_keys_load(struct import_keys *keys, const char *path, char *error, size_t size);

/** The KEK, the credential @id; NULL if there is none, or @keys is NULL. */
const struct import_kek *import_kek_find(const struct import_keys *keys, uint32_t id);
const struct credential *credential_find(const struct import_keys *keys, uint32_t id);

/**
 * RFC 3394 key unwrap: @bytes of @from, a multiple of 8 and at least 24, give @bytes - 8 at @to. Returns false if they
 * were not wrapped by @kek.
 */
bool import_unwrap(const struct import_kek *kek, void *to, const void *from, size_t bytes);

#endif
