/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The records in the order of time. Each queue pair has two tracks, that of its requester and that of its responder, each CQ
 * and SRQ one. A request is a slice of its own, from post to poll; what happens on the way is a short slice on the track where
 * it happens, and arrows connect these.
 *
 * Nothing in the records can be relied on: what does not fit is a request without its beginning or its end.
 */
#include "tool/timeline_trace.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <infiniband/verbs.h>

#include "tool/progress.h"
#include "tool/timeline_maker.h"
#include "tool/timeline_names.h"
#include "tool/tool.h"
#include "wire/packet.h"

/* ---- names ------------------------------------------------------------------------------------------------------ */

/* What an answer says. */
static const char *answer_name(uint8_t message, uint8_t syndrome)
{
	static const char *const naks[] = {"NAK: sequence", "NAK: invalid request", "NAK: remote access",
					   "NAK: remote operation"};

	if (message != MESSAGE_ACKNOWLEDGE || (syndrome & AETH_KIND_MASK) == AETH_ACK)
		return message_name(message < MESSAGE_COUNT ? message : MESSAGE_NONE);
	if ((syndrome & AETH_KIND_MASK) == AETH_RNR_NAK)
		return "RNR NAK";
	return (syndrome & AETH_CODE_MASK) < 4 ? naks[syndrome & AETH_CODE_MASK] : "NAK";
}

/* ---- messages --------------------------------------------------------------------------------------------------- */

static const struct timeline_qp *row_of(const struct maker *maker, uint32_t source, uint32_t qpn)
{
	uint32_t place = map_get(&maker->map, maker_key(KEY_ROW, source, qpn, 0));

	return place == MAP_NONE ? NULL : &maker->timeline->sources[source].qps[place];
}

/*
 * The arrow of packets that begin with @psn, as both ends reckon it: by the GID of the queue pair that sends, if it is
 * connected, its number, that of the other, and the PSN.
 */
static uint64_t message_flow(const uint8_t *gid, uint32_t from, uint32_t to, uint32_t psn, bool answer)
{
	uint64_t halves[2] = {0, 0};

	if (gid)
		memcpy(halves, gid, sizeof(halves));
	return mix(mix(mix(halves[0]) ^ halves[1]) ^ mix((uint64_t)from << 32 | to)) ^
	       mix((uint64_t)answer << 32 | (psn & PSN_MASK));
}

static uint64_t sent_flow(const struct maker *maker, const struct timeline_event *event, bool answer)
{
	const struct timeline_qp *row = row_of(maker, event->source, event->record.number);

	return message_flow(row && row->peer ? row->source : NULL, event->record.number, event->record.value & 0xffffff,
			    event->record.psn, answer);
}

static uint64_t arrived_flow(const struct maker *maker, const struct timeline_event *event, bool answer)
{
	const struct timeline_qp *row = row_of(maker, event->source, event->record.number);
	uint32_t from = event->record.value & 0xffffff;

	/* The packet of a connection need not say who sent it. */
	if (row && row->peer)
		from = row->peer;
	return message_flow(row && row->peer ? row->destination : NULL, from, event->record.number, event->record.psn,
			    answer);
}

static void describe_packets(struct track *track, const struct timeline_record *record)
{
	snprintf(track->arguments, sizeof(track->arguments),
		 "\"psn\":%u,\"packets\":%u,\"bytes\":%u,\"peer\":%u,\"wqe\":%u", record->psn,
		 (unsigned int)(record->value >> 24 & 0xffffff), record->length,
		 (unsigned int)(record->value & 0xffffff), record->index);
}

static bool is_first(const struct timeline_record *record)
{
	return record->value >> 48 & PLACE_FIRST;
}

static bool is_last(const struct timeline_record *record)
{
	return record->value >> 48 & PLACE_LAST;
}

static bool waits_for_response(uint8_t message)
{
	return message_has(message, MESSAGE_IS_ANSWERED);
}

static const char *safe_message_name(uint8_t message)
{
	return message_name(message < MESSAGE_COUNT ? message : MESSAGE_NONE);
}

static bool takes_receive(const struct timeline_record *record)
{
	return message_has(record->opcode, MESSAGE_TAKES_RECEIVE) ||
	       message_has(record->opcode, MESSAGE_TAKES_RECEIVE_LAST);
}

