/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Signatures of blocks, in the model: what mlx5dv_wr_set_mkey_sig_block(3) describes, a field at a time. A domain's stream is
 * raw data with a field behind every whole block of it (mlx5-formats 5.4).
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
	/* T10-DIF. */
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

/* As mlx5dv_mkey_check(3) tells it. */
enum fault { FAULT_NONE, FAULT_GUARD, FAULT_APP, FAULT_REF, FAULTS };

struct finding {
	enum fault fault;
	bool in_wire; /* domain */
	uint64_t actual, expected;
	uint64_t offset; /* profile connectx: of the last byte of block and field, in the domain; man: in the message */
	uint64_t raw;    /* which of the raw data the block begins with */
};

/** Bytes of the field behind a block: 0, 4 or 8. */
size_t field_bytes(const struct domain *domain);

/** Where the raw byte @raw is in the stream. */
uint64_t place_of_raw(const struct domain *domain, uint64_t raw);
/** Whether byte @place of the stream is raw data; if so *@raw is which, else *@raw is the first one behind the field. */
bool is_raw(const struct domain *domain, uint64_t place, uint64_t *raw);
/** Where the field of block @number begins in the stream. */
uint64_t place_of_field(const struct domain *domain, uint64_t number);
/** Bytes of a stream of @raw bytes of data: no field behind an incomplete block. */
uint64_t stream_bytes(const struct domain *domain, uint64_t raw);

/** The field of block @number, whose data is at @data. */
void field_make(const struct domain *domain, const uint8_t *data, uint64_t number, uint8_t field[GUARD_MOST]);

/**
 * What is wrong with @field of block @number: at most one thing, the guard before the application tag before the reference
 * tag (mlx5dv_mkey_check(3)). @mask: check_mask. @connectx: that profile.
 */
struct finding field_check(const struct domain *domain, uint8_t mask, bool connectx, const uint8_t *data,
			   uint64_t number, const uint8_t field[GUARD_MOST]);

/** Whether input and output have the same structure, so that bytes of fields can be copied. */
bool same_structure(const struct signature *signature);
/** The copy mask in force: bits of bytes that are copied from input to output. @connectx: that profile. */
uint8_t copy_mask(const struct signature *signature, bool connectx);
/** Whether byte @byte of a field is in @mask: bit 7 is the first one. */
bool in_mask(uint8_t mask, size_t byte);

#endif
