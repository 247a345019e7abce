/* SPDX-License-Identifier: BSD-2-Clause */
/* Connection parameters, see conn_param.h. */
#include "rdmacm/conn_param.h"

#include <errno.h>

#include "explain/explain.h"
#include "rdmacm/devices.h"
#include "rdmacm/queue_pair.h"

const struct rdma_conn_param conn_most = {
	.responder_resources = RDMA_MAX_RESP_RES,
	.initiator_depth = RDMA_MAX_INIT_DEPTH,
	.retry_count = CONN_MOST_RETRIES,
	.rnr_retry_count = CONN_MOST_RETRIES,
};

int conn_check_private_data(const struct user_cm_id *id, const char *call, const struct rdma_conn_param *param,
			    uint8_t room)
{
	if (param->private_data_len <= room)
		return 0;
	return -REFUSE(hca_of_id(id), call, EINVAL, RULE_RDMACM_PRIVATE_DATA, param->private_data_len, room);
}

int conn_check_resources(const struct user_cm_id *id, const char *call, const struct rdma_conn_param *param)
{
	const struct shared_device *device = id->path.device;

	if ((param->responder_resources != RDMA_MAX_RESP_RES &&
	     param->responder_resources > device->most_responder_resources) ||
	    (param->initiator_depth != RDMA_MAX_INIT_DEPTH && param->initiator_depth > device->most_initiator_depth))
		return -REFUSE(hca_of_id(id), call, EINVAL, RULE_RDMACM_RESOURCES, param->responder_resources,
			       param->initiator_depth, device->most_responder_resources, device->most_initiator_depth);
	return 0;
}

int conn_check_qp(const struct user_cm_id *id, const char *call)
{
	if (!id->base.qp || qp_of_id(id))
		return 0;
	return -REFUSE(hca_of_id(id), call, EINVAL, RULE_RDMACM_QP_DESTROYED, (uintptr_t)id->base.qp);
}

struct cm_private conn_private(const struct rdma_conn_param *param)
{
	uint8_t length = param->private_data ? param->private_data_len : 0;

	return (struct cm_private){.data = param->private_data, .length = length};
}

uint32_t conn_qpn(const struct user_cm_id *id, const struct rdma_conn_param *param)
{
	return id->base.qp ? id->base.qp->qp_num : param->qp_num;
}

uint8_t conn_srq(const struct user_cm_id *id, const struct rdma_conn_param *param)
{
	return id->base.qp ? id->base.srq || id->base.qp->srq : !!param->srq;
}
