/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * AES-XTS encryption (IEEE Std 1619-2007 5.3) built from single AES blocks, for keys with two equal halves: adapters
 * accept them (mlx5-formats 1.12), while OpenSSL decrypts but does not encrypt with them. Slow; used only on CPUs
 * without the instructions of xts.h.
 */
#ifndef SOFTHCA_BLOCK_XTS_BLOCKS_H
#define SOFTHCA_BLOCK_XTS_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <openssl/evp.h>

/**
 * Encrypts a data unit of @bytes, 16 or more, with its @tweak. @ecb encrypts blocks with one half of the key, without padding;
 * one thread at a time may use it. @to may equal @from; otherwise they must not overlap. Returns false, with @to undefined, if
 * OpenSSL refuses.
 */
bool xts_encrypt_by_blocks(EVP_CIPHER_CTX *ecb, const uint8_t tweak[16], uint8_t *to, const uint8_t *from,
			   size_t bytes);

#endif
