/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The general services interface: queue pair 1 (IBTA 3.9.2), over which connection managers talk. Not an object: what it sends
 * are UD packets as those of any other queue pair, through filters and links, and what arrives for it goes to the connection
 * manager (struct management, wire/mad.h).
 *
 * Sending only queues. A poller (progress/progress.h) takes the datagrams out, so one for this process is never delivered within
 * the call that sends it, and none makes its sender wait. A request for a connection that nobody listens to yet stays for
 * SOFTHCA_CM_GRACE_MS: programs agree on a port over another channel and come a moment too early. So does one from another host.
 *
 * Lock: that of gsi.c covers the queue; timers.lock and those of progress.c come after it. It is not held while anything is
 * called.
 */
#ifndef SOFTHCA_TRANSPORT_GSI_GSI_H
#define SOFTHCA_TRANSPORT_GSI_GSI_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/mad.h"

struct hca;
struct packet;
struct packet_path;

/**
 * Queues the datagram @mad, which is copied, from @hca along @path (source, destination, flow label, traffic class, hop
 * limit), to queue pair 1 there. What cannot arrive management->lost() is told of, as far as that can be known, later and from
 * another call; the rest is lost as on a wire. Any thread, any locks but those that struct management takes.
 */
void gsi_send(struct hca *hca, const struct packet_path *path, const uint8_t mad[MAD_BYTES]);

/**
 * Sends what is queued and may go now, on this thread, or waits until another one that is at it has: it is on its way on return,
 * however the process ends after that. Not in a call of the device, nor of the connection manager; no lock held.
 */
void gsi_push(void);

/**
 * The process ends: sends what is queued, without the grace, on this thread. No lock held.
 */
void gsi_flush(void);

/** The packet @packet is for queue pair 1. Of the run loop; no QP's lock held. */
void gsi_receive(struct packet *packet);

/** Around fork(): the child has sent nothing. */
void gsi_before_fork(void);
void gsi_after_fork(bool child);

#endif
