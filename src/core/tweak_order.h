/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Byte order of the AES-XTS tweak in a crypto BSF (mlx5-formats 1.12). Elsewhere tweaks are little-endian, as in IEEE
 * 1619 and mlx5dv_wr_set_mkey_crypto(3). Any thread may call.
 */
#ifndef SOFTHCA_CORE_TWEAK_ORDER_H
#define SOFTHCA_CORE_TWEAK_ORDER_H

#include <stdint.h>

#include "core/settings.h"

#define TWEAK_BYTES 16

/** Copies a tweak from a BSF to little-endian order, or back. No overlap. */
static inline void tweak_copy(enum setting_CRYPTO_TWEAK order, uint8_t to[TWEAK_BYTES], const uint8_t from[TWEAK_BYTES])
{
	for (int i = 0; i < TWEAK_BYTES; i++)
		to[i] = from[order == CRYPTO_TWEAK_BE ? TWEAK_BYTES - 1 - i : i];
}

#endif