static uint32_t packets_in(const struct timeline_record *record)
{
	uint32_t count = record->value >> 24 & 0xffffff;

	return count ? count : 1;
}

static bool is_about(const struct track *track, enum responder_activity activity)
{
	return track->activity == responder_activities[activity];
}

static bool waits(const struct track *track)
{
	return is_about(track, RESPONDER_ACTIVITY_WAITING_FOR_PACKET) ||
	       is_about(track, RESPONDER_ACTIVITY_WAITING_FOR_REPETITION);
}

/* What a request that arrives makes of what the responder is about. @call: it has answered when that is over. */
static const char *activity_after_request(struct track *track, const struct timeline_record *record, bool call)
{
	int32_t distance = psn_distance(track->awaited_psn, record->psn);

	if (waits(track) && (distance < 0 || (uint32_t)distance >= packets_in(record)))
		return track->activity;
	if (waits_for_response(record->opcode) && !call) {
		track->newest_psn = psn_add(record->psn, packets_in(record) - 1);
		return responder_activities[RESPONDER_ACTIVITY_ANSWERING];
	}
	if (is_about(track, RESPONDER_ACTIVITY_ANSWERING))
		return track->activity;
	return is_last(record) || call ? NULL : responder_activities[RESPONDER_ACTIVITY_RECEIVING];
}

/* A request arrives at the responder on @track. */
static void arrive(const struct maker *maker, struct track *track, const struct timeline_record *record, int64_t ns,
		   uint64_t id)
{
	track_set_activity(maker, track, ns, activity_after_request(track, record, record->kind == TIMELINE_CALL));
	track_begin(maker, track, ns);
	snprintf(track->name, sizeof(track->name), "arrive: %s", safe_message_name(record->opcode));
	describe_packets(track, record);
	if (is_first(record)) {
		track_add_flow(track, takes_receive(record) ? 't' : 'f', "message", id);
		track->message = takes_receive(record) ? id : 0;
	}
}

static bool is_reliable(const struct maker *maker, uint32_t source, uint32_t qpn)
{
	const struct timeline_qp *row = row_of(maker, source, qpn);

	return !row || (row->type != IBV_QPT_UC && row->type != IBV_QPT_UD);
}

/* ---- one function for each kind of record ----------------------------------------------------------------------- */

static void on_post(struct maker *maker, const struct timeline_event *event, int64_t ns)
{
	const struct timeline_record *record = &event->record;
	struct request *request = request_new(maker, event->source, record->number, record->index, false);
	struct track *track = track_at(maker, TRACK_REQUESTER, event->source, record->number);
	uint32_t place = (uint32_t)(request - maker->requests);

	request->posted = ns;
	request->wr_id = record->value;
	request->opcode = record->opcode;
	if (track->last_open == MAP_NONE)
		track->first_open = place;
	else
		maker->requests[track->last_open].next = place;
	track->last_open = place;
	track_begin(maker, track, ns);
	snprintf(track->name, sizeof(track->name), "post: %s", wqe_name(record->opcode));
	snprintf(track->arguments, sizeof(track->arguments), "\"wr_id\":\"0x%" PRIx64 "\",\"wqe\":%u", record->value,
		 record->index);
	track_add_flow(track, 's', "request", request_flow(maker, request));
}

static void on_post_receive(struct maker *maker, const struct timeline_event *event, int64_t ns)
{
	const struct timeline_record *record = &event->record;
	bool shared = record->kind == TIMELINE_POST_SRQ;
	struct track *track = track_at(maker, shared ? TRACK_SRQ : TRACK_RESPONDER, event->source, record->number);

	track_begin(maker, track, ns);
	snprintf(track->name, sizeof(track->name), "post: RECEIVE");
	snprintf(track->arguments, sizeof(track->arguments), "\"wr_id\":\"0x%" PRIx64 "\",\"bytes\":%u", record->value,
		 record->length);
	/* Which QP takes it from an SRQ is not known yet. */
	if (!shared) {
		struct request *request = request_new(maker, event->source, record->number, record->index, true);

		request->posted = ns;
		request->wr_id = record->value;
		request->bytes = record->length;
		track_add_flow(track, 's', "request", request_flow(maker, request));
	}
}

