/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fields of WQEs, CQEs, keys, BSFs, packets and MADs by name; fields.def and cm_messages.def are the tables. For the command,
 * which shows bytes as text and makes them of it; the executor does not need them. Constant data and pure functions; any thread.
 */
#ifndef SOFTHCA_FORMAT_FIELDS_H
#define SOFTHCA_FORMAT_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The parts that bytes are made of: PART_CTRL, …, PART_CM_REQ, … */
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
	uint16_t bytes; /* of fixed length, at most PART_MOST_BYTES */
	bool tail;      /* any number of bytes follows */
};

#define PART_MOST_BYTES 232
#define PART_MOST_FIELDS 64

struct field {
	const char *name;
	uint8_t part; /* enum part */
	uint8_t byte, bit;
	uint8_t width;  /* 1 to 64 bits; 0: bytes as they are */
	uint8_t length; /* of those */
	uint8_t form;   /* enum field_form */
};

struct field_value {
	const char *name;
	uint64_t number;
	uint8_t form;
	bool mask; /* number is one bit */
};

extern const struct part_info part_infos[PART_COUNT];

/** All fields, those of a part together and in order; a NULL name ends them. */
extern const struct field fields[];

/** The values that have names; a NULL name ends them. */
extern const struct field_value field_values[];

/** The number @field (width not 0) in the part at @bytes, which is there as a whole. */
uint64_t part_field_get(const uint8_t *bytes, const struct field *field);
/** Puts @number there, cut to the width; no other bit changes. */
void part_field_put(uint8_t *bytes, const struct field *field, uint64_t number);

/** The largest number that @field holds. */
uint64_t field_most(const struct field *field);

/** The name of @number, as one word, or NULL: it has none, or is a mask. */
const char *field_value_name(enum field_form form, uint64_t number);
/** The other way: false if none of @form has the name @name. */
bool field_value_number(enum field_form form, const char *name, uint64_t *number);

#endif
