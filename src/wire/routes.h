/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where QPs are, and which link leads there: what the transport asks of those that know the links (process/route.c fills it in),
 * as it knows none of them. All of it: any thread; may be called under a QP's lock.
 */
#ifndef SOFTHCA_WIRE_ROUTES_H
#define SOFTHCA_WIRE_ROUTES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <infiniband/verbs.h>

struct hca;
struct link;
struct packet_path;

#define HOST_SLOT_BITS 10 /* QP numbers of a slot: 1024, all of one process */
#define HOST_SLOTS (1u << (24 - HOST_SLOT_BITS))

struct routes {
	/*
	 * The link that leads to QP @qpn at @gid; NULL: none does. Also prepares the way, such as the connection to another
	 * process. A GID of the table of @hca is on this host; which process, the number tells.
	 */
	const struct link *(*route)(struct hca *hca, const union ibv_gid *gid, uint32_t qpn);
	/* True if QP @qpn at @gid is one of another process of this host, whose end can be seen (is_vacant). */
	bool (*sees_process)(const struct hca *hca, const union ibv_gid *gid, uint32_t qpn);
	/* A QP of @hca that has no one peer, such as a datagram QP, may receive from now on: other hosts are to reach it. */
	void (*listen)(struct hca *hca);
	/* The link that leads to the members of the group that is the destination of @path, in this process and elsewhere. */
	const struct link *(*group)(const struct hca *hca, const struct packet_path *path);
	/* A QP of @hca has become a member of @group, is none any more: what others send there is to arrive. No lock held. */
	void (*join)(struct hca *hca, const union ibv_gid *group);
	void (*leave)(struct hca *hca, const union ibv_gid *group);
	/* The link to QPs of this process, to those of other processes of this host, to those of other hosts. */
	const struct link *(*local)(void);
	const struct link *(*shm)(void);
	const struct link *(*udp)(void);
	/* True if QP number @qpn is in a slot of this process. */
	bool (*owns)(uint32_t qpn);
	/* A QP may get packets from other processes of this host from now on. */
	void (*accept)(void);
	/* True if the process that has the slot of @qpn is connected; its pid, 0 if it is not or that cannot be seen. Cheap. */
	bool (*is_known)(uint32_t qpn);
	pid_t (*process_of)(uint32_t qpn);
	/* Returns the connection to the process that has the slot of @qpn, made if there is none; 0: there is none. */
	uint32_t (*connection_to)(uint32_t qpn);
	/*
	 * Returns true if @connection leads to the process that has the slot of @qpn, to which there may be a second connection.
	 * *@process: the pid at its other end, 0 if that is not known.
	 */
	bool (*connection_leads_to)(uint32_t connection, uint32_t qpn, pid_t *process);
	/* True if nobody on this host has the slot of @qpn: the process that had it has ended. False if that cannot be told. */
	bool (*is_vacant)(uint32_t qpn);

	/* ---- management datagrams (wire/mad.h) of the connection manager; no lock held, inside an epoch section ---- */

	/* True if @gid is an address of this host. */
	bool (*is_near)(const struct hca *hca, const union ibv_gid *gid);
	/*
	 * Fills @links with those that lead to whom the datagram @mad for @gid is for, ROUTES_OF_MAD at most, and returns how
	 * many; -ENOENT: nobody of this host is that; -ENETUNREACH: no link leads there; or another negative errno, which may
	 * pass.
	 */
	int (*to_manager)(struct hca *hca, const union ibv_gid *gid, const uint8_t *mad, const struct link **links);
	/* True if this process listens at @service. */
	bool (*listens)(uint64_t service);
	/*
	 * Hands the datagram @mad, that came from another host along @path, to another process that it is for. False: it is for
	 * this one, or for nobody.
	 */
	bool (*hand_on)(const struct packet_path *path, const uint8_t *mad);
};

#define ROUTES_OF_MAD 2

/* Set before there is a QP (process/devices.c). */
extern const struct routes *routes;

#endif
