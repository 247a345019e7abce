/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Filters in front of the links of a device: faults (link/faults.h) and capture (link/capture.h). A device without them
 * pays one test of a pointer.
 *
 * A filter needs packets as a wire has them: with filters, what is sent is cut at the path MTU into frames, the bytes from
 * BTH to ICRC, which the faults lose, double, delay and spoil, and the capture writes. What remains waits in the queue of
 * the device until the sender's QP lock is free (filter_drain, called by run_drain) and goes on as it is (link.send_frame)
 * or is parsed again and sent as a packet.
 *
 * Lock: filters.lock, a leaf; not held while a link or the transport is called.
 */
#ifndef SOFTHCA_LINK_FILTER_H
#define SOFTHCA_LINK_FILTER_H

#include "link/link.h"

struct filters; /* hca->filters; NULL: none */

/** Makes the filters that the settings ask for. Returns 0, or a negative errno with a text in @error. */
int filters_init(struct hca *hca, char *error, size_t size);

/** In place of link->send: cuts the run into frames and queues them. Same rules as link_send(). */
enum link_result filter_send(struct hca *hca, struct run *run);

/**
 * Hands what is queued and due to the links, frame by frame; those of the local link are put into @run, which the caller
 * drains between. Returns true if it put a packet into @run: drain it and call again. No lock held.
 */
bool filter_drain(struct hca *hca, struct run *run);

/** A packet arrived over a link other than the local one; its payload is plain memory. For the capture. No lock held. */
void filter_received(struct hca *hca, const struct packet *packet);

#endif
