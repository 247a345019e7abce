/* SPDX-License-Identifier: BSD-2-Clause */
/* rdma_resolve_route(3): on RoCE a path follows from the addresses. */
#include "rdmacm/route.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "abi/rdmacm_entry_points.h"
#include "core/cancellation.h"
#include "core/settings.h"
#include "hca/commands.h"
#include "explain/explain.h"
#include "rdmacm/channel.h"
#include "rdmacm/devices.h"
#include "rdmacm/id.h"
#include "rdmacm/sockaddr.h"
#include "verbs/object/ops.h"

/* As in the kernel on RoCE (rdma-cm 2.4). */
enum { SELECTOR_EXACTLY = 2, HOP_LIMIT = 64, DEFAULT_PKEY = 0xffff, FLOW_LABEL_MASK = 0xfffff };

static uint32_t path_flow_label(const struct user_cm_id *id)
{
	const struct sockaddr *destination = (const struct sockaddr *)&id->path.destination;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)(const void *)destination;
	uint32_t sport = address_port((const struct sockaddr *)&id->path.source), dport = address_port(destination);

	if (destination->sa_family == AF_INET6 && in6->sin6_flowinfo)
		return be32toh(in6->sin6_flowinfo) & FLOW_LABEL_MASK;
	return (sport * 31 + dport) & FLOW_LABEL_MASK;
}

static uint8_t path_port_mtu(const struct user_cm_id *id)
{
	struct ibv_port_attr attr;

	if (softhca_ibv_query_port_ex(id->path.device->context, 1, &attr, sizeof(attr)))
		return IBV_MTU_1024;
	return (uint8_t)attr.active_mtu;
}

uint8_t path_lifetime(const struct user_cm_id *id)
{
	if (id->ack_timeout_set && id->ack_timeout)
		return (uint8_t)(id->ack_timeout - 1);
	return (uint8_t)hca_settings(id->path.device->hca)->cm_packet_lifetime;
}

int path_publish(struct user_cm_id *id)
{
	struct ibv_sa_path_rec *record = calloc(1, sizeof(*record));

	if (!record)
		return -ENOMEM;
	record->dgid = id->path.dgid;
	record->sgid = id->path.sgid;
	record->flow_label = htobe32(id->flow_label);
	record->hop_limit = HOP_LIMIT;
	record->traffic_class = id->tos;
	record->reversible = 1;
	record->numb_path = 1;
	record->pkey = htobe16(DEFAULT_PKEY);
	record->mtu_selector = record->rate_selector = record->packet_life_time_selector = SELECTOR_EXACTLY;
	record->mtu = id->path_mtu;
	record->packet_life_time = path_lifetime(id);
	free(id->base.route.path_rec);
	id->base.route.path_rec = record;
	id->base.route.num_paths = 1;
	return 0;
}

bool path_deliver(struct user_cm_event *event)
{
	path_publish(event->owner);
	return true;
}

void path_choose(struct user_cm_id *id)
{
	id->flow_label = path_flow_label(id);
	id->path_mtu = path_port_mtu(id);
}

void path_fill(const struct user_cm_id *id, struct packet_path *path)
{
	*path = (struct packet_path){
		.source = id->path.sgid,
		.destination = id->path.dgid,
		.type = IBV_GID_TYPE_ROCE_V2,
		.traffic_class = id->tos,
		.hop_limit = HOP_LIMIT,
		.flow_label = id->flow_label,
	};
}

static int id_resolve_route(struct user_cm_id *id, int timeout_ms)
{
	int error = id_check(id, ID_CALL_RESOLVE_ROUTE);

	if (error)
		return error;
	if (!timeout_ms)
		return -REFUSE(hca_of_id(id), "rdma_resolve_route", EINVAL, RULE_RDMACM_NO_TIMEOUT, 0);
	/* On an adapter the host's loopback address has no route (docs/inside/decisions.md). */
	if (address_is_wild((const struct sockaddr *)&id->path.destination) &&
	    hca_settings(id->path.device->hca)->profile == PROFILE_CONNECTX)
		return -REFUSE(hca_of_id(id), "rdma_resolve_route", ENODEV, RULE_RDMACM_LOOPBACK, 0);
	path_choose(id);
	id_change(id, ID_RESOLVED, ID_ROUTED);
	return event_raise(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0, path_deliver);
}

int softhca_rdma_resolve_route(struct rdma_cm_id *base, int timeout_ms)
{
	WITHOUT_CANCELLATION;
	struct user_cm_id *id = id_begin(base, "rdma_resolve_route");

	return id ? id_end_complete(id, id_resolve_route(id, timeout_ms)) : -1;
}
