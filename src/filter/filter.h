/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Filters in front of the links of a device: faults (filter/faults.h) and capture (filter/capture.h). A device without them
 * pays one test of a pointer.
 *
 * A filter needs packets as a wire has them: with filters, what is sent is cut at the path MTU into frames, the bytes from
 * BTH to ICRC, which the faults lose, double, delay and spoil, and the capture writes. What remains waits in the queue of
 * the device until the sender's QP lock is free (link_filters.drain) and goes on as it is (link.send_frame)
 * or is parsed again and sent as a packet. Frames that are due leave in the order in which they came, so only one thread
 * drains at a time; the others leave theirs to it.
 *
 * Filters that exist stay for as long as the device, since QPs and threads rely on them.
 *
 * Lock: filters.lock, a leaf but for that of the timers; not held while a link or the transport is called.
 */
#ifndef SOFTHCA_FILTER_FILTER_H
#define SOFTHCA_FILTER_FILTER_H

#include "wire/link.h"

struct fault_script;
struct filters; /* hca->filters, atomic; NULL: none */

/** Makes the filters that the settings ask for. Returns 0, or a negative errno with a text in @error. */
int filters_init(struct hca *hca, char *error, size_t size);

/**
 * Replaces the faults of @hca by those of @script; NULL: none from now on. Returns 0 or -ENOMEM. Any thread.
 */
int filters_set_faults(struct hca *hca, const struct fault_script *script);

/** As faults_summary(); nothing without faults. @put is called under the lock. Any thread. */
void filters_fault_summary(struct hca *hca, void (*put)(void *argument, const char *line), void *argument);

/** Lets all that is delayed go now: the program ends, and a wire would carry it on. No lock, not in an epoch section. */
void filters_flush(struct hca *hca);

/** Frames that the faults have looked at. Any thread. */
uint64_t filters_frames(struct hca *hca);

/** Around a fork: holds the lock of the filters, if there are any. */
void filters_lock(struct hca *hca);
void filters_unlock(struct hca *hca);
/** In a forked child: forgets what was on its way. The lock is held. */
void filters_forget(struct hca *hca);

#endif
