/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the makers of a trace share: the trace in the making, its tracks and its requests. All of it belongs to timeline_write(), which
 * frees it; one thread.
 */
#ifndef SOFTHCA_TOOL_TIMELINE_MAKER_H
#define SOFTHCA_TOOL_TIMELINE_MAKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/wqe.h"
#include "tool/timeline_json.h"
#include "tool/timeline_map.h"
#include "tool/timeline_read.h"

/* Kinds of tracks, and of keys of the map. */
enum track_kind {
	TRACK_REQUESTER,
	TRACK_RESPONDER,
	TRACK_CQ,
	TRACK_SRQ,
	KEY_REQUEST,
	KEY_RECEIVE,
	KEY_COMPLETION,
	KEY_EARLY,
	KEY_ROW
};

/* An arrow: "request" from post over sending to completion; "message" from one queue pair to the other. */
struct flow {
	char phase; /* s, t, f; 0: none */
	const char *name;
	uint64_t id;
};

#define FLOWS 2

struct track {
	uint32_t source, number;
	enum track_kind kind;
	/* The slice that has begun last and is not written yet. */
	bool pending;
	int64_t ns;
	char name[96], arguments[160];
	struct flow flows[FLOWS];
	/* What requester or responder is about, or NULL. */
	const char *activity;
	uint32_t newest_psn;            /* of what was sent; of a responder, which it is to answer */
	uint32_t awaited_psn;           /* of a responder that waits */
	uint64_t message;               /* arrow of the message that arrived last */
	uint32_t first_open, last_open; /* requests that are not completed; MAP_NONE: none */
};

#define NEVER INT64_MIN

struct request {
	int64_t posted, executed, completed, polled; /* NEVER */
	uint64_t wr_id;
	uint32_t source, qpn, next;
	uint32_t psn, packets, bytes;
	uint16_t index;
	uint8_t opcode;
	bool receive, again;
	uint8_t status; /* enum ibv_wc_status, if polled */
};

/* A poll that is said to be before its completion. */
struct early {
	const struct timeline_record *record;
	int64_t ns;
};

struct maker {
	const struct timeline *timeline;
	struct trace *trace;
	struct map map;
	struct track *tracks;
	uint32_t track_count;
	struct request *requests;
	uint32_t request_count;
	struct early *early;
	uint32_t early_count;
	int64_t *latest; /* of each source: times of one process differ, so that its slices have an order */
};

/** splitmix64: the numbers of arrows. */
static inline uint64_t mix(uint64_t value)
{
	value += UINT64_C(0x9e3779b97f4a7c15);
	value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	value = (value ^ value >> 27) * UINT64_C(0x94d049bb133111eb);
	return value ^ value >> 31;
}

/** @array of @count with room for one more; exits without memory. */
void *maker_room(void *array, uint32_t count, size_t size);
/** A key of the map: of the @number of a process, and an @index in it. */
uint64_t maker_key(enum track_kind kind, uint32_t source, uint32_t number, uint32_t index);
/** The number of the process that a source is of, as a trace has it. */
uint32_t maker_process(const struct maker *maker, uint32_t source);
/** The track of the @number, which is made if it is not there: that may move the others. */
struct track *track_at(struct maker *maker, enum track_kind kind, uint32_t source, uint32_t number);
/** Something else happens at @ns: the slice that has begun ends before. */
void track_put_pending(const struct maker *maker, struct track *track, int64_t ns);
/** Begins a slice; name, arguments and arrows are filled in behind it. */
void track_begin(const struct maker *maker, struct track *track, int64_t ns);
/** An arrow begins (s), passes (t) or ends (f) in the slice that has begun last: one or two. */
void track_add_flow(struct track *track, char phase, const char *name, uint64_t id);
/** Requester or responder is about something else from @ns on; NULL: nothing. */
void track_set_activity(const struct maker *maker, struct track *track, int64_t ns, const char *activity);
/** What a WQE with @opcode is called. */
const char *wqe_name(uint8_t opcode);
/** A request that nothing is known of, in place of one with the same @index before it: that may move the others. */
struct request *request_new(struct maker *maker, uint32_t source, uint32_t qpn, uint16_t index, bool receive);
/** The newest with that @index, or NULL. */
struct request *request_at(struct maker *maker, uint32_t source, uint32_t qpn, uint16_t index, bool receive);
/** The one that is executed: that which was posted, or, of a ring that its program fills itself, a new one. */
struct request *request_executed(struct maker *maker, const struct timeline_event *event);
/** Its arrow, in which the events of one request are joined. */
uint64_t request_flow(const struct maker *maker, const struct request *request);
/** All before @last in the order of posting have completed with it, silently. */
void request_complete_up_to(struct maker *maker, struct request *last, int64_t ns);
/** It was polled at @ns, as @record has it. */
void request_set_polled(struct request *request, const struct timeline_record *record, int64_t ns);
/** Keeps a poll whose completion, of @key, is not known, or not yet. */
void request_add_early(struct maker *maker, const struct timeline_record *record, int64_t ns, uint64_t key);
/** @request has completed; if its poll has been seen already, it was polled at once. */
void request_take_early(struct maker *maker, struct request *request, uint64_t key);
/** The request itself, from its first to its last step. @end: of the trace. */
void request_put(const struct maker *maker, const struct request *request, int64_t end);

#endif
