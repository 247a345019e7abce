/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The communication manager (IBTA chapter 12): communication ids and their states, the messages between two managers,
 * their repetitions and timeouts. It has no access to programs, QPs, links or threads; it calls the functions in struct
 * cm_functions, which the driver supplies. The process has one manager; tests have several that communicate.
 *
 * Threads and locks: all functions may be called from any thread, but not while a lock of the transport (a QP's, a
 * CQ's, …) is held, since they send. A manager has one lock (LOCK_LEVEL_CM), under which it calls `request`, `event`,
 * `wake_at`, `now_ns`, `random` and `claim_slot`: So an id gets its events in the order in which they happened, and
 * none after cm_id_destroy(). These functions only queue work: they must not call the manager, nor take a lock under
 * which the manager is called. `send` is called without the lock, so a link may deliver within it.
 *
 * Ownership: the driver owns an id from cm_id_create(), or from the verdict CM_TAKE on a request, until
 * cm_id_destroy(), where the manager frees it at once. Structures that are passed are copied before the call returns;
 * those that an event points to are valid until the handler returns.
 *
 * All functions that return int return 0 or a negative errno value: -EINVAL if the state does not allow the call
 * (explained, except by cm_send_dreq() and cm_send_drep(), both of which rdma_disconnect(3) may try), -ENOMEM, or the
 * error of `claim_slot`.
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
	/* To a listener: a REQ or SIDR_REQ arrived (see message->kind). */
	CM_EVENT_REQUEST,
	/* Active side: a REP arrived. The id waits for cm_send_rtu() or cm_send_rej(). */
	CM_EVENT_RESPONSE,
	/* Passive side: an RTU arrived, or cm_establish() was called (then without a message). */
	CM_EVENT_ESTABLISHED,
	/*
	 * A REJ arrived, in any state that a REJ ends; status: its reason. There is always a message, all zero if none
	 * was received. Not raised for a request that was not accepted yet: cm_send_rep() then returns -EINVAL.
	 */
	CM_EVENT_REJECTED,
	/*
	 * A REQ, REP or SIDR_REQ was sent the maximum number of times without an answer; status -ETIMEDOUT. No message.
	 */
	CM_EVENT_UNREACHABLE,
	/*
	 * A DREQ or DREP arrived, or the peer's process has ended; or, with status -ETIMEDOUT, the id's own DREQ was
	 * not answered. Raised once per id, for the first of these. Contains the message, if one arrived.
	 */
	CM_EVENT_DISCONNECTED,
	/* TIMEWAIT has ended, and the id is IDLE. No message. */
	CM_EVENT_TIMEWAIT_EXIT,
	/* A SIDR_REP arrived; status: its status, an enum cm_sidr_status. */
	CM_EVENT_SIDR_RESPONSE,
};

struct cm_event {
	enum cm_event_kind kind;
	int status;
	const struct cm_message *message; /* or NULL; private data has its full length, padded with zeros */
	const struct packet_path *path;   /* path of the message: its source is the peer; NULL without a message */
};

/* A listener's decision on a request. */
enum cm_verdict {
	CM_TAKE,     /* the driver owns the new id */
	CM_DROP,     /* no answer, so the peer repeats the request; for a full backlog */
	CM_REJECT,   /* REJ with the reason (28, consumer, unless another is set), or SIDR_REP with status 2 */
	CM_NOT_MINE, /* the request is for another address of the service: tries the next listener; after the last
		      * one, as CM_REJECT */
};

/* Functions that the manager calls. @context is that of struct cm_config. */
struct cm_functions {
	/**
	 * Sends @mad from QP 1 of @path->source to QP 1 of @path->destination; it may be lost. Called without locks of
	 * the manager, on the thread that called the manager. May call the manager.
	 */
	void (*send)(void *context, const struct packet_path *path, const uint8_t mad[CM_MAD_BYTES]);
	/** Arranges a call of cm_run_timers() at @deadline_ns, in place of any later requested time. Under the lock. */
	void (*wake_at)(void *context, uint64_t deadline_ns);
	/** Returns CLOCK_MONOTONIC; never decreases. Under the lock. */
	uint64_t (*now_ns)(void *context);
	/** Returns 64 random bits. Under the lock. */
	uint64_t (*random)(void *context);
	/**
	 * Returns the slot of the process on its host, 0 to 2^14 - 1: the upper bits of its communication ids, so that
	 * every message with an id leads to the process. Called once, for the first id that needs one; a negative errno
	 * value fails that call. Under the lock.
	 */
	int (*claim_slot)(void *context);
	/**
	 * Decides on a REQ or SIDR_REQ for @listener, the owner of an id that listens on the requested service id.
	 * @child is the new id. With CM_TAKE it becomes the driver's, and *@owner is its owner (NULL unless set;
	 * cm_id_set_owner() may set it later); otherwise the manager destroys it. *@reason: for CM_REJECT. Under the
	 * lock.
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
	uint8_t ack_delay;        /* local_ca_ack_delay of the device */
	uint8_t response_timeout; /* code: 4.096 us * 2^n; CM_RESPONSE_TIMEOUT */
	uint8_t retries;          /* repetitions of a message, at most 15; CM_RETRIES */
	uint8_t packet_lifetime;  /* code; CM_PACKET_LIFETIME */
	uint32_t grace_ms;        /* time that a request waits for a listener before it is rejected; CM_GRACE_MS */
};

