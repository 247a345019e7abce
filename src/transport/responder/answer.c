/* SPDX-License-Identifier: BSD-2-Clause */
/* Pending answers of responders. */
#include "transport/responder/answer.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>

#include "core/compiler.h"
#include "observe/counters.h"
#include "transport/qp/packet_begin.h"
#include "transport/qp/record.h"
#include "transport/qp/schedule.h"
#include "transport/qp/transport.h"
#include "transport/responder/dct.h"
#include "wire/link.h"

static_assert(LIMIT_MAX_RD_ATOMIC <= 16, "answers.pending, turned by any number of places, fits into 32 bits");

static struct answers *answers_of(struct responder *responder)
{
	if (!responder->answers)
		responder->answers = calloc(1, sizeof(*responder->answers));
	return responder->answers;
}

static void answers_enlist(struct hca_qp *qp, struct answers *answers, struct run *run)
{
	if (!answers->listed) {
		answers->listed = true;
		answers->next = qp->unsent_answers;
		qp->unsent_answers = answers;
	}
	/* A QP held by the run is scheduled when it is released. */
	if (run->held != qp)
		run_schedule(run, qp);
}

static bool resource_covers(const struct responder_resource *resource, uint32_t psn)
{
	int32_t offset = psn_distance(psn, resource->psn);

	return resource->message != MESSAGE_NONE && offset >= 0 && (uint32_t)offset < resource->count;
}

/* Returns the index of the request of @psn: usually the newest, or an earlier one for a repetition. */
static uint32_t resource_place(const struct responder *responder, uint32_t psn)
{
	uint32_t newest = responder->next_resource - 1, mask = responder->resources - 1;

	for (uint32_t i = 0; i < responder->resources; i++)
		if (resource_covers(&responder->resource[(newest - i) & mask], psn))
			return (newest - i) & mask;
	return newest & mask;
}

/*
 * Adds a response. The answer to a repetition replaces a pending one; the requester has received everything before its
 * beginning.
 */
static void answers_add_response(struct answers *answers, const struct walk_access *access,
				 const struct packet *request, const struct packet *reply)
{
	uint32_t place = resource_place(answers->responder, reply->psn);

	answers->entry[place] = (struct answer){
		.message = reply->message,
		.psn = reply->psn,
		.count = reply->count,
		.pd = reply->payload.length ? reply->payload.access->pd : access->pd,
		.rkey = request->rkey,
		.length = request->message == MESSAGE_READ_REQUEST ? request->dma_length : 0,
		.address = request->remote_address,
		.offset = reply->payload.length ? reply->payload.offset : 0,
		.original = reply->original,
	};
	answers->pending |= 1u << place;
}

void answer_requests_moved(struct responder *responder, uint32_t from, uint32_t by)
{
	struct answers *answers = responder->answers;
	uint32_t stay = (1u << from) - 1;

	if (!answers)
		return;
	for (uint32_t place = LIMIT_MAX_RD_ATOMIC - by; place-- > from;)
		answers->entry[place + by] = answers->entry[place];
	answers->pending = (answers->pending & stay) | (answers->pending & ~stay) << by;
}

bool answer_is_full(const struct responder *responder, uint32_t most)
{
	const struct answers *answers = responder->answers;
	uint32_t place = (responder->next_resource - most) & (responder->resources - 1);

	/* Answers leave in order: if the first was never sent, neither were the others. */
	return answers && unlikely(answers->pending >> place & 1) && !responder->resource[place].answered;
}

