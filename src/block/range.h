/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where the bytes of a transfer lie: from positions on the wire to positions in memory, the two spaces that a key with
 * a signature or a cipher joins (mlx5-formats 5.4). Arithmetic only; a position determines everything.
 *
 * Between the two there is the raw stream: the data without any fields.
 */
#ifndef SOFTHCA_BLOCK_RANGE_H
#define SOFTHCA_BLOCK_RANGE_H

#include "block/setup.h"

/* A position on the wire: either before byte `raw` of the data, or in the field that follows it. */
struct wire_position {
	uint64_t raw;
	bool in_field;  /* in the field behind byte raw - 1… */
	uint32_t field; /* …before byte `field` of it */
};

/* Half open: [first, end). */
struct byte_range {
	uint64_t first, end;
};

struct wire_position wire_position(const struct signature_setup *signature, uint64_t wire);

/** The position on the wire of data byte @raw. */
uint64_t wire_position_of(const struct signature_setup *signature, uint64_t raw);

/** Bytes on the wire that @memory bytes of a key become. */
uint64_t wire_length(const struct block_setup *setup, uint64_t memory);

/* What a transfer passes on its way. */
struct transfer_range {
	struct wire_position position; /* of wire.first */
	uint64_t start; /* raw position from which on data is passed: guards need their block from the beginning */
	struct byte_range wire;   /* of the signature's wire side: the transfer, or the data units that it lies in */
	struct byte_range needed; /* of the signature's memory side: data, and the fields of blocks that it completes */
	struct byte_range memory; /* the same, or the data units that they lie in */
};

/**
 * What a transfer of [@first, +@length) on the wire passes in a key of @all bytes of memory. The sums are below 2^63. When it
 * transmits, it includes what the guards and data units that it begins or ends in the middle of need. Without a signature
 * range->position and range->start are left as they are.
 */
void transfer_range_set(struct transfer_range *range, const struct block_setup *setup, bool transmits, uint64_t first,
			uint64_t length, uint64_t all);

/** The same as a value. */
static inline struct transfer_range transfer_range(const struct block_setup *setup, bool transmits, uint64_t first,
						   uint64_t length, uint64_t all)
{
	struct transfer_range range = {0};

	transfer_range_set(&range, setup, transmits, first, length, all);
	return range;
}

/* Bytes of a block of AES. */
#define CIPHER_BLOCK 16

/**
 * True if a message may end at @end, which lies inside a data unit: after whole blocks of AES, the unit being whole from
 * there on, too (mlx5dv_wr_set_mkey_crypto(3), NOTES: job_size). These blocks are what they are in the whole unit.
 */
bool ends_inside_unit(const struct cipher_setup *cipher, uint64_t end);

/** True if a guard of the input (of the output) is needed at all. */
bool input_guarded(const struct signature_setup *signature, const struct signature_domain *input);
bool output_guarded(const struct signature_setup *signature, const struct signature_domain *output);

/** The bytes of a field that are its guard. */
static inline uint64_t guard_bytes(const struct signature_domain *domain)
{
	return domain->field ? ~UINT64_C(0) << guard_shift(domain) : 0;
}

#endif
