/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs of the device.
 *
 * hca_qp.lock covers all of it. It is held by callers of all functions but qp_find() and qp_observe_signatures(). Its
 * holder must not wait for that of another QP, but may try it (queue_try_lock()). The locks of CQs, SRQs and keys are
 * taken under it, as leaves. One thread at a time runs the requester (requester.running); others leave their WQEs to
 * it. A QP found by number is valid until the epoch section ends; hca_qp_destroy() waits for that.
 */
#ifndef SOFTHCA_TRANSPORT_QP_QP_H
#define SOFTHCA_TRANSPORT_QP_QP_H

#include "hca/hca.h"
#include "mkey/block_progress.h"
#include "mkey/signature_report.h"
#include "queue/cq_write.h"
#include "queue/receive.h"
#include "transport/qp/early.h"
#include "transport/qp/host_window.h"
#include "wire/packet.h"
#include "wire/waiting.h"

struct link;
struct transport;
struct xrc_domain;
struct dci;
struct dct;

/* Whether and why a requester starts WQEs. */
enum requester_state {
#define REQUESTER_STATE(NAME, ...) REQUESTER_##NAME,
#include "format/requester_states.def"
};

/* A WQE that was started and has not completed. */
struct inflight {
	uint32_t psn;       /* first */
	uint32_t packets;   /* sequence numbers; 0: local operation */
	uint32_t bytes;     /* length of the message or copy: less than 2^31 (LIMIT_MAX_MSG_SIZE, LIMIT_MAX_MEMCPY) */
	uint32_t arrived;   /* bytes of a READ response placed so far */
	uint32_t requested; /* bytes requested so far: a READ longer than the window is requested in pieces */
	uint16_t index;     /* first block of the WQE */
	uint16_t stream;    /* DCI stream, or 0 */
	uint8_t opcode;     /* MLX5_OPCODE_* */
	uint8_t fm_ce_se;
	uint8_t blocks;
	bool done;     /* executed: completes after all earlier entries */
	bool responds; /* READ or atomic: completed by its response */
};

struct requester {
	enum requester_state state;
	bool running;    /* a thread is in run_requester() */
	bool delivering; /* the running thread has released the lock; others must not complete WQEs in flight */
	bool timer_armed;
	bool rnr_wait; /* set from an RNR NAK until the timer expires; nothing is sent meanwhile */
	const uint8_t *ring;
	const uint32_t *dbrec;
	struct inflight *inflight; /* block_count entries */
	uint32_t block_count;      /* power of two, or 0 */
	uint16_t next;             /* first block of the next WQE to start, 16-bit running count */
	uint8_t retries_left, rnr_retries_left;
	uint8_t timeouts;       /* in a row, without progress between them; stops at RETRY_DOUBLINGS */
	uint32_t psn;           /* of the next packet */
	uint32_t acknowledged;  /* PSN of the newest packet known to have arrived */
	uint32_t newest;        /* PSN after the newest packet ever sent */
	uint32_t first, last;   /* FIFO of inflight, free running */
	uint32_t send_entry;    /* FIFO entry sent next; == last: none */
	uint32_t send_offset;   /* its leading packets to skip */
	uint32_t responses_due; /* READs and atomics in flight */
	uint32_t window;        /* bytes that may be in flight (link.window) */
	uint32_t peer_signs;    /* signs that the peer is alive, since RESET */
	/* For the timer, and for requests that are answered later. */
	uint32_t peer_signs_seen;  /* when the timer was armed */
	bool sees_peer;            /* the peer is on this host, and its end can be detected */
	bool requested_again;      /* a lost response was requested again */
	bool signature_error;      /* atomic; a WQE found a signature error since the queue last began to run */
	bool through_keys;         /* the fast path's latest message was not contiguous (fast_path.h) */
	bool unsignaled;           /* the latest direct access has no completion (direct.h) */
	uint64_t silent_since_ns;  /* time of the last sign of the peer; 0: nothing is in flight */
	uint64_t mark;             /* the link's position after the packets sent when the timer was armed (link.mark) */
	uint64_t peer_progress;    /* progress of the peer when the timer last expired (link.pending) */
	struct window_share share; /* part of what all QPs have in flight to the host; transport/qp/host_window.h */
	struct timer timer;        /* acknowledgement timeout, or RNR wait */
	struct block_progress progress; /* in the READ response that is arriving */
	struct block_progress copied;   /* progress of copies; owned by the thread that runs the requester */
	struct link_waiter waiter;      /* for room */
};

