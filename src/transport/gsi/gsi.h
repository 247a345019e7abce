/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The general services interface: queue pair 1 (IBTA 3.9.2), over which connection managers exchange datagrams; see
 * transport/DESIGN.md.
 *
 * The registry (hca/hca.h) has one struct gsi, which lives until the process ends. Its lock covers the queue;
 * timers.lock and the locks of progress are taken under it. It is not held during calls to management.
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

/** @first: the first device, which may be incomplete. Returns NULL without memory. */
struct gsi *gsi_new(struct hca *first);

/**
 * Queues a copy of @mad along @path (source, destination, flow label, traffic class, hop limit). The caller calls
 * gsi_push() or gsi_wake() next, which send it. If it is found to be undeliverable, management->lost() is called later,
 * from another call; otherwise it is lost silently. Any thread; no lock that struct management takes is held.
 */
void gsi_send(struct hca *hca, const struct packet_path *path, const uint8_t mad[MAD_BYTES]);

/**
 * Sends the queued datagrams that may be sent now, or waits until another thread has. On return they have left, even if
 * the process ends then. Not from within a call of the device or the connection manager; no lock held.
 */
void gsi_push(struct gsi *gsi);

/** Has the device thread send the queued datagrams, if any may be sent now. Any thread, also that one. */
void gsi_wake(const struct gsi *gsi);

/** Sends the queued datagrams at the end of the process, without the grace time. No lock held. */
void gsi_flush(struct gsi *gsi);

/** Handles @packet for queue pair 1. Called by the run loop; no lock of a QP held. */
void gsi_receive(struct gsi *gsi, struct packet *packet);

/** For process/fork.c. */
void gsi_lock(struct gsi *gsi);
void gsi_unlock(struct gsi *gsi);
/** Empties the queue in a forked child. The lock is held. */
void gsi_forget(struct gsi *gsi);

#endif
