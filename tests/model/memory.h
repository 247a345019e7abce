/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The memory of the test and its shadow. Blocks of ordinary memory and one of device memory; the device changes the real
 * bytes, the model changes the shadow, memory_compare() compares them byte by byte.
 *
 * The model marks bytes without a defined value (a target that overlaps its source, undefined bytes of a header) as
 * loose: the next comparison copies them from the real memory. Fresh bytes were written in this step: if requests are in
 * flight together, a later one may read them before.
 */
#ifndef SOFTHCA_TESTS_MODEL_MEMORY_H
#define SOFTHCA_TESTS_MODEL_MEMORY_H

#include <stdbool.h>
#include <stdint.h>
#include <infiniband/verbs.h>

#include "choose.h"

enum {
	BLOCK_BYTES = 16384,
	PLAIN_BLOCKS = 4,
	DEVICE_BLOCK = PLAIN_BLOCKS,
	BLOCKS,
	NOWHERE = -1, /* the block of the null region */
};

struct memory {
	uint8_t *real[PLAIN_BLOCKS];
	struct ibv_dm *device_memory;
	uint8_t shadow[BLOCKS][BLOCK_BYTES];
	bool loose[BLOCKS][BLOCK_BYTES];
	bool any_loose;
	bool fresh[BLOCKS][BLOCK_BYTES];
};

/** Allocates the plain blocks and fills them. The caller sets device_memory, then calls memory_scribble on it. */
void memory_open(struct memory *memory, struct choose *c);
void memory_close(struct memory *memory);

/** Writes new contents to [@offset, @offset + @length) of @block, in the real memory and in the shadow. */
void memory_scribble(struct memory *memory, struct choose *c, int block, uint64_t offset, uint64_t length);

/** Returns true if all bytes agree; otherwise sets @block, @offset, @is and @should for the first difference. */
bool memory_compare(struct memory *memory, int *block, uint64_t *offset, uint8_t *is, uint8_t *should);

#endif