/* An executed READ or atomic. Duplicates get the same answer (IBTA C9-150). */
struct responder_resource {
	uint32_t psn : 24, message : 8; /* MESSAGE_NONE: empty */
	uint32_t count : 31;            /* sequence numbers: packets of a READ response */
	uint32_t answered : 1;          /* READ: the last packet of its response was sent */
	union {
		uint64_t original; /* atomic */
		uint64_t offset;   /* of the request in its READ, which may be divided */
	};
};

/* End of the latest READ request; rkey 0: none. */
struct read_end {
	uint32_t rkey;
	uint64_t address;
	uint64_t offset;
};

struct answers;

struct responder {
	uint32_t expected_psn;
	uint32_t msn;
	bool in_message; /* between the first and the last packet */
	uint8_t message; /* of the current message */
	bool has_receive;
	bool nak_sent : 1; /* a NAK for a sequence error or RNR was sent: no other one until the expected packet arrives (IBTA C9-114) */
	bool established : 1;   /* COMM_EST was raised */
	bool psn_explained : 1; /* rule 73 was explained, or does not apply; until RESET */
	bool early : 1;         /* early_psn was dropped, and no packet has been accepted yet */
	union {
		uint32_t rkey;      /* of the current message */
		uint32_t early_psn; /* before the first message: PSN of the first dropped packet */
	};
	uint64_t offset; /* payload bytes of the message so far */
	uint64_t remote_address;
	uint32_t dma_length;
	uint32_t xrc_srqn;       /* SRQ number in the current message */
	struct hca_srq *srq;     /* source of the receive, or NULL */
	struct answers *answers; /* answers to be sent (transport/responder/answer.h); NULL until the first one */
	struct block_progress progress; /* of the current message */
	/*
	 * Remembered requests: max_dest_rd_atomic, rounded up to a power of two. Allocated when that is set, or with
	 * the initiator of a DCT. NULL and 0: none is answered.
	 */
	struct responder_resource *resource;
	uint32_t resources, next_resource;
	struct read_end read_end;
	struct receive_wqe receive; /* last: has as many segments as an entry of its queue can have */
};

enum qp_event {
	QP_EVENT_FATAL,
	QP_EVENT_REQUEST_ERROR,
	QP_EVENT_ACCESS_ERROR,
	QP_EVENT_COMM_EST,
	QP_EVENT_SQ_DRAINED,
	QP_EVENT_LAST_WQE,
	QP_EVENT_COUNT,
};

/* Gets the QP's events. XRC_RECV QPs have many openers, also covered by the lock of the device. */
struct qp_opener {
	struct qp_opener *next;
	struct hca_context *context;
	struct hca_xrcd *xrcd; /* of XRC_RECV */
	struct event_source event[QP_EVENT_COUNT];
};

struct qp_watch {
	struct watch watch;
	struct hca_qp *qp;
	const uint32_t *send_record; /* doorbell record; NULL without a send queue */
	bool starting; /* from the move to RTS until restart_watch() compares the record; under the QP's lock */
};

/* Attributes of ibv_modify_qp(3), except state, capabilities, PSNs and alternate paths. */
struct qp_attributes {
	enum ibv_mtu path_mtu;
	enum ibv_mig_state path_mig_state;
	uint32_t qkey;
	uint32_t dest_qp_num;
	unsigned int qp_access_flags;
	struct ibv_ah_attr ah_attr;
	uint16_t pkey_index;
	uint8_t en_sqd_async_notify, sq_draining;
	uint8_t max_rd_atomic, max_dest_rd_atomic;
	uint8_t min_rnr_timer, port_num, timeout, retry_cnt, rnr_retry;
};

/* Functions of the layers above, for the error states of a QP. */
struct qp_halves {
	void (*flush_requester)(struct hca_qp *qp);
	void (*flush_responder)(struct hca_qp *qp);
};

/* Set before the first QP is created (process/devices.c). */
extern const struct qp_halves *qp_halves;

