/* SPDX-License-Identifier: BSD-2-Clause */
/* Declarations shared by the responder's files. The lock of the QP is held. */
#ifndef SOFTHCA_TRANSPORT_RESPONDER_RESPONDER_H
#define SOFTHCA_TRANSPORT_RESPONDER_RESPONDER_H

#include "transport/qp/path.h"
#include "transport/qp/transport.h"

struct dct_initiator;

enum responder_state {
#define RESPONDER_STATE(NAME, ...) RESPONDER_##NAME,
#include "format/responder_states.def"
};

/*
 * Properties of a request. The machine is compiled for the general path, and for RC requests that arrive whole. The
 * fast path uses only its steps.
 */
struct request_kind {
	struct transport transport;
	uint8_t message;
	enum path path;
};

struct request {
	struct hca_qp *qp;
	struct responder *responder;     /* that of the QP; for a DCT, that of the initiator of the request */
	struct dct_initiator *initiator; /* initiator at a DCT, once it is known; otherwise NULL */
	struct packet *packet;           /* without packets received before */
	struct run *run;                 /* its slot holds the reply */
	struct packet *reply;
	bool replied;
	bool acknowledged;          /* the acknowledgement was sent */
	struct walk_access *access; /* of the QP; for DC, the initiator; for XRC, the request */
	struct hca_srq *srq;        /* source of receives, or NULL */
	/* set before RESPONDER_REFUSE */
	struct refusal why;
	uint8_t nak;      /* enum nak_code */
	uint8_t syndrome; /* syndrome of the receive's error completion, if a receive was taken, and of the explanation */
	enum qp_event event; /* QP_EVENT_COUNT: none */
	struct stream *sink; /* stream for the request's data; for a READ, the payload of the reply */
};

/**
 * Fills in the refusal of @request and returns RESPONDER_REFUSE. @syndrome: of the receive's error completion. @event:
 * QP_EVENT_COUNT: none.
 */
static inline SPECIALISED enum responder_state responder_refusal(struct request *request, uint8_t nak, uint8_t syndrome,
								 enum qp_event event, enum explain_rule rule,
								 const uint64_t *figures, size_t count)
{
	refusal_note(&request->why, 0, rule, figures, count);
	request->nak = nak;
	request->syndrome = syndrome;
	request->event = event;
	return RESPONDER_REFUSE;
}

/* Evaluates to the state that @next, not inlined, returns. The fast path falls back instead. */
#define RESPONDER_RARELY(kind, next) (path_is_fast((kind).path) ? RESPONDER_REFUSE : (next))

/**
 * Executes a request. Builds a reply, if any, in run_slot(@run) and returns its responder: the QP's or, for a DCT, the
 * initiator's, if known. Otherwise returns NULL.
 */
struct responder *responder_receive(struct hca_qp *qp, struct packet *packet, struct run *run);

/**
 * As responder_receive(), for a @packet with its whole message, for an RC @qp with nonzero `whole` on a device without
 * filters. The answer is queued (answer.h). If the lock is kept for the packets that follow, @qp is not scheduled.
 */
void responder_receive_whole(struct hca_qp *qp, struct packet *packet, struct run *run);

/** Flushes the receive queue (not an SRQ). */
void responder_flush(struct hca_qp *qp);
void responder_reset(struct hca_qp *qp);

/** Begins the reply with packet @psn, @message and @syndrome. */
void responder_begin_reply(struct request *request, enum message message, uint32_t psn, uint8_t syndrome);

/**
 * Builds the refusal of packet @psn. @kind: enum aeth_kind; @code: the low bits of the syndrome. Returns
 * RESPONDER_DONE.
 */
enum responder_state responder_nak(struct request *request, uint8_t kind, uint8_t code, uint32_t psn);

/** Writes @completion for the receive of request->responder, and releases it. */
void responder_complete_receive(struct request *request, struct completion *completion);

/** First check of a DCT: access key, initiator and connection. On success request->responder is the initiator's. */
enum responder_state responder_check_connection(struct request *request);

#define RESPONDER_GRH_BYTES 40 /* before a datagram */

/** As responder_refusal(), with request->why filled. */
static inline enum responder_state responder_refuse_with(struct request *request, uint8_t nak_code, uint8_t syndrome,
							 enum qp_event event)
{
	request->nak = nak_code;
	request->syndrome = syndrome;
	request->event = event;
	return RESPONDER_REFUSE;
}

#endif
