/* SPDX-License-Identifier: BSD-2-Clause */
/* Files of records, see timeline_read.h. */
#include "tool/timeline_read.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <infiniband/verbs.h>

#include "format/opcode.h"
#include "format/wqe.h"
#include "tool/tool.h"
#include "wire/packet.h"

/* Points of the clock that are nearer than that would make its rate that of their noise. */
#define POINT_DISTANCE_NS UINT64_C(10000000)
/* Longer than any run, in ns. */
#define MOST_SINCE 1e18L
#define MOST_BYTES (INT64_C(1) << 32)
#define CHUNK_BYTES (TIMELINE_CHUNK_RECORDS * sizeof(struct timeline_record))

_Static_assert(sizeof(struct timeline_record) == 32, "records are of a file");
_Static_assert(sizeof(struct timeline_chunk) == sizeof(struct timeline_record),
	       "a chunk begins in the place of a record");
_Static_assert(sizeof(struct timeline_qp) == 64, "rows are of a file");
_Static_assert(sizeof(struct timeline_head) <= TIMELINE_HEAD_BYTES, "the head is of a file");

static void *grown(void *array, size_t count, size_t size)
{
	void *larger = reallocarray(array, count, size);

	if (!larger)
		tool_fail(EXIT_FAILURE, "out of memory");
	return larger;
}

static bool is_head(const struct timeline_head *head)
{
	return memcmp(head->magic, TIMELINE_MAGIC, sizeof(head->magic)) == 0;
}

bool timeline_is_records(const char *path, uint64_t *started)
{
	struct timeline_head head;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	bool is = fd >= 0 && read(fd, &head, sizeof(head)) == sizeof(head) && is_head(&head);

	if (fd >= 0)
		close(fd);
	if (is)
		*started = head.started;
	return is;
}

/* All of @file, which may still be written, in memory of our own. */
static uint8_t *read_all(int fd, size_t length)
{
	uint8_t *bytes = grown(NULL, length, 1);
	size_t have = 0;

	while (have < length) {
		ssize_t got = read(fd, bytes + have, length - have);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		have += (size_t)got;
	}
	memset(bytes + have, 0, length - have);
	return bytes;
}

static size_t host_of(struct timeline *timeline, const struct timeline_head *head)
{
	size_t i;

	for (i = 0; i < timeline->host_count; i++)
		if (strcmp(timeline->hosts[i].boot, head->boot) == 0)
			return i;
	timeline->hosts = grown(timeline->hosts, i + 1, sizeof(*timeline->hosts));
	timeline->hosts[i] = (struct timeline_host){.realtime_offset = head->realtime_offset};
	memcpy(timeline->hosts[i].boot, head->boot, sizeof(head->boot));
	timeline->host_count++;
	return i;
}

static void add_point(struct timeline_host *host, uint64_t ticks, uint64_t ns)
{
	if (!ticks || !ns)
		return;
	/* Doubling. */
	if (!(host->point_count & (host->point_count - 1)))
		host->points =
			grown(host->points, host->point_count ? 2 * host->point_count : 1, sizeof(*host->points));
	host->points[host->point_count].ticks = ticks;
	host->points[host->point_count++].ns = ns;
}

static void add_event(struct timeline *timeline, uint32_t source, const struct timeline_record *record, uint64_t order)
{
	struct timeline_event *event;

	if (timeline->event_count == timeline->event_room) {
		timeline->event_room = timeline->event_room ? 2 * timeline->event_room : 4096;
		timeline->events = grown(timeline->events, timeline->event_room, sizeof(*timeline->events));
	}
	event = &timeline->events[timeline->event_count++];
	event->source = source;
	event->order = order;
	event->record = *record;
	event->record.number &= 0xffffff;
}

