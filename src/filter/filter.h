/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Filters in front of the links of a device: faults (filter/faults.h) and capture (filter/capture.h). A device without them
 * pays one test of a pointer.
 *
 * A filter needs packets as a wire has them: with filters, what is sent is cut at the path MTU into frames, the bytes from
 * BTH to ICRC, which the faults lose, double, delay and spoil, and the capture writes. What remains waits in the queue of
 * the device until the sender's QP lock is free (filter_drain, called by run_drain) and goes on as it is (link.send_frame)
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

/** In place of link->send: cuts the run into frames and queues them. Same rules as link_send(). */
enum link_result filter_send(struct hca *hca, struct run *run);

/**
 * Hands what is queued and due to the links, frame by frame; those of the local link are put into @run, whose queue is empty
 * and which the caller drains between. Returns true if it put a packet into @run: drain it and call again, until it
 * returns false. No lock held; inside an epoch section.
 */
bool filter_drain(struct hca *hca, struct run *run);

/**
 * A packet arrived over a link other than the local one; its payload is plain memory. For the capture, which has it written
 * by filter_handled(), when it was handled and what became of it is known. Of pollers only (device/progress.h); no lock held.
 */
void filter_received(struct hca *hca, const struct packet *packet);
void filter_handled(struct hca *hca);

bool filter_hides_receives_from(struct hca *hca, uint32_t qpn, const struct packet *packet);

/**
 * The fault "rnr": true if the request @packet to QP @qpn of @hca, which takes a receive and answers reliably, shall find
 * none. Any lock.
 */
static inline bool filter_hides_receives(struct hca *hca, uint32_t qpn, const struct packet *packet)
{
	return __builtin_expect(hca->filters != NULL, 0) && filter_hides_receives_from(hca, qpn, packet);
}

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
