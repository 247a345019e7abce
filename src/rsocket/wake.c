/* SPDX-License-Identifier: BSD-2-Clause */
/* Wakes the threads that sleep for an rsocket; the clock of time limits. See wait.h. */
#include <unistd.h>

#include "abi/rdmacm_entry_points.h"
#include "core/descriptor.h"
#include "rsocket/datagram.h"
#include "rsocket/wait.h"

uint64_t rsocket_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

static bool datagram_wake(struct rsocket *rs)
{
	uint64_t one = 1;

	return descriptor_check(rs->datagram->wake_fd) &&
	       write(rs->datagram->wake_fd, &one, sizeof(one)) == (ssize_t)sizeof(one);
}

void rsocket_wake(struct rsocket *rs)
{
	if (!rs->sleepers || rs->wake_pending)
		return;
	rs->wake_pending = rs->datagram
				   ? datagram_wake(rs)
				   : !softhca_rdma_write_cm_event(rs->stream.id,
								  (enum rdma_cm_event_type)RDMA_CM_EVENT_USER_, 0, 0);
}
