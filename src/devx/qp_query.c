/* SPDX-License-Identifier: BSD-2-Clause */
/* The context of a QP or DCT, from its CREATE command and modifications. */
#include "devx/command.h"
#include "devx/qp_context.h"

#include "format/qp_types.h"

/* pm_state: only one path */
enum { MIGRATED = 3 };

/* state of a DCT */
enum { DCT_ACTIVE = 0 };

static uint32_t state_number(enum ibv_qp_state state)
{
	static const uint8_t numbers[] = {
		[IBV_QPS_RESET] = 0, [IBV_QPS_INIT] = 1, [IBV_QPS_RTR] = 2, [IBV_QPS_RTS] = 3,
		[IBV_QPS_SQE] = 4,   [IBV_QPS_SQD] = 5,  [IBV_QPS_ERR] = 6,
	};

	return state < sizeof(numbers) ? numbers[state] : 6;
}

static uint32_t service_number(enum ibv_qp_type type)
{
	switch ((int)type) {
	case IBV_QPT_UC:
		return SERVICE_UC;
	case IBV_QPT_UD:
		return SERVICE_UD;
	case IBV_QPT_XRC_SEND:
	case IBV_QPT_XRC_RECV:
		return SERVICE_XRC;
	case QP_TYPE_DCI:
		return SERVICE_DCI;
	case QP_TYPE_DCT:
		return SERVICE_DCT;
	default:
		return SERVICE_RC;
	}
}

static uint32_t log_of(uint32_t value)
{
	return value ? 31u - (uint32_t)__builtin_clz(value) : 0;
}

static void qp_put_path(struct devx_command *command, const struct ibv_ah_attr *address)
{
	__be64 words[2];

	memcpy(words, &address->grh.dgid, sizeof(words));
	command_put(command, QPC_RGID_HIGH, be64toh(words[0]));
	command_put(command, QPC_RGID_LOW, be64toh(words[1]));
	command_put(command, QPC_SRC_ADDR_INDEX, address->grh.sgid_index);
	command_put(command, QPC_HOP_LIMIT, address->grh.hop_limit);
	command_put(command, QPC_TCLASS, address->grh.traffic_class);
	command_put(command, QPC_FLOW_LABEL, address->grh.flow_label);
	command_put(command, QPC_ETH_PRIO, address->sl);
}

static void qp_put_receive_queue(struct devx_command *command, const struct hca_qp_attr *made)
{
	command_put(command, QPC_RQ_TYPE, made->srq ? RECEIVE_SHARED : made->rq_count ? RECEIVE_QUEUE : RECEIVE_NONE);
	if (made->srq)
		command_put(command, QPC_SRQN, hca_srq_number(made->srq));
	if (!made->rq_count)
		return;
	command_put(command, QPC_LOG_RQ_SIZE, log_of(made->rq_count));
	command_put(command, QPC_LOG_RQ_STRIDE, made->rq_shift - 4);
}

static void qp_put_creation(struct devx_command *command)
{
	struct hca_qp_attr made;

	hca_qp_creation(command->qp, &made);
	if (made.pd)
		command_put(command, QPC_PD, hca_pd_number(made.pd));
	command_put(command, QPC_DRAIN_SIGERR, made.stop_at_signature_error);
	command_put(command, QPC_NO_SQ, !made.sq_wqebb_count);
	command_put(command, QPC_LOG_SQ_SIZE, log_of(made.sq_wqebb_count));
	command_put(command, QPC_USER_INDEX, made.user_index);
	if (made.send_cq)
		command_put(command, QPC_CQN_SND, hca_cq_number(made.send_cq));
	if (made.recv_cq)
		command_put(command, QPC_CQN_RCV, hca_cq_number(made.recv_cq));
	if (made.scatter_to_cqe)
		command_put(command, QPC_CS_REQ,
			    hca_cq_entry_size(made.send_cq) == 128 ? SCATTER_TO_128 : SCATTER_TO_64);
	command_put(command, QPC_DC_ACCESS_KEY, made.dc_access_key);
	qp_put_receive_queue(command, &made);
}

