/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions of a context's function table that no library symbol names: verbs.h calls them inline through
 * ibv_context.ops and struct verbs_context. Contracts: man pages.
 */
#ifndef SOFTHCA_VERBS_OBJECT_OPS_H
#define SOFTHCA_VERBS_OBJECT_OPS_H

#include <infiniband/verbs.h>

struct user_qp;

/* ibv_context.ops: data path */
int softhca_ibv_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc);
int softhca_ibv_req_notify_cq(struct ibv_cq *cq, int solicited_only);
int softhca_ibv_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
/** With lint or timelines (verbs/object/observed.h). */
int post_send_observed(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
int post_recv_observed(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
int post_srq_recv_observed(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
int poll_cq_observed(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc);
int req_notify_cq_observed(struct ibv_cq *cq, int solicited_only);
int softhca_ibv_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
int softhca_ibv_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);

/* windows */
struct ibv_mw *softhca_ibv_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int softhca_ibv_dealloc_mw(struct ibv_mw *mw);
int softhca_ibv_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *mw_bind);

/* struct verbs_context */
int softhca_ibv_query_port_ex(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr, size_t size);
int softhca_ibv_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags, struct ibv_sge *list,
			  uint32_t count);
struct ibv_mr *softhca_ibv_alloc_null_mr(struct ibv_pd *pd);
struct ibv_mr *softhca_ibv_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t offset, size_t length,
				     unsigned int access);
struct ibv_dm *softhca_ibv_alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr);
int softhca_ibv_free_dm(struct ibv_dm *dm);
struct ibv_pd *softhca_ibv_alloc_parent_domain(struct ibv_context *context, struct ibv_parent_domain_init_attr *attr);
struct ibv_td *softhca_ibv_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr);
int softhca_ibv_dealloc_td(struct ibv_td *td);
int softhca_ibv_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);
int softhca_ibv_query_rt_values(struct ibv_context *context, struct ibv_values_ex *values);
struct ibv_cq_ex *softhca_ibv_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr);
int softhca_ibv_query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
				struct ibv_device_attr_ex *attr, size_t attr_size);
struct ibv_qp *softhca_ibv_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);
int softhca_ibv_modify_qp_rate_limit(struct ibv_qp *qp, struct ibv_qp_rate_limit_attr *attr);
int softhca_ibv_get_srq_num(struct ibv_srq *srq, uint32_t *srq_num);
struct ibv_xrcd *softhca_ibv_open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *attr);
int softhca_ibv_close_xrcd(struct ibv_xrcd *xrcd);
struct ibv_qp *softhca_ibv_open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr);
struct ibv_srq *softhca_ibv_create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr);

/** Moves @qp to ERR because its connection has ended (hca_qp_disconnect()). (verbs/qp/qp_modify.c) */
void user_qp_disconnect(struct ibv_qp *qp);
/** Updates the driver's side of @qp after the device has moved it to @state. (verbs/qp/qp_modify.c) */
void user_qp_entered(struct user_qp *qp, enum ibv_qp_state state);

#endif
