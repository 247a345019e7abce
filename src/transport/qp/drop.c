/* SPDX-License-Identifier: BSD-2-Clause */
/* Explains packets that are dropped, see drop.h. */
#include "transport/qp/drop.h"

#include "core/limits.h"
#include "explain/explain.h"
#include "explain/limit.h"
#include "hca/hca.h"
#include "wire/link.h"
#include "wire/packet.h"
#include "wire/routes.h"

uint64_t packet_explain_drop(struct hca *hca, const struct packet *packet, const struct explain_subject *subject,
			     const struct refusal *why)
{
	if (packet->link == routes->local())
		return explain_make(hca, subject, why->rule, why->args, EXPLAIN_ARGS);
	return explain_limited(hca, subject, LIMIT_EXPLAINED_DROPS, why->rule, why->args, EXPLAIN_ARGS);
}