struct hca_qp {
	struct queue_lock lock;
	struct hca *hca;
	uint32_t number;
	enum ibv_qp_state state;
	enum ibv_qp_type type;
	uint32_t flushes; /* atomic copy of "state is ERR" for receive doorbells */
	const struct transport *transport;
	const struct link *link; /* link to the peer, or NULL */
	uint32_t connection;     /* connection to the process of the peer, if the link is paired; 0: not known yet */
	uint32_t whole;          /* link->whole for RC, else 0 */
	bool in_process;         /* RC with link->in_process */
	/* Set at creation; `inherited` in a forked child with one thread. */
	bool scatter_to_cqe : 1;          /* MLX5DV_QP_CREATE_ALLOW_SCATTER_TO_CQE; requester/response.c */
	bool stop_at_signature_error : 1; /* MLX5DV_QP_CREATE_SIG_PIPELINING */
	bool block_self_multicast : 1;    /* IBV_QP_CREATE_BLOCK_SELF_MCAST_LB */
	bool inherited : 1;               /* copy of a parent's QP; transport/qp/inherited.h */
	uint8_t mtu_shift;
	bool granted; /* its peer may access memory directly (hca/grants.h) */
	uint32_t user_index;
	struct dci *dci;           /* or NULL; transport/qp/dci.h */
	struct dct *dct;           /* or NULL; transport/responder/dct.h */
	struct xrc_domain *domain; /* of XRC_RECV, else NULL */
	struct hca_cq *send_cq, *recv_cq;
	struct hca_srq *srq;
	struct answers *unsent_answers; /* responders that have something to send */
	bool scheduled;
	bool requester_due; /* also for its requester */
	bool ended;         /* moved to ERR by the program or its connection manager: flushed receives are expected */
	bool destroyed;     /* being destroyed: dropped packets are expected */
	uint32_t timeline_row; /* observe/timeline.h */
	struct hca_qp *next_scheduled;
	struct walk_access access;      /* access to keys for requests and messages of its peer */
	struct walk_access send_access; /* access to keys for its own send queue */
	struct qp_attributes attr;
	struct hca_rq rq;
	struct requester requester;
	struct packet_path path;
	uint32_t recv_barrier; /* where barrier_on_all_cpus() does not work */
	uint32_t groups;       /* multicast groups; under the lock of the first device */
	struct hca_pd *pd;     /* NULL of XRC_RECV */
	struct hca_qp *next_in_domain;
	struct signature_observer received_error, sent_error; /* signature observers of the two accesses */
	/* atomic; for received_error: the receive CQ; for XRC, that of the last SRQ, or NULL after its end */
	struct hca_cq *signature_cq;
	uint64_t notified_ns;      /* of the last congestion notification to the peer (requester/congestion.h) */
	struct link_sender sender; /* entry of the QP in a queue of waiters for room */
	void *cookie;
	uint64_t (*wr_id_of)(const void *cookie, uint16_t index);
	const char *(*umr_name_of)(const void *cookie, uint16_t index);
	struct early *early;   /* atomic; requests dropped before it was ready, or NULL (transport/qp/early.h) */
	uint64_t error_record; /* serial of the explanation of its error */
	struct ibv_qp_cap cap;
	struct qp_opener *openers; /* &own, except for XRC_RECV */
	struct qp_opener own;
	struct qp_watch *watch;     /* or NULL */
	struct shadow *send_shadow; /* copy of a send ring in memory that may be unmapped, or NULL */
	struct responder responder; /* last: ends with an array; a DCT uses the fields that belong to no initiator */
};

/* Freed QP numbers kept back before the oldest is reused. */
#define QP_NUMBERS_REST 512

/** Returns the QP or NULL. Inside an epoch section. */
static inline struct hca_qp *qp_find(uint32_t number)
{
	return id_table_find(&the_registry.qps, number);
}

/** Sets the state and its copy. */
static inline void qp_set_state(struct hca_qp *qp, enum ibv_qp_state state)
{
	__atomic_store_n(&qp->state, state, __ATOMIC_RELEASE);
	__atomic_store_n(&qp->flushes, state == IBV_QPS_ERR, __ATOMIC_SEQ_CST);
}

static inline void qp_raise(struct hca_qp *qp, enum qp_event event)
{
	for (struct qp_opener *opener = qp->openers; opener; opener = opener->next)
		hca_raise(opener->context, &opener->event[event]);
}

/** Chooses the link to the peer by the attributes. */
void qp_route(struct hca_qp *qp);
/** As qp_route(), if the peer's number had no owner then. Returns true if it has one now. */
bool qp_route_again(struct hca_qp *qp);

/** Moves @qp to ERR because a CQE did not fit. */
RARE void qp_lost_completion(struct hca_qp *qp, const struct hca_cq *cq);

/** Writes a CQE; if the CQ is full, the QP enters ERR. */
static inline SPECIALISED void qp_complete(struct hca_qp *qp, struct hca_cq *cq, const struct completion completion)
{
	if (unlikely(!cq_write(cq, completion)))
		qp_lost_completion(qp, cq);
}

/** Makes the two accesses report signature errors in the CQ of the half that found them (mlx5-formats 6, point 1). */
void qp_observe_signatures(struct hca_qp *qp);

/** Moves to ERR: flushes both queues and raises LAST_WQE_REACHED where it applies. @record: serial of the explanation. */
void qp_enter_error(struct hca_qp *qp, uint64_t record);
/** Moves to SQE (UC, UD): flushes the send queue. */
void qp_enter_send_error(struct hca_qp *qp, uint64_t record);

#endif
