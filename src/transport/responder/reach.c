/* SPDX-License-Identifier: BSD-2-Clause */
/* Direct access granted to the peer of a QP (wire/run.h, struct run_reach). */
#include "transport/responder/reach.h"

#include "mkey/key.h"
#include "observe/timeline.h"
#include "transport/qp/transport.h"

/*
 * Returns the mapping of a key that no request can change. Changing a granted key would have to wait for accesses that
 * use the grant.
 */
static const struct mapping *lasting_key(struct hca_qp *qp, uint32_t rkey, struct mkey **found)
{
	struct mkey *key = mkey_find(qp->hca, rkey);
	const struct mapping *map = key ? mkey_mapping(key) : NULL;

	if (!map || key->umr_enabled || key->remote_invalidate || map->number != rkey || map->pd != qp->access.pd)
		return NULL;
	*found = key;
	return map;
}

bool transport_reach(struct run *run, const struct packet *packet, struct run_reach *reach)
{
	struct hca_qp *qp = run->held;
	const struct mapping *map;
	struct mkey *key;

	if (!qp || qp->number != packet->destination_qpn || qp->type != IBV_QPT_RC || !qp_receives(qp) ||
	    qp->responder.in_message || the_registry.filters || timeline_is_on())
		return false;
	map = lasting_key(qp, packet->rkey, &key);
	if (!map)
		return false;
	*reach = (struct run_reach){
		.peer_qpn = qp->attr.dest_qp_num,
		.start = map->start,
		.length = map->length,
		.memory = (uintptr_t)map->base,
		.writes = map->plain_rights & RIGHT_REMOTE_WRITE && qp->attr.qp_access_flags & IBV_ACCESS_REMOTE_WRITE,
		.reads = map->plain_rights & RIGHT_REMOTE_READ && qp->attr.qp_access_flags & IBV_ACCESS_REMOTE_READ &&
			 qp->attr.max_dest_rd_atomic,
	};
	if (!reach->writes && !reach->reads)
		return false;
	qp->granted = true;
	__atomic_store_n(&key->granted, true, __ATOMIC_RELAXED);
	return true;
}
