/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests that arrive before their queue pair is ready. RC repairs that: the requester repeats them, and the program that brings
 * the other end to RTR a little later has made no mistake. So the record of such a drop has no line at first. The line is written
 * once the drops were not repaired: they lasted for EARLY_REQUESTS_MS, the requester ran out of retries in this process, or
 * the queue pair was destroyed.
 *
 * Most queue pairs never drop such a request, so the note of it (hca_qp.early) is allocated with the first one. A function that uses
 * the note takes it out of the queue pair, so no two threads have it.
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

/** True if @packet, for @qp, which is in RESET or INIT, is a request that its requester repeats. */
bool early_is_repaired(const struct hca_qp *qp, const struct packet *packet);

/**
 * Notes that a request is dropped because of @why. Returns true if this has lasted for so long that the drop is to be explained with a
 * line. The lock is held.
 */
bool early_has_lasted(struct hca_qp *qp, const struct refusal *why);

/** Forgets the requests: @qp receives from now on. Any thread. */
void early_end(struct hca_qp *qp);

/** Writes the line that is due if requests for @qp, which stays until this returns, were never repaired. Any thread. */
void early_given_up(struct hca_qp *qp);

#endif
