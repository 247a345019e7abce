/* SPDX-License-Identifier: BSD-2-Clause */
/* What responders owe, see answer.h. */
#include "transport/answer.h"

#include <stddef.h>
#include <stdlib.h>

#include "core/compiler.h"
#include "wire/link.h"
#include "device/counters.h"
#include "transport/dct.h"
#include "transport/record.h"
#include "transport/packet_begin.h"
#include "transport/run.h"
#include "transport/transport.h"

static struct answers *answers_of(struct responder *responder)
{
	if (!responder->answers)
		responder->answers = calloc(1, sizeof(*responder->answers));
	return responder->answers;
}

static void enlist(struct hca_qp *qp, struct answers *answers, struct run *run)
{
	if (!answers->owing) {
		answers->owing = true;
		answers->next = qp->owing;
		qp->owing = answers;
	}
	/* Whoever lets go of it sees to that. */
	if (run->held != qp)
		run_schedule(run, qp);
}

/*
 * A requester that asks again goes back: what it was to get from there on it asks for anew. So no more is owed than
 * requests can be outstanding.
 */
static void go_back(struct answers *answers, uint32_t psn)
{
	while (answers->last != answers->first &&
	       psn_distance(answers->entry[(answers->last - 1) % LIMIT_MAX_RD_ATOMIC].psn, psn) >= 0)
		answers->last--;
	if (answers->last == answers->first)
		answers->sent = 0;
}

static bool is_of(const struct responder_resource *resource, uint32_t psn)
{
	int32_t offset = psn_distance(psn, resource->psn);

	return resource->message == MESSAGE_READ_REQUEST && offset >= 0 && (uint32_t)offset < resource->count;
}

/* The place of the READ that has @psn: nearly always the newest; an earlier one if this is a repetition. */
static uint32_t place_of(const struct responder *responder, uint32_t psn)
{
	uint32_t newest = responder->next_resource - 1, mask = responder->resources - 1;

	for (uint32_t i = 0; i < responder->resources; i++)
		if (is_of(&responder->resource[(newest - i) & mask], psn))
			return (newest - i) & mask;
	return newest & mask;
}

/* The READ that @answer is for; NULL if another one has its place, of a peer that asks for more than it was granted. */
static struct responder_resource *request_of(struct answers *answers, const struct answer *answer)
{
	struct responder_resource *resource = &answers->responder->resource[answer->place];

	return is_of(resource, answer->psn) ? resource : NULL;
}

static void owe_response(struct answers *answers, const struct walk_access *access, const struct packet *request,
			 const struct packet *reply)
{
	go_back(answers, reply->psn);
	/* New requests were refused before (answer_is_full). A repetition may be ignored, such as the n-th part of one READ. */
	if (answers->last - answers->first == LIMIT_MAX_RD_ATOMIC)
		return;
	answers->entry[answers->last++ % LIMIT_MAX_RD_ATOMIC] = (struct answer){
		.message = reply->message,
		.psn = reply->psn,
		.count = reply->count,
		.pd = reply->payload.length ? reply->payload.access->pd : access->pd,
		.rkey = request->rkey,
		.length = request->message == MESSAGE_READ_REQUEST ? request->dma_length : 0,
		.address = request->remote_address,
		.offset = reply->payload.length ? reply->payload.offset : 0,
		.place = place_of(answers->responder, reply->psn),
		.original = reply->original,
	};
}

void answer_requests_moved(struct responder *responder, uint32_t from, uint32_t by)
{
	struct answers *answers = responder->answers;

	for (uint32_t i = answers ? answers->first : 0; answers && i != answers->last; i++) {
		struct answer *answer = &answers->entry[i % LIMIT_MAX_RD_ATOMIC];

		if (answer->place >= from)
			answer->place += by;
	}
}

bool answer_is_full(const struct responder *responder)
{
	const struct answers *answers = responder->answers;

	return answers && answers->last - answers->first == LIMIT_MAX_RD_ATOMIC;
}

void answer_owe(struct hca_qp *qp, struct responder *responder, const struct walk_access *access,
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
		if (answers->acknowledges)
			counter_add(qp->hca, COUNTER_ACKS_COALESCED, 1);
		answers->acknowledges = true;
		answers->syndrome = reply->syndrome;
		answers->psn = reply->psn;
		answers->why = reply->why;
	} else {
		owe_response(answers, access, request, reply);
	}
	enlist(qp, answers, run);
}

