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

#include "format/wqe.h"
#include "tool/progress.h"
#include "tool/timeline_map.h"
#include "tool/timeline_names.h"
#include "tool/tool.h"
#include "wire/packet.h"

/* What happens is seen for so long, unless something else happens on its track. */
#define EVENT_NS 100
/* The clocks of two CPUs differ by less: a poll that is further in front of a completion is of another one. */
#define EARLY_NS 1000000

/* Kinds of tracks, and of keys of the map. */
enum track_kind {
	TRACK_REQUESTER,
	TRACK_RESPONDER,
	TRACK_CQ,
	TRACK_SRQ,
	KEY_REQUEST,
	KEY_RECEIVE,
	KEY_COMPLETION,
	KEY_EARLY,
	KEY_ROW
};

/* An arrow: "request" from post over sending to completion; "message" from one queue pair to the other. */
struct flow {
	char phase; /* s, t, f; 0: none */
	const char *name;
	uint64_t id;
};

#define FLOWS 2

struct track {
	uint32_t source, number;
	enum track_kind kind;
	/* The slice that has begun last and is not written yet. */
	bool pending;
	int64_t ns;
	char name[96], arguments[160];
	struct flow flows[FLOWS];
	/* What requester or responder is about, or NULL. */
	const char *activity;
	uint32_t newest_psn;            /* of what was sent; of a responder, which it is to answer */
	uint32_t awaited_psn;           /* of a responder that waits */
	uint64_t message;               /* arrow of the message that arrived last */
	uint32_t first_open, last_open; /* requests that are not completed; MAP_NONE: none */
};

#define NEVER INT64_MIN

struct request {
	int64_t posted, executed, completed, polled; /* NEVER */
	uint64_t wr_id;
	uint32_t source, qpn, next;
	uint32_t psn, packets, bytes;
	uint16_t index;
	uint8_t opcode;
	bool receive, again;
	uint8_t status; /* enum ibv_wc_status, if polled */
};

/* A poll that is said to be before its completion. */
struct early {
	const struct timeline_record *record;
	int64_t ns;
};

struct maker {
	const struct timeline *timeline;
	struct trace *trace;
	struct map map;
	struct track *tracks;
	uint32_t track_count;
	struct request *requests;
	uint32_t request_count;
	struct early *early;
	uint32_t early_count;
	int64_t *latest; /* of each source: times of one process differ, so that its slices have an order */
};

static void *room_for_one(void *array, uint32_t count, size_t size)
{
	/* Doubling. */
	if (count & (count - 1))
		return array;
	array = reallocarray(array, count ? 2 * (size_t)count : 1, size);
	if (!array || count == UINT32_MAX / 2)
		tool_fail(EXIT_FAILURE, "out of memory");
	return array;
}

static uint64_t key_of(enum track_kind kind, uint32_t source, uint32_t number, uint32_t index)
{
	return (uint64_t)kind << 60 | (uint64_t)(source & 0xfff) << 48 | (uint64_t)(number & 0xffffff) << 24 |
	       (index & 0xffffff);
}

/* splitmix64 */
static uint64_t mixed(uint64_t value)
{
	value += UINT64_C(0x9e3779b97f4a7c15);
	value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	value = (value ^ value >> 27) * UINT64_C(0x94d049bb133111eb);
	return value ^ value >> 31;
}

static uint32_t process_of(const struct maker *maker, uint32_t source)
{
	return maker->timeline->sources[source].head.process & INT32_MAX;
}

/* ---- tracks ----------------------------------------------------------------------------------------------------- */

static uint64_t tid_of(const struct track *track)
{
	return (uint64_t)track->kind << 24 | track->number;
}

static void name_track(const struct maker *maker, const struct track *track)
{
	static const char *const names[] = {"QP 0x%x, requester", "QP 0x%x, responder", "CQ %u", "SRQ %u"};
	static const unsigned int order[] = {0, 1, 2, 3};
	uint32_t pid = process_of(maker, track->source);
	char name[64];

	snprintf(name, sizeof(name), names[track->kind], track->number);
	trace_event(maker->trace, 'M', maker->trace->base_ns, pid, tid_of(track), "thread_name");
	fprintf(maker->trace->out, ",\"args\":{\"name\":\"%s\"}", name);
	trace_event_end(maker->trace);
	trace_event(maker->trace, 'M', maker->trace->base_ns, pid, tid_of(track), "thread_sort_index");
	fprintf(maker->trace->out, ",\"args\":{\"sort_index\":%u}", track->number * 4 + order[track->kind]);
	trace_event_end(maker->trace);
}

