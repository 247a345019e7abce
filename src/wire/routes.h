/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Locations of QPs and the links that lead there, filled in by process/route.c. All functions: any thread; may be
 * called under a QP's lock.
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

#define HOST_SLOT_BITS 10 /* a slot has 1024 QP numbers, all of one process */
#define HOST_SLOTS (1u << (24 - HOST_SLOT_BITS))

struct routes {
	/*
	 * Returns the link to QP @qpn at @gid, or NULL. Also prepares the path, for example a connection to another
	 * process. A GID in the table of @hca is on this host; the QP number identifies the process.
	 */
	const struct link *(*route)(struct hca *hca, const union ibv_gid *gid, uint32_t qpn);
	/*
	 * Returns true if QP @qpn at @gid belongs to another process of this host whose end can be detected
	 * (is_vacant).
	 */
	bool (*sees_process)(const struct hca *hca, const union ibv_gid *gid, uint32_t qpn);
	/* Makes @hca reachable for other hosts: a QP without a single peer may receive from now on. */
	void (*listen)(struct hca *hca);
	/* Returns the link to the members of the group that is the destination of @path. */
	const struct link *(*group)(const struct hca *hca, const struct packet_path *path);
	/* Called when a QP of @hca joins or leaves @group, to start or stop receiving its packets. No lock held. */
	void (*join)(struct hca *hca, const union ibv_gid *group);
	void (*leave)(struct hca *hca, const union ibv_gid *group);
	/* Return the link to QPs of this process, of other processes of this host, of other hosts. */
	const struct link *(*local)(void);
	const struct link *(*shm)(void);
	const struct link *(*udp)(void);
	/* Returns true if @qpn is in a slot of this process. */
	bool (*owns)(uint32_t qpn);
	/* Called when a QP may get packets from other processes of this host from now on. */
	void (*accept)(void);
	/*
	 * Return whether the owner of the slot of @qpn is connected; and its pid, or 0 if it is unconnected or unknown.
	 * Cheap.
	 */
	bool (*is_known)(uint32_t qpn);
	/* Returns true if an owner of the slot of @qpn has ever been connected. Cheap. */
	bool (*was_known)(uint32_t qpn);
	pid_t (*process_of)(uint32_t qpn);
	/* Returns the connection to the owner of the slot of @qpn, created if needed; 0: none. */
	uint32_t (*connection_to)(uint32_t qpn);
	/*
	 * Returns true if @connection is one of those (at most two) to the owner of the slot of @qpn. *@process: pid at
	 * the other end, 0 if unknown.
	 */
	bool (*connection_leads_to)(uint32_t connection, uint32_t qpn, pid_t *process);
	/* Returns true if the slot of @qpn has no owner on this host, as that has ended. False if unknown. */
	bool (*is_vacant)(uint32_t qpn);

	/* ---- management datagrams (wire/mad.h) of the connection manager; no lock held, inside an epoch section ---- */

	/* Returns true if @gid is an address of this host. */
	bool (*is_near)(const struct hca *hca, const union ibv_gid *gid);
	/*
	 * Fills @links with the links to the addressees of the datagram @mad for @gid, at most ROUTES_OF_MAD. Returns
	 * their number, -ENOENT if it addresses no process of this host, -ENETUNREACH if no link leads there, or
	 * another negative errno, which may be transient.
	 */
	int (*to_manager)(struct hca *hca, const union ibv_gid *gid, const uint8_t *mad, const struct link **links);
	/* Returns true if this process listens at @service. */
	bool (*listens)(uint64_t service);
	/*
	 * Forwards the datagram @mad from another host to the process that it addresses. Returns false if that is this
	 * process or none.
	 */
	bool (*hand_on)(const struct packet_path *path, const uint8_t *mad);
};

#define ROUTES_OF_MAD 2

/* Set before the first QP exists (process/devices.c). */
extern const struct routes *routes;

#endif
