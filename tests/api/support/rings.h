/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A QP and its CQ as a driver in user space uses them: the rings that mlx5dv_init_obj(3) returns, hand-written WQEs,
 * doorbells, CQEs read from memory (mlx5-formats 1.16, 3.1). After rings_open() nothing here calls the library.
 */
#ifndef SOFTHCA_TESTS_API_SUPPORT_RINGS_H
#define SOFTHCA_TESTS_API_SUPPORT_RINGS_H

#include "support/completion.h"

enum {
	RING_UNIT = 16,
	RING_BLOCK = 64,
};

/* How the register is written; the record is always written first. */
enum ring_style {
	RING_DOORBELL,  /* 8 bytes */
	RING_BLUEFLAME, /* the whole WQE, in blocks of 64 bytes */
};

struct rings {
	struct endpoint *endpoint;
	struct mlx5dv_qp qp;
	struct mlx5dv_cq cq;
	uint32_t producer; /* of WQEs, in blocks */
	uint32_t consumer; /* of CQEs */
	uint32_t receives; /* posted to the receive queue */
};

struct rings rings_open(struct endpoint *endpoint);

/** Returns the place of the next WQE, which may wrap to the start of the ring. */
uint8_t *rings_next_wqe(const struct rings *rings);
/** Writes the control segment of a signalled WQE of @units. */
void rings_put_control(const struct rings *rings, uint8_t *wqe, uint8_t opcode, uint8_t units);
/** Copies a whole WQE, including its control segment, to the producer index; wraps at the ring's end. */
void rings_put(const struct rings *rings, const void *wqe, uint32_t units);
/** Announces the WQE of @blocks at the producer: record, barrier, register. */
void rings_ring(struct rings *rings, uint32_t blocks, enum ring_style style);

/** Posts a receive of one segment. */
void rings_receive(struct rings *rings, uint64_t address, uint32_t length, uint32_t lkey);

/** Returns true if there is a CQE that was not taken yet. */
bool rings_has_cqe(const struct rings *rings);
/** Returns the next CQE and frees its entry. Spins until it is there, with a deadline. */
#define rings_next_cqe(rings) rings_next_cqe_(HERE, rings)
struct mlx5_cqe64 rings_next_cqe_(struct place place, struct rings *rings);
/** Expects a successful CQE next, of the WQE that begins in block @index, with @opcode. */
#define rings_expect(rings, index, opcode) rings_expect_(HERE, rings, index, opcode)
void rings_expect_(struct place place, struct rings *rings, uint32_t index, uint8_t opcode);

#endif
