/* SPDX-License-Identifier: BSD-2-Clause */
/* The requests of a trace, from their posts to their polls. See timeline_maker.h. */
#include <inttypes.h>
#include <stdio.h>
#include <infiniband/verbs.h>

#include "tool/timeline_maker.h"

/* The clocks of two CPUs differ by less: a poll that is further in front of a completion is of another one. */
#define EARLY_NS 1000000

const char *wqe_name(uint8_t opcode)
{
	return wqe_opcodes[opcode].name ? wqe_opcodes[opcode].name : "unknown opcode";
}

struct request *request_new(struct maker *maker, uint32_t source, uint32_t qpn, uint16_t index, bool receive)
{
	uint32_t place = maker->request_count;

	maker->requests = maker_room(maker->requests, place, sizeof(*maker->requests));
	maker->request_count++;
	map_set(&maker->map, maker_key(receive ? KEY_RECEIVE : KEY_REQUEST, source, qpn, index), place);
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

struct request *request_at(struct maker *maker, uint32_t source, uint32_t qpn, uint16_t index, bool receive)
{
	uint32_t place = map_get(&maker->map, maker_key(receive ? KEY_RECEIVE : KEY_REQUEST, source, qpn, index));

	return place == MAP_NONE ? NULL : &maker->requests[place];
}

struct request *request_executed(struct maker *maker, const struct timeline_event *event)
{
	const struct timeline_record *record = &event->record;
	struct request *request = request_at(maker, event->source, record->number, record->index, false);

	if (!request || request->completed != NEVER)
		request = request_new(maker, event->source, record->number, record->index, false);
	return request;
}

uint64_t request_flow(const struct maker *maker, const struct request *request)
{
	const struct timeline_head *head = &maker->timeline->sources[request->source].head;

	return mix(mix(head->started ^ (uint64_t)head->process << 32) + (uint64_t)(request - maker->requests));
}

void request_complete_up_to(struct maker *maker, struct request *last, int64_t ns)
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

void request_set_polled(struct request *request, const struct timeline_record *record, int64_t ns)
{
	request->polled = ns;
	request->status = record->opcode;
	request->wr_id = record->value;
}

void request_add_early(struct maker *maker, const struct timeline_record *record, int64_t ns, uint64_t key)
{
	maker->early = maker_room(maker->early, maker->early_count, sizeof(*maker->early));
	maker->early[maker->early_count] = (struct early){record, ns};
	map_set(&maker->map, key, maker->early_count++);
}

void request_take_early(struct maker *maker, struct request *request, uint64_t key)
{
	uint32_t place = map_get(&maker->map, key);
	struct early *early;

	if (place == MAP_NONE)
		return;
	early = &maker->early[place];
	if ((uint64_t)request->completed - (uint64_t)early->ns < EARLY_NS)
		request_set_polled(request, early->record, request->completed);
	/* It is of no other one. */
	early->ns = NEVER;
}

static void put_time(const struct maker *maker, const char *name, int64_t ns, int64_t from)
{
	if (ns != NEVER && from != NEVER)
		fprintf(maker->trace->out, ",\"%s\":%" PRId64, name, (int64_t)((uint64_t)ns - (uint64_t)from));
}

void request_put(const struct maker *maker, const struct request *request, int64_t end)
{
	const int64_t steps[] = {request->posted, request->executed, request->completed, request->polled};
	const char *name = request->receive ? "RECEIVE" : wqe_name(request->opcode);
	uint32_t pid = maker_process(maker, request->source);
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
