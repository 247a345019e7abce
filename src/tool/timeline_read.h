/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The records of processes (device/timeline_file.h), read: from files in which anything may be. */
#ifndef SOFTHCA_TOOL_TIMELINE_READ_H
#define SOFTHCA_TOOL_TIMELINE_READ_H

#include <stdbool.h>
#include <stddef.h>

#include "device/timeline_file.h"

/* So many files at most are one timeline. */
#define TIMELINE_MOST_SOURCES 4095

/* One file. */
struct timeline_source {
	struct timeline_head head; /* its texts end */
	struct timeline_qp *qps;
	uint32_t qp_count;
	size_t host; /* in timeline.hosts */
};

/* Processes of one host have one clock. */
struct timeline_host {
	char boot[64];
	int64_t realtime_offset;
	struct timeline_clock_point {
		uint64_t ticks, ns;
	} * points; /* of its clock, in order */
	size_t point_count;
};

struct timeline_event {
	int64_t ns;     /* of CLOCK_REALTIME */
	uint64_t order; /* in its file, of those of one time */
	uint32_t source;
	struct timeline_record record; /* number without the lap; kind below TIMELINE_KINDS */
};

struct timeline {
	struct timeline_source *sources;
	size_t source_count;
	struct timeline_host *hosts;
	size_t host_count;
	struct timeline_event *events;
	size_t event_count, event_room;
};

/** Adds the file @path. Returns false with one line in @error if it is no such file, or cannot be read. */
bool timeline_add(struct timeline *timeline, const char *path, char *error, size_t size);

/** When all are added: gives the events their times and puts them in order. */
void timeline_order(struct timeline *timeline);

/** Frees what it has. */
void timeline_free(struct timeline *timeline);

/** True if @path begins as the file of a process does; @started: when that began, ns of CLOCK_REALTIME. */
bool timeline_is_records(const char *path, uint64_t *started);

#endif