static void on_local(struct maker *maker, const struct timeline_event *event, int64_t ns)
{
	struct request *request = request_executed(maker, event);
	struct track *track = track_at(maker, TRACK_REQUESTER, event->source, event->record.number);

	request->executed = ns;
	request->opcode = event->record.opcode;
	track_begin(maker, track, ns);
	snprintf(track->name, sizeof(track->name), "execute: %s", wqe_name(event->record.opcode));
	snprintf(track->arguments, sizeof(track->arguments), "\"wqe\":%u", event->record.index);
	track_add_flow(track, 't', "request", request_flow(maker, request));
}

/* The WQE's opcode, of a request that nobody posted by a call. */
static uint8_t opcode_of(uint8_t message)
{
	for (unsigned int i = 0; i < 256; i++)
		if (wqe_opcodes[i].name && wqe_opcodes[i].message == message && message != MESSAGE_NONE)
			return (uint8_t)i;
	return 0;
}

static const char *activity_after_sending(const struct maker *maker, const struct timeline_event *event, bool again)
{
	const struct timeline_record *record = &event->record;

	if (!is_last(record) && !waits_for_response(record->opcode))
		return requester_activities[again ? REQUESTER_ACTIVITY_SENDING_AGAIN : REQUESTER_ACTIVITY_SENDING];
	if (!is_reliable(maker, event->source, record->number))
		return NULL;
	return requester_activities[waits_for_response(record->opcode) ? REQUESTER_ACTIVITY_WAITING_FOR_RESPONSE
								       : REQUESTER_ACTIVITY_WAITING_FOR_ACK];
}

static void on_send(struct maker *maker, const struct timeline_event *event, int64_t ns)
{
	const struct timeline_record *record = &event->record;
	bool call = record->kind == TIMELINE_CALL, again = record->kind == TIMELINE_SEND_AGAIN;
	struct request *request = request_executed(maker, event);
	struct track *track = track_at(maker, TRACK_REQUESTER, event->source, record->number);
	uint64_t id = sent_flow(maker, event, false);
	uint32_t count = record->value >> 24 & 0xffffff;

	if (request->executed == NEVER) {
		request->executed = ns;
		request->psn = record->psn;
		if (request->posted == NEVER)
			request->opcode = opcode_of(record->opcode);
	}
	if (!again) {
		request->packets += count;
		request->bytes += record->length;
	}
	request->again |= again;
	if (!call) {
		track->newest_psn = psn_add(record->psn, count - 1);
		track_set_activity(maker, track, ns, activity_after_sending(maker, event, again));
	}
	track_begin(maker, track, ns);
	snprintf(track->name, sizeof(track->name), "%s: %s", again ? "send again" : "send",
		 safe_message_name(record->opcode));
	describe_packets(track, record);
	track_add_flow(track, 't', "request", request_flow(maker, request));
	if (is_first(record))
		track_add_flow(track, 's', "message", id);
	if (call)
		arrive(maker, track_at(maker, TRACK_RESPONDER, event->source, record->value & 0xffffff), record, ns + 1,
		       id);
}

static void on_no_room(struct maker *maker, const struct timeline_event *event, int64_t ns)
{
	struct track *track = track_at(maker, TRACK_REQUESTER, event->source, event->record.number);

	track_set_activity(maker, track, ns, requester_activities[REQUESTER_ACTIVITY_WAITING_FOR_ROOM]);
}

/* What an answer makes of what the requester is about. */
static const char *activity_after_answer(const struct track *track, const struct timeline_record *record)
{
	uint32_t count = record->value >> 24 & 0xffffff, end = psn_add(record->psn, count ? count - 1 : 0);

	if (record->opcode == MESSAGE_ACKNOWLEDGE && (record->index & AETH_KIND_MASK) == AETH_RNR_NAK)
		return requester_activities[REQUESTER_ACTIVITY_WAITING_FOR_RECEIVE];
	if (record->opcode == MESSAGE_ACKNOWLEDGE && (record->index & AETH_KIND_MASK) != AETH_ACK)
		return requester_activities[REQUESTER_ACTIVITY_SENDING_AGAIN];
	return psn_distance(record->opcode == MESSAGE_ACKNOWLEDGE ? record->psn : end, track->newest_psn) >= 0
		       ? NULL
		       : track->activity;
}

