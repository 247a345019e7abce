/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The state of an id. It changes in calls of the program and in the handler of the connection manager's events, which
 * is on another thread: all changes are made under the lock of events (rdmacm/channel.h). states.def is the table.
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

/** "IDLE", "BOUND", …. Any thread. */
const char *id_state_name(enum id_state state);
/** The call by its name in rdma_cma.h. */
const char *id_call_name(enum id_call call);
/** True if @call is in order in @state. Pure. */
bool id_call_allowed(enum id_call call, enum id_state state);

/** The state of @id now. Any thread. */
enum id_state id_state(const struct user_cm_id *id);

/**
 * 0 if @call is in order in the present state of @id; else -EINVAL, with an explanation that names the state and what
 * the call takes. The caller holds the lock of @id.
 */
int id_check(struct user_cm_id *id, enum id_call call);

/** Changes the state, if it is @from: true. Any thread, no lock of events held. */
bool id_change(struct user_cm_id *id, enum id_state from, enum id_state to);

#endif
