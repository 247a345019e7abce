/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What timelines call the states of requester and responder: the tables of src/format, of which the first are states of the
 * machines, as they are in records, and the second what the makers of traces conclude. Constants; any thread.
 */
#ifndef SOFTHCA_TOOL_TIMELINE_NAMES_H
#define SOFTHCA_TOOL_TIMELINE_NAMES_H

enum requester_state {
#define REQUESTER_STATE(NAME, ...) REQUESTER_##NAME,
#include "format/requester_states.def"
	REQUESTER_STATES
};

enum requester_activity {
#define REQUESTER_ACTIVITY(NAME, ...) REQUESTER_ACTIVITY_##NAME,
#include "format/requester_states.def"
	REQUESTER_ACTIVITIES
};

enum responder_state {
#define RESPONDER_STATE(NAME, ...) RESPONDER_##NAME,
#include "format/responder_states.def"
	RESPONDER_STATES
};

enum responder_activity {
#define RESPONDER_ACTIVITY(NAME, ...) RESPONDER_ACTIVITY_##NAME,
#include "format/responder_states.def"
	RESPONDER_ACTIVITIES
};

extern const char *const requester_states[REQUESTER_STATES];
extern const char *const requester_activities[REQUESTER_ACTIVITIES];
extern const char *const responder_states[RESPONDER_STATES];
extern const char *const responder_activities[RESPONDER_ACTIVITIES];

#endif