static void on_arrive(struct maker *maker, const struct timeline_event *event, int64_t ns)
{
	const struct timeline_record *record = &event->record;
	struct track *track;

	if (!message_has(record->opcode, MESSAGE_IS_RESPONSE)) {
		arrive(maker, track_at(maker, TRACK_RESPONDER, event->source, record->number), record, ns,
		       arrived_flow(maker, event, false));
		return;
	}
	track = track_at(maker, TRACK_REQUESTER, event->source, record->number);
	track_set_activity(maker, track, ns, activity_after_answer(track, record));
	track_begin(maker, track, ns);
	snprintf(track->name, sizeof(track->name), "arrive: %s", answer_name(record->opcode, (uint8_t)record->index));
	describe_packets(track, record);
	if (record->opcode != MESSAGE_READ_RESPONSE || is_first(record))
		track_add_flow(track, 'f', "message", arrived_flow(maker, event, true));
}

/* What a request that stopped on its way makes of what the responder is about. */
static const char *activity_after_stop(const struct maker *maker, const struct timeline_event *event,
				       struct track *track)
{
	uint8_t from = event->record.opcode;

	if (event->record.index == RESPONDER_DUPLICATE)
		return track->activity;
	track->awaited_psn = event->record.psn;
	if (event->record.index == RESPONDER_DONE && is_reliable(maker, event->source, event->record.number)) {
		if (from == RESPONDER_CHECK_PSN)
			return responder_activities[RESPONDER_ACTIVITY_WAITING_FOR_PACKET];
		if (from == RESPONDER_CHECK_RECEIVE)
			return responder_activities[RESPONDER_ACTIVITY_WAITING_FOR_REPETITION];
	}
	return NULL;
}

static void on_stop(struct maker *maker, const struct timeline_event *event, int64_t ns)
{
	const struct timeline_record *record = &event->record;
	struct track *track = track_at(maker, TRACK_RESPONDER, event->source, record->number);

	if (record->opcode >= RESPONDER_STATES || record->index >= RESPONDER_STATES)
		return;
	track_set_activity(maker, track, ns, activity_after_stop(maker, event, track));
	track_begin(maker, track, ns);
	snprintf(track->name, sizeof(track->name), "%s: %s", responder_states[record->opcode],
		 responder_states[record->index]);
	snprintf(track->arguments, sizeof(track->arguments), "\"expected_psn\":%u,\"peer\":%u,\"rule\":%u", record->psn,
		 (unsigned int)(record->value & 0xffffff), record->length);
}

static void on_answer(struct maker *maker, const struct timeline_event *event, int64_t ns)
{
	const struct timeline_record *record = &event->record;
	struct track *track = track_at(maker, TRACK_RESPONDER, event->source, record->number);

	/* All that was to be answered is, or it is refused. */
	if (is_about(track, RESPONDER_ACTIVITY_ANSWERING) &&
	    (record->opcode == MESSAGE_ACKNOWLEDGE
		     ? (record->index & AETH_KIND_MASK) == AETH_NAK
		     : psn_distance(psn_add(record->psn, packets_in(record) - 1), track->newest_psn) >= 0))
		track_set_activity(maker, track, ns, NULL);
	track_begin(maker, track, ns);
	snprintf(track->name, sizeof(track->name), "answer: %s", answer_name(record->opcode, (uint8_t)record->index));
	describe_packets(track, record);
	if (record->opcode != MESSAGE_READ_RESPONSE || is_first(record))
		track_add_flow(track, 's', "message", sent_flow(maker, event, true));
}

static void on_timeout(struct maker *maker, const struct timeline_event *event, int64_t ns)
{
	struct track *track = track_at(maker, TRACK_REQUESTER, event->source, event->record.number);

	track_set_activity(maker, track, ns, requester_activities[REQUESTER_ACTIVITY_SENDING_AGAIN]);
	track_begin(maker, track, ns);
	snprintf(track->name, sizeof(track->name), "timeout");
	snprintf(track->arguments, sizeof(track->arguments), "\"psn\":%u", event->record.psn);
}

