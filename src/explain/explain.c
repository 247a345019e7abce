/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes, keeps and finds explanation records, see explain.h. render.c turns them into text. */
#include "explain/explain.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "explain/limit.h"
#include "explain/log.h"
#include "explain/sink.h"
#include "core/compiler.h"
#include "hca/hca.h"
#include "observe/key_observer.h"

#define OWN_RECORDS 1024
#define OTHERS_RECORDS 256

/* The last `size` of `made` records of one kind. */
struct ring {
	struct explain_record *record;
	uint64_t size, made;
};

struct explain_log {
	pthread_mutex_t lock;
	uint64_t next; /* atomic; serial of the next record in any ring; changes under the lock */
	struct explain_sink *sink;
	struct ring own, others;
	uint64_t told[EXPLAIN_LIMITED_RULES]; /* see explain_log_told() */
	struct explain_record own_records[OWN_RECORDS], others_records[OTHERS_RECORDS];
};

struct explain_log *explain_log_new(struct explain_sink *sink)
{
	struct explain_log *log = calloc(1, sizeof(*log));

	if (!log)
		return NULL;
	pthread_mutex_init(&log->lock, NULL);
	log->next = 1;
	log->sink = sink;
	log->own = (struct ring){.record = log->own_records, .size = OWN_RECORDS};
	log->others = (struct ring){.record = log->others_records, .size = OTHERS_RECORDS};
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

uint64_t *explain_log_told(struct explain_log *log, enum explain_rule rule)
{
	return &log->told[rule];
}

void explain_log_note(struct explain_log *log, const char *text)
{
	explain_sink_note(log->sink, text);
}

static uint64_t record_make(struct hca *hca, const struct explain_subject *subject, enum explain_rule rule,
			    const uint64_t *args, size_t count, struct ring *ring)
{
	struct explain_log *log = hca->explain_log;
	struct explain_record record = {.time_ns = clock_now_ns(), .rule = rule, .subject = *subject};

	memcpy(record.args, args, (count < EXPLAIN_ARGS ? count : EXPLAIN_ARGS) * sizeof(uint64_t));
	pthread_mutex_lock(&log->lock);
	record.serial = log->next;
	__atomic_store_n(&log->next, record.serial + 1, __ATOMIC_RELAXED);
	ring->record[ring->made++ % ring->size] = record;
	pthread_mutex_unlock(&log->lock);
	explain_sink_record(log->sink, hca->name, &record);
	if (unlikely(hca->key_observer))
		hca->key_observer->explained(hca, &record);
	return record.serial;
}

uint64_t explain_make(struct hca *hca, const struct explain_subject *subject, enum explain_rule rule,
		      const uint64_t *args, size_t count)
{
	return record_make(hca, subject, rule, args, count, &hca->explain_log->own);
}

void explain_tell(struct hca *hca, const struct explain_subject *subject, enum explain_rule rule, const uint64_t *args)
{
	struct explain_record record = {.time_ns = clock_now_ns(), .rule = rule, .subject = *subject};

	memcpy(record.args, args, sizeof(record.args));
	explain_sink_record(hca->explain_log->sink, hca->name, &record);
}

void explain_found(struct hca *hca)
{
	explain_sink_found(hca->explain_log->sink);
}

uint64_t explain_make_of_others(struct hca *hca, const struct explain_subject *subject, enum explain_rule rule,
				const uint64_t *args, size_t count)
{
	return record_make(hca, subject, rule, args, count, &hca->explain_log->others);
}

uint64_t explain_latest(const struct hca *hca)
{
	return __atomic_load_n(&hca->explain_log->next, __ATOMIC_RELAXED) - 1;
}

/* Returns the newest record older than @before about @qpn, or NULL. The lock is held. */
static const struct explain_record *ring_newest(const struct ring *ring, uint32_t qpn, uint64_t before)
{
	uint64_t oldest = ring->made > ring->size ? ring->made - ring->size : 0;

	for (uint64_t i = ring->made; i > oldest; i--) {
		const struct explain_record *record = &ring->record[(i - 1) % ring->size];

		if (record->serial < before && (!qpn || record->subject.qpn == qpn))
			return record;
	}
	return NULL;
}

bool explain_previous(struct hca *hca, uint32_t qpn, uint64_t before, struct explain_record *out)
{
	struct explain_log *log = hca->explain_log;
	const struct explain_record *own, *others;

	pthread_mutex_lock(&log->lock);
	if (!before)
		before = log->next;
	own = ring_newest(&log->own, qpn, before);
	others = ring_newest(&log->others, qpn, before);
	if (!own || (others && others->serial > own->serial))
		own = others;
	if (own)
		*out = *own;
	pthread_mutex_unlock(&log->lock);
	return own;
}
