/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * AES-XTS encryption (IEEE Std 1619-2007 5.3) from single AES blocks, for keys with two equal halves, which adapters
 * accept (mlx5-formats 1.12) but OpenSSL's encryption does not. Slow.
 */
#ifndef SOFTHCA_BLOCK_XTS_BLOCKS_H
#define SOFTHCA_BLOCK_XTS_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <openssl/evp.h>

/**
 * Encrypts a data unit of @bytes, 16 or more. @ecb: one half of the key, without padding; one thread at a time. @to may
 * equal @from, but not overlap it otherwise. Returns false, with @to undefined, if OpenSSL refuses.
 */
bool xts_encrypt_by_blocks(EVP_CIPHER_CTX *ecb, const uint8_t tweak[16], uint8_t *to, const uint8_t *from,
			   size_t bytes);

#endif