int command_query_qp(struct devx_command *command)
{
	struct ibv_qp_attr attr;

	created_put(command);
	hca_qp_query(command->qp, &attr);
	command_put(command, QPC_DBR_UMEM_VALID, command->object != NULL);
	command_put(command, QPC_STATE, state_number(attr.qp_state));
	command_put(command, QPC_ST, service_number(hca_qp_type(command->qp)));
	command_put(command, QPC_PM_STATE, MIGRATED);
	command_put(command, QPC_MTU, attr.path_mtu);
	command_put(command, QPC_LOG_MSG_MAX, 30);
	command_put(command, QPC_REMOTE_QPN, attr.dest_qp_num);
	command_put(command, QPC_PKEY_INDEX, attr.pkey_index);
	command_put(command, QPC_PORT, attr.port_num);
	qp_put_path(command, &attr.ah_attr);
	command_put(command, QPC_ACK_TIMEOUT, attr.timeout);
	command_put(command, QPC_LOG_SRA_MAX, log_of(attr.max_rd_atomic));
	command_put(command, QPC_LOG_RRA_MAX, log_of(attr.max_dest_rd_atomic));
	command_put(command, QPC_RETRY_COUNT, attr.retry_cnt);
	command_put(command, QPC_RNR_RETRY, attr.rnr_retry);
	command_put(command, QPC_NEXT_SEND_PSN, attr.sq_psn);
	command_put(command, QPC_NEXT_RCV_PSN, attr.rq_psn);
	command_put(command, QPC_MIN_RNR_NAK, attr.min_rnr_timer);
	command_put_rights(command, REMOTE_RIGHTS(QPC), attr.qp_access_flags);
	command_put(command, QPC_ATOMIC_MODE, attr.qp_access_flags & IBV_ACCESS_REMOTE_ATOMIC ? ATOMIC_UP_TO_8 : 0);
	command_put(command, QPC_Q_KEY, attr.qkey);
	qp_put_creation(command);
	return 0;
}

static void put_dct_objects(struct devx_command *command)
{
	struct hca_qp_attr made;

	hca_qp_creation(command->qp, &made);
	command_put(command, DCTC_USER_INDEX, made.user_index);
	command_put(command, DCTC_DC_ACCESS_KEY, made.dc_access_key);
	if (made.pd)
		command_put(command, DCTC_PD, hca_pd_number(made.pd));
	if (made.recv_cq)
		command_put(command, DCTC_CQN, hca_cq_number(made.recv_cq));
	if (made.srq)
		command_put(command, DCTC_SRQN, hca_srq_number(made.srq));
}

int command_query_dct(struct devx_command *command)
{
	struct ibv_qp_attr attr;

	created_put(command);
	hca_qp_query(command->qp, &attr);
	command_put(command, DCTC_STATE, DCT_ACTIVE);
	command_put(command, DCTC_DATA_IN_ORDER, 0);
	command_put_rights(command, REMOTE_RIGHTS(DCTC), attr.qp_access_flags);
	command_put(command, DCTC_MIN_RNR_NAK, attr.min_rnr_timer);
	command_put(command, DCTC_MTU, attr.path_mtu);
	command_put(command, DCTC_PORT, attr.port_num);
	command_put(command, DCTC_PKEY_INDEX, attr.pkey_index);
	command_put(command, DCTC_SRC_ADDR_INDEX, attr.ah_attr.grh.sgid_index);
	command_put(command, DCTC_HOP_LIMIT, attr.ah_attr.grh.hop_limit);
	command_put(command, DCTC_TCLASS, attr.ah_attr.grh.traffic_class);
	command_put(command, DCTC_FLOW_LABEL, attr.ah_attr.grh.flow_label);
	command_put(command, DCTC_KEY_VIOLATIONS, 0);
	put_dct_objects(command);
	return 0;
}
