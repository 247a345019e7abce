/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fields of WQEs, CQEs, keys, BSFs, packets and MADs by name, for the softhca command. Constant data and pure functions;
 * any thread.
 */
#ifndef SOFTHCA_FORMAT_FIELDS_H
#define SOFTHCA_FORMAT_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Segments, headers and the like: PART_CTRL, …, PART_CM_REQ, … */
enum part {
#define LAYOUT(NAME, ...) PART_##NAME,
#include "format/fields.def"
#define CM_MESSAGE(NAME, ...) PART_CM_##NAME,
#include "format/cm_messages.def"
	PART_COUNT
};

enum field_form {
	FORM_HEX,
	FORM_DECIMAL,
	FORM_WQE_OPCODE,
	FORM_PACKET_OPCODE,
	FORM_SYNDROME,
	FORM_RULE,
	FORM_FENCE,
	FORM_COMPLETION,
	FORM_ACCESS_MODE,
	FORM_MKEY_MASK,
	FORM_BSF_SIZE,
	FORM_BLOCK,
	FORM_BLOCK_FORMAT,
	FORM_T10_GUARD,
	FORM_CRYPTO_ORDER,
	FORM_CRYPTO_STANDARD,
	FORM_CQE_OPCODE,
	FORM_CQE_FORMAT,
	FORM_SIGNATURE_SYNDROME,
	FORM_SIGNATURE_DOMAIN,
	FORM_ETHER_TYPE,
	FORM_IP_PROTOCOL,
	FORM_AETH_SYNDROME,
	FORM_CM_ATTRIBUTE,
};

struct part_info {
	const char *name;
	uint16_t bytes; /* length of the fixed part, at most PART_MOST_BYTES */
	bool tail;      /* more bytes may follow */
};

#define PART_MOST_BYTES 232
#define PART_MOST_FIELDS 64

struct field {
	const char *name;
	uint8_t part; /* enum part */
	uint8_t byte, bit;
	uint8_t width;  /* bits, 1 to 64; 0: plain bytes */
	uint8_t length; /* number of plain bytes */
	uint8_t form;   /* enum field_form */
};

struct field_value {
	const char *name;
	uint64_t number;
	uint8_t form;
	bool mask; /* a bit of a mask */
};

extern const struct part_info part_infos[PART_COUNT];

/** Grouped by part and in order, ended by a NULL name. */
extern const struct field fields[];

/** Ended by a NULL name. */
extern const struct field_value field_values[];

/** @bytes: the complete part. The width of @field must not be 0. */
uint64_t part_field_get(const uint8_t *bytes, const struct field *field);
/** Truncates @number to the width of @field, and changes no other bit. */
void part_field_put(uint8_t *bytes, const struct field *field, uint64_t number);

uint64_t field_most(const struct field *field);

/** Returns NULL if @number has no one-word name, or @form is a mask. */
const char *field_value_name(enum field_form form, uint64_t number);
/** Returns false if @form has no such name. */
bool field_value_number(enum field_form form, const char *name, uint64_t *number);

#endif
