/* SPDX-License-Identifier: BSD-2-Clause */
/* The tables of fields.def and cm_messages.def. */
#include "format/fields.h"

#include <string.h>

#include "format/cm_message.h"
#include "format/wqe.h"

#define TAIL true
#define NO_TAIL false

const struct part_info part_infos[PART_COUNT] = {
#define LAYOUT(NAME, name, bytes, tail) [PART_##NAME] = {name, bytes, tail},
#include "format/fields.def"
#define CM_MESSAGE(NAME, name, ...) [PART_CM_##NAME] = {"cm_" #name, CM_MAD_BYTES - CM_MAD_HEADER_BYTES, false},
#include "format/cm_messages.def"
};

const struct field fields[] = {
#define NUMBER(PART, name, byte, bit, width, form) {#name, PART_##PART, byte, bit, width, 0, FORM_##form},
#define BYTES(PART, name, byte, length) {#name, PART_##PART, byte, 0, 0, length, FORM_HEX},
#include "format/fields.def"
#define PART_OF_req PART_CM_REQ
#define PART_OF_mra PART_CM_MRA
#define PART_OF_rej PART_CM_REJ
#define PART_OF_rep PART_CM_REP
#define PART_OF_rtu PART_CM_RTU
#define PART_OF_dreq PART_CM_DREQ
#define PART_OF_drep PART_CM_DREP
#define PART_OF_sidr_req PART_CM_SIDR_REQ
#define PART_OF_sidr_rep PART_CM_SIDR_REP
#define CM_NUMBER(name, type, field, byte, bit, width) {#field, PART_OF_##name, byte, bit, width, 0, FORM_HEX},
#define CM_BYTES(name, field, byte, length) {#field, PART_OF_##name, byte, 0, 0, length, FORM_HEX},
#include "format/cm_messages.def"
	{.name = NULL},
};

const struct field_value field_values[] = {
#define VALUE(form, number, name) {#name, number, FORM_##form, false},
#define MASK(form, bit, name) {#name, UINT64_C(1) << (bit), FORM_##form, true},
#include "format/fields.def"
#define CM_MESSAGE(NAME, name, attribute, text) {#NAME, attribute, FORM_CM_ATTRIBUTE, false},
#include "format/cm_messages.def"
	{.name = NULL},
};

/* ---- bits ------------------------------------------------------------------------------------------------------- */

uint64_t field_most(const struct field *field)
{
	return field->width == 64 ? UINT64_MAX : (UINT64_C(1) << field->width) - 1;
}

/* Bit by bit, the same for all fields; speed does not matter in the softhca command. */
uint64_t part_field_get(const uint8_t *bytes, const struct field *field)
{
	uint64_t number = 0;

	for (unsigned int i = 0; i < field->width; i++) {
		unsigned int at = field->byte * 8u + field->bit + i;

		number = number << 1 | (bytes[at / 8] >> (7 - at % 8) & 1);
	}
	return number;
}

void part_field_put(uint8_t *bytes, const struct field *field, uint64_t number)
{
	for (unsigned int i = field->width; i-- > 0; number >>= 1) {
		unsigned int at = field->byte * 8u + field->bit + i, bit = 1u << (7 - at % 8);

		bytes[at / 8] = (uint8_t)((bytes[at / 8] & ~bit) | (number & 1 ? bit : 0));
	}
}

/* ---- names ------------------------------------------------------------------------------------------------------ */

const char *field_value_name(enum field_form form, uint64_t number)
{
	if (form == FORM_WQE_OPCODE)
		return number < 256 ? wqe_opcodes[number].name : NULL;
	if (form == FORM_PACKET_OPCODE)
		return number < 256 ? packet_opcodes[number].name : NULL;
	for (const struct field_value *value = field_values; value->name; value++)
		if (value->form == form && !value->mask && value->number == number)
			return value->name;
	return NULL;
}

bool field_value_number(enum field_form form, const char *name, uint64_t *number)
{
	for (unsigned int i = 0; i < 256; i++) {
		const char *opcode = form == FORM_WQE_OPCODE      ? wqe_opcodes[i].name
				     : form == FORM_PACKET_OPCODE ? packet_opcodes[i].name
								  : NULL;

		if (opcode && !strcmp(opcode, name)) {
			*number = i;
			return true;
		}
	}
	for (const struct field_value *value = field_values; value->name; value++) {
		if (value->form == form && !strcmp(value->name, name)) {
			*number = value->number;
			return true;
		}
	}
	return false;
}