/** Makes a manager. Returns NULL without memory. */
struct cm *cm_create(const struct cm_config *config);

/** Frees @cm. Its ids must be destroyed, and no thread may use it. Sends nothing. */
void cm_free(struct cm *cm);

/* ---- input ------------------------------------------------------------------------------------------------------- */

/**
 * Handles a MAD that came to QP 1 with the Q_Key CM_QKEY, along @path: its source is the sender, its destination a GID
 * of this host. Both arguments may be hostile. @waited: the grace time of a request has already passed elsewhere, so it
 * is refused at once if no id listens. Sends answers, calls handlers.
 */
void cm_receive(struct cm *cm, const struct packet_path *path, const uint8_t mad[CM_MAD_BYTES], bool waited);

/** Does due work: repeats messages, abandons them, ends TIMEWAIT. Then requests the next wake-up. */
void cm_run_timers(struct cm *cm);

/* Peer of an id, by which the callback of cm_peer_ended() recognizes it. */
struct cm_peer {
	const struct packet_path *path; /* leads to it */
	uint64_t service_id;            /* service that the active side requested; 0 on the passive side */
	uint32_t comm_id; /* communication id of the peer; its slot is in the upper 14 bits. 0: not known (REQ_SENT,
			   * SIDR_REQ_SENT) */
};

enum cm_peer_fate {
	CM_PEER_LIVES,
	CM_PEER_ENDED,
	CM_PEER_REPLACED, /* another process now listens at its service, and may or may not have received the request */
};

/**
 * Handles the end of a process, which may have ended without sending a message. @fate returns CM_PEER_ENDED for the
 * peers that were in that process: their ids proceed as if a DREQ had arrived and a DREP had been sent (an established
 * connection: CM_EVENT_DISCONNECTED, then TIMEWAIT), or as if the peer had rejected (28). Ids that wait for a replaced
 * peer repeat their request at once, which does no harm (IBTA 12.9). @fate is called under the lock and must not call
 * the manager.
 */
void cm_peer_ended(struct cm *cm, enum cm_peer_fate (*fate)(void *argument, const struct cm_peer *peer),
		   void *argument);

/**
 * Handles a report that the host with @gid does not accept CM messages (ICMP, port unreachable). Every REQ and SIDR_REQ
 * that waits for an answer from it is soon sent again. After the grace time it ends as if no id listened, with reason 8
 * or status 1.
 */
void cm_host_refuses(struct cm *cm, const union ibv_gid *gid);

/**
 * Ends the manager at process exit: sends for each id what cm_id_destroy() would send, without waiting. The ids become
 * IDLE and must still be destroyed. No more events come, and every call that would leave IDLE returns -EINVAL.
 */
void cm_leave(struct cm *cm);

/**
 * As cm_leave() without sending, in a forked child: the connections are the parent's. The lock is free
 * (process/fork.c).
 */
void cm_after_fork(struct cm *cm);

/* ---- ids --------------------------------------------------------------------------------------------------------- */

/** Makes an IDLE id with @owner, which its events carry. Returns 0 or -ENOMEM. */
int cm_id_create(struct cm *cm, void *owner, struct cm_id **id);

/** Sets @owner, which later events of @id carry. */
void cm_id_set_owner(struct cm_id *id, void *owner);

/**
 * Frees @id in any state after informing its peer, depending on the state: REJ 4 with the CA GUID (REQ_SENT), REJ 28 (a
 * request or a REP that was not answered, or a REP that was sent), SIDR_REP 2, DREQ (ESTABLISHED; sent once without
 * waiting for its DREP), DREP (DREQ_RCVD). A later message of the peer is answered like a message with an unknown id.
 * No event comes after the return.
 */
