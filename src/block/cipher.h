/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Data encryption keys and AES-XTS over data units (mlx5dv_wr_set_mkey_crypto(3), mlx5dv_dek_create(3)).
 *
 * Destroying a DEK makes its id unknown; mkeys that are configured with it hold a reference and continue to work until
 * they are reconfigured, as on an adapter. Any thread may use a DEK; concurrent users do not wait for each other.
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
	unsigned int key_bytes; /* both keys together: 32 (AES-128) or 64 (AES-256) */
	uint8_t key[64];
	bool has_keytag;
	uint8_t keytag[8];
};

/** Creates a DEK and stores its object id (24 bits, not 0) in @id. Returns 0, -EINVAL, -ENOMEM. */
int dek_create(struct hca *hca, const struct dek_attr *attr, uint32_t *id);
/** Makes @id unknown. Returns 0 or -ENOENT. */
int dek_destroy(struct hca *hca, uint32_t id);

/** Returns DEK @id with a reference that dek_put() releases, or NULL. May be called inside epoch sections. */
struct dek *dek_get(struct hca *hca, uint32_t id);
void dek_hold(struct dek *dek);
void dek_put(struct dek *dek);

uint32_t dek_pd(const struct dek *dek);
/** Returns true if @dek has no tag, or @keytag (mlx5dv_dek_create(3), has_keytag). */
bool dek_accepts_keytag(const struct dek *dek, const uint8_t keytag[8]);

struct cipher_units {
	bool encrypt;
	size_t unit;       /* bytes, at least 16 */
	uint8_t tweak[16]; /* tweak of data unit 0 of the message, little-endian (initial_tweak) */
	uint64_t first;    /* number of the first unit; its tweak is `tweak` + `first`, 128 bits */
};

/**
 * Transforms @bytes of whole data units. The last may be shorter, but not below 16 bytes (IEEE 1619). @to may equal
 * @from, but not overlap it otherwise. Returns 0, or -EIO, with @to undefined, if the cipher refuses.
 */
int cipher_transform(struct dek *dek, const struct cipher_units *units, void *to, const void *from, size_t bytes);

/** Handlers around a fork: hold the lock under which OpenSSL creates contexts. */
void ciphers_before_fork(void);
void ciphers_after_fork(bool child);

#endif
