/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Moves queue pairs from RESET to RTS, with the attributes that their type needs, for programs that open a device
 * themselves. Uses nothing but libibverbs. A queue pair may be moved by any thread.
 */
#ifndef SOFTHCA_TESTS_VERBS_CONNECT_H
#define SOFTHCA_TESTS_VERBS_CONNECT_H

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <infiniband/verbs.h>

/* Returns the attributes that a move to @state takes (ibv_modify_qp(3); of XRC, those that the kernel requires). */
static inline int verbs_move_mask(const struct ibv_qp *qp, enum ibv_qp_state state)
{
	const enum ibv_qp_type type = qp->qp_type;
	const bool datagram = type == IBV_QPT_UD, requests = type == IBV_QPT_RC || type == IBV_QPT_XRC_SEND,
		   responds = type == IBV_QPT_RC || type == IBV_QPT_XRC_RECV;
	const int route = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;

	if (state == IBV_QPS_INIT)
		return IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | (datagram ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
	if (state == IBV_QPS_RTR)
		return IBV_QP_STATE | (datagram ? 0 : route) |
		       (responds ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0);
	if (state == IBV_QPS_RTS)
		return IBV_QP_STATE | IBV_QP_SQ_PSN | (requests || responds ? IBV_QP_TIMEOUT : 0) |
		       (requests ? IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC : 0);
	return IBV_QP_STATE;
}

/*
 * Moves @qp to @state, or to INIT, RTR or RTS through the states before it, towards the queue pair with number @peer.
 * Of @attr, these fields may be 0: port_num (1), path_mtu (1024), ah_attr (the address of this port with the index
 * grh.sgid_index, hop limit 64), retry_cnt and rnr_retry (7). Returns 0 or an errno value.
 */
static inline int verbs_connect_until(struct ibv_qp *qp, enum ibv_qp_state state, uint32_t peer,
				      struct ibv_qp_attr attr)
{
	static const union ibv_gid unset;
	int error = 0;

	attr.dest_qp_num = peer;
	attr.port_num = attr.port_num ? attr.port_num : 1;
	attr.path_mtu = attr.path_mtu ? attr.path_mtu : IBV_MTU_1024;
	attr.retry_cnt = attr.retry_cnt ? attr.retry_cnt : 7;
	attr.rnr_retry = attr.rnr_retry ? attr.rnr_retry : 7;
	attr.ah_attr.is_global = attr.ah_attr.port_num = 1;
	attr.ah_attr.grh.hop_limit = attr.ah_attr.grh.hop_limit ? attr.ah_attr.grh.hop_limit : 64;
	if (state != IBV_QPS_INIT && qp->qp_type != IBV_QPT_UD &&
	    !memcmp(&attr.ah_attr.grh.dgid, &unset, sizeof(unset)) &&
	    ibv_query_gid(qp->context, 1, attr.ah_attr.grh.sgid_index, &attr.ah_attr.grh.dgid))
		return EINVAL;
	while (!error && qp->state != state) {
		attr.qp_state = qp->state < IBV_QPS_RTS ? qp->state + 1 : state;
		error = ibv_modify_qp(qp, &attr, verbs_move_mask(qp, attr.qp_state));
	}
	return error;
}

/* As verbs_connect_until() RTS: verbs_connect(qp, peer, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE, .timeout = 14). */
#define verbs_connect(qp, peer, ...) verbs_connect_until(qp, IBV_QPS_RTS, peer, (struct ibv_qp_attr){__VA_ARGS__})

#endif
