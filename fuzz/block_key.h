/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The key of the fuzzer of block stages, and its memory: between barriers, the key's bytes that a transfer may touch next to
 * one of them, entries of the layout apart from each other. AddressSanitizer, or the barrier, sees any other byte touched.
 */
#ifndef SOFTHCA_FUZZ_BLOCK_KEY_H
#define SOFTHCA_FUZZ_BLOCK_KEY_H

#include "block/range.h"
#include "block_input.h"
#include "world.h"

#define MOST_BYTES 20480u /* of a key: four of the largest blocks, and more */

extern struct mkey *key;
extern uint64_t key_bytes, key_start; /* of @key: its memory, its first address */

void key_make(void);
/** Makes @key what @input says but for the layout. False: its BSFs were refused. */
bool key_configure(const struct input *input);

/** Lays @key out so that @range of it lies at a barrier, with that part of @contents, which is all of the key's. */
void key_load(const uint8_t *contents, struct byte_range range);
/** And gives that part back. */
void key_store(uint8_t *contents, struct byte_range range);
/** Makes of two @segments, the first of them of @key, one of a key with both. @deep: with one more between it and @key. */
void key_join(struct mlx5_wqe_data_seg segments[2], bool deep);
/** All memory may be touched again. */
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
