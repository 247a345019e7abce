/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receive queues and shared receive queues (mlx5-formats 2).
 *
 * The lock of the QP covers its RQ. An SRQ's own lock is taken under it and is a leaf. Entries are copied out at once,
 * so later changes of the ring have no effect.
 */
#ifndef SOFTHCA_QUEUE_RECEIVE_H
#define SOFTHCA_QUEUE_RECEIVE_H

#include <infiniband/mlx5dv.h>

#include "core/limits.h"
#include "core/lock.h"
#include "progress/shadow.h"
#include "mkey/walk.h"
#include "queue/commands.h"

#define RECEIVE_SEGMENTS 32

struct xrc_domain;

struct receive_wqe {
	uint16_t counter; /* number in its CQE: running count of an RQ, entry index of an SRQ */
	uint32_t count;
	uint64_t bytes;                     /* of all segments */
	struct mlx5_wqe_data_seg segment[]; /* RECEIVE_SEGMENTS, or as many as an entry of its queue has */
};

struct hca_rq {
	const uint8_t *buffer;
	uint32_t count; /* power of two, or 0 */
	uint32_t shift;
	const uint32_t *dbrec;
	uint16_t consumed; /* running count */
	/* For a ring in memory that may be unmapped: its copy, with buffer and dbrec; or NULL. */
	struct shadow *shadow;
};

struct hca_srq {
	struct queue_lock lock;
	const uint8_t *buffer;
	uint32_t entry_count, entry_shift;
	const uint32_t *dbrec;
	uint16_t consumed;
	bool cyclic, basic;    /* as in struct hca_srq_attr */
	struct shadow *shadow; /* as in struct hca_rq */
	uint32_t next;         /* entry to consume next */
	uint32_t limit;
	uint32_t number;
	struct hca_pd *pd;
	struct hca_context *context; /* as in struct hca_srq_attr */
	struct event_source limit_reached;
	uint32_t references; /* atomic: QPs */
	/* For an XRC SRQ, otherwise NULL. */
	struct hca_xrcd *xrcd;
	struct xrc_domain *domain;
	struct hca_cq *cq;
	uint32_t user_index;
};

/** Returns the segments in an RQ entry of 2^@shift bytes. */
static inline uint32_t rq_segments(uint32_t shift)
{
	uint32_t segments = (1u << shift) / (uint32_t)sizeof(struct mlx5_wqe_data_seg);

	return segments < RECEIVE_SEGMENTS ? segments : RECEIVE_SEGMENTS;
}

/** Returns the posted, unconsumed entries. */
uint32_t rq_posted(const struct hca_rq *rq);
/** Takes the next entry. Returns false if none is posted. The lock of the QP is held. */
bool rq_take(struct hca_rq *rq, struct receive_wqe *wqe);
/** As rq_take(), for an SRQ: takes its lock and raises its limit event. */
bool srq_take(struct hca_srq *srq, struct receive_wqe *wqe);

#endif
