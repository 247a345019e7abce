/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions that the files of the block stage share, see stage.h. For those files only. */
#ifndef SOFTHCA_MKEY_STAGE_PARTS_H
#define SOFTHCA_MKEY_STAGE_PARTS_H

#include "mkey/stage.h"

/* The memory side of the signature: memory, or a cipher between signature and memory. */

/** Makes stage->piece the next contiguous bytes; null bytes if the key was changed during the transfer. */
void memory_ready(struct block_stage *stage);
/** Advances past @bytes of stage->piece, which were read or written. */
void memory_passed(struct block_stage *stage, uint64_t bytes);
void memory_read(struct block_stage *stage, uint8_t *to, uint64_t bytes);
void memory_write(struct block_stage *stage, const uint8_t *from, uint64_t bytes);
void memory_skip(struct block_stage *stage, uint64_t bytes);

/* Functions of the signature stage; without a signature they copy. */
void signature_begin(struct block_stage *stage);
void signature_transmit(struct block_stage *stage, uint8_t *to, uint64_t bytes);
void signature_receive(struct block_stage *stage, const uint8_t *from, uint64_t bytes);

/**
 * Processes as many whole blocks as are contiguous on both sides. One of @to and @from is wire bytes; the other is NULL and
 * stands for memory. Returns the number of wire bytes processed, 0 if the current position has no such block.
 */
uint64_t signature_pass_blocks(struct block_stage *stage, uint8_t *to, const uint8_t *from, uint64_t bytes);
/** Reports an error of input block @number unless its field @found matches @expected. */
void signature_check(struct block_stage *stage, uint64_t number, uint64_t expected, uint64_t found);

/*
 * Functions of the cipher on the memory side. Handles stage->piece: deciphered units, or room for a unit to be written.
 */
void cipher_memory_ready(struct block_stage *stage);
void cipher_memory_passed(struct block_stage *stage, uint64_t bytes);
/**
 * Resumes a reception with the beginning of a unit in scratch. Writes the unit if it is already complete and only
 * fields are missing.
 */
void cipher_memory_resume(struct block_stage *stage);

/* Functions of the cipher on the wire side. */
void cipher_transmit(struct block_stage *stage, uint8_t *to, uint64_t bytes);
void cipher_receive(struct block_stage *stage, const uint8_t *from, uint64_t bytes);

/* Access to memory, through the cipher on the memory side. */
void walk_read(struct block_stage *stage, uint8_t *to, uint64_t bytes);
void walk_write(struct block_stage *stage, const uint8_t *from, uint64_t bytes);

static inline bool cipher_on_memory(const struct block_stage *stage)
{
	return stage->setup->cipher.enabled && !stage->setup->cipher.on_wire;
}

static inline bool cipher_on_wire(const struct block_stage *stage)
{
	return stage->setup->cipher.enabled && stage->setup->cipher.on_wire;
}

static inline uint64_t min_bytes(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

#endif
