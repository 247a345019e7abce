/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The state of an ID. It changes in calls of the program, and on other threads in the handler of the connection
 * manager's events. All changes are made under the lock of events (rdmacm/channel.h). states.def is the table.
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
/** Returns the name of a call in rdma_cma.h. */
const char *id_call_name(enum id_call call);
/** Returns true if @call is allowed in @state. Pure. */
bool id_call_allowed(enum id_call call, enum id_state state);

/** Returns the present state of @id. Any thread. */
enum id_state id_state(const struct user_cm_id *id);

/**
 * Returns 0 if @call is allowed in the present state of @id; otherwise -EINVAL, with an explanation of the state and of
 * the states that the call requires. The caller holds the lock of @id.
 */
int id_check(struct user_cm_id *id, enum id_call call);

/**
 * Changes the state if it is @from; returns true if it was. Any thread; the caller does not hold the lock of events.
 */
bool id_change(struct user_cm_id *id, enum id_state from, enum id_state to);

#endif
