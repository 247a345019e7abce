/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queues that a program rings behind our back: mlx5dv_init_obj(3) gives it ring, doorbell records and a register that is
 * plain memory, and no call says that it stored to them (mlx5-formats 1.16: the records tell everything). The device
 * thread looks at the records of such queues: after microseconds while they move, every millisecond while they do not.
 *
 * A watch is embedded in its queue, which stops it before it goes. In a forked child nothing is watched (hca/timer.h).
 */
#ifndef SOFTHCA_HCA_WATCH_H
#define SOFTHCA_HCA_WATCH_H

#include "hca/timer.h"

struct watch {
	struct timer timer;
	struct timers *timers;
	bool started; /* atomic */
	const uint32_t *records;
	uint32_t count; /* of records: 1 or 2 */
	uint32_t seen[2];
	uint32_t pause_us;
	void (*rung)(struct watch *watch);
};

/**
 * Calls @rung on the device thread whenever one of the @count (1 or 2) @records has changed, until watch_stop(). A watch
 * that runs goes on as it is. Returns 0, or -EAGAIN without a thread. Any thread.
 */
int watch_start(struct watch *watch, struct timers *timers, const uint32_t *records, uint32_t count,
		void (*rung)(struct watch *watch));

/** After the return @rung does not run and will not run. No lock that it takes may be held. */
void watch_stop(struct watch *watch);

#endif
