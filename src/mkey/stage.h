/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The block stage converts between the memory of a key and the wire if the key has a signature or a cipher (DESIGN.md).
 * It processes one transfer front to back, in chunks of any size.
 *
 * A reception that begins inside a block continues an earlier one (mkey/block_progress.h). If none stopped exactly
 * there, that block is not checked and gets no generated field (mlx5-formats 6, points 11 and 12).
 *
 * A stage lives inside one epoch section. One thread uses it.
 */
#ifndef SOFTHCA_MKEY_STAGE_H
#define SOFTHCA_MKEY_STAGE_H

#include "mkey/block_progress.h"
#include "block/range.h"
#include "mkey/walk.h"

#define STAGE_SCRATCH (2 * BLOCK_LARGEST)

/* Position of the signature, in wire order. */
struct signature_stage {
	const struct signature_domain *input, *output;
	bool input_guarded, output_guarded; /* maintain a running guard */
	bool shared;                        /* both use the guard of the input */
	bool input_whole, output_whole;     /* the current block was processed from its beginning */
	bool in_field;                      /* in the wire field after byte raw - 1 */
	bool field_torn;                    /* receiving: the field's first bytes are missing */
	bool field_ready;                   /* transmitting: `field` is valid */
	bool check_due;                     /* transmitting: check the input after the wire field */
	uint32_t field_at;                  /* bytes of the field processed */
	uint64_t raw;                       /* data bytes processed */
	uint64_t input_guard, output_guard; /* running */
	uint64_t input_start, output_start; /* initial */
	uint64_t field;                     /* the wire field */
	uint64_t expected, found;           /* operands of the check that is due */
};

/* Positions in bytes of the cipher's side. */
struct cipher_stage {
	uint8_t *scratch;    /* STAGE_SCRATCH bytes, valid during a call */
	uint64_t position;   /* wire position */
	uint64_t limit;      /* end of the last unit */
	uint32_t held;       /* bytes in scratch */
	uint32_t taken;      /* transmitting, cipher on the wire side: bytes of scratch consumed or not needed */
	struct piece memory; /* cipher on the memory side: rest of the piece of memory */
};

struct block_stage {
	const struct mapping *map;
	const struct block_setup *setup;
	struct walk_access access;
	bool transmits;
	bool begun;
	uint64_t position; /* wire position */
	uint64_t origin;   /* offset in the message of wire position 0; modulo 2^64 */
	uint64_t start;    /* offset at which the message enters this key; modulo 2^64; 0, or set by the caller */
	struct transfer_range range;
	struct walk walk;
	struct piece piece; /* rest of the piece on the signature's memory side */
	struct signature_stage signature;
	struct cipher_stage cipher;
};

/**
 * Checks a transfer of [@wire, +@length): memory, rights, boundaries of data units. @depth: nesting level of the key.
 * Returns 0, or -EACCES with @why.
 */
int stage_check(const struct walk_access *access, uint8_t rights, const struct mapping *map, uint64_t wire,
		uint64_t length, uint32_t depth, struct refusal *why);

/** As stage_check(), and prepares @stage. @offset: of @wire in the message, for the offsets of errors. */
int stage_begin(struct block_stage *stage, const struct walk_access *access, uint8_t rights, const struct mapping *map,
		uint64_t wire, uint64_t length, uint64_t offset, struct refusal *why);

/**
 * Produces the next @length wire bytes. @scratch: STAGE_SCRATCH bytes, the same in all calls; NULL without a cipher.
 */
void stage_transmit(struct block_stage *stage, uint8_t *to, uint64_t length, uint8_t *scratch);

/** Consumes the next @length wire bytes. @scratch as above. */
void stage_receive(struct block_stage *stage, const uint8_t *from, uint64_t length, uint8_t *scratch);

/** Ends the use of @stage, at any point. If a reception ends inside a block, QP and key store its position. */
void stage_end(struct block_stage *stage);

#endif
