/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Converts between positions on the wire and in memory (mlx5-formats 5.4). Between the two is the raw stream: the data
 * without fields. Pure functions; any thread.
 */
#ifndef SOFTHCA_BLOCK_RANGE_H
#define SOFTHCA_BLOCK_RANGE_H

#include "block/setup.h"

/* Before byte `raw` of the data, or in the field before it. */
struct wire_position {
	uint64_t raw;
	bool in_field;  /* in the field after byte raw - 1… */
	uint32_t field; /* …before byte `field` of it */
};

/* [first, end) */
struct byte_range {
	uint64_t first, end;
};

struct wire_position wire_position(const struct signature_setup *signature, uint64_t wire);

uint64_t wire_position_of(const struct signature_setup *signature, uint64_t raw);

/** Returns the wire bytes for @memory bytes of a key. */
uint64_t wire_length(const struct block_setup *setup, uint64_t memory);

/* The ranges of a transfer at each step between wire and memory. */
struct transfer_range {
	struct wire_position position; /* position of wire.first */
	uint64_t start;                /* raw position at which processing begins: for guards, with their block */
	struct byte_range wire;        /* wire side of the signature: the transfer, or its whole data units */
	struct byte_range needed;      /* memory side of the signature: data, and fields of completed blocks */
	struct byte_range memory;      /* `needed`, or its whole data units */
};

/**
 * Computes the ranges of a transfer of [@first, +@length) on the wire, for a key of @all bytes of memory. All sums must
 * be below 2^63. For a transmission, they include the rest of blocks and data units in which it begins or ends. Without
 * a signature, position and start are not written.
 */
void transfer_range_set(struct transfer_range *range, const struct block_setup *setup, bool transmits, uint64_t first,
			uint64_t length, uint64_t all);

static inline struct transfer_range transfer_range(const struct block_setup *setup, bool transmits, uint64_t first,
						   uint64_t length, uint64_t all)
{
	struct transfer_range range = {0};

	transfer_range_set(&range, setup, transmits, first, length, all);
	return range;
}

/* bytes of an AES block */
#define CIPHER_BLOCK 16

/**
 * Returns true if @end is inside a data unit where a message may end: after whole AES blocks, with at least one more in
 * the unit (mlx5dv_wr_set_mkey_crypto(3), NOTES: job_size). Blocks before @end are as in the whole unit.
 */
bool ends_inside_unit(const struct cipher_setup *cipher, uint64_t end);

bool input_guarded(const struct signature_setup *signature, const struct signature_domain *input);
bool output_guarded(const struct signature_setup *signature, const struct signature_domain *output);

static inline uint64_t guard_bytes(const struct signature_domain *domain)
{
	return domain->field ? ~UINT64_C(0) << guard_shift(domain) : 0;
}

#endif
