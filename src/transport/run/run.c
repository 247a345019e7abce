/* SPDX-License-Identifier: BSD-2-Clause */
/* The run loop, and delivery of a packet to a half of a QP. */
#include "transport/run/run.h"

#include <endian.h>
#include <stddef.h>

#include "core/compiler.h"
#include "core/thread_memory.h"
#include "observe/counters.h"
#include "transport/gsi/gsi.h"
#include "transport/qp/drop.h"
#include "transport/qp/early.h"
#include "transport/qp/multicast.h"
#include "transport/qp/origin.h"
#include "transport/qp/qp.h"
#include "transport/qp/record.h"
#include "transport/qp/schedule.h"
#include "transport/qp/transport.h"
#include "transport/requester/congestion.h"
#include "transport/requester/requester.h"
#include "transport/responder/answer.h"
#include "transport/responder/dct.h"
#include "transport/responder/responder.h"
#include "wire/link.h"
#include "wire/routes.h"

static bool is_response(const struct packet *packet)
{
	return message_has(packet->message, MESSAGE_IS_RESPONSE);
}

/* Returns true if @qp has the half for @packet. Congestion notifications are for either. */
static bool has_half(const struct hca_qp *qp, const struct packet *packet)
{
	if (packet->message == MESSAGE_CONGESTION)
		return true;
	return qp->transport->packets == packet->transport &&
	       (is_response(packet) ? qp->transport->requests : qp->transport->responds);
}

/* Drops and explains @packet. @expected: the program has made no mistake. */
static void packet_drop(const struct packet *packet, struct hca *hca, bool expected, const struct refusal *why)
{
	packet_explain_drop(hca, packet,
			    &(struct explain_subject){.qpn = packet->destination_qpn, .expected = expected}, why->rule,
			    why->args, EXPLAIN_ARGS);
}

/* Drops @packet. Figures 3 to 5 of @why become its sender's process or host. */
static void packet_drop_from(const struct packet *packet, struct hca *hca, bool expected, struct refusal *why)
{
	origin_of_packet(packet, why->args + 3);
	packet_drop(packet, hca, expected, why);
}

/*
 * Drops @packet, which @qp does not receive in its state. Not mistakes: a queue pair in ERR, which has its own
 * explanation, or being destroyed; a response without a request; a request that RC repeats.
 */
static void packet_drop_by_state(const struct packet *packet, struct hca_qp *qp)
{
	struct refusal why = {RULE_PACKET_STATE,
			      {packet->message, origin_number(qp, packet), packet->destination_qpn, 0, 0, 0,
			       qp->state}};
	bool expected = qp->state == IBV_QPS_ERR || qp->destroyed || is_response(packet);

	origin_of_packet(packet, why.args + 3);
	if (!qp->destroyed && early_is_repaired(qp, packet))
		expected = !early_has_lasted(qp, &why);
	packet_drop(packet, qp->hca, expected, &why);
}

/* Counts the packets of a run if its link did not; of a READ, those of its response. */
static void set_count(struct packet *packet, const struct hca_qp *qp)
{
	uint64_t bytes = packet->message == MESSAGE_READ_REQUEST ? packet->dma_length : packet->payload.length;

	packet->count = message_is_atomic(packet->message) ? 1 : packets_of(bytes, qp->mtu_shift);
}

