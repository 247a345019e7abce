/* SPDX-License-Identifier: BSD-2-Clause */
/* The udp link, see udp.h. */

#include "link/link.h"

static enum link_result send_run(struct hca *hca, struct run *run)
{
	(void)hca;
	(void)run;
	return LINK_SENT;
}

const struct link *link_udp(void)
{
	static const struct link udp = {.name = "udp", .send = send_run};

	return &udp;
}
