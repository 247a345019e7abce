/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Links: what carries packets from one QP to another. One transport above, many links below; a link is a table of
 * functions, so that tests, captures and faults can be links around a link.
 */
#ifndef SOFTHCA_LINK_LINK_H
#define SOFTHCA_LINK_LINK_H

#include <stdbool.h>

#include "transport/run.h"

struct hca;

struct link {
	const char *name;
	/** True if the owner of @gid can be reached. Any thread. */
	bool (*reaches)(struct hca *hca, const union ibv_gid *gid);
	/**
	 * Sends the packet built in run_slot(@run). The payload is valid during the call, and, for a link that queues the
	 * packet in @run, until the run is drained. The sender's lock is held. What cannot be delivered is lost silently,
	 * as on a wire.
	 */
	void (*send)(struct hca *hca, struct run *run);
};

/** QPs of this process: the packet is queued in the run. */
const struct link *link_local(void);

#endif
