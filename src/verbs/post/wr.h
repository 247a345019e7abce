/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Contracts: ibv_wr_post(3), and mlx5-formats 4.2 where the man page is silent. Called between wr_start and wr_complete
 * or wr_abort, under sq.lock.
 */
#ifndef SOFTHCA_VERBS_POST_WR_H
#define SOFTHCA_VERBS_POST_WR_H

#include <infiniband/verbs.h>

#include "verbs/object/objects.h"

/* wr_session.c */
void wr_start(struct ibv_qp_ex *ex);
int wr_complete(struct ibv_qp_ex *ex);
/** For a QP that has not been in RTS since RESET: rolls back and returns EINVAL. */
int wr_complete_refused(struct ibv_qp_ex *ex);
void wr_abort(struct ibv_qp_ex *ex);
/** Selects wr_complete for @state, just entered. Only RESET and RTS change it. */
void wr_set_state(struct user_qp *qp, enum ibv_qp_state state);

/* wr_ops.c: operations */
void wr_send(struct ibv_qp_ex *ex);
void wr_send_imm(struct ibv_qp_ex *ex, __be32 imm_data);
void wr_send_inv(struct ibv_qp_ex *ex, uint32_t invalidate_rkey);
void wr_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr);
void wr_rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, __be32 imm_data);
void wr_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr);
void wr_atomic_cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, uint64_t compare, uint64_t swap);
void wr_atomic_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, uint64_t add);
void wr_atomic_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, const void *atomic_wr);
void wr_bind_mw(struct ibv_qp_ex *ex, struct ibv_mw *mw, uint32_t rkey, const struct ibv_mw_bind_info *bind_info);
void wr_local_inv(struct ibv_qp_ex *ex, uint32_t invalidate_rkey);
void wr_send_ud(struct ibv_qp_ex *ex);
void wr_send_imm_ud(struct ibv_qp_ex *ex, __be32 imm_data);
/* Each request has an address of send_queue.address_bytes: XRC, DC. */
void wr_send_to(struct ibv_qp_ex *ex);
void wr_send_imm_to(struct ibv_qp_ex *ex, __be32 imm_data);
void wr_send_inv_to(struct ibv_qp_ex *ex, uint32_t invalidate_rkey);
void wr_rdma_write_to(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr);
void wr_rdma_write_imm_to(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, __be32 imm_data);
void wr_rdma_read_to(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr);
void wr_atomic_cmp_swp_to(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, uint64_t compare, uint64_t swap);
void wr_atomic_fetch_add_to(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, uint64_t add);
void wr_atomic_write_to(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, const void *atomic_wr);

/* wr_setters.c: data and addresses */
void wr_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr, uint32_t length);
void wr_set_sge_list(struct ibv_qp_ex *ex, size_t num_sge, const struct ibv_sge *sg_list);
void wr_set_inline_data(struct ibv_qp_ex *ex, void *addr, size_t length);
void wr_set_inline_data_list(struct ibv_qp_ex *ex, size_t num_buf, const struct ibv_data_buf *buf_list);
void wr_set_xrc_srqn(struct ibv_qp_ex *ex, uint32_t remote_srqn);
void wr_set_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah, uint32_t remote_qpn, uint32_t remote_qkey);

#endif
