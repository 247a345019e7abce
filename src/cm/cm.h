/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The communication manager (IBTA chapter 12): see README.md and DESIGN.md. The process has one manager; tests have
 * several.
 *
 * Threads and locks: any thread may call, but not while it holds a lock of the transport (a QP's, a CQ's, …), because
 * the manager sends. Its lock (LOCK_LEVEL_CM) is held while it calls the driver's functions except `send`: so an id
 * gets its events in order, and none after cm_id_destroy(). These functions must not call the manager, nor take a lock
 * under which the manager is called. A link may deliver within `send`.
 *
 * Ownership: the driver owns an id from cm_id_create(), or from the verdict CM_TAKE on a request, until
 * cm_id_destroy(), which frees it at once. Calls copy structures that are passed to them; those that an event points to
 * are valid until the handler returns.
 *
 * All functions that return int return 0 or a negative errno value: -EINVAL if the state does not allow the call
 * (explained, except by cm_send_dreq() and cm_send_drep(), see connect.c), -ENOMEM, or the error of `claim_slot`.
 */
#ifndef SOFTHCA_CM_CM_H
#define SOFTHCA_CM_CM_H

#include <stdbool.h>
#include <stdint.h>
#include <infiniband/verbs.h>

#include "format/cm_message.h"
#include "format/cm_state.h"
#include "wire/packet.h"

struct cm;
struct cm_id;
struct hca;

/* ---- events ------------------------------------------------------------------------------------------------------ */

enum cm_event_kind {
	/* To a listener: a REQ or SIDR_REQ arrived. */
	CM_EVENT_REQUEST,
	/* Active side: a REP arrived. cm_send_rtu() or cm_send_rej() must follow. */
	CM_EVENT_RESPONSE,
	/* Passive side: an RTU arrived, or cm_establish() was called (then without a message). */
	CM_EVENT_ESTABLISHED,
	/*
	 * A REJ arrived, in any state that a REJ ends; status: its reason. The message is all zero if none was
	 * received. Not raised before the request is accepted: cm_send_rep() then returns -EINVAL.
	 */
	CM_EVENT_REJECTED,
	/* A REQ, REP or SIDR_REQ was not answered after all repetitions; status -ETIMEDOUT. No message. */
	CM_EVENT_UNREACHABLE,
	/*
	 * A DREQ or DREP arrived, or the peer's process ended; or, with status -ETIMEDOUT, the id's own DREQ got no
	 * answer. Raised once per id. Contains the message, if one arrived.
	 */
	CM_EVENT_DISCONNECTED,
	/* TIMEWAIT has ended, and the id is IDLE. No message. */
	CM_EVENT_TIMEWAIT_EXIT,
	/* A SIDR_REP arrived; status: an enum cm_sidr_status. */
	CM_EVENT_SIDR_RESPONSE,
};

struct cm_event {
	enum cm_event_kind kind;
	int status;
	const struct cm_message *message; /* or NULL; private data is padded with zeros to its full length */
	const struct packet_path *path;   /* its source is the peer; NULL without a message */
};

/* A listener's decision on a request. */
enum cm_verdict {
	CM_TAKE,   /* the driver owns the new id */
	CM_DROP,   /* no answer, so the peer repeats the request; for a full backlog */
	CM_REJECT, /* REJ with the reason (28 unless set), or SIDR_REP with status 2 */
	CM_NOT_MINE, /* the request is for another address of the service: tries the next listener; after the last one, as CM_REJECT */
};

/* Functions that the manager calls. */
struct cm_functions {
	/**
	 * Sends @mad along @path, from QP 1 to QP 1; it may be lost. Called without the lock, on the thread that called
	 * the manager, and may call the manager.
	 */
	void (*send)(void *context, const struct packet_path *path, const uint8_t mad[CM_MAD_BYTES]);
	/** Schedules cm_run_timers() at @deadline_ns, in place of any later requested time. Under the lock. */
	void (*wake_at)(void *context, uint64_t deadline_ns);
	/** Returns CLOCK_MONOTONIC; never decreases. Under the lock. */
	uint64_t (*now_ns)(void *context);
	/** Returns 64 random bits. Under the lock. */
	uint64_t (*random)(void *context);
	/**
	 * Returns the slot of the process on its host, 0 to 2^14 - 1, which is the upper bits of its communication ids.
	 * Called once, for the first id that needs one; a negative errno value fails that call. Under the lock.
	 */
	int (*claim_slot)(void *context);
	/**
	 * Decides on a REQ or SIDR_REQ for @listener, the owner of a listening id. With CM_TAKE the driver owns the new
	 * id @child, and *@owner (initially NULL) is the owner for its events; otherwise the manager destroys it.
	 * *@reason: for CM_REJECT. Under the lock.
	 */
	enum cm_verdict (*request)(void *listener, struct cm_id *child, const struct cm_event *event, void **owner,
				   uint16_t *reason);
	/** Handles an event of the id with @owner (which may be NULL). Under the lock. */
	void (*event)(void *owner, const struct cm_event *event);
};

