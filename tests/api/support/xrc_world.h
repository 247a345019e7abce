/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One XRC connection with two target sides: the client's XRC_SEND QP, the server's XRC_RECV QP, and an XRC SRQ of the
 * server and of a neighbour, which opened the domain by a descriptor of its own.
 */
#ifndef SOFTHCA_TESTS_API_SUPPORT_XRC_WORLD_H
#define SOFTHCA_TESTS_API_SUPPORT_XRC_WORLD_H

#include "support/xrc.h"

enum { XRC_SERVER, XRC_NEIGHBOUR, XRC_TARGETS };

struct xrc_world {
	struct side client;
	struct side target[XRC_TARGETS];
	int fd[XRC_TARGETS];
	struct ibv_xrcd *xrcd[XRC_TARGETS];
	struct xrc_srq srq[XRC_TARGETS];
	struct ibv_cq *cq; /* the client's */
	struct ibv_qp *send, *recv;
	uint8_t rnr_retry;
};

extern struct xrc_world world;

/** Setup and teardown of a case; @state is ignored. */
int xrc_world_open(void **state);
int xrc_world_close(void **state);

/** Moves both QPs from RESET to RTS, after an error. */
void xrc_world_connect(void);

/** Returns a WR of the client for @target with the members common to all opcodes. */
struct ibv_send_wr xrc_wr(uint64_t wr_id, enum ibv_wr_opcode opcode, int target, struct ibv_sge *sge, int count);
/** As xrc_wr(), with the bytes from @offset of the target's memory through its region. */
struct ibv_send_wr xrc_rdma_wr(uint64_t wr_id, enum ibv_wr_opcode opcode, int target, struct ibv_sge *sge,
			       size_t offset);

/** Posts by ibv_post_send(3), which must succeed. */
#define xrc_post(qp, wr) xrc_post_(HERE, qp, wr)
void xrc_post_(struct place place, struct ibv_qp *qp, struct ibv_send_wr *wr);

/** Expects the next completion of the client. */
#define xrc_sent(wr_id, status) xrc_completion_(HERE, world.cq, wr_id, world.send->qp_num, status)
/** Expects the next completion of a target's SRQ. */
#define xrc_received(target, wr_id, status)                                                                            \
	xrc_completion_(HERE, world.srq[target].cq, wr_id, world.recv->qp_num, status)
/** Expects no completion in any of the three CQs. */
#define xrc_all_idle() xrc_all_idle_(HERE)
void xrc_all_idle_(struct place place);

/** Expects @qp to be in @state. */
#define xrc_expect_state(qp, state) xrc_expect_state_(HERE, qp, state)
void xrc_expect_state_(struct place place, struct ibv_qp *qp, enum ibv_qp_state state);

#endif
