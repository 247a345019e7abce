/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Answers not yet sent over a link that does not deliver at once. READ responses, in pieces, and results of atomics
 * come first, in order of the requests; then the newest acknowledgement or refusal, which covers all before it (IBTA
 * 9.7.5.1.2: acknowledgements may be coalesced). They are sent when the receiving thread has handled all arrivals
 * (run_finish, run_let_go), or the link has room again.
 *
 * Each remembered READ or atomic (struct responder_resource) has room for one answer, at the same index, which the
 * answer to a repetition replaces. So repetitions never take the room of a new request.
 *
 * Data of responses is not stored: each piece is checked again and read when it leaves. A struct answers belongs to a
 * struct responder. The lock of the QP is held.
 */
#ifndef SOFTHCA_TRANSPORT_RESPONDER_ANSWER_H
#define SOFTHCA_TRANSPORT_RESPONDER_ANSWER_H

#include "transport/qp/qp.h"
#include "wire/packet.h"

struct run;

struct answer {
	uint8_t message; /* READ_RESPONSE, ATOMIC_ACKNOWLEDGE */
	uint32_t psn;
	uint32_t count; /* packets */
	uint32_t sent;  /* packets that have left */
	/* READ: */
	uint32_t pd; /* domain of the requester's keys; for XRC, the domain of the SRQ */
	uint32_t rkey, length;
	uint64_t address;
	uint64_t offset;   /* offset of the request in its READ */
	uint64_t original; /* atomic */
};

struct answers {
	struct answers *next;      /* in qp->unsent_answers */
	bool listed;               /* is in it */
	struct link_waiter waiter; /* for room */
	/* Address of the requester; each initiator of a DCT has its own. */
	const struct link *link;
	uint32_t destination_qpn;
	struct packet_path path;
	struct responder *responder;
	const struct walk_access *access; /* without the PD */
	uint32_t pending;                 /* bit P: entry[P] is to be sent, the answer to responder.resource[P] */
	bool ack_pending;                 /* this acknowledgement is to be sent: */
	uint8_t syndrome;
	struct refusal why; /* of a refusal, for captures and a peer in this process */
	uint32_t psn;
	struct answer entry[LIMIT_MAX_RD_ATOMIC];
};

/**
 * Queues @reply, the answer of @responder to @request, and schedules @qp in @run unless @run holds its lock
 * (run->held). Without memory the answer is lost, as on a wire.
 */
void answer_add(struct hca_qp *qp, struct responder *responder, const struct walk_access *access,
		const struct packet *request, const struct packet *reply, struct run *run);

/**
 * As answer_add(), for an acknowledgement of all packets up to @psn, for an RC @qp over a link with nonzero `whole`.
 */
void answer_add_acknowledgement(struct hca_qp *qp, uint32_t psn, struct run *run);

/**
 * Returns true if no answer to the latest @most READs and atomics was sent, where @most is the number granted to the
 * requester. One more request is refused then (IBTA 9.7.4.1.5). Repeated answers do not count: a requester that sends a
 * new request has received them.
 */
bool answer_is_full(const struct responder *responder, uint32_t most);

/** Moves the answers for requests remembered at index @from and later by @by. */
void answer_requests_moved(struct responder *responder, uint32_t from, uint32_t by);

/** Returns the access of a DCT's initiator. */
const struct walk_access *answer_access(const struct responder *responder);

/** Sends pending answers as far as there is room. */
void answer_send(struct hca_qp *qp, struct run *run);

/** Drops pending answers (RESET, a new connection). */
void answer_forget(struct hca_qp *qp, struct responder *responder);

#endif
