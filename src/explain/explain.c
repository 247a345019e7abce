/* SPDX-License-Identifier: BSD-2-Clause */
/* Explanation records: making, keeping, finding, see explain.h. Rendering is in render.c. */
#include "explain/explain.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "explain/log.h"
#include "explain/sink.h"
#include "hca/device.h"

#define LOG_RECORDS 1024

struct explain_log {
	pthread_mutex_t lock;
	uint64_t next; /* serial of the next record */
	struct explain_sink *sink;
	struct explain_record records[LOG_RECORDS];
};

struct explain_log *explain_log_new(struct explain_sink *sink)
{
	struct explain_log *log = calloc(1, sizeof(*log));

	if (!log)
		return NULL;
	pthread_mutex_init(&log->lock, NULL);
	log->next = 1;
	log->sink = sink;
	return log;
}

void explain_log_lock(struct explain_log *log)
{
	pthread_mutex_lock(&log->lock);
}

void explain_log_unlock(struct explain_log *log)
{
	pthread_mutex_unlock(&log->lock);
}

void explain_log_note(struct explain_log *log, const char *text)
{
	explain_sink_note(log->sink, text);
}

uint64_t explain_make(struct hca *hca, const struct explain_subject *subject, enum explain_rule rule,
		      const uint64_t *args, size_t count)
{
	struct explain_log *log = hca->explain_log;
	struct explain_record record = {.time_ns = clock_now_ns(), .rule = rule, .subject = *subject};

	memcpy(record.args, args, (count < EXPLAIN_ARGS ? count : EXPLAIN_ARGS) * sizeof(uint64_t));
	pthread_mutex_lock(&log->lock);
	record.serial = log->next++;
	log->records[record.serial % LOG_RECORDS] = record;
	pthread_mutex_unlock(&log->lock);
	explain_sink_record(log->sink, hca->name, &record);
	return record.serial;
}

bool explain_previous(struct hca *hca, uint32_t qpn, uint64_t before, struct explain_record *out)
{
	struct explain_log *log = hca->explain_log;
	bool found = false;

	pthread_mutex_lock(&log->lock);
	if (!before || before > log->next)
		before = log->next;
	for (uint64_t serial = before - 1; serial && !found; serial--) {
		const struct explain_record *record = &log->records[serial % LOG_RECORDS];

		if (record->serial != serial)
			break;
		found = !qpn || record->subject.qpn == qpn;
		if (found)
			*out = *record;
	}
	pthread_mutex_unlock(&log->lock);
	return found;
}
