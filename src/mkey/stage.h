/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The block stage converts between the memory of a key and the wire if the key has a signature or a cipher. It processes the
 * bytes of one transfer front to back, in chunks of any size: transmitting, it reads memory and produces wire bytes; receiving,
 * it consumes wire bytes and writes memory. One pass copies the data, checks the fields of the input and generates those of the
 * output.
 *
 * A transmission can begin anywhere: the start of its block is read again for the guard. A reception that begins inside a block
 * continues from the position at which an earlier one stopped, if it stopped exactly there (mkey/block_progress.h). Otherwise
 * that block is not checked and gets no generated field (mlx5-formats 6, points 11 and 12).
 *
 * stage.c has the checks, the beginning, the end and the memory side; stage_signature.c and stage_blocks.c the signature;
 * stage_cipher.c the cipher, which is on the memory side or the wire side of the signature (mlx5dv_wr_set_mkey_crypto(3),
 * signature_crypto_order).
 *
 * A stage lives inside one epoch section. One thread uses it.
 */
#ifndef SOFTHCA_MKEY_STAGE_H
#define SOFTHCA_MKEY_STAGE_H

#include "mkey/block_progress.h"
#include "block/range.h"
#include "mkey/walk.h"

/* Scratch memory for data units of a cipher: room for two of the largest. */
#define STAGE_SCRATCH (2 * BLOCK_LARGEST)

/* Position of the signature: data and fields in wire order. */
struct signature_stage {
	const struct signature_domain *input, *output;
	bool input_guarded, output_guarded; /* a running guard is maintained */
	bool shared;                        /* the guard of the input is used for the output, too */
	bool input_whole, output_whole;     /* the current block was processed from its beginning */
	bool in_field;                      /* in the wire field after byte raw - 1 */
	bool field_torn;                    /* receiving: the first bytes of that field are missing */
	bool field_ready;                   /* transmitting: `field` is valid */
	bool check_due;                     /* transmitting: check the input when the wire field is complete */
	uint32_t field_at;                  /* bytes of the field already processed */
	uint64_t raw;                       /* data bytes processed */
	uint64_t input_guard, output_guard; /* running guards */
	uint64_t input_start, output_start; /* their initial values */
	uint64_t field;                     /* the wire field */
	uint64_t expected, found;           /* operands of the check that is due */
};

/* Position of the cipher, in bytes of its side. */
struct cipher_stage {
	uint8_t *scratch; /* STAGE_SCRATCH bytes of the caller, valid during a call */
	uint64_t
		position; /* transmitting: position after the bytes in scratch; receiving: position of the first of them */
	uint64_t limit;      /* end of the last unit */
	uint32_t held;       /* bytes in scratch */
	uint32_t taken;      /* transmitting, cipher on the wire side: bytes of scratch that were consumed or are not
			 * needed */
	struct piece memory; /* cipher on the memory side: rest of the current piece of memory */
};

struct block_stage {
	const struct mapping *map;
	const struct block_setup *setup;
	struct walk_access access;
	bool transmits;
	bool begun;
	uint64_t position; /* wire position */
	uint64_t origin;   /* offset in the message of wire position 0; modulo 2^64 */
	uint64_t start;    /* offset in the message at which it enters this key; 0, or set by the caller; modulo 2^64 */
	struct transfer_range range;
	struct walk walk;
	struct piece piece; /* rest of the current piece of the signature's memory side */
	struct signature_stage signature;
	struct cipher_stage cipher;
};

/**
 * Checks a transfer of [@wire, +@length) through the key of @map without beginning it: memory, rights, boundaries of data
 * units. @depth: nesting level of the key. Returns 0, or -EACCES with @why filled.
 */
int stage_check(const struct walk_access *access, uint8_t rights, const struct mapping *map, uint64_t wire,
		uint64_t length, uint32_t depth, struct refusal *why);

/**
 * Checks a transfer as stage_check() does, and prepares @stage for it. @rights: rights that the request needs on the key.
 * @offset: offset of @wire in the message; errors are reported by their offset in the message.
 */
int stage_begin(struct block_stage *stage, const struct walk_access *access, uint8_t rights, const struct mapping *map,
		uint64_t wire, uint64_t length, uint64_t offset, struct refusal *why);

/** Produces the next @length wire bytes at @to. @scratch: STAGE_SCRATCH bytes, the same in all calls; NULL without a cipher. */
void stage_transmit(struct block_stage *stage, uint8_t *to, uint64_t length, uint8_t *scratch);

/** Consumes the next @length wire bytes. @scratch as above. */
void stage_receive(struct block_stage *stage, const uint8_t *from, uint64_t length, uint8_t *scratch);

/**
 * Ends the use of @stage, at any point. A reception that ends inside a block stores its position in the QP and in the key; a
 * stage that begins there continues the block.
 */
void stage_end(struct block_stage *stage);

#endif
