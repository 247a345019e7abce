/* SPDX-License-Identifier: BSD-2-Clause */
/* States of a communication id (cm_states.def). Any thread. */
#ifndef SOFTHCA_FORMAT_CM_STATE_H
#define SOFTHCA_FORMAT_CM_STATE_H

enum cm_state {
#define CM_STATE(NAME) CM_STATE_##NAME,
#include "format/cm_states.def"
#undef CM_STATE
	CM_STATES,
};

/** Returns "IDLE", "REQ_SENT", …; "unknown" for other values. */
const char *cm_state_name(unsigned int state);

#endif
