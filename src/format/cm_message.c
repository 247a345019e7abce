/* SPDX-License-Identifier: BSD-2-Clause */
/* Packs and unpacks MADs of the communication manager. */
#include "format/cm_message.h"

#include <string.h>

/* The MAD header (IBTA 13.4.2): offsets and constants of the class (16.7.1). */
enum {
	BASE_VERSION = 0,
	CLASS = 1,
	CLASS_VERSION = 2,
	METHOD = 3,
	TRANSACTION_ID = 8,
	ATTRIBUTE_ID = 16,
	ATTRIBUTE_MODIFIER = 20,
};
enum { THE_BASE_VERSION = 1, THE_CLASS = 7, THE_CLASS_VERSION = 2, THE_METHOD = 3 };

const struct cm_field cm_fields[] = {
#define FIELD(message_, field_, byte_, bit_, width_)                                                                   \
	{.name = #field_,                                                                                              \
	 .offset = offsetof(struct cm_##message_, field_),                                                             \
	 .size = sizeof(((struct cm_##message_ *)0)->field_),                                                          \
	 .byte = (byte_),                                                                                              \
	 .bit = (bit_),                                                                                                \
	 .width = (width_),                                                                                            \
	 .message = KIND_OF_##message_},
#define KIND_OF_req CM_REQ
#define KIND_OF_mra CM_MRA
#define KIND_OF_rej CM_REJ
#define KIND_OF_rep CM_REP
#define KIND_OF_rtu CM_RTU
#define KIND_OF_dreq CM_DREQ
#define KIND_OF_drep CM_DREP
#define KIND_OF_sidr_req CM_SIDR_REQ
#define KIND_OF_sidr_rep CM_SIDR_REP
#define CM_NUMBER(name, type, field, byte, bit, width) FIELD(name, field, byte, bit, width)
#define CM_BYTES(name, field, byte, length) FIELD(name, field, byte, 0, 0)
#include "format/cm_messages.def"
	{.name = NULL},
};

static const uint16_t attributes[CM_MESSAGE_KINDS] = {
#define CM_MESSAGE(NAME, name, attribute, text) [CM_##NAME] = (attribute),
#include "format/cm_messages.def"
};

static uint64_t get_number(const uint8_t *from, uint32_t bytes)
{
	uint64_t number = 0;

	for (uint32_t i = 0; i < bytes; i++)
		number = number << 8 | from[i];
	return number;
}

static void put_number(uint8_t *to, uint32_t bytes, uint64_t number)
{
	for (uint32_t i = bytes; i-- > 0; number >>= 8)
		to[i] = (uint8_t)number;
}

/* Returns the bytes that a field touches. */
static uint32_t cm_field_bytes(const struct cm_field *field)
{
	return (field->bit + field->width + 7u) / 8u;
}

static uint64_t cm_field_mask(const struct cm_field *field)
{
	return field->width == 64 ? UINT64_MAX : (UINT64_C(1) << field->width) - 1;
}

static uint32_t cm_field_trailing_bits(const struct cm_field *field)
{
	return cm_field_bytes(field) * 8 - field->bit - field->width;
}

uint64_t cm_field_get(const uint8_t mad[CM_MAD_BYTES], const struct cm_field *field)
{
	uint64_t covered = get_number(mad + CM_MAD_HEADER_BYTES + field->byte, cm_field_bytes(field));

	return covered >> cm_field_trailing_bits(field) & cm_field_mask(field);
}

static void cm_field_put(uint8_t mad[CM_MAD_BYTES], const struct cm_field *field, uint64_t number)
{
	uint8_t *at = mad + CM_MAD_HEADER_BYTES + field->byte;
	uint32_t bytes = cm_field_bytes(field), behind = cm_field_trailing_bits(field);

	put_number(at, bytes, get_number(at, bytes) | (number & cm_field_mask(field)) << behind);
}

static uint64_t member_load(const uint8_t *from, uint32_t size)
{
	uint32_t number4;
	uint16_t number2;
	uint64_t number8;

	switch (size) {
	case 1:
		return *from;
	case 2:
		memcpy(&number2, from, sizeof(number2));
		return number2;
	case 4:
		memcpy(&number4, from, sizeof(number4));
		return number4;
	default:
		memcpy(&number8, from, sizeof(number8));
		return number8;
	}
}

static void member_store(uint8_t *to, uint32_t size, uint64_t number)
{
	uint32_t number4 = (uint32_t)number;
	uint16_t number2 = (uint16_t)number;

	switch (size) {
	case 1:
		*to = (uint8_t)number;
		break;
	case 2:
		memcpy(to, &number2, sizeof(number2));
		break;
	case 4:
		memcpy(to, &number4, sizeof(number4));
		break;
	default:
		memcpy(to, &number, sizeof(number));
		break;
	}
}

/* All members of the union begin here. */
static const size_t union_at = offsetof(struct cm_message, req);

void cm_pack(const struct cm_message *message, uint8_t mad[CM_MAD_BYTES])
{
	const uint8_t *from = (const uint8_t *)message + union_at;

	memset(mad, 0, CM_MAD_BYTES);
	mad[BASE_VERSION] = THE_BASE_VERSION;
	mad[CLASS] = THE_CLASS;
	mad[CLASS_VERSION] = THE_CLASS_VERSION;
	mad[METHOD] = THE_METHOD;
	put_number(mad + TRANSACTION_ID, 8, message->transaction_id);
	put_number(mad + ATTRIBUTE_ID, 2, attributes[message->kind]);
	put_number(mad + ATTRIBUTE_MODIFIER, 4, message->attribute_modifier);
	for (const struct cm_field *field = cm_fields; field->name; field++) {
		if (field->message != message->kind)
			continue;
		if (field->width)
			cm_field_put(mad, field, member_load(from + field->offset, field->size));
		else
			memcpy(mad + CM_MAD_HEADER_BYTES + field->byte, from + field->offset, field->size);
	}
}

static enum cm_malformed mad_check_header(const uint8_t mad[CM_MAD_BYTES], enum cm_message_kind *kind)
{
	uint64_t attribute = get_number(mad + ATTRIBUTE_ID, 2);

	*kind = CM_NO_MESSAGE;
	if (mad[BASE_VERSION] != THE_BASE_VERSION)
		return CM_FOREIGN_VERSION;
	if (mad[CLASS] != THE_CLASS || mad[CLASS_VERSION] != THE_CLASS_VERSION)
		return CM_FOREIGN_CLASS;
	if (mad[METHOD] != THE_METHOD)
		return CM_FOREIGN_METHOD;
	for (unsigned int i = CM_NO_MESSAGE + 1; i < CM_MESSAGE_KINDS; i++) {
		if (attributes[i] == attribute) {
			*kind = (enum cm_message_kind)i;
			return CM_WELL_FORMED;
		}
	}
	return CM_FOREIGN_MESSAGE;
}

enum cm_message_kind cm_mad_kind(const uint8_t mad[CM_MAD_BYTES])
{
	enum cm_message_kind kind;

	mad_check_header(mad, &kind);
	return kind;
}

enum cm_malformed cm_unpack(const uint8_t mad[CM_MAD_BYTES], struct cm_message *message)
{
	uint8_t *to = (uint8_t *)message + union_at;
	enum cm_malformed wrong;

	memset(message, 0, sizeof(*message));
	wrong = mad_check_header(mad, &message->kind);
	if (wrong != CM_WELL_FORMED)
		return wrong;
	message->transaction_id = get_number(mad + TRANSACTION_ID, 8);
	message->attribute_modifier = (uint32_t)get_number(mad + ATTRIBUTE_MODIFIER, 4);
	for (const struct cm_field *field = cm_fields; field->name; field++) {
		if (field->message != message->kind)
			continue;
		if (field->width)
			member_store(to + field->offset, field->size, cm_field_get(mad, field));
		else
			memcpy(to + field->offset, mad + CM_MAD_HEADER_BYTES + field->byte, field->size);
	}
	return CM_WELL_FORMED;
}

enum cm_addressee cm_mad_addressee(const uint8_t mad[CM_MAD_BYTES], uint64_t *key)
{
	struct cm_message message;

	*key = 0;
	if (cm_unpack(mad, &message) != CM_WELL_FORMED)
		return CM_TO_NONE;
	switch (message.kind) {
	case CM_REQ:
		*key = message.req.service_id;
		return CM_TO_SERVICE;
	case CM_SIDR_REQ:
		*key = message.sidr_req.service_id;
		return CM_TO_SERVICE;
	case CM_REJ:
		/* A sender that timed out may never have learned the recipient's id (IBTA 12.6.7, reason 4). */
		*key = message.rej.remote_comm_id;
		return message.rej.reason == CM_REJECT_TIMEOUT ? CM_TO_ALL : CM_TO_COMM_ID;
	case CM_MRA:
		*key = message.mra.remote_comm_id;
		return CM_TO_COMM_ID;
	case CM_REP:
		*key = message.rep.remote_comm_id;
		return CM_TO_COMM_ID;
	case CM_RTU:
		*key = message.rtu.remote_comm_id;
		return CM_TO_COMM_ID;
	case CM_DREQ:
		*key = message.dreq.remote_comm_id;
		return CM_TO_COMM_ID;
	case CM_DREP:
		*key = message.drep.remote_comm_id;
		return CM_TO_COMM_ID;
	case CM_SIDR_REP:
		*key = message.sidr_rep.request_id;
		return CM_TO_COMM_ID;
	default:
		return CM_TO_NONE;
	}
}

bool cm_answer_unclaimed(const uint8_t mad[CM_MAD_BYTES], uint8_t answer[CM_MAD_BYTES])
{
	struct cm_message message, reply;

	cm_unpack(mad, &message);
	memset(&reply, 0, sizeof(reply));
	reply.transaction_id = message.transaction_id;
	switch (message.kind) {
	case CM_REQ:
		reply.kind = CM_REJ;
		reply.rej.remote_comm_id = message.req.local_comm_id;
		reply.rej.message_rejected = CM_NAMED_REQ;
		reply.rej.reason = CM_REJECT_SERVICE_ID;
		break;
	case CM_SIDR_REQ:
		reply.kind = CM_SIDR_REP;
		reply.sidr_rep.request_id = message.sidr_req.request_id;
		reply.sidr_rep.service_id = message.sidr_req.service_id;
		reply.sidr_rep.status = CM_SIDR_UNSUPPORTED;
		break;
	case CM_DREQ:
		reply.kind = CM_DREP;
		reply.drep.local_comm_id = message.dreq.remote_comm_id;
		reply.drep.remote_comm_id = message.dreq.local_comm_id;
		break;
	default:
		return false;
	}
	cm_pack(&reply, answer);
	return true;
}

const char *cm_message_name(unsigned int kind)
{
	static const char *const names[CM_MESSAGE_KINDS] = {
		[CM_NO_MESSAGE] = "none",
#define CM_MESSAGE(NAME, name, attribute, text) [CM_##NAME] = #NAME,
#include "format/cm_messages.def"
	};

	return kind < CM_MESSAGE_KINDS ? names[kind] : names[CM_NO_MESSAGE];
}

const char *cm_rejection_text(unsigned int reason)
{
	switch (reason) {
#define CM_REJECTION(number, NAME, text)                                                                               \
	case CM_REJECT_##NAME:                                                                                         \
		return text;
#include "format/cm_messages.def"
	default:
		return "a reason that is not known";
	}
}

const char *cm_sidr_status_text(unsigned int status)
{
	switch (status) {
#define CM_SIDR_STATUS(number, NAME, text)                                                                             \
	case CM_SIDR_##NAME:                                                                                           \
		return text;
#include "format/cm_messages.def"
	default:
		return "a status that is not known";
	}
}
