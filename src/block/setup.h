/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The signature and cipher of a key, as configured by a UMR's BSFs (mlx5-formats 1.11, 1.12). Part of a mapping
 * (mkey/key.h).
 *
 * Signature fields are 64-bit big-endian numbers: the most significant byte is the first in memory. A field of four
 * bytes is in the upper half. A mask bit of mlx5dv_wr_set_mkey_sig_block(3) thus selects a byte of the number, and a
 * SIG_ERR CQE carries the number (mlx5-formats 3.5).
 */
#ifndef SOFTHCA_BLOCK_SETUP_H
#define SOFTHCA_BLOCK_SETUP_H

#include <stdbool.h>
#include <stdint.h>

#include "block/cipher.h"
#include "block/guard.h"

#define BLOCK_LARGEST 4160
#define FIELD_LARGEST 8

#define OCTOWORDS_OF_BSF 4

/* One side of a signature. */
struct signature_domain {
	uint8_t guard;    /* enum guard_type; GUARD_NONE: no signature */
	uint8_t field;    /* bytes: 0, 4 or 8 */
	bool ones;        /* seed: all ones, otherwise 0 */
	bool tags;        /* T10-DIF */
	bool increments;  /* the reference tag counts blocks (REF_REMAP) */
	bool escape_app;  /* APP_ESCAPE */
	bool escape_both; /* APP_REF_ESCAPE; takes precedence */
	uint16_t app_tag;
	uint32_t ref_tag;
	uint32_t block; /* bytes of data; without a signature, as in the other domain */
	uint32_t psv;
	/* One guard over all of the data; `field` is 4 if it is checked or generated, otherwise 0. */
	bool transaction;
	bool continues; /* begins with the state of the PSV, not with the seed */
};

struct signature_setup {
	bool enabled;
	bool same;        /* both domains have the same structure */
	bool transaction; /* a domain has a transaction signature */
	bool escape_all;  /* an escape skips all checks, not just the guard's (profile connectx) */
	uint64_t checked; /* bytes of the input field to check */
	uint64_t copied;  /* bytes of the output field taken from the input field */
	uint64_t limit;   /* most data bytes (raw_data_size) */
	struct signature_domain memory, wire;
};

struct cipher_setup {
	bool enabled;
	bool encrypts_on_tx; /* memory has plaintext, otherwise ciphertext */
	bool on_wire;        /* side of the signature (SIGNATURE_BEFORE_CRYPTO_ON_TX) */
	uint32_t unit;       /* bytes */
	uint8_t tweak[16];   /* tweak of unit 0, little-endian */
	struct dek *dek;     /* referenced */
};

struct block_setup {
	struct signature_setup signature;
	struct cipher_setup cipher;
};

/** Expands a mask of mlx5dv_wr_set_mkey_sig_block(3): bit 7 is the first byte in memory. */
static inline uint64_t signature_field_mask(uint8_t mask)
{
	uint64_t bytes = 0;

	for (int bit = 7; bit >= 0; bit--)
		bytes = bytes << 8 | (mask >> bit & 1 ? 0xff : 0);
	return bytes;
}

/** Returns the lowest bit of the guard in a field of @domain, which must have one. */
static inline unsigned int guard_shift(const struct signature_domain *domain)
{
	return domain->tags ? 48 : (64 - 8 * domain->field) & 63;
}

/** Returns the bytes between the beginnings of blocks. */
static inline uint32_t extended_block(const struct signature_domain *domain)
{
	return domain->block + domain->field;
}

#endif
