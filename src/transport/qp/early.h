/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests that arrive before their queue pair is ready. RC repairs that: the requester repeats them, and a program
 * that moves the other end to RTR a little later has made no mistake. So the record of such a drop has no line at
 * first. The line is written if the drops are not repaired: they last for EARLY_REQUESTS_MS, the requester in this
 * process runs out of retries, or the queue pair is destroyed.
 *
 * Most queue pairs never drop such a request, so the note of it (hca_qp.early) is allocated with the first one. A
 * function that uses the note takes it out of the queue pair, so no two threads have it.
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
 * Records that a request is dropped because of @why. Returns true if this has lasted so long that the drop is
 * explained with a line. The lock is held.
 */
bool early_has_lasted(struct hca_qp *qp, const struct refusal *why);

/** Forgets the requests, since @qp receives from now on. Any thread. */
void early_end(struct hca_qp *qp);

/** Writes the line for requests that were never repaired. @qp stays until this returns. Any thread. */
void early_given_up(struct hca_qp *qp);

#endif
