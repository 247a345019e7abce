/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the block stage share, see stage.h. */
#ifndef SOFTHCA_MKEY_STAGE_PARTS_H
#define SOFTHCA_MKEY_STAGE_PARTS_H

#include "mkey/stage.h"

/* The memory side of the signature: memory, or the cipher in front of it. */

/** Readies stage->piece, the contiguous bytes that come next; of a key that changed under the transfer, null ones. */
void memory_ready(struct block_stage *stage);
/** @bytes of stage->piece were read or written. */
void memory_passed(struct block_stage *stage, uint64_t bytes);
void memory_read(struct block_stage *stage, uint8_t *to, uint64_t bytes);
void memory_write(struct block_stage *stage, const uint8_t *from, uint64_t bytes);
void memory_skip(struct block_stage *stage, uint64_t bytes);

/* The signature; without one, plain copying. */
void signature_begin(struct block_stage *stage);
void signature_transmit(struct block_stage *stage, uint8_t *to, uint64_t bytes);
void signature_receive(struct block_stage *stage, const uint8_t *from, uint64_t bytes);

/**
 * Passes as many whole blocks as lie in one piece on both sides. @to or @from is the wire, the other is NULL: memory.
 * Returns the bytes of the wire, 0 if there is no such block here.
 */
uint64_t signature_pass_blocks(struct block_stage *stage, uint8_t *to, const uint8_t *from, uint64_t bytes);
/** Reports block @number of the input if its field speaks against it. */
void signature_check(struct block_stage *stage, uint64_t number, uint64_t expected, uint64_t found);

/* The cipher on the memory side: deciphered units as stage->piece, or room for a unit to be written. */
void cipher_memory_ready(struct block_stage *stage);
void cipher_memory_passed(struct block_stage *stage, uint64_t bytes);
/** Receiving, scratch holds the beginning of a unit: which is all of it if the rest of the message brings fields alone. */
void cipher_memory_resume(struct block_stage *stage);

/* The cipher on the wire side. */
void cipher_transmit(struct block_stage *stage, uint8_t *to, uint64_t bytes);
void cipher_receive(struct block_stage *stage, const uint8_t *from, uint64_t bytes);

/* Memory behind a cipher on the memory side. */
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
