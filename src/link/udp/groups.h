/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multicast groups over UDP (IBTA annex A17.9.1): a datagram for a group is one UDP datagram to its address, which every
 * process that has members receives by itself, on a socket that is bound to that address. So the kernel hands out the copies,
 * joins and leaves (igmp(7)), and forgets a process that ends.
 *
 * A group is there as long as somebody joined it. Lock: one for all groups, taken before that of the port. The
 * poller reads the list within an epoch section.
 */
#ifndef SOFTHCA_LINK_UDP_GROUPS_H
#define SOFTHCA_LINK_UDP_GROUPS_H

#include <stdbool.h>

#include "hca/hca.h"
#include "wire/packet.h"

/**
 * A QP of this process is a member of @group now, on all interfaces with GIDs of @hca: what others send there arrives. What
 * keeps it from arriving is explained, and counts for nothing within the process. Any thread; no locks of the transport.
 */
void udp_join(struct hca *hca, const union ibv_gid *group);
/** One member less. */
void udp_leave(const union ibv_gid *group);

/** True if a datagram for a group along @path can be sent: from a plain address, of the group's family. Any thread. */
bool udp_reaches_group(const struct packet_path *path);

/** Calls @poll for the socket of each group. True if one of them said so. Inside an epoch section. */
bool udp_groups_poll(bool (*poll)(int fd));

/** True if @packet, that came for a group, was sent by this process, whose members have it. Any thread. */
bool udp_is_own_datagram(const struct hca *hca, const struct packet *packet);

/** Around a fork: holds the lock; the child closes all sockets. */
void udp_groups_before_fork(void);
void udp_groups_after_fork(bool child);

#endif
