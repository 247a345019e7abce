/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The objects of librdmacm, with the public structure as first member.
 *
 * Ownership: an event belongs to its channel until it is fetched, then to the program until rdma_ack_cm_event(3). A
 * destroyed channel is freed when no ID is on it and no thread is inside a call on it, because programs destroy
 * channels while threads are blocked on them (rping(1)), and IDs after their channel.
 *
 * Locks: user_cm_id.lock serialises the calls of the program on one ID. The lock of events (rdmacm/channel.h) covers
 * channels, queues, counts and states; it is a leaf, as is the lock of ports (rdmacm/ports.h). The manager (cm/cm.h)
 * calls handlers under its lock, and these take the lock of events only. So the order is: an ID's lock, the manager's,
 * that of events. Public members of an ID change only inside calls of the program (rdma-cm 2.2).
 */
#ifndef SOFTHCA_RDMACM_OBJECTS_H
#define SOFTHCA_RDMACM_OBJECTS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <rdma/rdma_cma.h>

#include "cm/cm.h"
#include "rdmacm/ports.h"
#include "rdmacm/state.h"

struct shared_device;
struct user_cm_id;

/* The longest private data of any message. */
#define EVENT_PRIVATE_DATA 256

struct user_cm_event {
	struct rdma_cm_event base;
	struct user_cm_event *next;
	struct user_cm_id *owner; /* must not be destroyed before the acknowledgement; for a request, the listener */
	/*
	 * Does the remaining work in rdma_get_cm_event(3), under the lock of the owner. Returns false to drop the
	 * event. May be NULL.
	 */
	bool (*deliver)(struct user_cm_event *event);
	/* for events of the connection manager: */
	enum cm_event_kind kind;
	struct cm_message message;
	struct packet_path path;
	bool has_message;
	struct cm_id *child; /* of a request, which owns it until it is fetched; or NULL */
	/* for MULTICAST_JOIN: */
	struct user_cm_group *group;
	uint8_t private_data[EVENT_PRIVATE_DATA];
};

struct user_cm_channel {
	struct rdma_event_channel base;
	int own;                      /* duplicate of base.fd for writing events; the program may close base.fd */
	struct user_cm_channel *next; /* all channels */
	struct user_cm_event *first;  /* queue */
	struct user_cm_event **last;
	uint32_t stale;   /* tokens of dropped events that threads have read */
	uint32_t users;   /* IDs on it, and threads inside rdma_get_cm_event(3) */
	bool destroyed;   /* destroyed by the program: the last user frees it */
	uint32_t process; /* progress_generation() of the process that made it */
};

struct user_cm_group {
	struct user_cm_group *next;
	struct user_cm_id *id;
	void *context;
	struct sockaddr_storage address;
	union ibv_gid mgid;
	bool send_only;
	bool attached;
	uint32_t handed; /* unacknowledged events; under the lock of events */
};

struct resolved_path {
	struct shared_device *device;
	int sgid_index;
	union ibv_gid sgid, dgid;
	struct sockaddr_storage source; /* including the port */
	struct sockaddr_storage destination;
};

struct user_cm_id {
	struct rdma_cm_id base;
	pthread_mutex_t lock;
	uint32_t process; /* as in struct user_cm_channel */

	/* under the lock of events: */
	enum id_state state;
	struct user_cm_channel *channel;
	uint32_t handed;  /* events fetched and not acknowledged */
	uint32_t backlog; /* of a listener: most requests that wait to be fetched */
	uint32_t waiting; /* number of such requests */

	bool synchronous;
	struct cm_id *cm; /* created when first needed */
	struct resolved_path path;
	struct bound_port port;

	/* options of rdma_set_option(3): */
	uint8_t tos;
	bool tos_set;
	uint8_t ack_timeout;
	bool ack_timeout_set;
	bool reuse_address;
	bool own_family_only; /* option AFONLY */
	bool family_only_set;

	/* the connection: */
	bool connecting; /* rdma_connect(3) or rdma_accept(3) was called */
	bool failed;     /* CONNECT_ERROR was reported; later events are discarded */
	uint8_t responder_resources, initiator_depth;
	uint8_t path_mtu; /* enum ibv_mtu */
	uint32_t flow_label;
	struct ibv_ece local_ece, remote_ece;

	/* for rdma_create_ep(3): */
	struct ibv_qp_init_attr *qp_attr; /* attributes for the QPs created by rdma_get_request(3); or NULL */

	bool own_cqs;    /* the library owns the CQs of the public structure */
	bool own_srq_cq; /* recv_cq belongs to rdma_create_srq() */
	struct user_cm_group *groups;
	struct rdma_addrinfo *found; /* result of rdma_resolve_addrinfo() that was not fetched yet */
};

static inline struct user_cm_id *to_user_cm_id(struct rdma_cm_id *id)
{
	return (struct user_cm_id *)id;
}

static inline struct user_cm_event *to_user_cm_event(struct rdma_cm_event *event)
{
	return (struct user_cm_event *)event;
}

static inline struct user_cm_channel *to_user_cm_channel(struct rdma_event_channel *channel)
{
	return (struct user_cm_channel *)channel;
}

/** Packs up to eight characters into an argument of an explanation. Pure. */
uint64_t state_name_figure(const char *name);

#endif