static void on_state(struct maker *maker, const struct timeline_event *event, int64_t ns)
{
	struct track *track = track_at(maker, TRACK_REQUESTER, event->source, event->record.number);
	uint8_t state = event->record.opcode;
	bool shown = state == REQUESTER_DRAINED || state == REQUESTER_FLUSH;

	track_set_activity(maker, track, ns, shown ? requester_states[state] : NULL);
}

/* Devices number theirs independently; so many CQs of one are told apart. */
static uint32_t cq_of(uint32_t number, uint32_t device)
{
	return number ^ (device & 0xf) << 20;
}

static bool is_responder_cqe(uint8_t opcode)
{
	return opcode == MLX5_CQE_RESP_WR_IMM || opcode == MLX5_CQE_RESP_SEND || opcode == MLX5_CQE_RESP_SEND_IMM ||
	       opcode == MLX5_CQE_RESP_SEND_INV || opcode == MLX5_CQE_RESP_ERR;
}

static void on_complete(struct maker *maker, const struct timeline_event *event, int64_t ns)
{
	const struct timeline_record *record = &event->record;
	uint32_t qpn = record->value & 0xffffff, device = record->value >> 48 & 0xff;
	bool receive = is_responder_cqe(record->opcode);
	bool failed = record->opcode == MLX5_CQE_REQ_ERR || record->opcode == MLX5_CQE_RESP_ERR;
	struct request *request = request_at(maker, event->source, qpn, record->index, receive);
	const char *name = receive ? "RECEIVE" : wqe_name(record->value >> 24 & 0xff);
	uint32_t number = cq_of(record->number, device);
	uint64_t message = 0;
	struct track *track;

	if (receive) {
		struct track *responder = track_at(maker, TRACK_RESPONDER, event->source, qpn);

		message = responder->message;
		responder->message = 0;
	}
	if (!request || request->completed != NEVER)
		request = request_new(maker, event->source, qpn, record->index, receive);
	if (receive) {
		request->completed = ns;
		request->bytes = record->length;
	} else {
		request->opcode = record->value >> 24 & 0xff;
		request_complete_up_to(maker, request, ns);
	}
	map_set(&maker->map, maker_key(KEY_COMPLETION, event->source, number, record->psn),
		(uint32_t)(request - maker->requests));
	if (maker->early_count)
		request_take_early(maker, request, maker_key(KEY_EARLY, event->source, number, record->psn));
	/* Not before: a track that is made may move the others. */
	track = track_at(maker, TRACK_CQ, event->source, number);
	track_begin(maker, track, ns);
	snprintf(track->name, sizeof(track->name), "%s: %s", failed ? "error" : "completion", name);
	snprintf(track->arguments, sizeof(track->arguments),
		 "\"qp\":%u,\"wqe\":%u,\"bytes\":%u,\"wr_id\":\"0x%" PRIx64 "\"%s%u", qpn, record->index,
		 record->length, request->wr_id, failed ? ",\"syndrome\":" : ",\"device\":",
		 (unsigned int)(failed ? record->value >> 32 & 0xff : device));
	track_add_flow(track, 'f', "request", request_flow(maker, request));
	if (message)
		track_add_flow(track, 'f', "message", message);
}

static void on_poll(struct maker *maker, const struct timeline_event *event, int64_t ns)
{
	const struct timeline_record *record = &event->record;
	uint32_t number = cq_of(record->number, record->length >> 24);
	struct track *track = track_at(maker, TRACK_CQ, event->source, number);
	uint32_t place = map_get(&maker->map, maker_key(KEY_COMPLETION, event->source, number, record->psn));

	track_begin(maker, track, ns);
	snprintf(track->name, sizeof(track->name), "poll");
	snprintf(track->arguments, sizeof(track->arguments), "\"wr_id\":\"0x%" PRIx64 "\",\"status\":\"%s\"",
		 record->value, ibv_wc_status_str(record->opcode));
	if (place == MAP_NONE || maker->requests[place].polled != NEVER)
		request_add_early(maker, record, ns, maker_key(KEY_EARLY, event->source, number, record->psn));
	else
		request_set_polled(&maker->requests[place], record, ns);
}

