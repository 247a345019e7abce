/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two connected QPs in one process, one on each of two sides, each with its own CQ. Tests of queues may have both QPs
 * on one side. An error ends a pair: pair_renew() makes a new one over the same sides, with the same contexts, PDs,
 * regions, keys and windows.
 */
#ifndef SOFTHCA_TESTS_API_SUPPORT_PAIR_H
#define SOFTHCA_TESTS_API_SUPPORT_PAIR_H

#include "support/side.h"

enum {
	PAIR_WRS = 64,
	PAIR_SGES = 4,
	PAIR_QKEY = 0x11223344,
	DV_KEY_OPS = MLX5DV_QP_EX_WITH_MR_LIST | MLX5DV_QP_EX_WITH_MR_INTERLEAVED | MLX5DV_QP_EX_WITH_MKEY_CONFIGURE,
};

struct pair_options {
	enum ibv_qp_type type; /* RC, UC or UD */
	uint32_t max_send_wr;
	uint32_t max_send_sge;
	uint32_t max_inline_data;
	bool sq_sig_all;
	bool extended_cq; /* ibv_create_cq_ex(3): endpoint.cq_ex */
	bool channel;     /* CQs have a completion channel: endpoint.channel; not with extended_cq */
	int cqe;          /* of each CQ */
	/* Owned by the test: CQs to use instead of new ones, possibly one for both; the SRQ of the server's QP. */
	struct ibv_cq *client_cq, *server_cq;
	struct ibv_srq *srq;
	uint64_t send_ops;        /* enum ibv_qp_create_send_ops_flags */
	uint64_t dv_send_ops;     /* enum mlx5dv_qp_create_send_ops_flags */
	uint32_t dv_create_flags; /* enum mlx5dv_qp_create_flags */
	/* Attributes of ibv_modify_qp(3). */
	unsigned int access;
	uint8_t max_rd_atomic, max_dest_rd_atomic;
	uint8_t timeout, retry_cnt, rnr_retry, min_rnr_timer;
	uint32_t later_psn; /* added to the usual first PSN */
};

struct endpoint {
	const struct pair_options *options;
	struct side *side;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq; /* used by both queues */
	bool owns_cq;
	struct ibv_cq_ex *cq_ex;
	struct ibv_qp *qp;
	struct ibv_qp_ex *ex;
	struct mlx5dv_qp_ex *dv;
	struct ibv_qp_cap cap; /* as ibv_create_qp(3) returned it */
	struct endpoint *peer;
	struct ibv_ah *ah; /* UD: to the peer */
};

struct pair {
	struct pair_options options;
	struct endpoint client, server;
};

/**
 * Returns options with all send operations of the type (for RC also those of keys), PAIR_WRS work requests of
 * PAIR_SGES, no inline data.
 */
struct pair_options pair_defaults(enum ibv_qp_type type);

/** Opens a pair in RTS, with remote writes, reads and atomics enabled. */
void pair_open(struct pair *pair, struct side *client, struct side *server, const struct pair_options *options);
/** As pair_open(), but the QPs stay in RESET until pair_connect(). */
void pair_create(struct pair *pair, struct side *client, struct side *server, const struct pair_options *options);
void pair_connect(struct pair *pair);

/** Replaces the pair by a new one with the same options over the same sides. */
void pair_renew(struct pair *pair);
/** As pair_renew(), with other options. */
void pair_replace(struct pair *pair, const struct pair_options *options);
void pair_close(struct pair *pair);

/** Destroys the QP before pair_close() does. */
void endpoint_destroy_qp(struct endpoint *endpoint);

/** Returns the endpoint on @side. */
struct endpoint *pair_at(struct pair *pair, const struct side *side);

/** The steps of pair_connect(): ibv_modify_qp(3) to INIT, RTR, RTS. */
void endpoint_to_init(struct endpoint *endpoint);
void endpoint_to_rtr(struct endpoint *endpoint);
void endpoint_to_rts(struct endpoint *endpoint);

#define expect_state(endpoint, state) expect_state_(HERE, endpoint, state)
void expect_state_(struct place place, struct endpoint *endpoint, enum ibv_qp_state state);

#endif