void answer_owe_acknowledgement(struct hca_qp *qp, uint32_t psn, struct run *run)
{
	struct answers *answers = answers_of(&qp->responder);

	if (unlikely(!answers))
		return;
	answers->link = qp->link;
	answers->destination_qpn = qp->attr.dest_qp_num;
	answers->responder = &qp->responder;
	answers->access = &qp->access;
	if (answers->acknowledges)
		counter_add(qp->hca, COUNTER_ACKS_COALESCED, 1);
	answers->acknowledges = true;
	answers->syndrome = AETH_ACK | AETH_NO_CREDITS;
	answers->psn = psn;
	answers->why.rule = RULE_NONE;
	enlist(qp, answers, run);
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

/* The rights may have gone since the request was checked: then the rest is refused (IBTA 9.7.4.1.5). */
static void refuse_rest(const struct hca_qp *qp, struct answers *answers, uint32_t psn, const struct refusal *why)
{
	explain_make(qp->hca, &(struct explain_subject){.qpn = qp->number, .receive = true}, why->rule, why->args,
		     EXPLAIN_ARGS);
	answers->first = answers->last;
	answers->sent = 0;
	answers->acknowledges = true;
	answers->syndrome = AETH_NAK | NAK_REMOTE_ACCESS;
	answers->psn = psn;
	answers->why = *why;
}

/* The next piece of the READ @answer. False: it was refused. */
static bool build_piece(const struct hca_qp *qp, struct answers *answers, const struct answer *answer,
			struct packet *packet)
{
	const struct responder_resource *request = request_of(answers, answer);
	uint64_t offset = (uint64_t)answers->sent << qp->mtu_shift;
	uint64_t bytes = answer->length - offset;
	uint32_t most = answers->link->most ? answers->link->most : UINT32_MAX;
	struct refusal why;
	int error;

	begin_answer(qp, answers, MESSAGE_READ_RESPONSE, psn_add(answer->psn, answers->sent), packet);
	if (bytes > most)
		bytes = most >> qp->mtu_shift << qp->mtu_shift;
	packet->place = (uint8_t)((offset ? 0 : PLACE_FIRST) | (offset + bytes == answer->length ? PLACE_LAST : 0));
	packet->count = packets_of(bytes, qp->mtu_shift);
	if (!bytes)
		return true;
	packet->own_access = *answers->access;
	packet->own_access.pd = answer->pd;
	packet->own_access.repeated = request && request->answered;
	packet->own_access.unfinished = packet->own_access.more = !(packet->place & PLACE_LAST);
	stream_begin(&packet->payload, &packet->own_access, RIGHT_REMOTE_READ);
	packet->payload.offset = answer->offset + offset;
	error = stream_add_key(&packet->payload, answer->rkey, answer->address + offset, bytes, &why);
	if (error)
		refuse_rest(qp, answers, packet->psn, &why);
	return !error;
}

/* False: there is no room. */
static bool send_packet(struct hca_qp *qp, struct answers *answers, struct run *run)
{
	if (timeline_is_on())
		record_answer(qp, run_slot(run));
	return link_send_or_wait(qp->hca, run, &answers->waiter, &qp->party, false) == LINK_SENT;
}

/* One packet of the first answer. False: there is no room. */
static bool send_response(struct hca_qp *qp, struct answers *answers, struct run *run)
{
	const struct answer *answer = &answers->entry[answers->first % LIMIT_MAX_RD_ATOMIC];
	struct responder_resource *request;
	struct packet *packet = run_slot(run);

	if (answer->message == MESSAGE_ATOMIC_ACKNOWLEDGE) {
		begin_answer(qp, answers, MESSAGE_ATOMIC_ACKNOWLEDGE, answer->psn, packet);
		packet->original = answer->original;
	} else if (!build_piece(qp, answers, answer, packet)) {
		return true;
	}
	if (!send_packet(qp, answers, run))
		return false;
	answers->sent += packet->count;
	if (answers->sent < answer->count)
		return true;
	/* The requester may have all of it, and tell so: what it asks for again does not count any more. */
	request = request_of(answers, answer);
	if (request)
		request->answered = true;
	answers->first++;
	answers->sent = 0;
	return true;
}

static bool send_all(struct hca_qp *qp, struct answers *answers, struct run *run)
{
	while (answers->first != answers->last)
		if (!send_response(qp, answers, run))
			return false;
	if (!answers->acknowledges)
		return true;
	begin_answer(qp, answers, MESSAGE_ACKNOWLEDGE, answers->psn, run_slot(run));
	run_slot(run)->syndrome = answers->syndrome;
	run_slot(run)->why = answers->why;
	if (!send_packet(qp, answers, run))
		return false;
	answers->acknowledges = false;
	return true;
}

/* Those that wait for room are tried again when there is some; whoever else is owed something goes on. */
void answer_send(struct hca_qp *qp, struct run *run)
{
	struct answers **place = &qp->owing, *answers;

	while ((answers = *place)) {
		if (link_waits(&answers->waiter) || !send_all(qp, answers, run)) {
			place = &answers->next;
			continue;
		}
		*place = answers->next;
		answers->owing = false;
	}
}

static void delist(struct hca_qp *qp, struct answers *answers)
{
	struct answers **place = &qp->owing;

	if (!answers->owing)
		return;
	while (*place != answers)
		place = &(*place)->next;
	*place = answers->next;
	answers->owing = false;
}

void answer_forget(struct hca_qp *qp, struct responder *responder)
{
	struct answers *answers = responder->answers;

	if (!answers)
		return;
	link_dequeue(&answers->waiter);
	delist(qp, answers);
	answers->first = answers->last;
	answers->sent = 0;
	answers->acknowledges = false;
}
