/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Signatures of blocks, in the model: the description of mlx5dv_wr_set_mkey_sig_block(3), a field at a time. A domain's
 * stream is raw data with a field after every whole block (mlx5-formats 5.4).
 */
#ifndef SOFTHCA_TESTS_SIGNATURE_SIGNATURE_H
#define SOFTHCA_TESTS_SIGNATURE_SIGNATURE_H

#include "guard.h"

enum kind { KIND_NONE, KIND_T10, KIND_CRC };

struct domain {
	enum kind kind;
	uint32_t block; /* bytes of raw data */
	enum guard guard;
	bool ones; /* seed */
	/* For T10-DIF. */
	uint16_t app;
	uint32_t ref;
	bool remap, app_escape, app_ref_escape;
};

struct signature {
	struct domain memory, wire;
	uint8_t check;
	bool has_copy; /* MLX5DV_SIG_BLOCK_ATTR_FLAG_COPY_MASK */
	uint8_t copy;
};

/* Faults as mlx5dv_mkey_check(3) reports them. */
enum fault { FAULT_NONE, FAULT_GUARD, FAULT_APP, FAULT_REF, FAULTS };

struct finding {
	enum fault fault;
	bool in_wire; /* domain */
	uint64_t actual, expected;
	uint64_t offset; /* profile connectx: of the last byte of block and field, in the domain; man: in the message */
	uint64_t raw;    /* offset in the raw data where the block begins */
};

/** Returns the bytes of the field after a block: 0, 4 or 8. */
size_t field_bytes(const struct domain *domain);

/** Returns the place of raw byte @raw in the stream. */
uint64_t place_of_raw(const struct domain *domain, uint64_t raw);
/**
 * Returns true if byte @place of the stream is raw data; then *@raw is its number, otherwise the number of the first one
 * after the field.
 */
bool is_raw(const struct domain *domain, uint64_t place, uint64_t *raw);
/** Returns where the field of block @number begins in the stream. */
uint64_t place_of_field(const struct domain *domain, uint64_t number);
/** Returns the bytes of a stream of @raw bytes of data: no field follows an incomplete block. */
uint64_t stream_bytes(const struct domain *domain, uint64_t raw);

/** Makes the field of block @number from its data at @data. */
void field_make(const struct domain *domain, const uint8_t *data, uint64_t number, uint8_t field[GUARD_MOST]);

/**
 * Checks @field of block @number and returns at most one error: the guard before the application tag before the
 * reference tag (mlx5dv_mkey_check(3)). @mask: check_mask. @connectx: that profile.
 */
struct finding field_check(const struct domain *domain, uint8_t mask, bool connectx, const uint8_t *data,
			   uint64_t number, const uint8_t field[GUARD_MOST]);

/** Returns true if input and output have the same structure, so that bytes of fields can be copied. */
bool same_structure(const struct signature *signature);
/** Returns the copy mask in force: bits of bytes that are copied from input to output. @connectx: that profile. */
uint8_t copy_mask(const struct signature *signature, bool connectx);
/** Returns true if byte @byte of a field is in @mask: bit 7 is the first byte. */
bool in_mask(uint8_t mask, size_t byte);

#endif
