/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random segments and WQEs, most of which are valid: existing keys, addresses inside of them, matching lengths, all big-endian
 * and in the right places (mlx5-formats 1).
 */
#ifndef SOFTHCA_FUZZ_WQE_WRITE_H
#define SOFTHCA_FUZZ_WQE_WRITE_H

#include <stddef.h>
#include <stdint.h>

struct input;

void put_be(uint8_t *at, uint64_t value, int bytes);
uint32_t be32_of(const uint8_t *at);

uint32_t any_key(void);
uint64_t any_address(void);
uint32_t any_length(void);
uint64_t any_operand(void);
/** Returns the length of some blocks with their fields, plus or minus a little. */
uint32_t near_a_block(void);

/* Segments of 16 bytes. */
void put_control(uint8_t *block);
void put_segment(uint8_t *unit);
void put_remote(uint8_t *unit);
void put_repeat(uint8_t *unit);
void put_repeat_entry(uint8_t *unit);
/** Writes a block setup of 4 or 8 @octowords: a signature, a cipher, or both. */
void put_blocks(uint8_t *bsf, uint32_t octowords);

/* Write WQEs; those of UMRs, atomics and messages as far as there is room. */
void put_umr(uint8_t *block, size_t room);
void put_set_psv(uint8_t *block);
void put_copy(uint8_t *block);
void put_atomic(uint8_t *block, size_t room);
/** Writes a message of QPs of @pair (enum world_pair) with all its segments. Returns its blocks, 0 without room. */
uint32_t put_message(uint8_t *block, size_t room, uint32_t pair);

/** Writes keys with block setup, perhaps one inside another, then messages through them, into @input's rings. */
void put_scene(struct input *input);

#endif
