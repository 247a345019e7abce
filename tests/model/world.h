/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The real side of the model test: contexts, domains, queue pairs, keys of the device under test, through the public API
 * alone; and the comparison of its results with those of the model.
 *
 * A difference ends the process (world_fail), after the step's description has been printed.
 */
#ifndef SOFTHCA_TESTS_MODEL_WORLD_H
#define SOFTHCA_TESTS_MODEL_WORLD_H

#include <infiniband/mlx5dv.h>

#include "queues.h"

enum {
	CONTEXTS = 2,
	DOMAINS = 3, /* 0 and 1 in context 0, 2 in context 1 */
	MAX_SGE = 4,
	MAX_INLINE = 316, /* of the QP with long work requests */
	TEXT_BYTES = 16384,
};

struct real_qp {
	struct ibv_qp *qp;
	struct ibv_qp_ex *ex;
	struct mlx5dv_qp_ex *dv; /* RC only */
	struct ibv_cq *send_cq, *receive_cq;
	struct ibv_ah *ah; /* UD: address of the peer */
	uint32_t max_inline;
	unsigned int unsignalled; /* requests posted since the last signalled one */
};

struct world {
	struct model model;
	struct ibv_context *context[CONTEXTS];
	struct ibv_pd *domain[DOMAINS];
	struct real_qp qp[QPS];
	union ibv_gid gid;
	uint8_t gid_index;
	/* Objects of the keys, by slot. */
	struct ibv_mr *region[REGIONS];
	struct mlx5dv_mkey *layout[LAYOUTS];
	struct ibv_mw *window[WINDOWS];
	struct choose choose;
	uint64_t next_id;
	/* Shared with the parent process, which prints it if this one crashes. */
	char *text;
	size_t text_used;
};

/* Ways to post a request. */
enum way { BY_POST_SEND, BY_BUILDER };

static inline int context_of(int domain)
{
	return domain == DOMAINS - 1;
}

void world_open(struct world *world);
/** Destroys everything; an object that cannot be destroyed is a failure. */
void world_close(struct world *world);

/** Adds to the description of the step. */
__attribute__((format(printf, 2, 3))) void say(struct world *world, const char *format, ...);
/** Reports that the device differs from the model. */
__attribute__((noreturn, format(printf, 2, 3))) void world_fail(struct world *world, const char *format, ...);

/** Connects the pair of @qp again, from RESET; both ends. In the model, too. */
void world_connect(struct world *world, int qp);
/** Moves @qp to ERR, or a send queue in error from SQE back to RTS. */
void world_fail_qp(struct world *world, int qp);
void world_resume_qp(struct world *world, int qp);

/** Waits for all due completions; compares them, the absence of others, states and events. */
void world_check_completions(struct world *world);
/** Compares every byte. */
void world_check_memory(struct world *world);

/**
 * Posts @requests to the device, in one list or one batch. Returns the result of the call; *accepted: number of posted
 * requests.
 */
int world_post_send(struct world *world, int qp, const struct request *requests, uint32_t count, enum way way,
		    uint32_t *accepted);
/** Binds a type 1 window by ibv_bind_mw(3). */
int world_bind(struct world *world, int qp, const struct request *request);
int world_post_receive(struct world *world, int qp, const struct receive *receives, uint32_t count);

#endif
