/* SPDX-License-Identifier: BSD-2-Clause */
/* Explains dropped packets. */
#include "transport/qp/drop.h"

#include "core/limits.h"
#include "explain/explain.h"
#include "explain/limit.h"
#include "hca/hca.h"
#include "wire/link.h"
#include "wire/packet.h"
#include "wire/routes.h"

uint64_t packet_explain_drop(struct hca *hca, const struct packet *packet, const struct explain_subject *subject,
			     enum explain_rule rule, const uint64_t *figures, size_t count)
{
	if (packet->link == routes->local())
		return explain_make(hca, subject, rule, figures, count);
	return explain_limited(hca, subject, LIMIT_EXPLAINED_DROPS, rule, figures, count);
}
