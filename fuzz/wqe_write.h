/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random segments and WQEs, most of which make sense: keys that are there, addresses inside of them, lengths that fit, all
 * big-endian and in the right places (mlx5-formats 1).
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
/** Some blocks with their fields, and a little more or less. */
uint32_t near_a_block(void);

/* Segments of 16 bytes. */
void put_control(uint8_t *block);
void put_segment(uint8_t *unit);
void put_remote(uint8_t *unit);
void put_repeat(uint8_t *unit);
void put_repeat_entry(uint8_t *unit);
/** Block setup of 4 or 8 @octowords: a signature, a cipher, or one behind the other. */
void put_blocks(uint8_t *bsf, uint32_t octowords);

/* WQEs; of UMR, atomic and message what has room. */
void put_umr(uint8_t *block, size_t room);
void put_set_psv(uint8_t *block);
void put_copy(uint8_t *block);
void put_atomic(uint8_t *block, size_t room);
/** A message of QPs of @pair (enum world_pair) with all its segments. Returns its blocks, 0 without room. */
uint32_t put_message(uint8_t *block, size_t room, uint32_t pair);

/** Keys with block setup, one of them perhaps inside another, then messages through them; @input's rings are theirs. */
void put_scene(struct input *input);

#endif
