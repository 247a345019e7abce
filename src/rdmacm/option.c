/* SPDX-License-Identifier: BSD-2-Clause */
/* rdma_set_option(3). */
#include <errno.h>
#include <string.h>
#include <infiniband/sa.h>

#include "abi/rdmacm_entry_points.h"
#include "core/cancellation.h"
#include "explain/explain.h"
#include "rdmacm/channel.h"
#include "rdmacm/devices.h"
#include "rdmacm/id.h"
#include "rdmacm/route.h"

/* The field of the message has five bits. */
enum { MOST_ACK_TIMEOUT = 31 };

static int option_set_tos(struct user_cm_id *id, const void *value)
{
	memcpy(&id->tos, value, sizeof(id->tos));
	id->tos_set = true;
	return 0;
}

static int option_set_reuse_address(struct user_cm_id *id, const void *value)
{
	int reuse;

	memcpy(&reuse, value, sizeof(reuse));
	if (id_state(id) == ID_LISTEN)
		return -REFUSE(hca_of_id(id), "rdma_set_option", EINVAL, RULE_RDMACM_REUSE_ADDRESS,
			       state_name_figure(id_state_name(id_state(id))));
	id->reuse_address = reuse;
	port_set_sharing(&id->port, reuse, id->own_family_only);
	return 0;
}

static int option_set_own_family_only(struct user_cm_id *id, const void *value)
{
	int error = id_check(id, ID_CALL_SET_AFONLY), only;

	if (error)
		return error;
	memcpy(&only, value, sizeof(only));
	id->own_family_only = only;
	port_set_sharing(&id->port, id->reuse_address, only);
	id->family_only_set = true;
	return 0;
}

static int option_set_ack_timeout(struct user_cm_id *id, const void *value)
{
	uint8_t timeout;

	memcpy(&timeout, value, sizeof(timeout));
	if (id->base.qp_type != IBV_QPT_RC && id->base.qp_type != IBV_QPT_XRC_SEND)
		return -REFUSE(hca_of_id(id), "rdma_set_option", EINVAL, RULE_RDMACM_ACK_TIMEOUT, id->base.qp_type);
	id->ack_timeout = timeout < MOST_ACK_TIMEOUT ? timeout : MOST_ACK_TIMEOUT;
	id->ack_timeout_set = true;
	return 0;
}

/* Replaces rdma_resolve_route(3). */
static int option_set_path(struct user_cm_id *id, const void *value, size_t size)
{
	const uint32_t wanted = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY | IBV_PATH_FLAG_BIDIRECTIONAL;
	const struct ibv_path_data *list = value;
	size_t count = size / sizeof(*list), index;
	int error = id_check(id, ID_CALL_SET_PATH);

	if (error)
		return error;
	for (index = 0; index < count && (list[index].flags & wanted) != wanted; index++)
		;
	if (index == count)
		return -REFUSE(hca_of_id(id), "rdma_set_option", EINVAL, RULE_RDMACM_NO_PATH, count, wanted);
	path_choose(id);
	id->flow_label = be32toh(list[index].path.flowlabel_hoplimit) >> 8 & 0xfffff;
	id->tos = list[index].path.tclass;
	id_change(id, ID_RESOLVED, ID_ROUTED);
	return event_raise(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0, path_deliver);
}

/* At level RDMA_OPTION_ID, with the sizes of values. */
static const struct {
	size_t size;
	int (*set)(struct user_cm_id *id, const void *value);
} options[] = {
	[RDMA_OPTION_ID_TOS] = {sizeof(uint8_t), option_set_tos},
	[RDMA_OPTION_ID_REUSEADDR] = {sizeof(int), option_set_reuse_address},
	[RDMA_OPTION_ID_AFONLY] = {sizeof(int), option_set_own_family_only},
	[RDMA_OPTION_ID_ACK_TIMEOUT] = {sizeof(uint8_t), option_set_ack_timeout},
};

#define OPTION_COUNT (sizeof(options) / sizeof(options[0]))

static int id_set_option(struct user_cm_id *id, int level, int name, const void *value, size_t size)
{
	if (level == RDMA_OPTION_ID && (size_t)name < OPTION_COUNT) {
		if (size != options[name].size)
			return -REFUSE(hca_of_id(id), "rdma_set_option", EINVAL, RULE_RDMACM_OPTION_SIZE, name, size,
				       options[name].size);
		return options[name].set(id, value);
	}
	if (level != RDMA_OPTION_IB || name != RDMA_OPTION_IB_PATH)
		return -REFUSE(hca_of_id(id), "rdma_set_option", ENOSYS, RULE_RDMACM_OPTION, level, name);
	if (!size || size % sizeof(struct ibv_path_data))
		return -REFUSE(hca_of_id(id), "rdma_set_option", EINVAL, RULE_RDMACM_OPTION_SIZE, name, size,
			       sizeof(struct ibv_path_data));
	return option_set_path(id, value, size);
}

int softhca_rdma_set_option(struct rdma_cm_id *base, int level, int optname, void *optval, size_t optlen)
{
	WITHOUT_CANCELLATION;
	struct user_cm_id *id = id_begin(base, "rdma_set_option");

	return id ? id_end(id, id_set_option(id, level, optname, optval, optlen)) : -1;
}
