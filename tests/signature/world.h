/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The device under test, through the public ABI: two sides in one process, source and target, with an RC, a UC and a UD
 * pair of queue pairs between them, memory, and keys that persist through all cases of the process.
 *
 * Any unexpected result ends the process: world_fail().
 */
#ifndef SOFTHCA_TESTS_SIGNATURE_WORLD_H
#define SOFTHCA_TESTS_SIGNATURE_WORLD_H

#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

#include "ends.h"

enum { SOURCE, TARGET, SIDES };
enum { FROM, TO }; /* sides of a transfer */
enum { RC, UC, UD, OTHER_RC, TRANSPORTS };

enum {
	EXPECTATIONS = 4 * STEPS,
	GRH_BYTES = 40, /* before a datagram in a receive (ibv_post_recv(3)) */
	QKEY = 0x51670000,
};

struct expectation {
	uint64_t id;
	uint32_t statuses; /* 1 << enum ibv_wc_status */
	int opcode;
	uint32_t bytes; /* 0: not compared */
};

struct real_qp {
	struct ibv_qp *qp;
	struct ibv_qp_ex *ex;
	struct mlx5dv_qp_ex *dv; /* RC */
	struct ibv_ah *ah;       /* UD */
};

struct world {
	bool connectx;
	bool unfollowed; /* a WRITE of UC has left, and nothing shows that it has arrived */
	struct ibv_context *context;
	struct ibv_pd *pd;
	union ibv_gid gid;
	uint8_t gid_index;
	uint32_t datagram_most;
	bool has_memcpy;
	struct ibv_cq_ex *cq[QUEUES];
	bool extended; /* ibv_start_poll(3) */
	struct real_qp qp[TRANSPORTS][SIDES];

	uint8_t *memory[SIDES]; /* REGION bytes */
	struct ibv_mr *mr[SIDES];
	uint8_t *grh;
	struct ibv_mr *grh_mr;
	struct mlx5dv_mkey *key[SIDES][KEYS]; /* with signatures */
	struct mlx5dv_mkey *under[SIDES], *over[SIDES];

	struct expectation expected[QUEUES][EXPECTATIONS];
	uint32_t expected_first[QUEUES], expected_last[QUEUES];
	uint64_t next_id;
	struct rings *rings; /* NULL: requests go through calls */
};

/** Opens the device in the profile of SOFTHCA_PROFILE. */
void world_open(struct world *world);
void world_close(struct world *world);

/** Moves the pair through RESET to RTS again, after an error. Clears the expectations. */
void world_reconnect(struct world *world, int transport);

/** Configures a key by the letters of a step (case.h); expects the completion. */
void world_configure(struct world *world, int side, const struct end *end, const char *letters);
/** Configures the plain keys over and under the key of @end. */
void world_surround(struct world *world, int side, const struct end *end);

/** Outcome of a transfer. */
enum ending { ENDS_WELL, FROM_REFUSES, TO_REFUSES };

/** Posts a transfer with its receives; expects its completions. */
void world_transfer(struct world *world, const struct test_case *test_case, const struct step *step,
		    enum ending ending);

/** Polls @queue one completion at a time until all expected ones have arrived. */
void world_settle(struct world *world, enum queue queue);
/** Polls @queue and reports any completion as a difference. */
void world_expect_idle(struct world *world, enum queue queue);
/** Drops the content of all queues. */
void world_drain(struct world *world);

/** Calls mlx5dv_mkey_check(3). */
int world_check(struct world *world, int side, const struct end *end, struct mlx5dv_mkey_err *error);

/** Prints the difference and ends the process. */
__attribute__((noreturn, format(printf, 1, 2))) void world_fail(const char *format, ...);

/**
 * Properties of a transfer: its transport; the side of its source or target; whether SGEs name that end; the queue that
 * reports its error.
 */
int transport_of_step(const struct step *step);
int side_of(const struct step *step, int end);
bool is_local(enum operation operation, int end);
enum queue queue_of_error(const struct step *step, int end);

#endif