struct cm_config {
	const struct cm_functions *functions;
	void *context;
	struct hca *hca;          /* device for explanations; NULL: none are made */
	uint64_t ca_guid;         /* in host order */
	uint8_t ack_delay;        /* local_ca_ack_delay */
	uint8_t response_timeout; /* code: 4.096 us * 2^n; CM_RESPONSE_TIMEOUT */
	uint8_t retries;          /* repetitions of a message, at most 15; CM_RETRIES */
	uint8_t packet_lifetime;  /* code; CM_PACKET_LIFETIME */
	uint32_t grace_ms;        /* time that a request waits for a listener; CM_GRACE_MS */
};

/** Makes a manager. Returns NULL without memory. */
struct cm *cm_create(const struct cm_config *config);

/** Frees @cm. Its ids must be destroyed, and no thread may use it. Sends nothing. */
void cm_free(struct cm *cm);

/* ---- input ------------------------------------------------------------------------------------------------------- */

/**
 * Handles a MAD that came to QP 1 with the Q_Key CM_QKEY, along @path, whose destination is a GID of this host. Both
 * may be hostile. @waited: the grace time of a request has passed elsewhere, so it is refused at once if no id listens.
 */
void cm_receive(struct cm *cm, const struct packet_path *path, const uint8_t mad[CM_MAD_BYTES], bool waited);

/** Repeats messages, abandons them and ends TIMEWAIT, where due. Then requests the next wake-up. */
void cm_run_timers(struct cm *cm);

/* Peer of an id, for the callback of cm_peer_ended(). */
struct cm_peer {
	const struct packet_path *path; /* leads to it */
	uint64_t service_id;            /* requested by the active side; 0 on the passive side */
	uint32_t
		comm_id; /* communication id of the peer; its slot is in the upper 14 bits. 0: not known (REQ_SENT, SIDR_REQ_SENT) */
};

enum cm_peer_fate {
	CM_PEER_LIVES,
	CM_PEER_ENDED,
	CM_PEER_REPLACED, /* another process now listens at its service, and may have received the request */
};

/**
 * Handles the end of a process. Ids of peers for which @fate returns CM_PEER_ENDED proceed as if a DREQ had arrived and
 * a DREP had been sent (an established connection: CM_EVENT_DISCONNECTED, then TIMEWAIT), or as if the peer had
 * rejected (28). Requests to a replaced peer are repeated at once, which does no harm (IBTA 12.9). @fate is called
 * under the lock and must not call the manager.
 */
void cm_peer_ended(struct cm *cm, enum cm_peer_fate (*fate)(void *argument, const struct cm_peer *peer),
		   void *argument);

/**
 * The host with @gid does not accept CM messages (ICMP, port unreachable). Unanswered REQs and SIDR_REQs to it are soon
 * sent again; after the grace time they end as if no id listened, with reason 8 or status 1.
 */
void cm_host_refuses(struct cm *cm, const union ibv_gid *gid);

/**
 * Ends the manager at process exit, one id per call: sends what cm_id_destroy() would send for it. The id becomes IDLE
 * and must still be destroyed. After the first call no more events come, and calls that would leave IDLE return
 * -EINVAL. Returns false when no id is left.
 */
bool cm_leave_next(struct cm *cm);

/**
 * As cm_leave_next() for all ids in a forked child, without sending: the connections are the parent's. The lock is free
 * (process/fork.c).
 */
void cm_after_fork(struct cm *cm);

/* ---- ids --------------------------------------------------------------------------------------------------------- */

/** Makes an IDLE id with @owner, which its events carry. Returns 0 or -ENOMEM. */
int cm_id_create(struct cm *cm, void *owner, struct cm_id **id);

/** Sets @owner, which later events of @id carry. */
void cm_id_set_owner(struct cm_id *id, void *owner);

/**
 * Frees @id after informing its peer. Depending on the state, sends REJ 4 with the CA GUID (REQ_SENT), REJ 28 (received
 * a request or REP without answering it, or sent a REP), SIDR_REP 2, DREQ (ESTABLISHED; sent once without waiting for
 * its DREP), DREP (DREQ_RCVD). Later messages of the peer are for an unknown id. No event comes after the return.
 */
void cm_id_destroy(struct cm_id *id);

enum cm_state cm_id_state(struct cm_id *id);

