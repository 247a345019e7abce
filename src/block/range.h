/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Converts between positions on the wire and in memory of a key with a signature or a cipher (mlx5-formats 5.4). The position
 * alone determines the result. Pure functions; any thread.
 *
 * Between the two is the raw stream: the data without any fields.
 */
#ifndef SOFTHCA_BLOCK_RANGE_H
#define SOFTHCA_BLOCK_RANGE_H

#include "block/setup.h"

/* A position on the wire: before byte `raw` of the data, or in the field before that byte. */
struct wire_position {
	uint64_t raw;
	bool in_field;  /* in the field after byte raw - 1… */
	uint32_t field; /* …before byte `field` of it */
};

/* A half-open range: [first, end). */
struct byte_range {
	uint64_t first, end;
};

struct wire_position wire_position(const struct signature_setup *signature, uint64_t wire);

/** Returns the wire position of data byte @raw. */
uint64_t wire_position_of(const struct signature_setup *signature, uint64_t raw);

/** Returns the number of wire bytes for @memory bytes of a key. */
uint64_t wire_length(const struct block_setup *setup, uint64_t memory);

/* The ranges that a transfer covers at each step between wire and memory. */
struct transfer_range {
	struct wire_position position; /* position of wire.first */
	uint64_t start; /* raw position at which processing begins: guards need their block from its beginning */
	struct byte_range wire;   /* signature's wire side: the transfer, or the data units that contain it */
	struct byte_range needed; /* signature's memory side: data, and the fields of blocks that it completes */
	struct byte_range memory; /* `needed`, or the data units that contain it */
};

/**
 * Computes the ranges of a transfer of [@first, +@length) on the wire, for a key of @all bytes of memory. All sums must be
 * below 2^63. For a transmission, the ranges include the rest of blocks and data units that it begins or ends inside, as guards
 * and cipher need it. Without a signature, range->position and range->start are not written.
 */
void transfer_range_set(struct transfer_range *range, const struct block_setup *setup, bool transmits, uint64_t first,
			uint64_t length, uint64_t all);

/** Returns the ranges that transfer_range_set() computes. */
static inline struct transfer_range transfer_range(const struct block_setup *setup, bool transmits, uint64_t first,
						   uint64_t length, uint64_t all)
{
	struct transfer_range range = {0};

	transfer_range_set(&range, setup, transmits, first, length, all);
	return range;
}

/* Bytes of an AES block. */
#define CIPHER_BLOCK 16

/**
 * Returns true if @end is inside a data unit at a position where a message may end: after whole AES blocks, with at least one
 * more block in the unit (mlx5dv_wr_set_mkey_crypto(3), NOTES: job_size). The blocks before @end are the same as in the whole
 * unit.
 */
bool ends_inside_unit(const struct cipher_setup *cipher, uint64_t end);

/** Return true if the guard of the input (of the output) has to be computed. */
bool input_guarded(const struct signature_setup *signature, const struct signature_domain *input);
bool output_guarded(const struct signature_setup *signature, const struct signature_domain *output);

/** Returns a mask of the bytes of a field that are its guard. */
static inline uint64_t guard_bytes(const struct signature_domain *domain)
{
	return domain->field ? ~UINT64_C(0) << guard_shift(domain) : 0;
}

#endif
