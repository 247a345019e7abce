/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Faults: a script says which frames a device loses, doubles, delays, lets overtake, or spoils (docs/use/faults.md has the
 * language). They apply to what the device sends, whatever the link.
 *
 * What becomes of a frame follows from the seed, the rule, the QP that sends and the number of the frame among those of
 * this QP that the rule is about, and from nothing else: not from time, nor from what other threads do meanwhile.
 *
 * A struct fault_script is plain data of whoever declares it. A struct faults belongs to the filters of a device
 * (filter/filter.h), whose lock covers it.
 */
#ifndef SOFTHCA_FILTER_FAULTS_H
#define SOFTHCA_FILTER_FAULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FAULT_RULES 64
#define FAULT_TEXT_BYTES (1 << 16)
#define FAULT_RULE_TEXT 128
#define FAULT_ALWAYS UINT32_C(100000000) /* a share of 100 %; half is half of it */

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

/* What a script can tell apart. */
enum fault_kind {
	FAULT_SEND,
	FAULT_WRITE,
	FAULT_READ,
	FAULT_ATOMIC,
	FAULT_DISCONNECT,
	FAULT_READ_RESPONSE,
	FAULT_ATOMIC_RESPONSE,
	FAULT_ACK,
	FAULT_NAK, /* all but RNR NAKs */
	FAULT_RNR_NAK,
	FAULT_CNP,                             /* counts as one of RC */
#define CM_MESSAGE(NAME, ...) FAULT_CM_##NAME, /* a SEND that carries this message of the connection manager */
#include "format/cm_messages.def"
	FAULT_KINDS,
};

enum fault_transport { FAULT_RC, FAULT_UC, FAULT_UD, FAULT_XRC, FAULT_DC, FAULT_TRANSPORTS };

struct fault_rule {
	enum fault_action action;
	uint16_t transports; /* 1 << enum fault_transport */
	uint32_t kinds;      /* 1 << enum fault_kind */
	bool of_qp, to_qp;
	uint32_t sender, destination; /* if so */
	uint64_t first, count;        /* numbers of the frames: [first, +count), from 1; UINT64_MAX: no end */
	uint32_t share;               /* of these, of FAULT_ALWAYS */
	uint32_t by;                  /* FAULT_REORDER: frames that overtake */
	uint64_t least_ns, most_ns;   /* FAULT_DELAY */
	char text[FAULT_RULE_TEXT];   /* as it was written */
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

/** Parses @text. Returns 0, or -EINVAL with @error. Any thread. */
int fault_script_parse(struct fault_script *script, const char *text, struct fault_error *error);

/**
 * Takes the script that @setting stands for: of the file of that name if there is one, else @setting itself. Returns 0,
 * or a negative errno with @message, one line. @error: as above, line 0 if the file could not be read. Any thread.
 */
int fault_script_read(struct fault_script *script, const char *setting, struct fault_error *error, char *message,
		      size_t size);

/* ---- deciding -------------------------------------------------------------------------------------------------- */

struct frame;

/* What a QP has sent. */
struct fault_flow {
	struct fault_flow *next;
	uint32_t sender;
	uint64_t last_due_ns; /* of its frames that are delayed: those behind them do not overtake */
	struct frame *held;   /* that others are to overtake */
	uint64_t seen[];      /* by rule: frames that it is about */
};

struct faults;

/* A frame, or a request, as rules see it. */
struct fault_subject {
	uint8_t transport; /* enum fault_transport */
	uint8_t kind;      /* enum fault_kind */
	uint32_t sender, destination;
	uint32_t payload; /* bytes */
};

struct fault_verdict {
	bool drop, corrupt_payload, corrupt_frame, kill;
	uint32_t copies;   /* beside the frame itself */
	uint32_t overtake; /* frames that pass before it */
	uint64_t delay_ns;
	uint64_t payload_draw, frame_draw; /* which bit */
	struct fault_flow *flow;           /* NULL without memory: then nothing happens to the frame */
};

/** Of device number @device. @seed: if the script has none. NULL without memory. */
struct faults *faults_new(const struct fault_script *script, uint64_t seed, size_t device);
void faults_free(struct faults *faults);

/** The script. */
const struct fault_script *faults_script(const struct faults *faults);

/** What becomes of the next frame of this sender: all rules but rnr. */
void faults_decide(struct faults *faults, const struct fault_subject *subject, struct fault_verdict *verdict);

/** The rules rnr: true if the QP that answers, the subject's sender, shall have no receive for this request. */
bool faults_refuse(struct faults *faults, const struct fault_subject *subject);

/** How many frames, or requests of the rule rnr, were looked at. */
uint64_t faults_frames(const struct faults *faults);

/**
 * The summary, a line for the device and one for each rule, each of which @put gets without line feed and prefix: how often
 * it was applied, and to how many frames it could have been.
 */
void faults_summary(const struct faults *faults, void (*put)(void *argument, const char *line), void *argument);

#endif