/* The lock of @qp is held. */
static void packet_deliver(struct run *run, struct packet *packet, struct hca_qp *qp)
{
	struct packet *reply = run_slot(run);
	struct responder *responder;

	if (!qp_receives(qp)) {
		counter_add(qp->hca, COUNTER_DROPPED_STATE, 1);
		packet_drop_by_state(packet, qp);
		return;
	}
	if (!has_half(qp, packet)) {
		counter_add(qp->hca, COUNTER_DROPPED_STATE, 1);
		packet_drop_from(packet, qp->hca, false,
				 &(struct refusal){RULE_PACKET_TRANSPORT,
						   {packet->message, origin_number(qp, packet), packet->destination_qpn,
						    0, 0, 0, qp->type}});
		return;
	}
	if (!origin_is_peer(qp, packet))
		return;
	if (packet->message == MESSAGE_CONGESTION) {
		congestion_notified(qp);
		return;
	}
	if (__builtin_expect(congestion_marked(packet), 0))
		congestion_notify(qp, packet, run);
	if (!packet->count)
		set_count(packet, qp);
	if (timeline_is_on())
		record_arrived(qp, packet, packet->count);
	epoch_note(is_response(packet) ? qp->number : qp->number | EPOCH_RECEIVES);
	if (is_response(packet)) {
		requester_receive(qp, packet, run);
		return;
	}
	responder = responder_receive(qp, packet, run);
	if (!responder)
		return;
	/* An initiator unknown to the DCT has no queue of answers. */
	if (timeline_is_on() && link_is_immediate(qp->hca, reply->link))
		record_answer(qp, reply);
	if (link_is_immediate(qp->hca, reply->link) || (qp->dct && responder == &qp->responder))
		link_send(qp->hca, run);
	else
		answer_add(qp, responder, qp->dct ? answer_access(responder) : &qp->access, packet, reply, run);
}

static void packet_handle(struct run *run, struct packet *packet, struct hca_qp *qp)
{
	queue_lock(&qp->lock);
	packet_deliver(run, packet, qp);
	queue_unlock(&qp->lock);
}

/* Returns the device that records a packet without a QP: its sender's, if in this process, otherwise the first. */
static struct hca *device_of_sender(const struct packet *packet)
{
	const struct hca_qp *sender = packet->link && packet->link->immediate ? qp_find(packet->source_qpn) : NULL;

	return sender ? sender->hca : first_device();
}

static bool is_multicast(const struct packet *packet)
{
	return packet->transport == IBV_QPT_UD && gid_is_multicast(&packet->path->destination);
}

/* A QP of another host may have the same number. */
static bool is_from(const struct packet *packet, const struct hca_qp *qp)
{
	return packet->link->immediate && packet->source_qpn == qp->number;
}

/*
 * IBTA 10.5.2: each member, including the sender, gets a copy. Reading a payload consumes it, so the packet is copied
 * too, into the slot of the reply, which datagrams do not need.
 */
static void handle_multicast(struct run *run, const struct packet *packet)
{
	const union ibv_gid *group = &packet->path->destination;
	const struct multicast_list *list = __atomic_load_n(&the_registry.multicast, __ATOMIC_ACQUIRE);
	uint32_t i = list ? multicast_next(list, group, 0) : 0;

	if (packet->destination_qpn != MULTICAST_QPN) {
		packet_drop_from(
			packet, device_of_sender(packet), false,
			&(struct refusal){RULE_MULTICAST_QP,
					  {packet->message, packet->source_qpn, packet->destination_qpn, 0, 0, 0}});
		return;
	}
	if (packet->link == routes->local() && (!list || i == list->count))
		packet_drop(packet, device_of_sender(packet), false,
			    &(struct refusal){RULE_MULTICAST_NOBODY,
					      {packet->message, packet->source_qpn,
					       be64toh(group->global.subnet_prefix),
					       be64toh(group->global.interface_id)}});
	for (; list && i < list->count; i = multicast_next(list, group, i + 1)) {
		struct hca_qp *qp = qp_find(list->member[i].qpn);

		if (!qp || (qp->block_self_multicast && is_from(packet, qp)))
			continue;
		*run_slot(run) = *packet;
		packet_handle(run, run_slot(run), qp);
	}
}

static void handle_without_qp(struct packet *packet)
{
	struct hca *hca;
	bool ended;

	if (packet->destination_qpn == GSI_QPN && management) {
		gsi_receive(the_registry.gsi, packet);
		return;
	}
	hca = device_of_sender(packet);
	/*
	 * Answers, and packets in flight when the queue pair was destroyed, are not mistakes; nor is a server's last
	 * datagram for a client that has ended, which comes here from this process.
	 */
	ended = is_response(packet) || packet->message == MESSAGE_DISCONNECT ||
		id_table_was_used(&the_registry.qps, packet->destination_qpn) ||
		routes->was_known(packet->destination_qpn);
	counter_add(hca, COUNTER_DROPPED_NO_QP, 1);
	packet_drop_from(packet, hca, ended,
			 &(struct refusal){RULE_PACKET_NO_QP,
					   {packet->message, packet->source_qpn, packet->destination_qpn, 0, 0, 0}});
}

