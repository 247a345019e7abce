/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packs and unpacks MADs of the communication manager: 24 bytes of header (IBTA 13.4.2), then a message; cm_messages.def is the
 * table. Pure functions on the caller's memory; any thread.
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

/* The queue pair that sends and receives MADs, and its Q_Key (IBTA 13.5.3.2). */
#define CM_QPN 1u
#define CM_QKEY 0x80010000u

enum cm_message_kind {
	CM_NO_MESSAGE,
#define CM_MESSAGE(NAME, ...) CM_##NAME,
#include "format/cm_messages.def"
	CM_MESSAGE_KINDS,
};

/* One structure per message: struct cm_req, struct cm_rep, …, with numbers in host order. */
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

/* The message that an MRA acknowledges or a REJ rejects (IBTA 12.6.6, 12.6.7). */
enum cm_message_named { CM_NAMED_REQ, CM_NAMED_REP, CM_NAMED_OTHER };

/* transport_service of a REQ. CM_TRANSPORT_EXTENDED: extended_transport has the type. */
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

/* A field of the table. */
struct cm_field {
	const char *name;
	uint16_t offset, size;        /* in the message's structure */
	uint8_t byte, bit, width;     /* position after the MAD header; width 0: plain bytes */
	enum cm_message_kind message; /* message that has the field */
};

/** All fields, grouped by message and in the order of the table; a NULL name ends them. Constant. */
extern const struct cm_field cm_fields[];

/**
 * Writes @message to @mad. Its kind must not be CM_NO_MESSAGE. Truncates numbers to the width of their field; reserved
 * bits are 0.
 */
void cm_pack(const struct cm_message *message, uint8_t mad[CM_MAD_BYTES]);

/* Why a MAD is not a message of the communication manager. */
enum cm_malformed {
	CM_WELL_FORMED,
	CM_FOREIGN_VERSION, /* not base version 1 */
	CM_FOREIGN_CLASS,   /* another class, or not version 2 of the class */
	CM_FOREIGN_METHOD,  /* not Send */
	CM_FOREIGN_MESSAGE, /* an attribute that is not in the table, such as LAP and APR */
};

/**
 * Parses @mad. Every bit pattern is a valid value of its field. Returns CM_WELL_FORMED, or the error; then the kind of @message
 * is CM_NO_MESSAGE.
 */
enum cm_malformed cm_unpack(const uint8_t mad[CM_MAD_BYTES], struct cm_message *message);

/** Returns the value of @field, of at most 64 bits, in @mad. */
uint64_t cm_field_get(const uint8_t mad[CM_MAD_BYTES], const struct cm_field *field);

/** Returns the kind of message in @mad; CM_NO_MESSAGE if cm_unpack() would fail. */
enum cm_message_kind cm_mad_kind(const uint8_t mad[CM_MAD_BYTES]);

/*
 * How the addressed process is found. (IBTA 12.9 has one communication manager per port; here every process of a host
 * has one.)
 */
enum cm_addressee {
	CM_TO_NONE,    /* malformed: drop it */
	CM_TO_SERVICE, /* REQ, SIDR_REQ: the process that listens on the service id */
	CM_TO_COMM_ID, /* all others: the process that created the recipient's communication id or request id */
	CM_TO_ALL,     /* a REJ after a timeout, if the sender never learned the recipient's id */
};

/** Returns the addressee of @mad. @key gets the service id or the recipient's communication id, otherwise 0. */
enum cm_addressee cm_mad_addressee(const uint8_t mad[CM_MAD_BYTES], uint64_t *key);

/**
 * Makes the answer to a @mad that addresses no existing process: a REJ without listener to a REQ, the corresponding
 * status to a SIDR_REQ, a DREP to a DREQ (IBTA 12.9). The answer goes back to the sender. Returns false if such a
 * message is not answered.
 */
bool cm_answer_unclaimed(const uint8_t mad[CM_MAD_BYTES], uint8_t answer[CM_MAD_BYTES]);

/** Returns "REQ", "MRA", …; "none" for other values. */
const char *cm_message_name(unsigned int kind);
/** Returns the meaning of @reason in a REJ. Never NULL. */
const char *cm_rejection_text(unsigned int reason);
/** Returns the meaning of @status in a SIDR_REP. Never NULL. */
const char *cm_sidr_status_text(unsigned int status);

#endif