static struct track *track_at(struct maker *maker, enum track_kind kind, uint32_t source, uint32_t number)
{
	uint64_t key = key_of(kind, source, number, 0);
	uint32_t place = map_get(&maker->map, key);

	if (place != MAP_NONE)
		return &maker->tracks[place];
	maker->tracks = room_for_one(maker->tracks, maker->track_count, sizeof(*maker->tracks));
	place = maker->track_count++;
	map_set(&maker->map, key, place);
	maker->tracks[place] = (struct track){
		.source = source, .number = number, .kind = kind, .first_open = MAP_NONE, .last_open = MAP_NONE};
	name_track(maker, &maker->tracks[place]);
	return &maker->tracks[place];
}

static void put_flow(const struct maker *maker, const struct track *track, const struct flow *flow)
{
	trace_event(maker->trace, flow->phase, track->ns, process_of(maker, track->source), tid_of(track), flow->name);
	fprintf(maker->trace->out, ",\"cat\":\"%s\",\"id\":\"0x%" PRIx64 "\"%s", flow->name, flow->id,
		flow->phase == 's' ? "" : ",\"bp\":\"e\"");
	trace_event_end(maker->trace);
}

/* Something else happens at @ns: the slice that has begun ends before. */
static void put_pending(const struct maker *maker, struct track *track, int64_t ns)
{
	int64_t left = (int64_t)((uint64_t)ns - (uint64_t)track->ns);

	if (!track->pending)
		return;
	track->pending = false;
	trace_event(maker->trace, 'X', track->ns, process_of(maker, track->source), tid_of(track), track->name);
	trace_duration(maker->trace, left > 0 && left < EVENT_NS ? left : EVENT_NS);
	if (*track->arguments)
		fprintf(maker->trace->out, ",\"args\":{%s}", track->arguments);
	trace_event_end(maker->trace);
	for (int i = 0; i < FLOWS && track->flows[i].phase; i++)
		put_flow(maker, track, &track->flows[i]);
}

/* Begins a slice; name, arguments and arrows are filled in behind it. */
static void begin(const struct maker *maker, struct track *track, int64_t ns)
{
	put_pending(maker, track, ns);
	track->pending = true;
	track->ns = ns;
	track->name[0] = track->arguments[0] = '\0';
	memset(track->flows, 0, sizeof(track->flows));
}

static void add_flow(struct track *track, char phase, const char *name, uint64_t id)
{
	int i = track->flows[0].phase != 0;

	track->flows[i] = (struct flow){phase, name, id};
}

/* Requester or responder is about something else from @ns on; NULL: nothing. */
static void set_activity(const struct maker *maker, struct track *track, int64_t ns, const char *activity)
{
	uint32_t pid = process_of(maker, track->source);

	if (track->activity == activity)
		return;
	put_pending(maker, track, ns);
	if (track->activity) {
		trace_event(maker->trace, 'E', ns, pid, tid_of(track), track->activity);
		trace_event_end(maker->trace);
	}
	track->activity = activity;
	if (activity) {
		trace_event(maker->trace, 'B', ns, pid, tid_of(track), activity);
		trace_event_end(maker->trace);
	}
}

/* ---- names ------------------------------------------------------------------------------------------------------ */

static const char *wqe_name(uint8_t opcode)
{
	return wqe_opcodes[opcode].name ? wqe_opcodes[opcode].name : "unknown opcode";
}

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

/* ---- requests --------------------------------------------------------------------------------------------------- */

static struct request *request_new(struct maker *maker, uint32_t source, uint32_t qpn, uint16_t index, bool receive)
{
	uint32_t place = maker->request_count;

	maker->requests = room_for_one(maker->requests, place, sizeof(*maker->requests));
	maker->request_count++;
	map_set(&maker->map, key_of(receive ? KEY_RECEIVE : KEY_REQUEST, source, qpn, index), place);
	maker->requests[place] = (struct request){
		.posted = NEVER,
		.executed = NEVER,
		.completed = NEVER,
		.polled = NEVER,
		.source = source,
		.qpn = qpn,
		.index = index,
		.next = MAP_NONE,
		.receive = receive,
	};
	return &maker->requests[place];
}

static struct request *request_at(struct maker *maker, uint32_t source, uint32_t qpn, uint16_t index, bool receive)
{
	uint32_t place = map_get(&maker->map, key_of(receive ? KEY_RECEIVE : KEY_REQUEST, source, qpn, index));

	return place == MAP_NONE ? NULL : &maker->requests[place];
}

