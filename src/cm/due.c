/* SPDX-License-Identifier: BSD-2-Clause */
/* Expiry of an id's timer: repeats a message, abandons it, or ends TIMEWAIT. See manager.h. */
#include "cm/manager.h"

#include <errno.h>

static void message_abandon(struct cm_id *id)
{
	cm_explain(id->cm, RULE_CM_GIVEN_UP,
		   FIGURES(id->sent.kind, id->known.local_comm_id, CM_GID_HIGH(id->known.path.destination),
			   CM_GID_LOW(id->known.path.destination), id->sends, id->wait_ns / CM_MS));
	if (id->state == CM_STATE_DREQ_SENT) {
		cm_to_timewait(id);
		cm_raise_disconnected(id, -ETIMEDOUT, NULL, NULL);
	} else {
		cm_to_idle(id);
		cm_raise(id, CM_EVENT_UNREACHABLE, -ETIMEDOUT, NULL, NULL);
	}
}

static void message_repeat(struct cm_id *id)
{
	if (id->sends > id->retries) {
		message_abandon(id);
		return;
	}
	id->sends++;
	cm_post(id->cm, &id->known.path, &id->sent);
	cm_arm(id->cm, &id->timer, id->wait_ns);
}

void cm_id_due(struct timer *timer)
{
	struct cm_id *id = (struct cm_id *)((char *)timer - offsetof(struct cm_id, timer));

	switch (id->state) {
	case CM_STATE_REQ_SENT:
	case CM_STATE_MRA_REQ_RCVD:
	case CM_STATE_REP_SENT:
	case CM_STATE_MRA_REP_RCVD:
	case CM_STATE_DREQ_SENT:
	case CM_STATE_SIDR_REQ_SENT:
		message_repeat(id);
		break;
	case CM_STATE_TIMEWAIT:
		cm_to_idle(id);
		cm_raise(id, CM_EVENT_TIMEWAIT_EXIT, 0, NULL, NULL);
		break;
	default:
		break;
	}
}
