/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multicast groups (IBTA 10.5): the UD QPs that get a datagram for a group. The process has one list, which never
 * changes once published; attaching and detaching publish another, under the lock of the first device. Readers are in
 * an epoch section.
 */
#ifndef SOFTHCA_TRANSPORT_QP_MULTICAST_H
#define SOFTHCA_TRANSPORT_QP_MULTICAST_H

#include <string.h>

#include "hca/hca.h"

struct multicast_member {
	union ibv_gid group;
	uint32_t qpn;
};

struct multicast_list {
	uint32_t count;
	struct multicast_member member[];
};

/** Returns the next member of @group at or after @i, or list->count. */
static inline uint32_t multicast_next(const struct multicast_list *list, const union ibv_gid *group, uint32_t i)
{
	while (i < list->count && memcmp(&list->member[i].group, group, sizeof(*group)))
		i++;
	return i;
}

#endif