/* The one that is executed: that which was posted, or, of a ring that its program fills itself, a new one. */
static struct request *request_executed(struct maker *maker, const struct timeline_event *event)
{
	const struct timeline_record *record = &event->record;
	struct request *request = request_at(maker, event->source, record->number, record->index, false);

	if (!request || request->completed != NEVER)
		request = request_new(maker, event->source, record->number, record->index, false);
	return request;
}

static uint64_t request_flow(const struct maker *maker, const struct request *request)
{
	const struct timeline_head *head = &maker->timeline->sources[request->source].head;

	return mixed(mixed(head->started ^ (uint64_t)head->process << 32) + (uint64_t)(request - maker->requests));
}

static void put_time(const struct maker *maker, const char *name, int64_t ns, int64_t from)
{
	if (ns != NEVER && from != NEVER)
		fprintf(maker->trace->out, ",\"%s\":%" PRId64, name, (int64_t)((uint64_t)ns - (uint64_t)from));
}

/* The request itself, from its first to its last step. @end: of the trace. */
static void put_request(const struct maker *maker, const struct request *request, int64_t end)
{
	const int64_t steps[] = {request->posted, request->executed, request->completed, request->polled};
	const char *name = request->receive ? "RECEIVE" : wqe_name(request->opcode);
	uint32_t pid = process_of(maker, request->source);
	uint64_t tid = (uint64_t)(request->receive ? TRACK_RESPONDER : TRACK_REQUESTER) << 24 | request->qpn;
	uint64_t id = request_flow(maker, request);
	int64_t first = NEVER, last = NEVER;

	for (int i = 0; i < 4; i++) {
		if (steps[i] == NEVER)
			continue;
		first = first == NEVER ? steps[i] : first;
		last = steps[i];
	}
	if (first == NEVER)
		return;
	trace_event(maker->trace, 'b', first, pid, tid, name);
	fprintf(maker->trace->out,
		",\"cat\":\"requests of QP 0x%x\",\"id\":\"0x%" PRIx64 "\",\"args\":{\"wr_id\":\"0x%" PRIx64
		"\",\"qp\":%u,\"wqe\":%u",
		request->qpn, id, request->wr_id, request->qpn, request->index);
	if (request->executed != NEVER && request->packets)
		fprintf(maker->trace->out, ",\"psn\":%u,\"packets\":%u", request->psn, request->packets);
	fprintf(maker->trace->out, ",\"bytes\":%u", request->bytes);
	if (request->again)
		fputs(",\"sent_again\":true", maker->trace->out);
	fputs(request->posted == NEVER ? ",\"posted\":false" : ",\"posted\":true", maker->trace->out);
	put_time(maker, "execute_ns", request->executed, first);
	put_time(maker, "complete_ns", request->completed, first);
	put_time(maker, "poll_ns", request->polled, first);
	if (request->polled != NEVER)
		fprintf(maker->trace->out, ",\"status\":\"%s\"", ibv_wc_status_str(request->status));
	putc('}', maker->trace->out);
	trace_event_end(maker->trace);
	/* What has not ended is open till the end. */
	trace_event(maker->trace, 'e', request->completed == NEVER ? end : last, pid, tid, name);
	fprintf(maker->trace->out, ",\"cat\":\"requests of QP 0x%x\",\"id\":\"0x%" PRIx64 "\"", request->qpn, id);
	trace_event_end(maker->trace);
}

/* ---- messages --------------------------------------------------------------------------------------------------- */

