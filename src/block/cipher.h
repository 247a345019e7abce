/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Data encryption keys and AES-XTS over data units (mlx5dv_wr_set_mkey_crypto(3), mlx5dv_dek_create(3)). The cipher is
 * OpenSSL's, or the CPU's own (xts.h).
 *
 * A DEK belongs to the device and is named by its object id. Keys (mkeys) that are configured with it hold a reference:
 * destroying a DEK makes its id unknown, and what is configured with it goes on until it is configured anew, as the
 * device keeps a key that is in use. Any thread may use a DEK at any time; several at once do not wait for each other.
 */
#ifndef SOFTHCA_BLOCK_CIPHER_H
#define SOFTHCA_BLOCK_CIPHER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hca;
struct dek;

struct dek_attr {
	uint32_t pd;
	unsigned int key_bytes; /* of both keys together: 32 (AES-128) or 64 (AES-256) */
	uint8_t key[64];
	bool has_keytag;
	uint8_t keytag[8];
};

/** Makes a DEK of @hca with @attr; its object id (24 bits, not 0) in @id. Returns 0, -EINVAL, -ENOMEM. */
int dek_create(struct hca *hca, const struct dek_attr *attr, uint32_t *id);
/** Makes @id unknown. Returns 0 or -ENOENT. */
int dek_destroy(struct hca *hca, uint32_t id);

/** The DEK @id with a reference that dek_put() gives back; NULL if there is none. May be called inside epoch sections. */
struct dek *dek_get(struct hca *hca, uint32_t id);
/** One more reference to a DEK that the caller has one of. */
void dek_hold(struct dek *dek);
void dek_put(struct dek *dek);

uint32_t dek_pd(const struct dek *dek);
/** True if a key configured with @keytag may use @dek: it has no tag, or this one (mlx5dv_dek_create(3), has_keytag). */
bool dek_accepts_keytag(const struct dek *dek, const uint8_t keytag[8]);

/* Data units one after the other. */
struct cipher_units {
	bool encrypt;
	size_t unit;       /* bytes of a data unit, at least 16 */
	uint8_t tweak[16]; /* of data unit 0 of the message, little-endian (initial_tweak) */
	uint64_t first;    /* number of the first unit: its tweak is `tweak` + `first`, 128 bits */
};

/**
 * Transforms @bytes of whole data units, the last of which may be shorter but not below 16 bytes (IEEE 1619: ciphertext
 * stealing where a unit is not a multiple of 16). @to may be @from, else they do not overlap. Returns 0, or -EIO when
 * the cipher refuses (and then @to is undefined).
 */
int cipher_transform(struct dek *dek, const struct cipher_units *units, void *to, const void *from, size_t bytes);

/** Around a fork: holds the lock under which OpenSSL makes contexts. */
void ciphers_before_fork(void);
void ciphers_after_fork(bool child);

#endif
