/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests that arrive before their queue pair is ready. RC repairs that: the requester repeats them, and a program
 * that moves the other end to RTR a little later has made no mistake. So the record of such a drop has no line at
 * first. The line is written if the repetitions do not succeed: the drops continue for EARLY_REQUESTS_MS, the requester
 * in this process runs out of retries, or the queue pair is destroyed.
 *
 * Most queue pairs never drop such a request, so the note of it (hca_qp.early) is allocated for the first one. A
 * function that uses the note first detaches it from the queue pair, so no two threads have it.
 */
#ifndef SOFTHCA_TRANSPORT_QP_EARLY_H
#define SOFTHCA_TRANSPORT_QP_EARLY_H

#include <stdbool.h>
#include <stdint.h>

#include "explain/refusal.h"

struct hca_qp;
struct packet;

struct early {
	uint64_t since_ns;  /* when the first request was dropped */
	struct refusal why; /* of the first one */
};

/** Returns true if @packet, for @qp in RESET or INIT, is a request that its requester repeats. */
bool early_is_repaired(const struct hca_qp *qp, const struct packet *packet);

/**
 * Records that a request is dropped because of @why. Returns true if drops have continued for so long that a line must
 * explain them. The lock is held.
 */
bool early_has_lasted(struct hca_qp *qp, const struct refusal *why);

/** Forgets the dropped requests, because @qp can receive now. Any thread. */
void early_end(struct hca_qp *qp);

/** Writes the line for requests that were never repaired. @qp must exist until this returns. Any thread. */
void early_given_up(struct hca_qp *qp);

#endif
