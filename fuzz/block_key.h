/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The key of the fuzzer of block stages, and its memory between barriers: bytes that a transfer may touch lie next to a
 * barrier, and entries of the layout are apart from each other. AddressSanitizer or the barrier detects access to any other
 * byte.
 */
#ifndef SOFTHCA_FUZZ_BLOCK_KEY_H
#define SOFTHCA_FUZZ_BLOCK_KEY_H

#include "block/range.h"
#include "block_input.h"
#include "world.h"

#define MOST_BYTES 20480u /* of a key: four of the largest blocks and more */

extern struct mkey *key;
extern uint64_t key_bytes, key_start; /* of @key: its memory, its first address */

void key_make(void);
/** Configures @key by @input, except for its layout. Returns false if its BSFs were refused. */
bool key_configure(const struct input *input);

/** Lays out @key such that its @range lies at a barrier, with that part of @contents, which covers the whole key. */
void key_load(const uint8_t *contents, struct byte_range range);
/** Copies that part back to @contents. */
void key_store(uint8_t *contents, struct byte_range range);
/** Merges two @segments, the first of which uses @key, into one of a key with both. @deep: with another key between it and
 * @key. */
void key_join(struct mlx5_wqe_data_seg segments[2], bool deep);
/** Makes all memory accessible again. */
void key_end(void);

static inline const struct block_setup *key_setup(void)
{
	return mkey_mapping(key)->blocks;
}

static inline uint32_t le16(const uint8_t *bytes)
{
	return bytes[0] | (uint32_t)bytes[1] << 8;
}

#endif
