/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requester and responder: the two halves of a QP's transport, above all links. RC, UC, UD, XRC and DC are one machine
 * with a table of differences (transport_of), not five. What DC has beside it is in dci.h and dct.h.
 */
#ifndef SOFTHCA_TRANSPORT_TRANSPORT_H
#define SOFTHCA_TRANSPORT_TRANSPORT_H

#include "transport/qp.h"
#include "transport/run.h"
#include "wire/link.h"
#include "format/wqe.h"

struct transport {
	uint8_t packets;         /* struct packet_opcode.transport */
	uint8_t opcodes;         /* enum wqe_transport: its column of wqe_opcodes */
	bool requests, responds; /* which halves it has */
	bool reliable;  /* acknowledges, retries; errors of the send queue put the QP into ERR, else into SQE */
	bool connected; /* has a peer; messages of many packets */
	bool hears_all; /* has no one peer whom it hears alone (transport/origin.h) */
	bool datagram;  /* DETH, Q_Key, 40 bytes of GRH in front of what is received */
};

/* Those of RC, for code that is compiled for it alone. */
#define TRANSPORT_RC                                                                                                   \
	{                                                                                                              \
		.packets = IBV_QPT_RC, .opcodes = WQE_RC, .requests = true, .responds = true, .reliable = true,        \
		.connected = true                                                                                      \
	}

/** The properties of @type. */
const struct transport *transport_of(enum ibv_qp_type type);

/**
 * Starts what can be started of the send queue and delivers it, on this thread. No QP lock held; inside an epoch
 * section. If another thread runs this requester already, it is told to look again.
 */
void requester_run(struct hca_qp *qp, struct run *run);

/** A response arrived, whose payload is read on. The lock of @qp is held. */
void requester_receive(struct hca_qp *qp, struct packet *packet, struct run *run);

/**
 * The same of an acknowledgement of all packets up to and including @psn, which refuses nothing, for a @qp of RC whose `whole` is
 * not 0, and whose device has no filters.
 */
void requester_receive_acknowledgement(struct hca_qp *qp, uint32_t psn, struct run *run);

/** A congestion notification arrived: less is sent at once for a while, as after a loss. The lock of @qp is held. */
void requester_congested(struct hca_qp *qp);

/**
 * Flushes what is in flight and posted, each with a WR_FLUSH_ERR completion; while a thread delivers something of it,
 * leaves that to the thread (the state says it, see requester_run). The lock is held.
 */
void requester_flush(struct hca_qp *qp);

/** Forgets everything in flight and begins at block 0 (RESET). The lock is held. */
void requester_reset(struct hca_qp *qp);

/** Timer function of requester.timer. */
void requester_timer(struct timer *timer);

/**
 * A process of this host has gone, and with it its QPs: what is in flight to a QP of nobody fails at once, as if all retries
 * had been made. No lock held; outside of any epoch section.
 */
void requesters_give_up_lost(void);

/** Raises SQ_DRAINED if the queue is to be drained and has no WQE under way. The lock is held. */
void requester_check_drained(struct hca_qp *qp);

/**
 * A request arrived: executes it. If there is an answer, builds it in run_slot(@run), and returns the responder whose it is,
 * else NULL: the QP's, or of a DCT that of the initiator, if it is known. Lock held.
 */
struct responder *responder_receive(struct hca_qp *qp, struct packet *packet, struct run *run);

/**
 * The same of a @packet that is all of its message, for a @qp of RC whose `whole` is not 0, and whose device has no filters. The
 * answer is owed (transport/answer.h); while the lock is held for the packets that follow, nobody schedules @qp for it.
 */
void responder_receive_whole(struct hca_qp *qp, struct packet *packet, struct run *run);

/** True if @qp is in a state that receives. Its lock is held. */
static inline bool qp_receives(const struct hca_qp *qp)
{
	const unsigned int receiving = 1u << IBV_QPS_RTR | 1u << IBV_QPS_RTS | 1u << IBV_QPS_SQD | 1u << IBV_QPS_SQE;

	return receiving >> qp->state & 1;
}

/**
 * True if @qp, the destination of @self in this process, is connected to @self and can handle its requests under the lock of @self.
 * Both are RC queue pairs whose locks are held.
 */
static inline bool qp_is_peer_of(const struct hca_qp *qp, const struct hca_qp *self)
{
	return qp->in_process && qp->attr.dest_qp_num == self->number && !qp->hca->filters && qp_receives(qp);
}

/** Flushes the receive queue (not an SRQ). The lock is held. */
void responder_flush(struct hca_qp *qp);
void responder_reset(struct hca_qp *qp);

/**
 * The 40 bytes in front of a received datagram (IBTA 8.3; for RoCE v2 over IPv4 the IPv4 header in the last 20), which
 * brought @payload bytes and perhaps an @immediate.
 */
void grh_build(uint8_t grh[40], const struct packet_path *path, uint64_t payload, bool immediate);

/** RNR timer values in nanoseconds by code (IBTA table 45). */
uint64_t rnr_timer_ns(uint8_t code);

#endif
