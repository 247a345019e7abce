/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Resolves destinations as the kernel does on RoCE (ib_resolve_eth_dmac()): route, hop limit, neighbour. GIDs of this
 * host and links within the host have no route.
 */
#ifndef SOFTHCA_VERBS_QP_DESTINATION_H
#define SOFTHCA_VERBS_QP_DESTINATION_H

#include "process/commands.h"

/**
 * Resolves @attr->grh.dgid for @call; @qp_num is 0 for an address handle. Returns 0 and the hop limit of the route, or
 * explains and returns an errno value: EINVAL (zero GID, or source and destination of different families), ENETUNREACH,
 * EHOSTUNREACH or EACCES (route), ETIMEDOUT (neighbour). Also returns 0 for an invalid @attr that the device will
 * refuse. Waits at most LIMIT_NEIGHBOUR_WAIT_MS, without locks. Any thread.
 */
int destination_resolve(struct hca *hca, const char *call, uint32_t qp_num, const struct ibv_ah_attr *attr,
			uint8_t *hop_limit);

#endif
