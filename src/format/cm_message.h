/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * MADs of the communication manager: 24 bytes of header (IBTA 13.4.2), then a message; cm_messages.def is the table.
 * Pure functions on the caller's memory; any thread.
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

/* The queue pair that MADs come from and go to, and its Q_Key (IBTA 13.5.3.2). */
#define CM_QPN 1u
#define CM_QKEY 0x80010000u

enum cm_message_kind {
	CM_NO_MESSAGE,
#define CM_MESSAGE(NAME, ...) CM_##NAME,
#include "format/cm_messages.def"
	CM_MESSAGE_KINDS,
};

/* A structure per message: struct cm_req, struct cm_rep, …, with numbers in host order. */
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

/* Which message an MRA acknowledges or a REJ rejects (IBTA 12.6.6, 12.6.7). */
enum cm_message_named { CM_NAMED_REQ, CM_NAMED_REP, CM_NAMED_OTHER };

/* transport_service of a REQ; extended_transport says which if it is CM_TRANSPORT_EXTENDED. */
enum cm_transport_service { CM_TRANSPORT_RC, CM_TRANSPORT_UC, CM_TRANSPORT_RD, CM_TRANSPORT_EXTENDED };
enum cm_extended_transport { CM_EXTENDED_XRC = 1 };

/* failover_accepted of a REP (IBTA 12.7.30): the answer to the alternate path of the REQ. */
enum cm_failover { CM_FAILOVER_ACCEPTED, CM_FAILOVER_UNSUPPORTED, CM_FAILOVER_REJECTED };

struct cm_message {
	enum cm_message_kind kind;
	uint64_t transaction_id;
	uint32_t attribute_modifier; /* of REQ, REP, SIDR_REP: options of ECE */
	union {
#define CM_MESSAGE(NAME, name, attribute, text) struct cm_##name name;
#include "format/cm_messages.def"
	};
};

/* A field as the table has it. */
struct cm_field {
	const char *name;
	uint16_t offset, size;        /* in the message's structure */
	uint8_t byte, bit, width;     /* behind the MAD header; width 0: bytes as they are */
	enum cm_message_kind message; /* that it is of */
};

/** All fields, those of a message together and in the order of the table; a NULL name ends them. Constant. */
extern const struct cm_field cm_fields[];

/** Writes @message, whose kind is one, to @mad. Numbers are cut to the width of their field; reserved bits are 0. */
void cm_pack(const struct cm_message *message, uint8_t mad[CM_MAD_BYTES]);

/* Why a MAD is no message of the communication manager. */
enum cm_malformed {
	CM_WELL_FORMED,
	CM_FOREIGN_VERSION, /* not base version 1 */
	CM_FOREIGN_CLASS,   /* neither the class nor its version 2 */
	CM_FOREIGN_METHOD,  /* not Send */
	CM_FOREIGN_MESSAGE, /* an attribute that is not in the table, such as LAP and APR */
};

/**
 * Takes @mad apart; whatever it holds is some value of each field. Returns CM_WELL_FORMED, or what is wrong: then @message
 * has the kind CM_NO_MESSAGE.
 */
enum cm_malformed cm_unpack(const uint8_t mad[CM_MAD_BYTES], struct cm_message *message);

/** The value of @field in @mad, which has 64 bits or fewer. */
uint64_t cm_field_get(const uint8_t mad[CM_MAD_BYTES], const struct cm_field *field);

/** Which message @mad is; CM_NO_MESSAGE: none that cm_unpack() takes. */
enum cm_message_kind cm_mad_kind(const uint8_t mad[CM_MAD_BYTES]);

/* How the process that a MAD is for is found (IBTA 12.9 has one communication manager per port; a host has many here). */
enum cm_addressee {
	CM_TO_NONE,    /* malformed: drop it */
	CM_TO_SERVICE, /* REQ, SIDR_REQ: who listens on the service id */
	CM_TO_COMM_ID, /* all others: who made the communication id, or the request id, of the recipient */
	CM_TO_ALL,     /* a REJ of somebody who gave up before it learned the recipient's id */
};

/** For whom @mad is; @key gets the service id or the recipient's communication id, else 0. */
enum cm_addressee cm_mad_addressee(const uint8_t mad[CM_MAD_BYTES], uint64_t *key);

/**
 * The answer to @mad where no process is that it could be for: to a REQ a REJ that nobody listens, to a SIDR_REQ the same as a
 * status, to a DREQ a DREP (IBTA 12.9). It goes back to where @mad came from. False: such a message has no answer.
 */
bool cm_answer_unclaimed(const uint8_t mad[CM_MAD_BYTES], uint8_t answer[CM_MAD_BYTES]);

/** "REQ", "MRA", …; "none" of what is no message. */
const char *cm_message_name(unsigned int kind);
/** What @reason of a REJ says. Never NULL. */
const char *cm_rejection_text(unsigned int reason);
/** What @status of a SIDR_REP says. Never NULL. */
const char *cm_sidr_status_text(unsigned int status);

#endif
