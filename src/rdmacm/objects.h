/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The objects of librdmacm: what a program's pointers point into. Each embeds the public structure as its first member.
 *
 * Ownership: created and destroyed by the calls of the manual pages. An event belongs to its channel until it is
 * fetched, and to the program until rdma_ack_cm_event(3). A channel is freed when it was destroyed, no id is on it and
 * no thread is inside a call on it: programs destroy channels under threads that are blocked (rping(1)), and ids after
 * their channel.
 *
 * Locks: user_cm_id.lock serialises the calls of the program on one id; the lock of events (rdmacm/channel.h), one for
 * all, covers channels, queues, counts and states, and is a leaf, as is that of ports (rdmacm/ports.h). The manager
 * (cm/cm.h) calls the handlers of rdmacm/handlers.c under its own lock, and these take the lock of events only. So the
 * order is: an id's lock, the manager's, that of events. Public members of an id change in calls of the program only,
 * never behind its back (rdma-cm 2.2).
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
	struct rdma_cm_event base; /* first */
	struct user_cm_event *next;
	struct user_cm_id *owner; /* whose destruction waits for the acknowledgement; for a request, the listener */
	/*
	 * Does the work that is left for rdma_get_cm_event(3), under the lock of the owner. Returns false if the program is not to
	 * get the event. NULL: no work is left.
	 */
	bool (*deliver)(struct user_cm_event *event);
	/* of events of the connection manager */
	enum cm_event_kind kind;
	struct cm_message message;
	struct packet_path path;
	bool has_message;
	struct cm_id *child; /* of a request, which owns it until it is fetched; or NULL */
	/* of MULTICAST_JOIN */
	struct user_cm_group *group;
	uint8_t private_data[EVENT_PRIVATE_DATA];
};

struct user_cm_channel {
	struct rdma_event_channel base; /* first */
	int own; /* a duplicate of base.fd, which the program may close: events are written to this one */
	struct user_cm_channel *next; /* of all */
	struct user_cm_event *first;  /* queued */
	struct user_cm_event **last;
	uint32_t stale;   /* tokens that threads have read of events that were dropped meanwhile */
	uint32_t users;   /* ids on it, and threads inside rdma_get_cm_event(3) */
	bool destroyed;   /* by the program: freed with the last user */
	uint32_t process; /* progress_generation() of the process that made it */
};

/* A multicast group that an id has joined. */
struct user_cm_group {
	struct user_cm_group *next;
	struct user_cm_id *id;
	void *context;
	struct sockaddr_storage address;
	union ibv_gid mgid;
	bool send_only;
	bool attached;
	uint32_t handed; /* events of it that wait to be acknowledged; under the lock of events */
};

/* Where an id leads, as it was resolved. */
struct resolved_path {
	struct shared_device *device;
	int sgid_index;
	union ibv_gid sgid, dgid;
	struct sockaddr_storage source; /* with port */
	struct sockaddr_storage destination;
};

struct user_cm_id {
	struct rdma_cm_id base; /* first */
	pthread_mutex_t lock;
	uint32_t process; /* as in the channel */

	/* under the lock of events */
	enum id_state state;
	struct user_cm_channel *channel;
	uint32_t handed;  /* events handed out and not acknowledged */
	uint32_t backlog; /* of a listener: requests that may wait to be fetched */
	uint32_t waiting; /* requests that do */

	bool synchronous;
	struct cm_id *cm; /* made by the first call that needs one; a child has one from the beginning */
	struct resolved_path path;
	struct bound_port port;

	/* rdma_set_option(3) */
	uint8_t tos;
	bool tos_set;
	uint8_t ack_timeout;
	bool ack_timeout_set;
	bool reuse_address;
	bool own_family_only; /* AFONLY */
	bool family_only_set;

	/* the connection */
	bool connecting; /* rdma_connect(3) or rdma_accept(3) was called */
	bool failed;     /* CONNECT_ERROR was reported: what comes later is swallowed */
	uint8_t responder_resources, initiator_depth;
	uint8_t path_mtu; /* enum ibv_mtu */
	uint32_t flow_label;
	struct ibv_ece local_ece, remote_ece;

	/* rdma_create_ep(3) */
	struct ibv_qp_init_attr *qp_attr; /* with which rdma_get_request(3) makes QPs; or NULL */

	bool own_cqs;    /* the CQs of the public structure are the library's */
	bool own_srq_cq; /* the receive CQ is of rdma_create_srq() */
	struct user_cm_group *groups;
	struct rdma_addrinfo *found; /* by rdma_resolve_addrinfo(), not handed over yet */
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

/** Up to eight characters as a figure of an explanation. Pure. */
uint64_t state_name_figure(const char *name);

#endif
