/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The general services interface: queue pair 1 (IBTA 3.9.2), over which connection managers exchange datagrams. It is
 * not an object: its datagrams are UD packets like those of any other queue pair and pass filters and links, and
 * arriving ones go to the connection manager (struct management, wire/mad.h).
 *
 * gsi_send() only queues a datagram; a poller (progress/progress.h) sends it. So a datagram for this process is never
 * delivered within the call that sends it, and no sender waits. A request for a service without a listener, from this
 * host or another one, is kept for SOFTHCA_CM_GRACE_MS, since programs agree on a port over another channel and may
 * connect a moment too early.
 *
 * The registry of a process (hca/hca.h) has one struct gsi, which lives until the process ends. Its lock covers the
 * queue; timers.lock and the locks of progress.c are taken under it. It is not held during calls to management.
 */
#ifndef SOFTHCA_TRANSPORT_GSI_GSI_H
#define SOFTHCA_TRANSPORT_GSI_GSI_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/mad.h"

struct gsi;
struct hca;
struct packet;
struct packet_path;

/** Makes the interface of a process. @first: its first device, which may be incomplete. Returns NULL without memory. */
struct gsi *gsi_new(struct hca *first);

/**
 * Queues the datagram @mad, which is copied, from @hca along @path (source, destination, flow label, traffic class, hop
 * limit) to queue pair 1 there. If it is found that the datagram cannot be delivered, management->lost() is called
 * later, from another call; otherwise it is lost silently, as on a wire. Any thread; no lock that struct management
 * takes is held.
 */
void gsi_send(struct hca *hca, const struct packet_path *path, const uint8_t mad[MAD_BYTES]);

/**
 * Sends the queued datagrams that may be sent now, or waits until another thread has sent them. On return they have
 * left, even if the process ends then. Must not be called from within a call of the device or of the connection
 * manager; no lock held.
 */
void gsi_push(struct gsi *gsi);

/**
 * Sends the queued datagrams at the end of the process on this thread, without waiting for the grace time. No lock
 * held.
 */
void gsi_flush(struct gsi *gsi);

/** Handles @packet, which is for queue pair 1. Called by the run loop; no lock of a QP held. */
void gsi_receive(struct gsi *gsi, struct packet *packet);

/** For process/fork.c. */
void gsi_lock(struct gsi *gsi);
void gsi_unlock(struct gsi *gsi);
/** Empties the queue in a forked child. The lock is held. */
void gsi_forget(struct gsi *gsi);

#endif
