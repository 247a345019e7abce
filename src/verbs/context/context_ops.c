/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Members of struct verbs_context may be NULL: verbs.h then returns EOPNOTSUPP. Those of struct ibv_context_ops are
 * called without a check.
 */
#include <errno.h>
#include <stddef.h>

#include "abi/entry_points.h"
#include "verbs/context/context.h"
#include "verbs/object/ops.h"
#include "verbs/object/observed.h"

/* For members from before libibverbs 1.1, which headers no longer use. */
static void *compat_refuse(void)
{
	errno = softhca_not_supported("ibv_context_ops, compatibility member");
	return NULL;
}

static const struct ibv_context_ops data_path = {
	._compat_query_device = softhca_ibv_query_device,
	._compat_query_port = softhca_ibv_query_port,
	._compat_alloc_pd = compat_refuse,
	._compat_dealloc_pd = compat_refuse,
	._compat_reg_mr = compat_refuse,
	._compat_rereg_mr = compat_refuse,
	._compat_dereg_mr = compat_refuse,
	.alloc_mw = softhca_ibv_alloc_mw,
	.bind_mw = softhca_ibv_bind_mw,
	.dealloc_mw = softhca_ibv_dealloc_mw,
	._compat_create_cq = compat_refuse,
	.poll_cq = softhca_ibv_poll_cq,
	.req_notify_cq = softhca_ibv_req_notify_cq,
	._compat_cq_event = compat_refuse,
	._compat_resize_cq = compat_refuse,
	._compat_destroy_cq = compat_refuse,
	._compat_create_srq = compat_refuse,
	._compat_modify_srq = compat_refuse,
	._compat_query_srq = compat_refuse,
	._compat_destroy_srq = compat_refuse,
	.post_srq_recv = softhca_ibv_post_srq_recv,
	._compat_create_qp = compat_refuse,
	._compat_query_qp = compat_refuse,
	._compat_modify_qp = compat_refuse,
	._compat_destroy_qp = compat_refuse,
	.post_send = softhca_ibv_post_send,
	.post_recv = softhca_ibv_post_recv,
	._compat_create_ah = compat_refuse,
	._compat_destroy_ah = compat_refuse,
	._compat_attach_mcast = compat_refuse,
	._compat_detach_mcast = compat_refuse,
	._compat_async_event = compat_refuse,
};

/* Members that stay NULL: flows, counters, WQs, indirection tables, tag matching. */
void context_ops_fill(struct verbs_context *context)
{
	context->context.ops = data_path;
	if (data_path_is_observed()) {
		context->context.ops.post_send = post_send_observed;
		context->context.ops.post_recv = post_recv_observed;
		context->context.ops.post_srq_recv = post_srq_recv_observed;
		context->context.ops.poll_cq = poll_cq_observed;
		context->context.ops.req_notify_cq = req_notify_cq_observed;
	}
	context->query_port = softhca_ibv_query_port_ex;
	context->advise_mr = softhca_ibv_advise_mr;
	context->alloc_null_mr = softhca_ibv_alloc_null_mr;
	context->reg_dm_mr = softhca_ibv_reg_dm_mr;
	context->alloc_dm = softhca_ibv_alloc_dm;
	context->free_dm = softhca_ibv_free_dm;
	context->modify_qp_rate_limit = softhca_ibv_modify_qp_rate_limit;
	context->alloc_parent_domain = softhca_ibv_alloc_parent_domain;
	context->dealloc_td = softhca_ibv_dealloc_td;
	context->alloc_td = softhca_ibv_alloc_td;
	context->modify_cq = softhca_ibv_modify_cq;
	context->query_rt_values = softhca_ibv_query_rt_values;
	context->create_cq_ex = softhca_ibv_create_cq_ex;
	context->query_device_ex = softhca_ibv_query_device_ex;
	context->create_qp_ex = softhca_ibv_create_qp_ex;
	context->open_xrcd = softhca_ibv_open_xrcd;
	context->close_xrcd = softhca_ibv_close_xrcd;
	context->open_qp = softhca_ibv_open_qp;
	context->get_srq_num = softhca_ibv_get_srq_num;
	context->create_srq_ex = softhca_ibv_create_srq_ex;
}
