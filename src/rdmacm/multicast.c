/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_join_multicast(3), rdma_join_multicast_ex(3), rdma_leave_multicast(3). On RoCE v2 groups have no manager, so the
 * event follows at once.
 */
#include "rdmacm/multicast.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "abi/entry_points.h"
#include "abi/rdmacm_entry_points.h"
#include "core/cancellation.h"
#include "explain/explain.h"
#include "rdmacm/channel.h"
#include "rdmacm/devices.h"
#include "rdmacm/id.h"
#include "rdmacm/queue_pair.h"
#include "rdmacm/route.h"
#include "rdmacm/sockaddr.h"

/* For multicast packets (IBTA 10.5.1). */
enum { MULTICAST_QPN_ = 0xffffff };

/* Returns 0 or a negative errno. */
static int group_attach(struct user_cm_group *group)
{
	struct ibv_qp *qp = qp_of_id(group->id);
	int error = 0;

	if (qp && !group->send_only) {
		error = -softhca_ibv_attach_mcast(qp, &group->mgid, 0);
		group->attached = !error;
	}
	return error;
}

/* Attaches the QP of the ID, if any, for a member that receives. */
static bool group_deliver_join(struct user_cm_event *event)
{
	struct user_cm_group *group = event->group;
	struct rdma_ud_param *param = &event->base.param.ud;

	event->base.status = group_attach(group);
	/* The program must nevertheless leave (rdma_join_multicast(3)). */
	if (event->base.status)
		event->base.event = RDMA_CM_EVENT_MULTICAST_ERROR;
	param->private_data = group->context;
	param->qp_num = MULTICAST_QPN_;
	param->qkey = RDMA_UDP_QKEY;
	ah_attributes(group->id, &param->ah_attr);
	param->ah_attr.grh.dgid = group->mgid;
	return true;
}

static void group_free(struct user_cm_group *group)
{
	struct ibv_qp *qp = qp_of_id(group->id);

	if (qp && group->attached)
		softhca_ibv_detach_mcast(qp, &group->mgid, 0);
	events_drain(group->id, group);
	free(group);
}

void multicast_leave_all(struct user_cm_id *id)
{
	while (id->groups) {
		struct user_cm_group *group = id->groups;

		id->groups = group->next;
		group_free(group);
	}
}

static int id_join_group(struct user_cm_id *id, const struct sockaddr *address, uint32_t flags, void *context)
{
	struct user_cm_group *group;
	struct user_cm_event *event;
	int error = id_check(id, ID_CALL_JOIN_MULTICAST);

	if (error)
		return error;
	if (id->base.qp_type != IBV_QPT_UD || !id->path.device)
		return -REFUSE(hca_of_id(id), "rdma_join_multicast", EINVAL, RULE_RDMACM_NOT_DATAGRAM, id->base.qp_type,
			       !!id->path.device);
	if (!address_is_multicast(address) || address->sa_family != AF_INET)
		return -REFUSE(hca_of_id(id), "rdma_join_multicast", EINVAL, RULE_RDMACM_NO_GROUP,
			       be64toh(address_gid(address).global.subnet_prefix),
			       be64toh(address_gid(address).global.interface_id));
	group = calloc(1, sizeof(*group));
	event = group ? event_new(id, RDMA_CM_EVENT_MULTICAST_JOIN, 0) : NULL;
	if (!event) {
		free(group);
		return -ENOMEM;
	}
	group->id = id;
	group->context = context;
	group->send_only = flags == RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER;
	group->mgid = address_gid(address);
	address_copy(&group->address, address);
	group->next = id->groups;
	id->groups = group;
	event->deliver = group_deliver_join;
	event->group = group;
	event_put(event);
	return 0;
}

int softhca_rdma_join_multicast(struct rdma_cm_id *base, struct sockaddr *addr, void *context)
{
	WITHOUT_CANCELLATION;
	struct user_cm_id *id = id_begin(base, "rdma_join_multicast");

	return id ? id_end_complete(id, id_join_group(id, addr, RDMA_MC_JOIN_FLAG_FULLMEMBER, context)) : -1;
}

int softhca_rdma_join_multicast_ex(struct rdma_cm_id *base, struct rdma_cm_join_mc_attr_ex *attr, void *context)
{
	WITHOUT_CANCELLATION;
	const uint32_t both = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;
	struct user_cm_id *id = id_begin(base, "rdma_join_multicast_ex");
	int error;

	if (!id)
		return -1;
	if (attr->comp_mask >= RDMA_CM_JOIN_MC_ATTR_RESERVED)
		error = -REFUSE(hca_of_id(id), "rdma_join_multicast_ex", ENOTSUP, RULE_COMP_MASK, attr->comp_mask,
				both);
	else if (attr->comp_mask != both || attr->join_flags >= RDMA_MC_JOIN_FLAG_RESERVED)
		error = -REFUSE(hca_of_id(id), "rdma_join_multicast_ex", EINVAL, RULE_RDMACM_JOIN_FLAGS,
				attr->comp_mask, attr->join_flags);
	else
		error = id_join_group(id, attr->addr, attr->join_flags, context);
	return id_end_complete(id, error);
}

int softhca_rdma_leave_multicast(struct rdma_cm_id *base, struct sockaddr *addr)
{
	WITHOUT_CANCELLATION;
	struct user_cm_id *id = id_begin(base, "rdma_leave_multicast");
	struct user_cm_group **link, *group;
	struct rdma_cm_event *event;
	int result;

	if (!id)
		return -1;
	for (link = &id->groups; *link; link = &(*link)->next)
		if (address_equal((struct sockaddr *)&(*link)->address, addr))
			break;
	group = *link;
	if (!group)
		return id_end(id, -REFUSE(hca_of_id(id), "rdma_leave_multicast", EADDRNOTAVAIL, RULE_RDMACM_NOT_JOINED,
					  be64toh(address_gid(addr).global.subnet_prefix),
					  be64toh(address_gid(addr).global.interface_id)));
	*link = group->next;
	/* The program cannot acknowledge the event of a synchronous ID (rdma_create_id(3), NOTES). */
	event = id->synchronous && base->event && to_user_cm_event(base->event)->group == group ? base->event : NULL;
	if (event)
		base->event = NULL;
	result = id_end(id, 0);
	if (event)
		softhca_rdma_ack_cm_event(event);
	group_free(group);
	return result;
}