/* The part @number of what a record tells, as if that had a record of its own. Returns how many there are. */
static uint32_t part_of(const struct timeline_record *record, uint32_t number, struct timeline_record *part)
{
	uint32_t peer = record->length & 0xffffff, psn = record->psn & 0xffffff, low = record->length >> 24;

	*part = *record;
	switch (record->kind) {
	case TIMELINE_POST_SEND:
	case TIMELINE_POST_CALL:
		part->kind = TIMELINE_POST;
		part->psn = part->length = 0;
		if (number) {
			part->kind = record->kind == TIMELINE_POST_CALL ? TIMELINE_CALL : TIMELINE_SEND;
			part->psn = psn;
			part->length = low | record->psn >> 24 << 8;
			part->opcode = (uint8_t)wqe_opcodes[record->opcode].message;
			part->value = TIMELINE_PACKETS(peer, 1, PLACE_ONLY);
		}
		return 2;
	case TIMELINE_ACKNOWLEDGED:
		part->kind = number ? TIMELINE_COMPLETE : TIMELINE_ARRIVE;
		part->opcode = number ? MLX5_CQE_REQ : MESSAGE_ACKNOWLEDGE;
		if (number) {
			part->number = record->value & 0xffffff;
			part->psn = record->value >> 32 & 0xffffff;
			part->length = low | (uint32_t)record->opcode << 8;
			part->value =
				TIMELINE_COMPLETION(record->number, record->value >> 24, 0, 0, record->value >> 56);
		} else {
			part->index = (uint16_t)(record->psn >> 24);
			part->psn = psn;
			part->length = 0;
			part->value = TIMELINE_PACKETS(peer, 1, PLACE_ONLY);
		}
		return 2;
	case TIMELINE_POLL_SOME:
		part->kind = TIMELINE_POLL;
		part->opcode = IBV_WC_SUCCESS;
		part->index = 0;
		part->psn = (psn + number) & 0xffffff;
		part->length = record->psn & 0xff000000;
		part->value = record->value + (uint64_t)(int64_t)(int32_t)record->length * number;
		return record->index < TIMELINE_MOST_POLLS ? record->index : TIMELINE_MOST_POLLS;
	default:
		return 1;
	}
}

static void add_record(struct timeline *timeline, uint32_t source, const struct timeline_record *record, uint64_t order)
{
	struct timeline_record part;
	uint32_t parts, number = 0;

	do {
		parts = part_of(record, number, &part);
		add_event(timeline, source, &part, order + number);
	} while (++number < parts);
}

static void add_chunk(struct timeline *timeline, uint32_t number, const uint8_t *bytes)
{
	struct timeline_source *source = &timeline->sources[number];
	struct timeline_chunk chunk;

	memcpy(&chunk, bytes, sizeof(chunk));
	if (!chunk.lap)
		return;
	for (size_t i = 1; i < TIMELINE_CHUNK_RECORDS; i++) {
		struct timeline_record record;

		memcpy(&record, bytes + i * sizeof(record), sizeof(record));
		/* Not written yet, or what was there a lap ago. */
		if (record.number >> 24 != (chunk.lap & 0xff))
			return;
		if (record.kind == TIMELINE_CLOCK && source->head.clock == TIMELINE_CLOCK_TICKS)
			add_point(&timeline->hosts[source->host], record.time, record.value);
		else if (record.kind != TIMELINE_NONE && record.kind < TIMELINE_KINDS)
			add_record(timeline, number, &record, (chunk.turn * TIMELINE_CHUNK_RECORDS + i) << 16);
	}
}

static void add_source(struct timeline *timeline, const uint8_t *bytes)
{
	uint32_t number = (uint32_t)timeline->source_count++;
	struct timeline_source *source;
	struct timeline_head *head;

	timeline->sources = grown(timeline->sources, timeline->source_count, sizeof(*source));
	source = &timeline->sources[number];
	head = &source->head;
	memcpy(head, bytes, sizeof(*head));
	head->host[sizeof(head->host) - 1] = head->program[sizeof(head->program) - 1] = '\0';
	head->boot[sizeof(head->boot) - 1] = '\0';
	source->host = host_of(timeline, head);
	for (int i = 0; i < 2 && head->clock == TIMELINE_CLOCK_TICKS; i++)
		add_point(&timeline->hosts[source->host], head->clock_ticks[i], head->clock_ns[i]);
	source->qp_count = head->qps < head->qp_rows ? head->qps : head->qp_rows;
	source->qps = grown(NULL, (size_t)head->qp_rows + 1, sizeof(*source->qps));
	memcpy(source->qps, bytes + TIMELINE_HEAD_BYTES, (size_t)head->qp_rows * sizeof(*source->qps));
	bytes += TIMELINE_HEAD_BYTES + (size_t)head->qp_rows * sizeof(*source->qps);
	for (uint32_t i = 0; i < head->chunks; i++)
		add_chunk(timeline, number, bytes + i * CHUNK_BYTES);
}

/* What stands in the head has to be what the file has room for. Returns what is wrong with it, or NULL. */
static const char *fault_of(const struct timeline_head *head, size_t length)
{
	if (length < TIMELINE_HEAD_BYTES || !is_head(head))
		return "has no records of a timeline";
	if (head->version != TIMELINE_VERSION)
		return "is of another version of softhca";
	if (TIMELINE_HEAD_BYTES + (uint64_t)head->qp_rows * sizeof(struct timeline_qp) +
		    (uint64_t)head->chunks * CHUNK_BYTES >
	    length)
		return "is shorter than it says";
	return NULL;
}

