/* SPDX-License-Identifier: BSD-2-Clause */
/* ibv_query_qp(3), ibv_query_qp_data_in_order(3). */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "abi/entry_points.h"
#include "explain/explain.h"
#include "verbs/object/objects.h"

/* End of the structure in older programs; no mask bit requests the later members. */
#define ATTR_BYTES offsetof(struct ibv_qp_attr, rate_limit)

/* Those that the kernel's driver returns for a DCT. */
enum {
	DCT_ATTRIBUTES = IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PORT | IBV_QP_MIN_RNR_TIMER | IBV_QP_AV |
			 IBV_QP_PATH_MTU | IBV_QP_PKEY_INDEX
};

int softhca_ibv_query_qp(struct ibv_qp *base, struct ibv_qp_attr *attr, int attr_mask,
			 struct ibv_qp_init_attr *init_attr)
{
	struct user_qp *qp = to_user_qp(base);
	struct ibv_qp_attr all = {0};
	int err;

	if (object_refused("ibv_query_qp", NULL, base))
		return errno;
	/* The rate limit and later attributes cannot be queried. */
	if (attr_mask & ~(IBV_QP_RATE_LIMIT - 1))
		return refuse_on_qp(hca_of_context(base->context), "ibv_query_qp", base->qp_num, EOPNOTSUPP,
				    RULE_QP_ATTR_MASK, FIGURES((uint32_t)attr_mask & ~(IBV_QP_RATE_LIMIT - 1)));
	if (qp->dc_type == MLX5DV_DCTYPE_DCT &&
	    (attr_mask & ~DCT_ATTRIBUTES || hca_qp_state(qp->device) != IBV_QPS_RTR))
		return refuse_on_qp(hca_of_context(base->context), "ibv_query_qp", hca_qp_number(qp->device), EINVAL,
				    RULE_QP_QUERY_DCT,
				    FIGURES(hca_qp_state(qp->device), (uint32_t)attr_mask, DCT_ATTRIBUTES));
	err = -hca_qp_query(qp->device, &all);
	if (err)
		return err;
	all.cap = qp->cap;
	memcpy(attr, &all, ATTR_BYTES);
	*init_attr = (struct ibv_qp_init_attr){
		.qp_context = base->qp_context,
		.send_cq = base->send_cq,
		.recv_cq = base->recv_cq,
		.srq = base->srq,
		.cap = qp->cap,
		.qp_type = base->qp_type,
		.sq_sig_all = qp->sq_sig_all,
	};
	if (attr_mask & IBV_QP_STATE)
		base->state = attr->qp_state;
	return 0;
}

/*
 * Promises no order for whole messages: only the last bytes are known to become visible after the others, which are
 * copied in the order of memcpy(3).
 */
int softhca_ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
{
	(void)qp;
	(void)op;
	(void)flags;
	return 0;
}
