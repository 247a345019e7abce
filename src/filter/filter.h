/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Filters before the links of a device: faults (filter/faults.h) and capture (filter/capture.h).
 *
 * Filters cut outgoing data at the path MTU into frames in wire format (BTH to ICRC). The faults drop, duplicate, delay
 * and corrupt frames, and the capture writes them. The rest waits in the queue of the device until the sender's QP lock
 * is free (link_filters.drain). Then it is sent unchanged (link.send_frame), or parsed again and sent as packets. Only
 * one thread drains at a time, because due frames must leave in order; other threads leave their frames to it.
 *
 * Filters exist as long as the device, because QPs and threads rely on them.
 *
 * Lock: filters.lock, a leaf except for that of the timers; not held while a link or the transport is called.
 */
#ifndef SOFTHCA_FILTER_FILTER_H
#define SOFTHCA_FILTER_FILTER_H

#include "wire/link.h"

struct fault_script;
struct filters; /* hca->filters, atomic; NULL: none */

/** Makes the filters that the settings request. Returns 0, or a negative errno with a text in @error. */
int filters_init(struct hca *hca, char *error, size_t size);

/** Replaces the faults of @hca; @script NULL: removes them. Returns 0 or -ENOMEM. Any thread may call. */
int filters_set_faults(struct hca *hca, const struct fault_script *script);

/** As faults_summary(); does nothing without faults. @put is called under the lock. Any thread may call. */
void filters_fault_summary(struct hca *hca, void (*put)(void *argument, const char *line), void *argument);

/**
 * Sends all delayed frames at program end, because a wire would still deliver them. No lock held; outside epoch
 * sections.
 */
void filters_flush(struct hca *hca);

/** Returns the number of examined frames. Any thread may call. */
uint64_t filters_frames(struct hca *hca);

/** For a fork: hold the lock of the filters, if any. */
void filters_lock(struct hca *hca);
void filters_unlock(struct hca *hca);
/** Discards queued frames in a forked child. The lock is held. */
void filters_forget(struct hca *hca);

#endif