/* Properties of a connection for its QP (rdma_init_qp_attr). Unknown values are 0. */
struct cm_parameters {
	enum cm_state state;
	uint64_t service_id;
	uint64_t remote_ca_guid;
	uint32_t local_comm_id, remote_comm_id; /* for SIDR, local_comm_id is the request id of the requesting side */
	struct packet_path path;                /* flow label, traffic class, … of the REQ at both ends */
	uint8_t path_mtu;                       /* enum ibv_mtu, as in the REQ */
	enum ibv_qp_type qp_type;               /* for XRC: IBV_QPT_XRC_SEND (active side), _RECV (passive side) */
	uint32_t local_qpn, remote_qpn;
	uint32_t rq_psn;                              /* starting PSN sent */
	uint32_t sq_psn;                              /* starting PSN received */
	uint8_t responder_resources, initiator_depth; /* max_dest_rd_atomic and max_rd_atomic of the QP here */
	uint8_t retry_count, rnr_retry_count;         /* the value sent; for RNR the value from the peer */
	uint8_t ack_timeout;                          /* code, `timeout` of the QP here */
	uint8_t remote_srq, remote_flow_control;
	uint32_t remote_ece_vendor, remote_ece_options;
};

void cm_id_query(struct cm_id *id, struct cm_parameters *parameters);

/* ---- messages of connections ------------------------------------------------------------------------------------- */

/*
 * Private data to send. Data too long for the message fails with -EINVAL without explanation, because the driver checks
 * the length.
 */
struct cm_private {
	const void *data; /* may be NULL if length is 0 */
	uint8_t length;
};

/**
 * Moves @id from IDLE to LISTEN, for @service_id (host order). Listeners on one service are offered requests in the
 * order of these calls.
 */
int cm_listen(struct cm_id *id, uint64_t service_id);

struct cm_request {
	struct packet_path path; /* to the peer */
	uint64_t service_id;
	enum ibv_qp_type qp_type; /* IBV_QPT_RC, _UC, _XRC_SEND */
	uint32_t qpn;
	uint8_t path_mtu; /* enum ibv_mtu */
	uint8_t responder_resources, initiator_depth;
	uint8_t retry_count, rnr_retry_count; /* at most 7 */
	uint8_t flow_control, srq;
	uint8_t packet_lifetime; /* code; 0: configuration. Option ACK_TIMEOUT t sets it to t - 1 */
	uint32_t ece_vendor, ece_options;
	struct cm_private private_data; /* REQ: 92 bytes, including the hello header */
};

/** Sends a REQ with a new communication id and a random starting PSN: moves @id from IDLE to REQ_SENT. */
int cm_send_req(struct cm_id *id, const struct cm_request *request);

struct cm_reply {
	uint32_t qpn;
	uint8_t responder_resources, initiator_depth;
	uint8_t rnr_retry_count;
	uint8_t flow_control, srq;
	uint32_t ece_options;           /* the REP repeats the vendor of the REQ */
	struct cm_private private_data; /* REP: 196 bytes */
};

/** Sends a REP: moves @id from REQ_RCVD or MRA_REQ_SENT to REP_SENT. */
int cm_send_rep(struct cm_id *id, const struct cm_reply *reply);

/** Sends an RTU: moves @id from REP_RCVD or MRA_REP_SENT to ESTABLISHED; private data up to 224 bytes. */
int cm_send_rtu(struct cm_id *id, struct cm_private private_data);

/**
 * Moves @id from REP_SENT or MRA_REP_RCVD to ESTABLISHED because a packet has reached its QP, which implies the RTU.
 * Returns -EISCONN in ESTABLISHED.
 */
int cm_establish(struct cm_id *id);

/**
 * Sends a REJ with @reason, @info (ARI, up to 72 bytes) and up to 148 bytes of private data. Moves @id from REQ_SENT,
 * REQ_RCVD, REP_RCVD and their MRA states to IDLE, from REP_SENT and MRA_REP_RCVD to TIMEWAIT.
 */
int cm_send_rej(struct cm_id *id, uint16_t reason, struct cm_private info, struct cm_private private_data);

/** Sends a DREQ: moves @id from ESTABLISHED to DREQ_SENT; private data up to 220 bytes. */
int cm_send_dreq(struct cm_id *id, struct cm_private private_data);

/** Sends a DREP: moves @id from DREQ_RCVD to TIMEWAIT; private data up to 224 bytes. */
int cm_send_drep(struct cm_id *id, struct cm_private private_data);

/* ---- messages of service id resolution --------------------------------------------------------------------------- */

struct cm_sidr_request {
	struct packet_path path;
	uint64_t service_id;
	struct cm_private private_data; /* 216 bytes, including the hello header */
};

/** Sends a SIDR_REQ: moves @id from IDLE to SIDR_REQ_SENT. */
int cm_send_sidr_req(struct cm_id *id, const struct cm_sidr_request *request);

struct cm_sidr_reply {
	enum cm_sidr_status status;
	uint32_t qpn, qkey;             /* for CM_SIDR_VALID */
	struct cm_private info;         /* 72 bytes */
	struct cm_private private_data; /* 136 bytes */
};

/** Sends a SIDR_REP: moves @id from SIDR_REQ_RCVD to IDLE. */
int cm_send_sidr_rep(struct cm_id *id, const struct cm_sidr_reply *reply);

#endif
