/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs and completion queues; the test fills and reads their rings itself. SIGNATURE_RINGS selects them: "verbs"
 * for objects of verbs with rings from mlx5dv_init_obj(3), "umem" for objects made by command in a umem. Without it,
 * requests go through calls.
 *
 * A WQE is composed by the calls of verbs on a queue pair in SQD, which executes nothing; rings_post() copies it to the
 * tested ring, with the index and number of that ring. Receives, doorbells and CQEs are written and read here.
 *
 * In profile connectx no call of libmlx5 polls, so the test records signature errors from CQEs, and arms keys, as a
 * program with its own rings does.
 */
#ifndef SOFTHCA_TESTS_SIGNATURE_RINGS_H
#define SOFTHCA_TESTS_SIGNATURE_RINGS_H

#include <infiniband/mlx5dv.h>
#include <stdbool.h>

#include "case.h"

struct world;
struct rings;

/** Returns true if the environment asks for rings. */
bool rings_wanted(void);
/** Makes the queues of all pairs; world->qp[][].qp are the composing ones. */
void rings_open(struct world *world);
void rings_close(struct world *world);
/** Moves the pair of a transport through RESET to RTS. */
void rings_reconnect(struct world *world, int transport);

/** Returns the number of the tested queue pair. */
uint32_t rings_number(const struct world *world, int transport, int side);
/** Moves the composed requests to the ring, and rings the doorbell. @id: of the last one. */
void rings_post(struct world *world, int transport, int side, uint64_t id);
void rings_receive(struct world *world, int transport, int side, const struct ibv_recv_wr *wr);
/** Does what ibv_poll_cq(3) does, for one completion. */
int rings_poll(struct world *world, int queue, struct ibv_wc *wc);

/** Records the signature with which a key is configured. The next posted requests of @side configure it. */
void rings_configure(struct world *world, int side, const struct end *end, const char *letters);
/** Returns the result of mlx5dv_mkey_check(3) after libmlx5 polled the same CQEs. */
int rings_check(struct world *world, int side, const struct end *end, struct mlx5dv_mkey_err *error);

#endif
