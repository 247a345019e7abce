/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Faults: a script selects frames that a device drops, duplicates, delays, reorders or corrupts (docs/use/faults.md
 * describes the language). They apply to frames sent over any link.
 *
 * The fate of a frame depends only on the seed, the rule, the sending QP, and its number among the frames of this QP
 * that match the rule: not on time or other threads.
 *
 * A struct fault_script is plain data; its declarer owns it. The filters of a device own its struct faults; their lock
 * covers it.
 */
#ifndef SOFTHCA_FILTER_FAULTS_H
#define SOFTHCA_FILTER_FAULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FAULT_RULES 64
#define FAULT_TEXT_BYTES (1 << 16)
#define FAULT_RULE_TEXT 128
#define FAULT_ALWAYS UINT32_C(100000000) /* a share of 100 % */

enum fault_action {
	FAULT_DROP,
	FAULT_DUPLICATE,
	FAULT_REORDER,
	FAULT_CORRUPT_PAYLOAD,
	FAULT_CORRUPT_FRAME,
	FAULT_DELAY,
	FAULT_RNR,
	FAULT_KILL,
	FAULT_ACTIONS,
};

enum fault_kind {
	FAULT_SEND,
	FAULT_WRITE,
	FAULT_READ,
	FAULT_ATOMIC,
	FAULT_DISCONNECT,
	FAULT_READ_RESPONSE,
	FAULT_ATOMIC_RESPONSE,
	FAULT_ACK,
	FAULT_NAK, /* all except RNR NAKs */
	FAULT_RNR_NAK,
	FAULT_CNP,                             /* counts as RC */
#define CM_MESSAGE(NAME, ...) FAULT_CM_##NAME, /* a SEND with this CM message */
#include "format/cm_messages.def"
	FAULT_KINDS,
};

enum fault_transport { FAULT_RC, FAULT_UC, FAULT_UD, FAULT_XRC, FAULT_DC, FAULT_TRANSPORTS };

struct fault_rule {
	enum fault_action action;
	uint16_t transports; /* 1 << enum fault_transport */
	uint32_t kinds;      /* 1 << enum fault_kind */
	bool of_qp, to_qp;
	uint32_t sender, destination; /* if the flag is set */
	uint64_t first, count;        /* numbers of the frames: [first, +count), from 1; UINT64_MAX: unlimited */
	uint32_t share;               /* share of these, in units of 1 / FAULT_ALWAYS */
	uint32_t by;                  /* FAULT_REORDER: frames that overtake */
	uint64_t least_ns, most_ns;   /* FAULT_DELAY */
	char text[FAULT_RULE_TEXT];
};

struct fault_script {
	bool seeded;
	uint64_t seed;
	uint32_t count;
	struct fault_rule rule[FAULT_RULES];
};

struct fault_error {
	uint32_t line, column; /* from 1 */
	char text[256];        /* "expected …, not …" */
};

/** Parses @text. Returns 0, or -EINVAL with @error. Any thread may call. */
int fault_script_parse(struct fault_script *script, const char *text, struct fault_error *error);

/**
 * Reads the script from the file @setting if it exists, otherwise from @setting itself. Returns 0, or a negative errno
 * with a line in @message. @error: as above, line 0 if the file could not be read. Any thread may call.
 */
int fault_script_read(struct fault_script *script, const char *setting, struct fault_error *error, char *message,
		      size_t size);

/* ---- decisions ------------------------------------------------------------------------------------------------- */

struct frame;

/* State of a sending QP. */
struct fault_flow {
	struct fault_flow *next;
	uint32_t sender;
	uint64_t last_due_ns; /* due time of the latest delayed frame: later frames do not overtake it */
	struct frame *held;   /* waiting for others to overtake */
	uint64_t seen[];      /* by rule: number of matching frames */
};

struct faults;

/* Properties of a frame, or a request, to match against rules. */
struct fault_subject {
	uint8_t transport; /* enum fault_transport */
	uint8_t kind;      /* enum fault_kind */
	uint32_t sender, destination;
	uint32_t payload; /* bytes */
};

struct fault_verdict {
	bool drop, corrupt_payload, corrupt_frame, kill;
	uint32_t copies;   /* besides the frame itself */
	uint32_t overtake; /* frames that must pass before it */
	uint64_t delay_ns;
	uint64_t payload_draw, frame_draw; /* select the bit */
	struct fault_flow *flow;           /* NULL without memory: no effect */
};

/** Makes the faults of device number @device. @seed: used if the script has none. Returns NULL without memory. */
struct faults *faults_new(const struct fault_script *script, uint64_t seed, size_t device);
void faults_free(struct faults *faults);

const struct fault_script *faults_script(const struct faults *faults);

/** Decides the fate of the sender's next frame: applies all rules except rnr. */
void faults_decide(struct faults *faults, const struct fault_subject *subject, struct fault_verdict *verdict);

/** Applies the rules "rnr". Returns true if the answering QP, the subject's sender, must act as without a receive. */
bool faults_refuse(struct faults *faults, const struct fault_subject *subject);

/** Returns the number of frames, and requests for "rnr", that were examined. */
uint64_t faults_frames(const struct faults *faults);

/**
 * Passes to @put a line for the device and one for each rule, with the numbers of frames that it affected and matched;
 * without line feed.
 */
void faults_summary(const struct faults *faults, void (*put)(void *argument, const char *line), void *argument);

#endif
