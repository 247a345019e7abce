/* SPDX-License-Identifier: BSD-2-Clause */
/* The tracks of a trace: slices, activities and arrows, as events. See timeline_maker.h. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tool/timeline_maker.h"
#include "tool/tool.h"

/* What happens is seen for so long, unless something else happens on its track. */
#define EVENT_NS 100

void *maker_room(void *array, uint32_t count, size_t size)
{
	/* Doubling. */
	if (count & (count - 1))
		return array;
	array = reallocarray(array, count ? 2 * (size_t)count : 1, size);
	if (!array || count == UINT32_MAX / 2)
		tool_fail(EXIT_FAILURE, "out of memory");
	return array;
}

uint64_t maker_key(enum track_kind kind, uint32_t source, uint32_t number, uint32_t index)
{
	return (uint64_t)kind << 60 | (uint64_t)(source & 0xfff) << 48 | (uint64_t)(number & 0xffffff) << 24 |
	       (index & 0xffffff);
}

uint32_t maker_process(const struct maker *maker, uint32_t source)
{
	return maker->timeline->sources[source].head.process & INT32_MAX;
}

static uint64_t tid_of(const struct track *track)
{
	return (uint64_t)track->kind << 24 | track->number;
}

static void name_track(const struct maker *maker, const struct track *track)
{
	static const char *const names[] = {"QP 0x%x, requester", "QP 0x%x, responder", "CQ %u", "SRQ %u"};
	static const unsigned int order[] = {0, 1, 2, 3};
	uint32_t pid = maker_process(maker, track->source);
	char name[64];

	snprintf(name, sizeof(name), names[track->kind], track->number);
	trace_event(maker->trace, 'M', maker->trace->base_ns, pid, tid_of(track), "thread_name");
	fprintf(maker->trace->out, ",\"args\":{\"name\":\"%s\"}", name);
	trace_event_end(maker->trace);
	trace_event(maker->trace, 'M', maker->trace->base_ns, pid, tid_of(track), "thread_sort_index");
	fprintf(maker->trace->out, ",\"args\":{\"sort_index\":%u}", track->number * 4 + order[track->kind]);
	trace_event_end(maker->trace);
}

struct track *track_at(struct maker *maker, enum track_kind kind, uint32_t source, uint32_t number)
{
	uint64_t key = maker_key(kind, source, number, 0);
	uint32_t place = map_get(&maker->map, key);

	if (place != MAP_NONE)
		return &maker->tracks[place];
	maker->tracks = maker_room(maker->tracks, maker->track_count, sizeof(*maker->tracks));
	place = maker->track_count++;
	map_set(&maker->map, key, place);
	maker->tracks[place] = (struct track){
		.source = source, .number = number, .kind = kind, .first_open = MAP_NONE, .last_open = MAP_NONE};
	name_track(maker, &maker->tracks[place]);
	return &maker->tracks[place];
}

static void put_flow(const struct maker *maker, const struct track *track, const struct flow *flow)
{
	trace_event(maker->trace, flow->phase, track->ns, maker_process(maker, track->source), tid_of(track),
		    flow->name);
	fprintf(maker->trace->out, ",\"cat\":\"%s\",\"id\":\"0x%" PRIx64 "\"%s", flow->name, flow->id,
		flow->phase == 's' ? "" : ",\"bp\":\"e\"");
	trace_event_end(maker->trace);
}

void track_put_pending(const struct maker *maker, struct track *track, int64_t ns)
{
	int64_t left = (int64_t)((uint64_t)ns - (uint64_t)track->ns);

	if (!track->pending)
		return;
	track->pending = false;
	trace_event(maker->trace, 'X', track->ns, maker_process(maker, track->source), tid_of(track), track->name);
	trace_duration(maker->trace, left > 0 && left < EVENT_NS ? left : EVENT_NS);
	if (*track->arguments)
		fprintf(maker->trace->out, ",\"args\":{%s}", track->arguments);
	trace_event_end(maker->trace);
	for (int i = 0; i < FLOWS && track->flows[i].phase; i++)
		put_flow(maker, track, &track->flows[i]);
}

void track_begin(const struct maker *maker, struct track *track, int64_t ns)
{
	track_put_pending(maker, track, ns);
	track->pending = true;
	track->ns = ns;
	track->name[0] = track->arguments[0] = '\0';
	memset(track->flows, 0, sizeof(track->flows));
}

void track_add_flow(struct track *track, char phase, const char *name, uint64_t id)
{
	int i = track->flows[0].phase != 0;

	track->flows[i] = (struct flow){phase, name, id};
}

void track_set_activity(const struct maker *maker, struct track *track, int64_t ns, const char *activity)
{
	uint32_t pid = maker_process(maker, track->source);

	if (track->activity == activity)
		return;
	track_put_pending(maker, track, ns);
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