bool timeline_add(struct timeline *timeline, const char *path, char *error, size_t size)
{
	const char *fault = "is not read: these are too many files";
	struct stat status;
	uint8_t *bytes;
	/* Not a pipe or a terminal, which would be waited for. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0 || fstat(fd, &status)) {
		snprintf(error, size, "%s: %s", path, strerror(errno));
		if (fd >= 0)
			close(fd);
		return false;
	}
	if (status.st_size > MOST_BYTES) {
		snprintf(error, size, "%s is larger than any process makes one", path);
		close(fd);
		return false;
	}
	bytes = read_all(fd,
			 S_ISREG(status.st_mode) && status.st_size > 0 ? (size_t)status.st_size : TIMELINE_HEAD_BYTES);
	if (timeline->source_count < TIMELINE_MOST_SOURCES)
		fault = fault_of((const struct timeline_head *)bytes,
				 S_ISREG(status.st_mode) ? (size_t)status.st_size : 0);
	if (!fault)
		add_source(timeline, bytes);
	else
		snprintf(error, size, "%s %s", path, fault);
	free(bytes);
	close(fd);
	return !fault;
}

/* ---- times ------------------------------------------------------------------------------------------------------ */

static int compare_points(const void *left, const void *right)
{
	const struct timeline_clock_point *a = left, *b = right;

	return a->ticks < b->ticks ? -1 : a->ticks > b->ticks;
}

/* Leaves those that are far enough from each other, and both ends; and none that goes back. */
static void thin_points(struct timeline_host *host)
{
	size_t kept = 0;

	if (host->point_count)
		qsort(host->points, host->point_count, sizeof(*host->points), compare_points);
	for (size_t i = 0; i < host->point_count; i++) {
		struct timeline_clock_point point = host->points[i];

		if (kept && (point.ticks <= host->points[kept - 1].ticks || point.ns <= host->points[kept - 1].ns))
			continue;
		if (kept > 1 && point.ns - host->points[kept - 2].ns < POINT_DISTANCE_NS)
			kept--;
		host->points[kept++] = point;
	}
	host->point_count = kept;
}

static int64_t ns_of_ticks(const struct timeline_host *host, uint64_t ticks)
{
	const struct timeline_clock_point *points = host->points, *a, *b;
	size_t low = 0, high = host->point_count;
	long double since;

	if (host->point_count < 2)
		return (int64_t)(host->point_count ? points[0].ns : ticks);
	/* The pair around it; outside of all, the nearest pair. */
	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (points[middle].ticks <= ticks)
			low = middle;
		else
			high = middle;
	}
	if (low == host->point_count - 1)
		low--;
	a = &points[low];
	b = &points[low + 1];
	since = (long double)(int64_t)(ticks - a->ticks) * (long double)(b->ns - a->ns) /
		(long double)(b->ticks - a->ticks);
	/* Of a clock that runs away no time is right; as unsigned, so that nonsense overflows quietly. */
	if (since > MOST_SINCE || since < -MOST_SINCE)
		since = 0;
	return (int64_t)(a->ns + (uint64_t)(int64_t)since);
}

static int compare_events(const void *left, const void *right)
{
	const struct timeline_event *a = left, *b = right;

	if (a->ns != b->ns)
		return a->ns < b->ns ? -1 : 1;
	if (a->source != b->source)
		return a->source < b->source ? -1 : 1;
	return a->order < b->order ? -1 : a->order > b->order;
}

void timeline_order(struct timeline *timeline)
{
	for (size_t i = 0; i < timeline->host_count; i++)
		thin_points(&timeline->hosts[i]);
	for (size_t i = 0; i < timeline->event_count; i++) {
		struct timeline_event *event = &timeline->events[i];
		const struct timeline_source *source = &timeline->sources[event->source];
		const struct timeline_host *host = &timeline->hosts[source->host];
		uint64_t time = event->record.time;

		event->ns = (source->head.clock == TIMELINE_CLOCK_TICKS ? ns_of_ticks(host, time) : (int64_t)time);
		/* As unsigned, so that nonsense overflows quietly. */
		event->ns = (int64_t)((uint64_t)event->ns + (uint64_t)host->realtime_offset);
	}
	if (timeline->event_count)
		qsort(timeline->events, timeline->event_count, sizeof(*timeline->events), compare_events);
}

void timeline_free(struct timeline *timeline)
{
	for (size_t i = 0; i < timeline->source_count; i++)
		free(timeline->sources[i].qps);
	for (size_t i = 0; i < timeline->host_count; i++)
		free(timeline->hosts[i].points);
	free(timeline->sources);
	free(timeline->hosts);
	free(timeline->events);
	*timeline = (struct timeline){0};
}
