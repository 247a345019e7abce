/* SPDX-License-Identifier: BSD-2-Clause */
/* Explains packets that are dropped, see drop.h. */
#include "transport/drop.h"

#include "hca/device.h"
#include "hca/limits.h"
#include "link/link.h"
#include "transport/packet.h"

uint64_t packet_explain_drop(struct hca *hca, const struct packet *packet, const struct explain_subject *subject,
			     const struct refusal *why)
{
	if (packet->link != link_local() && !explain_may(hca, why->rule, LIMIT_EXPLAINED_DROPS))
		return 0;
	return explain_make(hca, subject, why->rule, why->args, EXPLAIN_ARGS);
}
