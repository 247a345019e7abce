/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What lies between the memory domain and the wire domain of a key: its block signature and its cipher, as a UMR's BSFs
 * say (mlx5-formats 1.11, 1.12). A setup is part of a mapping (mkey/key.h): written while the mapping is edited, constant
 * once it is published.
 *
 * Signature fields are handled as numbers of 64 bits whose most significant byte is the first in memory; a field of four
 * bytes is in the upper half. So a mask bit of mlx5dv_wr_set_mkey_sig_block(3) is a byte of the number, and the number is
 * what a SIG_ERR CQE carries (mlx5-formats 3.5).
 */
#ifndef SOFTHCA_BLOCK_SETUP_H
#define SOFTHCA_BLOCK_SETUP_H

#include <stdbool.h>
#include <stdint.h>

#include "block/cipher.h"
#include "block/guard.h"

#define BLOCK_LARGEST 4160
#define FIELD_LARGEST 8

/* Octowords of a BSF. */
#define OCTOWORDS_OF_BSF 4

/* One side of a signature. */
struct signature_domain {
	uint8_t guard;    /* enum guard_type; GUARD_NONE: no signature */
	uint8_t field;    /* bytes of a field: 0, 4 or 8 */
	bool ones;        /* seed: all ones, else 0 */
	bool tags;        /* T10-DIF */
	bool increments;  /* the reference tag counts blocks (REF_REMAP) */
	bool escape_app;  /* APP_ESCAPE */
	bool escape_both; /* APP_REF_ESCAPE; goes before the other */
	uint16_t app_tag;
	uint32_t ref_tag;
	uint32_t block; /* bytes of data in a block; without a signature those of the other domain */
	uint32_t psv;
	/* One guard over all of the data, which is the one block; field: 4 where it is checked or made, else 0. */
	bool transaction;
	bool continues; /* its guard begins with what the PSV holds, else with the seed */
};

struct signature_setup {
	bool enabled;
	bool same;        /* the same structure in both domains: bytes may be copied */
	bool transaction; /* of one of the domains */
	bool escape_all;  /* an escape skips all checks, not just that of the guard (profile connectx) */
	uint64_t checked; /* of the input field */
	uint64_t copied;  /* from the input to the output field */
	uint64_t limit;   /* of data bytes (raw_data_size) */
	struct signature_domain memory, wire;
};

struct cipher_setup {
	bool enabled;
	bool encrypts_on_tx; /* plaintext in memory; else ciphertext in memory */
	bool on_wire;        /* works on the wire side of the signature (SIGNATURE_BEFORE_CRYPTO_ON_TX) */
	uint32_t unit;       /* bytes of a data unit */
	uint8_t tweak[16];   /* of unit 0, little-endian */
	struct dek *dek;     /* a reference */
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

/** Where the guard of a field of @domain, which has one, is in the number: its lowest bit. */
static inline unsigned int guard_shift(const struct signature_domain *domain)
{
	return domain->tags ? 48 : (64 - 8 * domain->field) & 63;
}

/** Bytes on the way from block to block in @domain. */
static inline uint32_t extended_block(const struct signature_domain *domain)
{
	return domain->block + domain->field;
}

#endif
