/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The block stage: what stands between the memory of a key and the wire if the key has a signature or a cipher. It
 * passes the bytes of one transfer front to back, in any cuts: transmitting, it reads memory and gives wire bytes;
 * receiving, it takes wire bytes and writes memory. Data is checked, and fields are made, in the pass that copies.
 *
 * A transmission can begin anywhere: what a guard needs from before is read again. A reception inside a block goes on
 * from where an earlier one stopped, if it stopped there (mkey/block_progress.h); else that block is neither checked nor does
 * it get a generated field (mlx5-formats 6, points 11 and 12).
 *
 * stage.c has the beginning and the end, stage_signature.c the signature, stage_cipher.c the cipher, which is on the memory
 * side or on the wire side of the signature (mlx5dv_wr_set_mkey_crypto(3), signature_crypto_order).
 *
 * A stage lives inside one epoch section. It is used by one thread.
 */
#ifndef SOFTHCA_MKEY_STAGE_H
#define SOFTHCA_MKEY_STAGE_H

#include "mkey/block_progress.h"
#include "block/range.h"
#include "mkey/walk.h"

/* Room for data units while a cipher works on them: two of the largest. */
#define STAGE_SCRATCH (2 * BLOCK_LARGEST)

/* Where the signature is: data and fields in the order of the wire. */
struct signature_stage {
	const struct signature_domain *input, *output;
	bool input_guarded, output_guarded; /* a running guard is kept */
	bool shared;                        /* that of the input serves for the output too */
	bool input_whole, output_whole;     /* the block was passed from its beginning */
	bool in_field;                      /* in the field on the wire behind byte raw - 1 */
	bool field_torn;                    /* receiving: whose first bytes did not come */
	bool field_ready;                   /* transmitting: `field` is made */
	bool check_due;                     /* transmitting: the block ends with the field on the wire */
	uint32_t field_at;
	uint64_t raw;                       /* data bytes passed */
	uint64_t input_guard, output_guard; /* running */
	uint64_t input_start, output_start; /* what they begin with */
	uint64_t field;                     /* on the wire */
	uint64_t expected, found;           /* of the check that is due */
};

/* Where the cipher is, in the bytes of its side. */
struct cipher_stage {
	uint8_t *scratch;    /* STAGE_SCRATCH bytes of the caller's, for the time of a call */
	uint64_t position;   /* of the byte behind those in scratch (transmitting), of the first one (receiving) */
	uint64_t limit;      /* no unit goes beyond it */
	uint32_t held;       /* bytes in scratch */
	uint32_t taken;      /* transmitting, cipher on the wire: how many of them are passed on, or are not wanted */
	struct piece memory; /* cipher on the memory side: what is left of the current piece behind it */
};

struct block_stage {
	const struct mapping *map;
	const struct block_setup *setup;
	struct walk_access access;
	bool transmits;
	bool begun;
	uint64_t position; /* on the wire */
	uint64_t origin;   /* of the wire in the message: what is at 0 there; modulo 2^64 */
	uint64_t start;    /* in the message: where it enters this key; the caller's to set, 0 at first; modulo 2^64 */
	struct transfer_range range;
	struct walk walk;
	struct piece piece; /* what is left of the current piece of memory, as the signature sees it */
	struct signature_stage signature;
	struct cipher_stage cipher;
};

/**
 * Checks a transfer of [@wire, +@length) through the key of @map without beginning it: memory, rights, cuts. @depth: keys
 * that it lies in. Returns 0 or -EACCES with @why filled.
 */
int stage_check(const struct walk_access *access, uint8_t rights, const struct mapping *map, uint64_t wire,
		uint64_t length, uint32_t depth, struct refusal *why);

/**
 * The same, and readies @stage for it. @rights: those of the request on the key. @offset: of @wire in the message, in which
 * errors are told.
 */
int stage_begin(struct block_stage *stage, const struct walk_access *access, uint8_t rights, const struct mapping *map,
		uint64_t wire, uint64_t length, uint64_t offset, struct refusal *why);

/** The next @length bytes of the wire into @to. @scratch: STAGE_SCRATCH bytes, the same in all calls; NULL without a cipher. */
void stage_transmit(struct block_stage *stage, uint8_t *to, uint64_t length, uint8_t *scratch);

/** Takes the next @length bytes from the wire. */
void stage_receive(struct block_stage *stage, const uint8_t *from, uint64_t length, uint8_t *scratch);

/**
 * Ends the use of @stage, at any point. Receiving, it leaves behind what the next packet, or the next transfer through the
 * key, needs to go on: with stage_begin() where this one stopped.
 */
void stage_end(struct block_stage *stage);

#endif
