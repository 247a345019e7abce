/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The general services interface: queue pair 1 (IBTA 3.9.2), over which connection managers exchange datagrams. It is
 * not an object: its datagrams are UD packets like those of any other queue pair and pass filters and links, and
 * arriving ones go to the connection manager (struct management, wire/mad.h).
 *
 * Sending only queues. A poller (progress/progress.h) sends the datagrams, so one for this process is never delivered
 * within the call that sends it, and no sender waits. A request for a service without a listener is kept for
 * SOFTHCA_CM_GRACE_MS, since programs agree on a port over another channel and may connect a moment too early. So is
 * one from another host.
 *
 * The lock of gsi.c covers the queue; timers.lock and the locks of progress.c are taken under it. It is not held
 * during calls out of gsi.c.
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
 * Queues the datagram @mad, which is copied, from @hca along @path (source, destination, flow label, traffic class,
 * hop limit) to queue pair 1 there. A datagram that cannot be delivered, as far as that is detected, is reported to
 * management->lost() later, from another call; others are lost as on a wire. Any thread; no lock that struct
 * management takes is held.
 */
void gsi_send(struct hca *hca, const struct packet_path *path, const uint8_t mad[MAD_BYTES]);

/**
 * Sends the queued datagrams that may be sent now, on this thread, or waits until another thread has sent them: they
 * are on their way on return, even if the process then ends. Not called from a call of the device or of the
 * connection manager; no lock held.
 */
void gsi_push(void);

/** Sends queued datagrams at the end of the process, without the grace, on this thread. No lock held. */
void gsi_flush(void);

/** Handles @packet, which is for queue pair 1. Called by the run loop; no lock of a QP held. */
void gsi_receive(struct packet *packet);

/** Handlers around fork(): the child starts with an empty queue. */
void gsi_before_fork(void);
void gsi_after_fork(bool child);

#endif
