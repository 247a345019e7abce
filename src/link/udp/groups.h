/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multicast groups over UDP (IBTA annex A17.9.1): a datagram for a group is one UDP datagram to the group's address.
 * Every process with members receives it on its own socket bound to that address. The kernel copies the datagram to
 * each socket, joins and leaves the groups (igmp(7)), and drops the membership of a process that ends.
 *
 * A group exists while it has members. Lock: one for all groups, taken before that of the port. The poller reads the
 * list inside an epoch section.
 */
#ifndef SOFTHCA_LINK_UDP_GROUPS_H
#define SOFTHCA_LINK_UDP_GROUPS_H

#include <stdbool.h>

#include "hca/hca.h"
#include "wire/packet.h"

struct udp_groups;

/** Makes an empty list, which the registry (hca/hca.h) has until the process ends. Returns NULL without memory. */
struct udp_groups *udp_groups_new(void);

/**
 * Makes a QP of this process a member of @group on all interfaces that have GIDs of @hca, so that datagrams from other
 * hosts arrive. A failure is explained; it does not affect delivery within the process. Any thread; no locks of the
 * transport.
 */
void udp_join(struct hca *hca, const union ibv_gid *group);
/** Removes one member. */
void udp_leave(struct hca *hca, const union ibv_gid *group);

/**
 * Returns true if a datagram for a group can be sent along @path: from a plain address, of the group's family. Any
 * thread.
 */
bool udp_reaches_group(const struct packet_path *path);

/** Calls @poll for the socket of each group. Returns true if any of the calls did. Inside an epoch section. */
bool udp_groups_poll(struct udp_groups *groups, bool (*poll)(int fd));

/**
 * Returns true if @packet arrived for a group and this process sent it: its own members already have it. Any thread.
 */
bool udp_is_own_datagram(const struct hca *hca, const struct packet *packet);

/** For process/fork.c. */
void udp_groups_lock(struct udp_groups *groups);
void udp_groups_unlock(struct udp_groups *groups);
/** Closes all sockets in a forked child. The lock is held. */
void udp_groups_forget(struct udp_groups *groups);

#endif