static bool drain_packets(struct run *run, const struct hca_qp *self)
{
	while (run->first != run->last) {
		struct packet *packet = &run->packet[run->first % RUN_PACKETS];
		bool multicast = is_multicast(packet);
		struct hca_qp *qp = multicast ? NULL : qp_find(packet->destination_qpn);

		if (qp && qp == self)
			return false;
		if (multicast)
			handle_multicast(run, packet);
		else if (qp)
			packet_handle(run, packet, qp);
		else
			handle_without_qp(packet);
		run->first++;
	}
	return true;
}

/* Puts the next frame that a device's filters release into the run. */
static bool take_frame(struct run *run)
{
	for (size_t i = 0; i < the_registry.count; i++) {
		struct hca *hca = &the_registry.devices[i];

		if (hca->filters && link_filters(hca)->drain(hca, run))
			return true;
	}
	return false;
}

void run_drain(struct run *run, const struct hca_qp *self)
{
	do {
		if (!drain_packets(run, self))
			return;
	} while (__builtin_expect(the_registry.filters, 0) && take_frame(run));
}

/*
 * Handles @packet at once, if possible. The lock of @self is held, so another QP's is only tried: two threads that
 * deliver to each other would deadlock.
 */
static bool take_at_once(struct run *run, struct packet *packet, struct hca_qp *self)
{
	struct hca_qp *qp;

	if (packet->destination_qpn == self->number) {
		packet_deliver(run, packet, self);
		return true;
	}
	if (packet->payload.length > LIMIT_DELIVERED_AT_ONCE || is_multicast(packet))
		return false;
	qp = qp_find(packet->destination_qpn);
	if (!qp || !queue_try_lock(&qp->lock))
		return false;
	packet_deliver(run, packet, qp);
	queue_unlock(&qp->lock);
	return true;
}

bool run_drain_at_once(struct run *run, struct hca_qp *self)
{
	if (__builtin_expect(the_registry.filters, 0))
		return false;
	for (; run->first != run->last; run->first++)
		if (!take_at_once(run, &run->packet[run->first % RUN_PACKETS], self))
			return false;
	return true;
}

bool run_take(struct run *run, struct hca_qp *self)
{
	if (run->first == run->last)
		return false;
	packet_deliver(run, &run->packet[run->first % RUN_PACKETS], self);
	run->first++;
	return true;
}

void run_finish(struct run *run)
{
	struct hca_qp *qp;
	bool due;

	if (__builtin_expect(host_window_has_room(), 0))
		host_window_resume(the_registry.host_windows, run);
	while ((qp = run->scheduled)) {
		run->scheduled = qp->next_scheduled;
		queue_lock(&qp->lock);
		qp->scheduled = false;
		due = qp->requester_due;
		qp->requester_due = false;
		epoch_note(qp->unsent_answers ? qp->number | EPOCH_RECEIVES : qp->number);
		if (qp->unsent_answers)
			answer_send(qp, run);
		queue_unlock(&qp->lock);
		if (run_has_packets(run, qp->hca))
			run_drain(run, NULL);
		if (due) {
			epoch_note(qp->number);
			run_requester(qp, run);
		}
		if (__builtin_expect(!run->scheduled && host_window_has_room(), 0))
			host_window_resume(the_registry.host_windows, run);
	}
}

void qp_resume(struct link_sender *sender, bool requester, struct run *run)
{
	struct hca_qp *qp = (struct hca_qp *)((char *)sender - offsetof(struct hca_qp, sender));

	queue_lock(&qp->lock);
	if (requester)
		run_schedule_requester(run, qp);
	else
		run_schedule(run, qp);
	queue_unlock(&qp->lock);
}

bool run_around(bool (*poll)(struct run *run))
{
	THREAD_VARIABLE(struct run, run);
	bool found;

	run_begin(run);
	found = poll(run);
	run_finish(run);
	return found;
}

/* ---- packets that are all of their message ---------------------------------------------------------------------- */

