/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions that the files of the block stage share. */
#ifndef SOFTHCA_MKEY_STAGE_PARTS_H
#define SOFTHCA_MKEY_STAGE_PARTS_H

#include "mkey/stage.h"

/* The memory side of the signature: memory, or the cipher. */

/** Makes stage->piece the next contiguous bytes; null bytes if the key was changed meanwhile. */
void memory_ready(struct block_stage *stage);
void memory_passed(struct block_stage *stage, uint64_t bytes);
void memory_read(struct block_stage *stage, uint8_t *to, uint64_t bytes);
void memory_write(struct block_stage *stage, const uint8_t *from, uint64_t bytes);
void memory_skip(struct block_stage *stage, uint64_t bytes);

/* The signature; without one they copy. */
void signature_begin(struct block_stage *stage);
void signature_transmit(struct block_stage *stage, uint8_t *to, uint64_t bytes);
void signature_receive(struct block_stage *stage, const uint8_t *from, uint64_t bytes);

/**
 * Processes as many whole blocks as are contiguous on both sides. One of @to and @from is wire bytes; NULL stands for
 * memory. Returns the wire bytes processed.
 */
uint64_t signature_pass_blocks(struct block_stage *stage, uint8_t *to, const uint8_t *from, uint64_t bytes);
/** Reports input block @number unless its field @found matches @expected. */
void signature_check(struct block_stage *stage, uint64_t number, uint64_t expected, uint64_t found);

/* The cipher on the memory side. stage->piece: deciphered units, or room for one. */
void cipher_memory_ready(struct block_stage *stage);
void cipher_memory_passed(struct block_stage *stage, uint64_t bytes);
/** Resumes a reception with the beginning of a unit in scratch. Writes the unit if only fields are missing. */
void cipher_memory_resume(struct block_stage *stage);

void cipher_transmit(struct block_stage *stage, uint8_t *to, uint64_t bytes);
void cipher_receive(struct block_stage *stage, const uint8_t *from, uint64_t bytes);

/* Memory, without the signature; for the cipher. */
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