void answer_add(struct hca_qp *qp, struct responder *responder, const struct walk_access *access,
		const struct packet *request, const struct packet *reply, struct run *run)
{
	struct answers *answers = answers_of(responder);

	if (!answers)
		return;
	answers->link = reply->link;
	answers->destination_qpn = reply->destination_qpn;
	answers->responder = responder;
	answers->access = access;
	if (qp->dct)
		answers->path = *reply->path;
	if (reply->message == MESSAGE_ACKNOWLEDGE) {
		if (answers->ack_pending)
			counter_add(qp->hca, COUNTER_ACKS_COALESCED, 1);
		/* A repetition is acknowledged only up to the packet before the one of a pending NAK. */
		if (!answers->ack_pending || psn_distance(reply->psn, answers->psn) >= 0) {
			answers->ack_pending = true;
			answers->syndrome = reply->syndrome;
			answers->psn = reply->psn;
			answers->why = reply->why;
		}
	} else {
		answers_add_response(answers, access, request, reply);
	}
	answers_enlist(qp, answers, run);
}

void answer_add_acknowledgement(struct hca_qp *qp, uint32_t psn, struct run *run)
{
	struct answers *answers = answers_of(&qp->responder);

	if (unlikely(!answers))
		return;
	answers->link = qp->link;
	answers->destination_qpn = qp->attr.dest_qp_num;
	answers->responder = &qp->responder;
	answers->access = &qp->access;
	if (answers->ack_pending)
		counter_add(qp->hca, COUNTER_ACKS_COALESCED, 1);
	answers->ack_pending = true;
	answers->syndrome = AETH_ACK | AETH_NO_CREDITS;
	answers->psn = psn;
	answers->why.rule = RULE_NONE;
	answers_enlist(qp, answers, run);
}

const struct walk_access *answer_access(const struct responder *responder)
{
	return &((const struct dct_initiator *)((const char *)responder - offsetof(struct dct_initiator, responder)))
			->access;
}

static void begin_answer(const struct hca_qp *qp, const struct answers *answers, enum message message, uint32_t psn,
			 struct packet *packet)
{
	packet_begin(packet, qp, qp->transport->packets, (uint8_t)message);
	packet->destination_qpn = answers->destination_qpn;
	packet->link = answers->link;
	packet->path = qp->dct ? &answers->path : &qp->path;
	packet->psn = psn;
	packet->syndrome = AETH_ACK | AETH_NO_CREDITS;
	packet->msn = answers->responder->msn;
}

/*
 * Refuses the rest of a response, since the rights may have ended after the first check (IBTA 9.7.4.1.5). If the answer
 * was sent before, the requester may have received it and then invalidated the key, so the repetition is dropped.
 */
static void refuse_rest(const struct hca_qp *qp, struct answers *answers, uint32_t place, uint32_t psn,
			const struct refusal *why)
{
	if (answers->responder->resource[place].answered) {
		answers->pending &= ~(1u << place);
		return;
	}
	explain_make(qp->hca, &(struct explain_subject){.qpn = qp->number, .receive = true}, why->rule, why->args,
		     EXPLAIN_ARGS);
	answers->pending = 0;
	answers->ack_pending = true;
	answers->syndrome = AETH_NAK | NAK_REMOTE_ACCESS;
	answers->psn = psn;
	answers->why = *why;
}

/* Builds the next piece of the READ response at @place. Returns false if it was refused. */
static bool build_piece(const struct hca_qp *qp, struct answers *answers, uint32_t place, struct packet *packet)
{
	const struct answer *answer = &answers->entry[place];
	uint64_t offset = (uint64_t)answer->sent << qp->mtu_shift;
	uint64_t bytes = answer->length - offset;
	uint32_t most = answers->link->most ? answers->link->most : UINT32_MAX;
	struct refusal why;
	int error;

	begin_answer(qp, answers, MESSAGE_READ_RESPONSE, psn_add(answer->psn, answer->sent), packet);
	if (bytes > most)
		bytes = most >> qp->mtu_shift << qp->mtu_shift;
	packet->place = (uint8_t)((offset ? 0 : PLACE_FIRST) | (offset + bytes == answer->length ? PLACE_LAST : 0));
	packet->count = packets_of(bytes, qp->mtu_shift);
	if (!bytes)
		return true;
	packet->own_access = *answers->access;
	packet->own_access.pd = answer->pd;
	packet->own_access.repeated = answers->responder->resource[place].answered;
	packet->own_access.unfinished = packet->own_access.more = !(packet->place & PLACE_LAST);
	stream_begin(&packet->payload, &packet->own_access, RIGHT_REMOTE_READ);
	packet->payload.offset = answer->offset + offset;
	error = stream_add_key(&packet->payload, answer->rkey, answer->address + offset, bytes, &why);
	if (error)
		refuse_rest(qp, answers, place, packet->psn, &why);
	return !error;
}