static const struct timeline_qp *row_of(const struct maker *maker, uint32_t source, uint32_t qpn)
{
	uint32_t place = map_get(&maker->map, key_of(KEY_ROW, source, qpn, 0));

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
	return mixed(mixed(mixed(halves[0]) ^ halves[1]) ^ mixed((uint64_t)from << 32 | to)) ^
	       mixed((uint64_t)answer << 32 | (psn & PSN_MASK));
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
	return message == MESSAGE_READ_REQUEST || message_is_atomic(message);
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
	set_activity(maker, track, ns, activity_after_request(track, record, record->kind == TIMELINE_CALL));
	begin(maker, track, ns);
	snprintf(track->name, sizeof(track->name), "arrive: %s", safe_message_name(record->opcode));
	describe_packets(track, record);
	if (is_first(record)) {
		add_flow(track, takes_receive(record) ? 't' : 'f', "message", id);
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
	begin(maker, track, ns);
	snprintf(track->name, sizeof(track->name), "post: %s", wqe_name(record->opcode));
	snprintf(track->arguments, sizeof(track->arguments), "\"wr_id\":\"0x%" PRIx64 "\",\"wqe\":%u", record->value,
		 record->index);
	add_flow(track, 's', "request", request_flow(maker, request));
}

static void on_post_receive(struct maker *maker, const struct timeline_event *event, int64_t ns)
{
	const struct timeline_record *record = &event->record;
	bool shared = record->kind == TIMELINE_POST_SRQ;
	struct track *track = track_at(maker, shared ? TRACK_SRQ : TRACK_RESPONDER, event->source, record->number);

	begin(maker, track, ns);
	snprintf(track->name, sizeof(track->name), "post: RECEIVE");
	snprintf(track->arguments, sizeof(track->arguments), "\"wr_id\":\"0x%" PRIx64 "\",\"bytes\":%u", record->value,
		 record->length);
	/* Which QP takes it from an SRQ is not known yet. */
	if (!shared) {
		struct request *request = request_new(maker, event->source, record->number, record->index, true);

		request->posted = ns;
		request->wr_id = record->value;
		request->bytes = record->length;
		add_flow(track, 's', "request", request_flow(maker, request));
	}
}

static void on_local(struct maker *maker, const struct timeline_event *event, int64_t ns)
{
	struct request *request = request_executed(maker, event);
	struct track *track = track_at(maker, TRACK_REQUESTER, event->source, event->record.number);

	request->executed = ns;
	request->opcode = event->record.opcode;
	begin(maker, track, ns);
	snprintf(track->name, sizeof(track->name), "execute: %s", wqe_name(event->record.opcode));
	snprintf(track->arguments, sizeof(track->arguments), "\"wqe\":%u", event->record.index);
	add_flow(track, 't', "request", request_flow(maker, request));
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
		set_activity(maker, track, ns, activity_after_sending(maker, event, again));
	}
	begin(maker, track, ns);
	snprintf(track->name, sizeof(track->name), "%s: %s", again ? "send again" : "send",
		 safe_message_name(record->opcode));
	describe_packets(track, record);
	add_flow(track, 't', "request", request_flow(maker, request));
	if (is_first(record))
		add_flow(track, 's', "message", id);
	if (call)
		arrive(maker, track_at(maker, TRACK_RESPONDER, event->source, record->value & 0xffffff), record, ns + 1,
		       id);
}

static void on_no_room(struct maker *maker, const struct timeline_event *event, int64_t ns)
{
	struct track *track = track_at(maker, TRACK_REQUESTER, event->source, event->record.number);

	set_activity(maker, track, ns, requester_activities[REQUESTER_ACTIVITY_WAITING_FOR_ROOM]);
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
	set_activity(maker, track, ns, activity_after_answer(track, record));
	begin(maker, track, ns);
	snprintf(track->name, sizeof(track->name), "arrive: %s", answer_name(record->opcode, (uint8_t)record->index));
	describe_packets(track, record);
	if (record->opcode != MESSAGE_READ_RESPONSE || is_first(record))
		add_flow(track, 'f', "message", arrived_flow(maker, event, true));
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
	set_activity(maker, track, ns, activity_after_stop(maker, event, track));
	begin(maker, track, ns);
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
		set_activity(maker, track, ns, NULL);
	begin(maker, track, ns);
	snprintf(track->name, sizeof(track->name), "answer: %s", answer_name(record->opcode, (uint8_t)record->index));
	describe_packets(track, record);
	if (record->opcode != MESSAGE_READ_RESPONSE || is_first(record))
		add_flow(track, 's', "message", sent_flow(maker, event, true));
}

static void on_timeout(struct maker *maker, const struct timeline_event *event, int64_t ns)
{
	struct track *track = track_at(maker, TRACK_REQUESTER, event->source, event->record.number);

	set_activity(maker, track, ns, requester_activities[REQUESTER_ACTIVITY_SENDING_AGAIN]);
	begin(maker, track, ns);
	snprintf(track->name, sizeof(track->name), "timeout");
	snprintf(track->arguments, sizeof(track->arguments), "\"psn\":%u", event->record.psn);
}

static void on_state(struct maker *maker, const struct timeline_event *event, int64_t ns)
{
	struct track *track = track_at(maker, TRACK_REQUESTER, event->source, event->record.number);
	uint8_t state = event->record.opcode;
	bool shown = state == REQUESTER_DRAINED || state == REQUESTER_FLUSH;

	set_activity(maker, track, ns, shown ? requester_states[state] : NULL);
}

