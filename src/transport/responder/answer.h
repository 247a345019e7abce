/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Answers that a responder has not sent yet over a link that does not deliver at once. Responses of READs, which leave
 * in pieces as the link has room, and results of atomics come first, in the order of the requests. Then comes the
 * newest acknowledgement or refusal, which covers all before it (IBTA 9.7.5.1.2: acknowledgements may be coalesced).
 *
 * The responder only records its answers. They are sent when the thread that received the requests has handled the rest
 * of the arrived packets (run_finish, run_let_go), or when the link has room again.
 *
 * Each remembered READ or atomic (struct responder_resource) has room for one answer, at the same index. The answer to
 * a repetition replaces the pending one, or becomes pending again. So repetitions need no room of their own, and never
 * take the room of a new request.
 *
 * The data of responses is not stored: each piece reads the memory when it leaves, and is checked again. A struct
 * answers belongs to a struct responder; the lock of its QP covers it.
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
	/* of a READ */
	uint32_t pd; /* domain of the requester's keys; for XRC, the domain of the SRQ */
	uint32_t rkey, length;
	uint64_t address;
	uint64_t offset;   /* offset of the request in its READ */
	uint64_t original; /* of an atomic */
};

struct answers {
	struct answers *next;      /* in qp->unsent_answers */
	bool listed;               /* is in it */
	struct link_waiter waiter; /* for room */
	/* Link and path of the requester; each initiator of a DCT has its own. */
	const struct link *link;
	uint32_t destination_qpn;
	struct packet_path path;
	struct responder *responder;
	const struct walk_access *access; /* access to keys, without the PD */
	uint32_t pending;                 /* bit P: entry[P], the answer to responder.resource[P], is to be sent */
	bool ack_pending;                 /* the following acknowledgement is to be sent */
	uint8_t syndrome;
	struct refusal why; /* for a refusal: reported in captures, and to a peer in this process */
	uint32_t psn;
	struct answer entry[LIMIT_MAX_RD_ATOMIC];
};

/**
 * Queues @reply, the answer of @responder of @qp to @request, and schedules @qp in @run. Without memory the answer is
 * lost, as on a wire. The lock of @qp is held; if it is held for @run (run->held), @qp is not scheduled.
 */
void answer_add(struct hca_qp *qp, struct responder *responder, const struct walk_access *access,
		const struct packet *request, const struct packet *reply, struct run *run);

/**
 * As answer_add(), for an acknowledgement of all packets up to and including @psn, for an RC @qp over a link with a
 * nonzero `whole`.
 */
void answer_add_acknowledgement(struct hca_qp *qp, uint32_t psn, struct run *run);

/**
 * Returns true if @responder has not sent any answer to the latest @most READs and atomics, where @most is the number
 * that its QP grants the requester. One more request is refused then (IBTA 9.7.4.1.5). Answers that are sent again do
 * not count: a requester that sends a new request has received them.
 */
bool answer_is_full(const struct responder *responder, uint32_t most);

/** Moves the answers of @responder for requests remembered at index @from and later by @by. The lock is held. */
void answer_requests_moved(struct responder *responder, uint32_t from, uint32_t by);

/** Returns the access of the initiator of a DCT with @responder. */
const struct walk_access *answer_access(const struct responder *responder);

/** Sends the pending answers of @qp, as far as there is room. The lock is held. */
void answer_send(struct hca_qp *qp, struct run *run);

/** Drops the pending answers of @responder (RESET, a new connection). The lock is held. */
void answer_forget(struct hca_qp *qp, struct responder *responder);

#endif
