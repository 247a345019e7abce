/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of the states. */
#include "format/cm_state.h"

const char *cm_state_name(unsigned int state)
{
	static const char *const names[CM_STATES] = {
#define CM_STATE(NAME) [CM_STATE_##NAME] = #NAME,
#include "format/cm_states.def"
#undef CM_STATE
	};

	return state < CM_STATES ? names[state] : "unknown";
}
