/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends through filters and links. */
#include "wire/link.h"

#include "wire/routes.h"

const struct routes *routes;
const struct link *link_holding;
uint32_t link_has_access;

enum link_result link_send(struct hca *hca, struct run *run)
{
	const struct link *link = run_slot(run)->link, *holding;

	run->full = &link_common_queue;
	if (__builtin_expect(hca->filters != NULL, 0))
		return link_filters(hca)->send(hca, run);
	holding = __atomic_load_n(&link_holding, __ATOMIC_ACQUIRE);
	if (__builtin_expect(holding != NULL, 0) && holding != link && !link->immediate)
		holding->let_go();
	return link->send(hca, run);
}

enum link_result link_wait_or_send(struct hca *hca, struct run *run, struct link_waiter *waiter,
				   struct link_sender *sender, bool requester)
{
	/* Room made before the waiter was queued did not resume it, so the packet is sent again. */
	link_enqueue(run->full, waiter, sender, requester);
	if (link_send(hca, run) == LINK_BUSY)
		return LINK_BUSY;
	link_dequeue(waiter);
	return LINK_SENT;
}
