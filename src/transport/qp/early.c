/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests that arrive before their queue pair is ready. */
#include "transport/qp/early.h"

#include <stdlib.h>

#include "core/timer.h"
#include "explain/explain.h"
#include "format/opcode.h"
#include "transport/qp/qp.h"
#include "transport/qp/transport.h"
#include "wire/packet.h"

/* Values chosen for speed. */
enum {
	/*
	 * ms for which RC requests may arrive at a queue pair that is not ready before a line reports that they are
	 * dropped
	 */
	EARLY_REQUESTS_MS = 1000,
};

bool early_is_repaired(const struct hca_qp *qp, const struct packet *packet)
{
	return (qp->state == IBV_QPS_RESET || qp->state == IBV_QPS_INIT) && qp->transport->reliable &&
	       !message_has(packet->message, MESSAGE_IS_RESPONSE);
}

static struct early *early_take(struct hca_qp *qp)
{
	return __atomic_exchange_n(&qp->early, NULL, __ATOMIC_ACQ_REL);
}

bool early_has_lasted(struct hca_qp *qp, const struct refusal *why)
{
	struct early *early = early_take(qp);
	uint64_t now_ns = clock_now_ns();
	bool lasted;

	if (!early) {
		early = malloc(sizeof(*early));
		if (!early)
			return true;
		*early = (struct early){.since_ns = now_ns, .why = *why};
	}
	lasted = now_ns - early->since_ns >= EARLY_REQUESTS_MS * UINT64_C(1000000);
	__atomic_store_n(&qp->early, early, __ATOMIC_RELEASE);
	return lasted;
}

void early_end(struct hca_qp *qp)
{
	if (__atomic_load_n(&qp->early, __ATOMIC_RELAXED))
		free(early_take(qp));
}

void early_given_up(struct hca_qp *qp)
{
	const struct explain_subject subject = {.qpn = qp->number};
	struct early *early = early_take(qp);

	if (early)
		explain_tell(qp->hca, &subject, early->why.rule, early->why.args);
	free(early);
}
