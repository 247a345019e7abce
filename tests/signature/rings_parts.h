/* SPDX-License-Identifier: BSD-2-Clause */
/* State of the rings that the test fills (rings.h). One thread. */
#ifndef SOFTHCA_TESTS_SIGNATURE_RINGS_PARTS_H
#define SOFTHCA_TESTS_SIGNATURE_RINGS_PARTS_H

#include <endian.h>
#include <string.h>

#include "rings.h"
#include "world.h"

enum {
	BLOCK = 64,
	LOG_BLOCKS = 11,
	LOG_RECEIVES = 6,
	RECEIVE_BYTES = 128, /* 5 segments, and a terminator */
	LOG_CQES = 10,
	RECEIVE_AREA = RECEIVE_BYTES << LOG_RECEIVES,
	QP_BYTES = RECEIVE_AREA + (BLOCK << LOG_BLOCKS),
	CQ_BYTES = BLOCK << LOG_CQES,
	RECORD_BYTES = BLOCK,
	PAIRS = TRANSPORTS * SIDES,
	UMEM_BYTES = PAIRS * (QP_BYTES + RECORD_BYTES) + QUEUES * (CQ_BYTES + RECORD_BYTES),
	COMPOSED_MOST = 100, /* requests of a composing queue pair before it starts again */
	INVALID_KEY = 0x100,
};

struct ring {
	struct ibv_qp *qp;           /* of verbs, or NULL */
	struct mlx5dv_devx_obj *own; /* by command, or NULL */
	uint32_t number;
	uint8_t *requests, *receives;
	uint32_t blocks, receive_count, receive_bytes;
	__be32 *record;
	uint64_t *reg;
	uint16_t next, next_receive;
	uint64_t request_id[1 << 16], receive_id[1 << 16]; /* by index */
	/* The composing queue pair. */
	struct mlx5dv_qp composer;
	uint16_t composed;
	uint32_t count;
};

struct own_cq {
	struct ibv_cq *cq;
	struct mlx5dv_devx_obj *own;
	uint32_t number;
	uint8_t *cqes;
	uint32_t count, bytes;
	__be32 *record;
	uint32_t consumer;
};

/* The state of a key as the program sees it. */
struct known {
	bool signs, polled, has_error;
	struct signature signature;
	uint16_t syndrome;
	bool memory; /* the error is in the memory domain */
	uint64_t expected, actual, offset;
};

struct rings {
	bool umem;
	struct ring ring[TRANSPORTS][SIDES];
	struct own_cq cq[QUEUES];
	struct known known[SIDES][KEYS];
	struct known *configures[SIDES]; /* the key of the configuration that is composed */
	uint8_t *memory;
	struct mlx5dv_devx_umem *registered;
	struct mlx5dv_devx_uar *uar;
	uint32_t eqn, pdn, used;
};

static inline void put32(uint8_t *bytes, size_t at, uint32_t value)
{
	value = htobe32(value);
	memcpy(bytes + at, &value, sizeof(value));
}

static inline uint32_t get32(const uint8_t *bytes, size_t at)
{
	uint32_t value;

	memcpy(&value, bytes + at, sizeof(value));
	return be32toh(value);
}

/** Restarts the queue pair that composes for a ring: nothing is composed. */
void rings_begin_composing(struct world *world, int transport, int side);

#endif
