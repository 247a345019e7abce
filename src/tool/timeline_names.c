/* SPDX-License-Identifier: BSD-2-Clause */
/* See timeline_names.h. */
#include "tool/timeline_names.h"

const char *const requester_states[REQUESTER_STATES] = {
#define REQUESTER_STATE(NAME, name) [REQUESTER_##NAME] = name,
#include "format/requester_states.def"
};

const char *const requester_activities[REQUESTER_ACTIVITIES] = {
#define REQUESTER_ACTIVITY(NAME, name) [REQUESTER_ACTIVITY_##NAME] = name,
#include "format/requester_states.def"
};

const char *const responder_states[RESPONDER_STATES] = {
#define RESPONDER_STATE(NAME, name) [RESPONDER_##NAME] = name,
#include "format/responder_states.def"
};

const char *const responder_activities[RESPONDER_ACTIVITIES] = {
#define RESPONDER_ACTIVITY(NAME, name) [RESPONDER_ACTIVITY_##NAME] = name,
#include "format/responder_states.def"
};
