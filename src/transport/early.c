/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests that arrive before their queue pair is ready, see early.h. */
#include "transport/early.h"

#include "core/timer.h"
#include "core/tunables.h"
#include "explain/explain.h"
#include "format/opcode.h"
#include "transport/qp.h"
#include "transport/transport.h"
#include "wire/packet.h"

bool early_is_repaired(const struct hca_qp *qp, const struct packet *packet)
{
	return (qp->state == IBV_QPS_RESET || qp->state == IBV_QPS_INIT) && qp->transport->reliable &&
	       !message_has(packet->message, MESSAGE_IS_RESPONSE);
}

bool early_has_lasted(struct hca_qp *qp, const struct refusal *why)
{
	struct early *early = &qp->early;
	uint64_t now_ns = clock_now_ns();

	if (early->since_ns)
		return now_ns - early->since_ns >= TUNABLE_EARLY_REQUESTS_MS * UINT64_C(1000000);
	early->why = *why;
	__atomic_store_n(&early->since_ns, now_ns, __ATOMIC_RELEASE);
	return false;
}

void early_end(struct hca_qp *qp)
{
	__atomic_store_n(&qp->early.since_ns, 0, __ATOMIC_RELAXED);
}

void early_given_up(struct hca_qp *qp)
{
	const struct explain_subject subject = {.qpn = qp->number};

	if (__atomic_exchange_n(&qp->early.since_ns, 0, __ATOMIC_ACQUIRE))
		explain_tell(qp->hca, &subject, qp->early.why.rule, qp->early.why.args);
}
