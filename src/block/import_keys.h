/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Import KEKs and credentials, by id, for wrapped keys (mlx5dv_crypto_login(3)). On an adapter a crypto officer stores
 * them; here they come from the file SOFTHCA_CRYPTO_FILE:
 *
 *   # comment
 *   import_kek ID HEX    16 or 32 bytes
 *   credential ID HEX    40 bytes
 *
 * The file is read once, when the device is created. Part of struct hca.
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

/** Selects publicly known keys: KEK 0 and credential 0. */
#define IMPORT_KEYS_BUILT_IN "built-in"

/**
 * Fills @keys from the file @path, or IMPORT_KEYS_BUILT_IN. Returns 0, or a negative errno with @keys empty and a
 * description in @error.
 */
int import_keys_load(struct import_keys *keys, const char *path, char *error, size_t size);

/** Return NULL if @id is not found, or @keys is NULL. */
const struct import_kek *import_kek_find(const struct import_keys *keys, uint32_t id);
const struct credential *credential_find(const struct import_keys *keys, uint32_t id);

/**
 * Unwraps @bytes (RFC 3394), a multiple of 8 and at least 24, to @bytes - 8. Returns false if they were not wrapped by
 * @kek.
 */
bool import_unwrap(const struct import_kek *kek, void *to, const void *from, size_t bytes);

#endif