/* ---- the whole -------------------------------------------------------------------------------------------------- */

static void put_process(struct maker *maker, uint32_t number)
{
	const struct timeline_source *source = &maker->timeline->sources[number];
	uint64_t lost = source->head.overwritten + source->head.dropped;
	uint32_t pid = maker_process(maker, number);
	char program[128], host[128];

	trace_event(maker->trace, 'M', maker->trace->base_ns, pid, 0, "process_name");
	fprintf(maker->trace->out, ",\"args\":{\"name\":\"%s on %s\"}", trace_text(source->head.program, program),
		trace_text(source->head.host, host));
	trace_event_end(maker->trace);
	for (uint32_t i = 0; i < source->qp_count; i++)
		if (source->qps[i].number)
			map_set(&maker->map, maker_key(KEY_ROW, number, source->qps[i].number, 0), i);
	if (!lost)
		return;
	trace_event(maker->trace, 'M', maker->trace->base_ns, pid, 0, "process_labels");
	fprintf(maker->trace->out, ",\"args\":{\"labels\":\"%" PRIu64 " older records are lost\"}", lost);
	trace_event_end(maker->trace);
}

int64_t timeline_base(const struct timeline *timeline)
{
	int64_t first = timeline->event_count ? timeline->events[0].ns : 0;

	return first - first % 1000000000;
}

/* Events between two looks whether to tell how far it is. */
enum { EVENTS_OFTEN = 1024 };

void timeline_write(const struct timeline *timeline, struct trace *trace)
{
	static void (*const handlers[TIMELINE_KINDS])(struct maker * maker, const struct timeline_event *event,
						      int64_t ns) = {
		[TIMELINE_POST] = on_post,
		[TIMELINE_POST_RECEIVE] = on_post_receive,
		[TIMELINE_POST_SRQ] = on_post_receive,
		[TIMELINE_LOCAL] = on_local,
		[TIMELINE_CALL] = on_send,
		[TIMELINE_SEND] = on_send,
		[TIMELINE_SEND_AGAIN] = on_send,
		[TIMELINE_NO_ROOM] = on_no_room,
		[TIMELINE_ARRIVE] = on_arrive,
		[TIMELINE_ANSWER] = on_answer,
		[TIMELINE_TIMEOUT] = on_timeout,
		[TIMELINE_STATE] = on_state,
		[TIMELINE_COMPLETE] = on_complete,
		[TIMELINE_POLL] = on_poll,
		[TIMELINE_STOP] = on_stop,
	};
	struct maker maker = {.timeline = timeline, .trace = trace};
	struct progress progress;
	int64_t end = timeline->event_count ? timeline->events[timeline->event_count - 1].ns : 0;

	maker.latest = calloc(timeline->source_count + 1, sizeof(*maker.latest));
	if (!maker.latest)
		tool_fail(EXIT_FAILURE, "out of memory");
	for (uint32_t i = 0; i < timeline->source_count; i++) {
		maker.latest[i] = NEVER;
		put_process(&maker, i);
	}
	progress_begin(&progress, "making the timeline", trace->out);
	for (size_t i = 0; i < timeline->event_count; i++) {
		const struct timeline_event *event = &timeline->events[i];
		int64_t *latest = &maker.latest[event->source];
		int64_t ns = event->ns > *latest || *latest == INT64_MAX ? event->ns : *latest + 1;

		/* A message that was taken by a call arrives one ns later. */
		*latest = ns + (event->record.kind == TIMELINE_CALL && ns < INT64_MAX);
		if (handlers[event->record.kind])
			handlers[event->record.kind](&maker, event, ns);
		end = ns > end ? ns : end;
		if (i % EVENTS_OFTEN == 0)
			progress_tell(&progress, i, timeline->event_count);
	}
	progress_end(&progress);
	for (uint32_t i = 0; i < maker.track_count; i++) {
		track_put_pending(&maker, &maker.tracks[i], end);
		track_set_activity(&maker, &maker.tracks[i], end, NULL);
	}
	for (uint32_t i = 0; i < maker.request_count; i++)
		request_put(&maker, &maker.requests[i], end);
	free(maker.latest);
	free(maker.tracks);
	free(maker.requests);
	free(maker.early);
	free(maker.map.entries);
}
