/* SPDX-License-Identifier: BSD-2-Clause */
/* States of IDs, see state.h. */
#include "rdmacm/state.h"

#include <errno.h>
#include <string.h>

#include "explain/explain.h"
#include "rdmacm/channel.h"
#include "rdmacm/devices.h"
#include "rdmacm/objects.h"

static const char *const state_names[] = {
#define STATE(NAME, name) [ID_##NAME] = (name),
#include "rdmacm/states.def"
};

static const struct {
	const char *name;
	enum id_state states[2];
} calls[] = {
#define CALL(NAME, name, a, b) [ID_CALL_##NAME] = {name, {ID_##a, ID_##b}},
#include "rdmacm/states.def"
};

const char *id_state_name(enum id_state state)
{
	return state_names[state];
}

const char *id_call_name(enum id_call call)
{
	return calls[call].name;
}

bool id_call_allowed(enum id_call call, enum id_state state)
{
	return state == calls[call].states[0] || state == calls[call].states[1];
}

uint64_t state_name_figure(const char *name)
{
	uint64_t figure = 0;

	memcpy(&figure, name, strnlen(name, sizeof(figure)));
	return figure;
}

enum id_state id_state(const struct user_cm_id *id)
{
	return __atomic_load_n(&id->state, __ATOMIC_ACQUIRE);
}

int id_check(struct user_cm_id *id, enum id_call call)
{
	enum id_state state = id_state(id), a = calls[call].states[0], b = calls[call].states[1];

	if (id_call_allowed(call, state))
		return 0;
	if (a == b)
		return -REFUSE(hca_of_id(id), calls[call].name, EINVAL, RULE_RDMACM_ID_STATE,
			       state_name_figure(state_names[state]), state_name_figure(state_names[a]));
	return -REFUSE(hca_of_id(id), calls[call].name, EINVAL, RULE_RDMACM_ID_STATES,
		       state_name_figure(state_names[state]), state_name_figure(state_names[a]),
		       state_name_figure(state_names[b]));
}

bool id_change(struct user_cm_id *id, enum id_state from, enum id_state to)
{
	bool is;

	events_lock();
	is = id->state == from;
	if (is)
		__atomic_store_n(&id->state, to, __ATOMIC_RELEASE);
	events_unlock();
	return is;
}
