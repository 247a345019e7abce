/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The two ends of a run: a protection domain each, memory with its keys, queues with rings that the test writes itself
 * (mlx5-formats 1 to 3). Domains, memory and keys persist; the queues are created for a run and destroyed after it.
 */
#ifndef SOFTHCA_TESTS_SIMULATION_ENDS_H
#define SOFTHCA_TESTS_SIMULATION_ENDS_H

#include <infiniband/mlx5dv.h>

#include "transport/qp/qp.h"
#include "mkey/key.h"
#include "plan.h"

enum {
	SQ_BLOCKS = 32, /* few: the ring wraps */
	RQ_ENTRIES = 256,
	RQ_SHIFT = 4,  /* one segment */
	SRQ_SHIFT = 5, /* the link, and one segment */
	CQES = 512,
};

struct ring_cq {
	struct hca_cq *cq;
	uint8_t *ring;
	uint32_t consumer, dbrec[2];
};

/* Queue for receives of the peer's messages. */
struct queue {
	struct ring_cq cq;
	struct hca_srq *srq; /* NULL: the QP has a receive queue */
	uint8_t *ring;
	uint32_t srq_dbrec;
	uint16_t posted;
};

struct end {
	struct hca_pd *pd;
	struct mkey *region;
	uint32_t dek;
	/* By enum keys: over the staged memory for its own requests, and over that for its peer's. */
	struct mkey *staged[2][KEYS_KINDS];
	uint32_t psv[2];
	struct mkey *invalidated[INVALIDATED];
	struct mkey *passing[PASSING]; /* over all of the memory, from address 0 */
	uint8_t *memory;
	/* Created for a run. */
	struct hca_qp *qp;                 /* the sending QP; for RC, UC, UD also the receiving one; or NULL */
	struct hca_qp *responder[TARGETS]; /* separate receiving QPs: one for XRC, two for DC; or NULL */
	struct ring_cq send_cq;
	struct queue queue[TARGETS];
	uint8_t *sq;
	uint32_t dbrec[2], dct_dbrec[TARGETS][2];
	uint16_t posted; /* blocks */
	/* The block of each request posted so far. */
	uint16_t index_of[MOST_REQUESTS];
	uint8_t blocks_of[MOST_REQUESTS];
};

extern struct hca *ends_hca;
extern struct end ends[ENDS];

/** Makes the permanent parts. Ends the program if that fails. */
void ends_open(void);

/** Makes the queues for a run of @plan, and connects them; sets memory and keys to their initial state. */
void ends_begin(const struct plan *plan);
void ends_finish(void);

/** Writes request @number of @end into the ring; returns false if @free blocks are not enough. */
bool end_post(int end, const struct plan *plan, uint32_t number, uint32_t free);
void end_ring(int end);
/** Posts receive @number for the requests of the other end. */
void end_receive(int end, const struct plan *plan, int target, uint32_t number);

/** Ends the passing key that @request named at the other end: the program reuses its memory. */
void end_pass(int end, const struct request *request);

/** Returns the next CQE, or NULL. */
const struct mlx5_cqe64 *ring_poll(struct ring_cq *cq);

/** Returns the QP that answers to target @target at @end. */
struct hca_qp *end_responder(int end, int target);

/** Ends the program unless @condition. */
#define MUST(condition) must(condition, __FILE__, __LINE__, #condition)
void must(bool condition, const char *file, int line, const char *text);

#endif
