/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multicast groups over UDP (IBTA annex A17.9.1; DESIGN.md, "Multicast"). Lock: one for all groups, taken before that
 * of the port. The poller reads the list inside an epoch section. Any thread.
 */
#ifndef SOFTHCA_LINK_UDP_GROUPS_H
#define SOFTHCA_LINK_UDP_GROUPS_H

#include <stdbool.h>

#include "hca/hca.h"
#include "wire/packet.h"

struct udp_groups;

/** Makes an empty list, which lives in the registry (hca/hca.h) until the process ends. Returns NULL without memory. */
struct udp_groups *udp_groups_new(void);

/**
 * Makes a QP a member of @group on all interfaces that have GIDs of @hca, so that datagrams from other hosts arrive. A
 * failure is explained; it does not affect delivery within the process. No locks of the transport.
 */
void udp_join(struct hca *hca, const union ibv_gid *group);
/** Removes one member. */
void udp_leave(struct hca *hca, const union ibv_gid *group);

/** Returns true if a datagram for a group can be sent along @path: from a plain address, of the group's family. */
bool udp_reaches_group(const struct packet_path *path);

/** Calls @poll for the socket of each group. Returns true if any call did. For the poller, inside an epoch section. */
bool udp_groups_poll(struct udp_groups *groups, bool (*poll)(int fd));

/** Returns true if @packet arrived for a group and this process sent it: its own members already have it. */
bool udp_is_own_datagram(const struct hca *hca, const struct packet *packet);

/** For process/fork.c. */
void udp_groups_lock(struct udp_groups *groups);
void udp_groups_unlock(struct udp_groups *groups);
/** Closes all sockets in a forked child. The lock is held. */
void udp_groups_forget(struct udp_groups *groups);

#endif
