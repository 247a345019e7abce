/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * AES-XTS (IEEE Std 1619-2007 5.3) from single AES blocks, for keys whose two halves are equal: adapters take them
 * (mlx5-formats 1.12), and OpenSSL, which decrypts with them, does not encrypt. Slow; only where xts.h has no instructions.
 */
#ifndef SOFTHCA_BLOCK_XTS_BLOCKS_H
#define SOFTHCA_BLOCK_XTS_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <openssl/evp.h>

/**
 * Encrypts a data unit of @bytes, 16 or more, with its @tweak. @ecb encrypts blocks by the half of the key, without padding; one
 * thread at a time uses it. @to may be @from, else they do not overlap. Returns false if OpenSSL refuses, and then @to is undefined.
 */
bool xts_encrypt_by_blocks(EVP_CIPHER_CTX *ecb, const uint8_t tweak[16], uint8_t *to, const uint8_t *from,
			   size_t bytes);

#endif
