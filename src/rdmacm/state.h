/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The state of an ID (states.def). It changes under the lock of events (rdmacm/channel.h), in calls of the program and,
 * on other threads, in the handler of the connection manager's events.
 */
#ifndef SOFTHCA_RDMACM_STATE_H
#define SOFTHCA_RDMACM_STATE_H

#include <stdbool.h>
#include <stdint.h>

struct user_cm_id;

enum id_state {
#define STATE(NAME, name) ID_##NAME,
#include "rdmacm/states.def"
	ID_STATES,
};

enum id_call {
#define CALL(NAME, name, a, b) ID_CALL_##NAME,
#include "rdmacm/states.def"
	ID_CALLS,
};

/** Returns the name of a state, such as "IDLE". Any thread. */
const char *id_state_name(enum id_state state);
const char *id_call_name(enum id_call call);
/** Returns true if @call is allowed in @state. Pure. */
bool id_call_allowed(enum id_call call, enum id_state state);

/** Returns the present state. Any thread. */
enum id_state id_state(const struct user_cm_id *id);

/**
 * Returns 0 if the state of @id allows @call; otherwise -EINVAL, with an explanation. The caller holds the lock of @id.
 */
int id_check(struct user_cm_id *id, enum id_call call);

/** Changes the state and returns true if it was @from. Any thread; the caller does not hold the lock of events. */
bool id_change(struct user_cm_id *id, enum id_state from, enum id_state to);

#endif
