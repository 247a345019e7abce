/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packs and unpacks MADs of the communication manager: a header (IBTA 13.4.2), then a message. Pure functions; any
 * thread.
 */
#ifndef SOFTHCA_FORMAT_CM_MESSAGE_H
#define SOFTHCA_FORMAT_CM_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	CM_MAD_BYTES = 256,
	CM_MAD_HEADER_BYTES = 24,
};

/* Sends and receives MADs (IBTA 13.5.3.2). */
#define CM_QPN 1u
#define CM_QKEY 0x80010000u

enum cm_message_kind {
	CM_NO_MESSAGE,
#define CM_MESSAGE(NAME, ...) CM_##NAME,
#include "format/cm_messages.def"
	CM_MESSAGE_KINDS,
};

/* struct cm_req, struct cm_rep, …, in host order. */
#define CM_MESSAGE(NAME, name, attribute, text) struct cm_##name {
#define CM_NUMBER(name, type, field, byte, bit, width) type field;
#define CM_BYTES(name, field, byte, length) uint8_t field[length];
#define CM_MESSAGE_END(NAME, name)                                                                                     \
	}                                                                                                              \
	;
#include "format/cm_messages.def"

enum cm_rejection {
#define CM_REJECTION(number, NAME, text) CM_REJECT_##NAME = (number),
#include "format/cm_messages.def"
};

enum cm_sidr_status {
#define CM_SIDR_STATUS(number, NAME, text) CM_SIDR_##NAME = (number),
#include "format/cm_messages.def"
};

/* What an MRA acknowledges or a REJ rejects (IBTA 12.6.6, 12.6.7). */
enum cm_message_named { CM_NAMED_REQ, CM_NAMED_REP, CM_NAMED_OTHER };

/* transport_service of a REQ. CM_TRANSPORT_EXTENDED: see extended_transport. */
enum cm_transport_service { CM_TRANSPORT_RC, CM_TRANSPORT_UC, CM_TRANSPORT_RD, CM_TRANSPORT_EXTENDED };
enum cm_extended_transport { CM_EXTENDED_XRC = 1 };

/* failover_accepted of a REP (IBTA 12.7.30): the answer to the alternate path of the REQ. */
enum cm_failover { CM_FAILOVER_ACCEPTED, CM_FAILOVER_UNSUPPORTED, CM_FAILOVER_REJECTED };

struct cm_message {
	enum cm_message_kind kind;
	uint64_t transaction_id;
	uint32_t attribute_modifier; /* ECE options of REQ, REP, SIDR_REP */
	union {
#define CM_MESSAGE(NAME, name, attribute, text) struct cm_##name name;
#include "format/cm_messages.def"
	};
};

struct cm_field {
	const char *name;
	uint16_t offset, size;        /* in the message's structure */
	uint8_t byte, bit, width;     /* position after the MAD header; width 0: plain bytes */
	enum cm_message_kind message; /* that has the field */
};

/** Grouped by message and in the order of the table, ended by a NULL name. */
extern const struct cm_field cm_fields[];

/** Writes @message, whose kind is not CM_NO_MESSAGE. Truncates numbers to the width of their field. */
void cm_pack(const struct cm_message *message, uint8_t mad[CM_MAD_BYTES]);

enum cm_malformed {
	CM_WELL_FORMED,
	CM_FOREIGN_VERSION, /* not base version 1 */
	CM_FOREIGN_CLASS,   /* or not version 2 of the class */
	CM_FOREIGN_METHOD,  /* not Send */
	CM_FOREIGN_MESSAGE, /* an attribute not in the table, such as LAP and APR */
};

/** Parses @mad. Every bit pattern is a valid value of its field. On an error, the kind of @message is CM_NO_MESSAGE. */
enum cm_malformed cm_unpack(const uint8_t mad[CM_MAD_BYTES], struct cm_message *message);

/** Returns the value of @field, at most 64 bits. */
uint64_t cm_field_get(const uint8_t mad[CM_MAD_BYTES], const struct cm_field *field);

/** Returns CM_NO_MESSAGE if cm_unpack() would fail. */
enum cm_message_kind cm_mad_kind(const uint8_t mad[CM_MAD_BYTES]);

/* How the addressed process is found. (IBTA 12.9: one communication manager per port; here one per process.) */
enum cm_addressee {
	CM_TO_NONE,    /* malformed: drop it */
	CM_TO_SERVICE, /* REQ, SIDR_REQ: the process that listens on the service id */
	CM_TO_COMM_ID, /* others: the process that created the recipient's communication or request id */
	CM_TO_ALL,     /* a REJ after a timeout, if the sender never learned the recipient's id */
};

/** @key: the service id or the recipient's communication id, otherwise 0. */
enum cm_addressee cm_mad_addressee(const uint8_t mad[CM_MAD_BYTES], uint64_t *key);

/**
 * Makes the answer to a @mad that addresses no existing process: a REJ to a REQ, the corresponding status to a SIDR_REQ,
 * a DREP to a DREQ (IBTA 12.9). Returns false for other messages.
 */
bool cm_answer_unclaimed(const uint8_t mad[CM_MAD_BYTES], uint8_t answer[CM_MAD_BYTES]);

/** Returns "REQ", "MRA", …; "none" for other values. */
const char *cm_message_name(unsigned int kind);
/** Never NULL. */
const char *cm_rejection_text(unsigned int reason);
/** Never NULL. */
const char *cm_sidr_status_text(unsigned int status);

#endif
