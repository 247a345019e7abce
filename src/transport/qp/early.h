/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests that arrive before their queue pair is ready. RC repeats them, so the record of such a drop has a line only
 * if repetition fails: drops continue for EARLY_REQUESTS_MS, the requester in this process runs out of retries, or the
 * queue pair is destroyed.
 *
 * The note (hca_qp.early) is allocated for the first such request. A function detaches it before use, so no two threads
 * have it.
 */
#ifndef SOFTHCA_TRANSPORT_QP_EARLY_H
#define SOFTHCA_TRANSPORT_QP_EARLY_H

#include <stdbool.h>
#include <stdint.h>

#include "explain/refusal.h"

struct hca_qp;
struct packet;

struct early {
	uint64_t since_ns;  /* time of the first drop */
	struct refusal why; /* of the first drop */
};

/** Returns true if @packet, for @qp in RESET or INIT, is a request that will be repeated. */
bool early_is_repaired(const struct hca_qp *qp, const struct packet *packet);

/**
 * Records that a request is dropped because of @why. Returns true if drops have lasted so long that a line is due. The
 * lock is held.
 */
bool early_has_lasted(struct hca_qp *qp, const struct refusal *why);

/** Forgets the drops, because @qp can receive now. Any thread. */
void early_end(struct hca_qp *qp);

/** Writes the line for requests never repaired. @qp must exist until this returns. Any thread. */
void early_given_up(struct hca_qp *qp);

#endif
