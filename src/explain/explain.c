/* SPDX-License-Identifier: BSD-2-Clause */
/* Explanation records: making, keeping, finding, see explain.h. Rendering is in render.c. */
#include "explain/explain.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "explain/log.h"
#include "hca/device.h"

#define LOG_RECORDS 1024

struct explain_log {
	pthread_mutex_t lock;
	uint64_t next; /* serial of the next record */
	int sink;      /* descriptor, or -1 */
	char device[64];
	struct explain_record records[LOG_RECORDS];
};

static int open_sink(const char *sink)
{
	int fd;

	if (!strcmp(sink, "off"))
		return -1;
	if (!strcmp(sink, "stderr"))
		return STDERR_FILENO;
	fd = open(sink, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	if (fd < 0)
		fprintf(stderr, "softhca: SOFTHCA_EXPLAIN=%s: %s\n", sink, strerror(errno));
	return fd;
}

struct explain_log *explain_log_new(const char *device, const char *sink)
{
	struct explain_log *log = calloc(1, sizeof(*log));

	if (!log)
		return NULL;
	pthread_mutex_init(&log->lock, NULL);
	log->next = 1;
	log->sink = open_sink(sink);
	snprintf(log->device, sizeof(log->device), "%s", device);
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

/* One write(2) per text, so that lines of several threads and processes do not mix. */
static void write_out(const struct explain_log *log, char *text, size_t length, size_t size)
{
	ssize_t ignored;

	if (length > size - 1)
		length = size - 1;
	text[length] = '\n';
	ignored = write(log->sink, text, length + 1);
	(void)ignored;
}

void explain_log_note(struct explain_log *log, const char *text)
{
	char line[1200];
	int length;

	if (log->sink < 0)
		return;
	length = snprintf(line, sizeof(line) - 1, "softhca: %s", text);
	write_out(log, line, (size_t)length, sizeof(line) - 1);
}

static void put_out(struct hca *hca, const struct explain_record *record)
{
	char text[1024];
	size_t length = explain_render(hca->name, record, text, sizeof(text) - 1);

	write_out(hca->explain_log, text, length, sizeof(text) - 1);
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
	if (log->sink >= 0)
		put_out(hca, &record);
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
