/* SPDX-License-Identifier: BSD-2-Clause */
/* An address handle is the address vector of a datagram (mlx5-formats 1.6). */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "abi/entry_points.h"
#include "core/limits.h"
#include "explain/explain.h"
#include "verbs/qp/destination.h"
#include "verbs/object/lint.h"
#include "verbs/qp/neighbour.h"
#include "verbs/object/objects.h"

/* Returns an errno value. */
static int ah_check(struct hca *hca, const struct ibv_ah_attr *attr)
{
	/* unused: packets have the hop limit of @attr, which libmlx5 writes into the address vector */
	uint8_t hop_limit;
	size_t count;

	hca_gids(hca, &count);
	if (attr->port_num < 1 || attr->port_num > LIMIT_PORTS)
		return REFUSE(hca, "ibv_create_ah", EINVAL, RULE_PORT_NUMBER, attr->port_num, LIMIT_PORTS);
	if (!attr->is_global)
		return REFUSE(hca, "ibv_create_ah", EINVAL, RULE_AH_NO_GRH, 0);
	if (attr->grh.sgid_index >= count)
		return REFUSE(hca, "ibv_create_ah", EINVAL, RULE_GID_EMPTY, attr->grh.sgid_index, count);
	return destination_resolve(hca, "ibv_create_ah", 0, attr, &hop_limit);
}

/*
 * Returns the UDP source port of RoCE v2 (IBTA annex A17.9.2: entropy for routers): from the flow label or, if that is
 * 0, from the destination, so that runs are reproducible.
 */
static uint16_t udp_source_port(const struct ibv_global_route *grh)
{
	uint32_t hash = 0;
	size_t i;

	if (grh->flow_label & IB_GRH_FLOWLABEL_MASK)
		return ibv_flow_label_to_udp_sport(grh->flow_label & IB_GRH_FLOWLABEL_MASK);
	for (i = 0; i < sizeof(grh->dgid.raw); i++)
		hash = (hash ^ grh->dgid.raw[i]) * 16777619u; /* FNV-1 */
	return IB_ROCE_UDP_ENCAP_VALID_PORT_MIN | ((hash ^ hash >> 16) & 0x3fff);
}

/*
 * mlx5-formats 1.6 has codes for the link rates of 2005, and 0 for no limit. A newer rate gets the code of the next
 * higher one.
 */
static uint8_t rate_code(uint8_t static_rate)
{
	static const struct {
		int mbps;
		uint8_t code;
	} codes[] = {
		{2500, 7},   {5000, 10},  {10000, 8},  {20000, 11},  {30000, 9},
		{40000, 12}, {60000, 13}, {80000, 14}, {120000, 15},
	};
	int mbps = softhca_ibv_rate_to_mbps((enum ibv_rate)static_rate);

	for (size_t i = 0; mbps > 0 && i < sizeof(codes) / sizeof(codes[0]); i++)
		if (mbps <= codes[i].mbps)
			return codes[i].code;
	return 0;
}

/*
 * The GRH bit stays clear: on Ethernet every packet has a GRH. The device does not enforce the static rate. An unknown
 * MAC address stays 0: the link that carries the packet resolves it.
 */
static void ah_fill_av(const struct hca *hca, const struct ibv_ah_attr *attr, struct mlx5_wqe_av *av)
{
	const struct ibv_global_route *grh = &attr->grh;
	size_t count;
	const struct hca_gid *source = &hca_gids(hca, &count)[grh->sgid_index];

	av->stat_rate_sl = (uint8_t)(rate_code(attr->static_rate) << 4 | (attr->sl & 7) << 1);
	if (source->type == IBV_GID_TYPE_ROCE_V2)
		av->rlid = htobe16(udp_source_port(grh));
	if (neighbour_mac(hca, source, &grh->dgid, av->rmac))
		memset(av->rmac, 0, sizeof(av->rmac));
	av->tclass = grh->traffic_class;
	av->hop_limit = grh->hop_limit;
	av->grh_gid_fl = htobe32((uint32_t)grh->sgid_index << 20 | (grh->flow_label & IB_GRH_FLOWLABEL_MASK));
	memcpy(av->rgid, grh->dgid.raw, sizeof(av->rgid));
}

struct ibv_ah *softhca_ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct user_ah *ah;
	struct hca *hca;
	int error;

	if (object_refused("ibv_create_ah", NULL, pd))
		return NULL;
	hca = hca_of_context(pd->context);
	error = ah_check(hca, attr);
	if (error) {
		errno = error;
		return NULL;
	}
	ah = calloc(1, sizeof(*ah));
	if (!ah)
		return NULL;
	ah->base.context = pd->context;
	ah->base.pd = pd;
	ah_fill_av(hca, attr, &ah->av);
	user_pd_get(to_user_pd(pd));
	object_enter(&ah->base, &ah->alive, pd->context);
	LINT(ah_created, pd->context, attr);
	return &ah->base;
}

int softhca_ibv_destroy_ah(struct ibv_ah *ah)
{
	if (object_refused("ibv_destroy_ah", NULL, ah))
		return errno;
	object_leave(&to_user_ah(ah)->alive);
	user_pd_put(to_user_pd(ah->pd));
	free(to_user_ah(ah));
	return 0;
}