/* Sends the built packet. Returns false if the link is full. */
static bool answers_send_packet(struct hca_qp *qp, struct answers *answers, struct run *run)
{
	if (timeline_is_on())
		record_answer(qp, run_slot(run));
	return link_send_or_wait(qp->hca, run, &answers->waiter, &qp->sender, false) == LINK_SENT;
}

/* Returns the oldest request with a pending answer. */
static uint32_t answers_first_pending(const struct answers *answers)
{
	uint32_t places = answers->responder->resources, oldest = answers->responder->next_resource & (places - 1);
	uint32_t from_oldest = answers->pending >> oldest | answers->pending << (places - oldest);

	return (oldest + (uint32_t)__builtin_ctz(from_oldest)) & (places - 1);
}

/* Sends one packet of the first answer. Returns false if the link is full. */
static bool send_response(struct hca_qp *qp, struct answers *answers, struct run *run)
{
	uint32_t place = answers_first_pending(answers);
	struct responder_resource *request = &answers->responder->resource[place];
	struct answer *answer = &answers->entry[place];
	struct packet *packet = run_slot(run);

	/* The index now belongs to a request without an answer. */
	if (unlikely(!resource_covers(request, answer->psn))) {
		answers->pending &= ~(1u << place);
		return true;
	}
	if (answer->message == MESSAGE_ATOMIC_ACKNOWLEDGE) {
		begin_answer(qp, answers, MESSAGE_ATOMIC_ACKNOWLEDGE, answer->psn, packet);
		packet->original = answer->original;
	} else if (!build_piece(qp, answers, place, packet)) {
		return true;
	}
	if (!answers_send_packet(qp, answers, run))
		return false;
	answer->sent += packet->count;
	if (answer->sent < answer->count)
		return true;
	/* The requester may have all of the response, so a repetition does not count. */
	request->answered = true;
	answers->pending &= ~(1u << place);
	return true;
}

static bool send_all(struct hca_qp *qp, struct answers *answers, struct run *run)
{
	while (answers->pending)
		if (!send_response(qp, answers, run))
			return false;
	if (!answers->ack_pending)
		return true;
	begin_answer(qp, answers, MESSAGE_ACKNOWLEDGE, answers->psn, run_slot(run));
	run_slot(run)->syndrome = answers->syndrome;
	run_slot(run)->why = answers->why;
	if (!answers_send_packet(qp, answers, run))
		return false;
	answers->ack_pending = false;
	return true;
}

/* Answers for a full link wait for room; those for other requesters continue. */
void answer_send(struct hca_qp *qp, struct run *run)
{
	struct answers **place = &qp->unsent_answers, *answers;

	while ((answers = *place)) {
		if (link_waits(&answers->waiter) || !send_all(qp, answers, run)) {
			place = &answers->next;
			continue;
		}
		*place = answers->next;
		answers->listed = false;
	}
}

static void answers_delist(struct hca_qp *qp, struct answers *answers)
{
	struct answers **place = &qp->unsent_answers;

	if (!answers->listed)
		return;
	while (*place != answers)
		place = &(*place)->next;
	*place = answers->next;
	answers->listed = false;
}

void answer_forget(struct hca_qp *qp, struct responder *responder)
{
	struct answers *answers = responder->answers;

	if (!answers)
		return;
	link_dequeue(&answers->waiter);
	answers_delist(qp, answers);
	answers->pending = 0;
	answers->ack_pending = false;
}