/*
 * Notes an acknowledgement, to be handled before anything else for its QP. The newest is kept, as it covers the others.
 * While a timeline is recorded, each is handled. The lock of @qp is held.
 */
static inline void run_note_acknowledgement(struct run *run, const struct packet *packet, struct hca_qp *qp)
{
	if (timeline_is_on()) {
		record_acknowledged(qp, packet);
		requester_receive_acknowledgement(qp, packet->psn, run);
		timeline_end_call();
		return;
	}
	/*
	 * An acknowledgement of packets not sent yet is invalid (requester_receive()), and must not replace a valid
	 * one.
	 */
	if (unlikely(psn_distance(packet->psn, qp->requester.newest) >= 0))
		return;
	if (run->acknowledges && unlikely(psn_distance(packet->psn, run->acknowledged) <= 0))
		return;
	run->acknowledges = true;
	run->acknowledged = packet->psn;
}

static inline void run_complete_acknowledged(struct run *run, struct hca_qp *qp)
{
	if (!run->acknowledges)
		return;
	run->acknowledges = false;
	requester_receive_acknowledgement(qp, run->acknowledged, run);
}

/* Releases the QP of the last packet, and schedules it if it has answers. */
static void run_switch_qp(struct run *run)
{
	struct hca_qp *qp = run->held;

	if (!qp)
		return;
	run_complete_acknowledged(run, qp);
	run->held = NULL;
	if (qp->unsent_answers)
		run_schedule(run, qp);
	queue_unlock(&qp->lock);
}

void run_let_go(struct run *run)
{
	struct hca_qp *qp = run->held;

	if (!qp)
		return;
	run_complete_acknowledged(run, qp);
	run->held = NULL;
	if (qp->unsent_answers)
		answer_send(qp, run);
	queue_unlock(&qp->lock);
}

/*
 * Returns true if @qp accepts @packet without checks by run_drain(), and its answer will be queued. The lock of @qp is
 * held.
 */
static inline bool qp_accepts_whole(const struct hca_qp *qp, const struct packet *packet)
{
	return qp->whole && packet->link == qp->link && packet->connection == qp->connection && qp_receives(qp) &&
	       !qp->hca->filters;
}

static inline void packet_deliver_whole(struct run *run, struct packet *packet, struct hca_qp *qp)
{
	if (packet->message == MESSAGE_ACKNOWLEDGE) {
		run_note_acknowledgement(run, packet, qp);
		return;
	}
	run_complete_acknowledged(run, qp);
	if (timeline_is_on())
		record_arrived(qp, packet, packets_of(packet->payload.length, qp->mtu_shift));
	epoch_note(packet->message == MESSAGE_READ_RESPONSE ? qp->number : qp->number | EPOCH_RECEIVES);
	switch (packet->message) {
	case MESSAGE_READ_RESPONSE:
		packet->count = packets_of(packet->payload.length, qp->mtu_shift);
		requester_receive(qp, packet, run);
		break;
	case MESSAGE_READ_REQUEST:
		packet->count = packets_of(packet->dma_length, qp->mtu_shift);
		responder_receive_whole(qp, packet, run);
		break;
	default:
		packet->count = packets_of(packet->payload.length, qp->mtu_shift);
		responder_receive_whole(qp, packet, run);
	}
}

void run_take_whole(struct run *run)
{
	struct packet *packet = run_slot(run);
	struct hca_qp *qp = run->held;

	if (!qp || __builtin_expect(qp->number != packet->destination_qpn, 0)) {
		run_switch_qp(run);
		qp = qp_find(packet->destination_qpn);
		if (__builtin_expect(!qp, 0)) {
			handle_without_qp(packet);
			return;
		}
		queue_lock(&qp->lock);
		run->held = qp;
	}
	/* The reply is built in the next slot. */
	run_commit(run);
	if (__builtin_expect(!qp_accepts_whole(qp, packet), 0)) {
		/* run_drain() may accept it (qp/origin.h), and counts its packets. */
		if (packet->payload.length)
			packet->count = 0;
		run_switch_qp(run);
		run_drain(run, NULL);
		return;
	}
	packet_deliver_whole(run, packet, qp);
	run->first = run->last;
}
