/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * XRC through the ABI: domains by descriptor, XRC SRQs, XRC_SEND and XRC_RECV QPs. The caller destroys the objects made
 * here; the macros fail at the line of the test.
 */
#ifndef SOFTHCA_TESTS_API_SUPPORT_XRC_H
#define SOFTHCA_TESTS_API_SUPPORT_XRC_H

#include "support/side.h"

/** Returns a descriptor of a new file without a name. */
int xrc_file(void);
/** Opens the same file again and returns the descriptor. */
int xrc_same_file(int fd);

/** ibv_open_xrcd(3). */
struct ibv_xrcd *xrc_open(struct ibv_context *context, int fd, int oflags);
#define expect_xrcd(context, fd, oflags) expect_xrcd_(HERE, context, fd, oflags)
struct ibv_xrcd *expect_xrcd_(struct place place, struct ibv_context *context, int fd, int oflags);

/* An XRC SRQ of a side, its CQ, and its number. */
struct xrc_srq {
	struct side *side;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	uint32_t number;
};

/** Opens an SRQ with its own CQ; xrc_srq_close() destroys both. */
#define xrc_srq_open(side, xrcd, max_wr) xrc_srq_open_(HERE, side, xrcd, max_wr)
struct xrc_srq xrc_srq_open_(struct place place, struct side *side, struct ibv_xrcd *xrcd, uint32_t max_wr);
#define xrc_srq_close(srq) xrc_srq_close_(HERE, srq)
void xrc_srq_close_(struct place place, struct xrc_srq *srq);

/** ibv_create_qp_ex(3); NULL with errno set on failure. */
struct ibv_qp *xrc_create_recv(struct ibv_xrcd *xrcd);
/** Creates a QP with all operations of the type, 64 WRs of 4 SGEs, 200 bytes of inline data. */
struct ibv_qp *xrc_create_send(struct side *side, struct ibv_cq *cq);
/** ibv_open_qp(3). */
struct ibv_qp *xrc_open_qp(struct ibv_xrcd *xrcd, uint32_t number);

/** Moves @qp of @side, of either type, from RESET to RTS. @peer: of @peer_side. */
#define xrc_connect(qp, side, peer, peer_side, rnr_retry) xrc_connect_(HERE, qp, side, peer, peer_side, rnr_retry)
void xrc_connect_(struct place place, struct ibv_qp *qp, const struct side *side, uint32_t peer,
		  const struct side *peer_side, uint8_t rnr_retry);

/** Posts a receive into the @count entries of @sge. */
#define xrc_post_receive(srq, wr_id, sge, count) xrc_post_receive_(HERE, srq, wr_id, sge, count)
void xrc_post_receive_(struct place place, struct xrc_srq *srq, uint64_t wr_id, struct ibv_sge *sge, int count);

/** Expects the next completion of @cq, of work request @wr_id, through the QP @qp_num, with @status. */
#define xrc_completion(cq, wr_id, qp_num, status) xrc_completion_(HERE, cq, wr_id, qp_num, status)
struct ibv_wc xrc_completion_(struct place place, struct ibv_cq *cq, uint64_t wr_id, uint32_t qp_num,
			      enum ibv_wc_status status);
#define xrc_idle(cq) xrc_idle_(HERE, cq)
void xrc_idle_(struct place place, struct ibv_cq *cq);

#endif