void cm_id_destroy(struct cm_id *id);

enum cm_state cm_id_state(struct cm_id *id);

/* Properties of a connection for its QP (rdma_init_qp_attr). Unknown values are 0. */
struct cm_parameters {
	enum cm_state state;
	uint64_t service_id;
	uint64_t remote_ca_guid;
	uint32_t local_comm_id, remote_comm_id; /* for SIDR, local_comm_id is the request id of the requesting side */
	struct packet_path path;  /* to the peer; flow label, traffic class, … of the REQ at both ends */
	uint8_t path_mtu;         /* enum ibv_mtu, as in the REQ */
	enum ibv_qp_type qp_type; /* RC, UC; for XRC: IBV_QPT_XRC_SEND on the active side, IBV_QPT_XRC_RECV on the
				   * passive side */
	uint32_t local_qpn, remote_qpn;
	uint32_t rq_psn;                              /* starting PSN that was sent */
	uint32_t sq_psn;                              /* starting PSN that was received */
	uint8_t responder_resources, initiator_depth; /* max_dest_rd_atomic, max_rd_atomic of the own QP */
	uint8_t retry_count, rnr_retry_count; /* for the own QP: the value sent; for RNR the value from the peer */
	uint8_t ack_timeout;                  /* code, `timeout` of the own QP */
	uint8_t remote_srq, remote_flow_control;
	uint32_t remote_ece_vendor, remote_ece_options;
};

void cm_id_query(struct cm_id *id, struct cm_parameters *parameters);

/* ---- messages of connections ------------------------------------------------------------------------------------- */

/*
 * Private data to send. If it exceeds that field of the message, the call returns -EINVAL without explanation, because
 * the driver checks the length.
 */
struct cm_private {
	const void *data; /* may be NULL if length is 0 */
	uint8_t length;
};

/**
 * Moves @id from IDLE to LISTEN, for @service_id (host order). Ids that listen on the same one are offered requests in
 * the order of these calls.
 */
int cm_listen(struct cm_id *id, uint64_t service_id);

struct cm_request {
	struct packet_path path; /* to the peer: GIDs, type, hop limit, traffic class, flow label, service level */
	uint64_t service_id;
	enum ibv_qp_type qp_type; /* IBV_QPT_RC, _UC, _XRC_SEND */
	uint32_t qpn;
	uint8_t path_mtu; /* enum ibv_mtu */
	uint8_t responder_resources, initiator_depth;
	uint8_t retry_count, rnr_retry_count; /* at most 7 */
	uint8_t flow_control, srq;
	uint8_t packet_lifetime; /* code; 0: that of the configuration. Option ACK_TIMEOUT t of an id sets it to t - 1 */
	uint32_t ece_vendor, ece_options;
	struct cm_private private_data; /* REQ: 92 bytes, including the hello header */
};

/** Moves @id from IDLE to REQ_SENT: sends a REQ with a new communication id and a random starting PSN. */
int cm_send_req(struct cm_id *id, const struct cm_request *request);

struct cm_reply {
	uint32_t qpn;
	uint8_t responder_resources, initiator_depth;
	uint8_t rnr_retry_count;
	uint8_t flow_control, srq;
	uint32_t ece_options;           /* of this side; the REP repeats the vendor of the REQ */
	struct cm_private private_data; /* REP: 196 bytes */
};

/** Accepts with a REP: moves @id from REQ_RCVD or MRA_REQ_SENT to REP_SENT. */
int cm_send_rep(struct cm_id *id, const struct cm_reply *reply);

/** Sends an RTU: moves @id from REP_RCVD or MRA_REP_SENT to ESTABLISHED; private data up to 224 bytes. */
int cm_send_rtu(struct cm_id *id, struct cm_private private_data);

/**
 * Moves @id from REP_SENT or MRA_REP_RCVD to ESTABLISHED as if the RTU had arrived, because a packet that reached the
 * QP first implies it. Returns -EISCONN in ESTABLISHED.
 */
int cm_establish(struct cm_id *id);

/**
 * Sends a REJ with @reason, @info (ARI, up to 72 bytes) and private data up to 148 bytes: in REQ_SENT, REQ_RCVD,
 * REP_RCVD and their MRA states to IDLE, in REP_SENT and MRA_REP_RCVD to TIMEWAIT.
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