/* All before @last in the order of posting have completed with it, silently. */
static void complete_up_to(struct maker *maker, struct request *last, int64_t ns)
{
	struct track *track = track_at(maker, TRACK_REQUESTER, last->source, last->qpn);
	uint32_t place = track->first_open, end = (uint32_t)(last - maker->requests);

	last->completed = ns;
	if (last->posted == NEVER)
		return;
	while (place != MAP_NONE) {
		struct request *request = &maker->requests[place];

		track->first_open = request->next;
		if (request->next == MAP_NONE)
			track->last_open = MAP_NONE;
		if (place == end)
			break;
		if (request->completed == NEVER)
			request->completed = ns;
		place = request->next;
	}
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

static void set_polled(struct request *request, const struct timeline_record *record, int64_t ns)
{
	request->polled = ns;
	request->status = record->opcode;
	request->wr_id = record->value;
}

static void add_early(struct maker *maker, const struct timeline_record *record, int64_t ns, uint64_t key)
{
	maker->early = room_for_one(maker->early, maker->early_count, sizeof(*maker->early));
	maker->early[maker->early_count] = (struct early){record, ns};
	map_set(&maker->map, key, maker->early_count++);
}

/* @request has completed; if its poll has been seen already, it was polled at once. */
static void take_early(struct maker *maker, struct request *request, uint64_t key)
{
	uint32_t place = map_get(&maker->map, key);
	struct early *early;

	if (place == MAP_NONE)
		return;
	early = &maker->early[place];
	if ((uint64_t)request->completed - (uint64_t)early->ns < EARLY_NS)
		set_polled(request, early->record, request->completed);
	/* It is of no other one. */
	early->ns = NEVER;
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
		complete_up_to(maker, request, ns);
	}
	map_set(&maker->map, key_of(KEY_COMPLETION, event->source, number, record->psn),
		(uint32_t)(request - maker->requests));
	if (maker->early_count)
		take_early(maker, request, key_of(KEY_EARLY, event->source, number, record->psn));
	/* Not before: a track that is made may move the others. */
	track = track_at(maker, TRACK_CQ, event->source, number);
	begin(maker, track, ns);
	snprintf(track->name, sizeof(track->name), "%s: %s", failed ? "error" : "completion", name);
	snprintf(track->arguments, sizeof(track->arguments),
		 "\"qp\":%u,\"wqe\":%u,\"bytes\":%u,\"wr_id\":\"0x%" PRIx64 "\"%s%u", qpn, record->index,
		 record->length, request->wr_id, failed ? ",\"syndrome\":" : ",\"device\":",
		 (unsigned int)(failed ? record->value >> 32 & 0xff : device));
	add_flow(track, 'f', "request", request_flow(maker, request));
	if (message)
		add_flow(track, 'f', "message", message);
}

static void on_poll(struct maker *maker, const struct timeline_event *event, int64_t ns)
{
	const struct timeline_record *record = &event->record;
	uint32_t number = cq_of(record->number, record->length >> 24);
	struct track *track = track_at(maker, TRACK_CQ, event->source, number);
	uint32_t place = map_get(&maker->map, key_of(KEY_COMPLETION, event->source, number, record->psn));

	begin(maker, track, ns);
	snprintf(track->name, sizeof(track->name), "poll");
	snprintf(track->arguments, sizeof(track->arguments), "\"wr_id\":\"0x%" PRIx64 "\",\"status\":\"%s\"",
		 record->value, ibv_wc_status_str(record->opcode));
	if (place == MAP_NONE || maker->requests[place].polled != NEVER)
		add_early(maker, record, ns, key_of(KEY_EARLY, event->source, number, record->psn));
	else
		set_polled(&maker->requests[place], record, ns);
}

/* ---- the whole -------------------------------------------------------------------------------------------------- */

static void put_process(struct maker *maker, uint32_t number)
{
	const struct timeline_source *source = &maker->timeline->sources[number];
	uint64_t lost = source->head.overwritten + source->head.dropped;
	uint32_t pid = process_of(maker, number);
	char program[128], host[128];

	trace_event(maker->trace, 'M', maker->trace->base_ns, pid, 0, "process_name");
	fprintf(maker->trace->out, ",\"args\":{\"name\":\"%s on %s\"}", trace_text(source->head.program, program),
		trace_text(source->head.host, host));
	trace_event_end(maker->trace);
	for (uint32_t i = 0; i < source->qp_count; i++)
		if (source->qps[i].number)
			map_set(&maker->map, key_of(KEY_ROW, number, source->qps[i].number, 0), i);
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
		put_pending(&maker, &maker.tracks[i], end);
		set_activity(&maker, &maker.tracks[i], end, NULL);
	}
	for (uint32_t i = 0; i < maker.request_count; i++)
		put_request(&maker, &maker.requests[i], end);
	free(maker.latest);
	free(maker.tracks);
	free(maker.requests);
	free(maker.early);
	free(maker.map.entries);
}
