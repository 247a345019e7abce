/* SPDX-License-Identifier: BSD-2-Clause */
/* See report.h. */
#include "process/report.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "explain/log.h"
#include "explain/output.h"
#include "explain/sink.h"
#include "observe/counters.h"
#include "draw/book.h"
#include "filter/filter.h"

static void put_note(void *argument, const char *line)
{
	struct hca *hca = argument;
	char note[512];

	snprintf(note, sizeof(note), "%s: %s", hca->name, line);
	explain_log_note(hca->explain_log, note);
}

static int counter_sink_open(const char *sink)
{
	char path[PATH_MAX];
	int fd;

	if (!strcmp(sink, "stderr"))
		return STDERR_FILENO;
	errno = -setting_path(sink, path, sizeof(path));
	fd = errno ? -1 : open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	if (fd < 0)
		fprintf(stderr, "softhca: SOFTHCA_COUNTERS=%s: %s\n", sink, strerror(errno));
	return fd;
}

/* One write(2), so that output of several processes does not mix. */
static void put_counters(const struct hca *hca, int fd)
{
	char text[COUNTER_COUNT * 80 + 200];
	size_t used = (size_t)snprintf(text, sizeof(text), "softhca: counters of %s in process %d\n", hca->name,
				       (int)getpid());

	for (int i = 0; i < COUNTER_COUNT; i++) {
		uint64_t value = counter_read(hca, i);

		if (value && used < sizeof(text))
			used += (size_t)snprintf(text + used, sizeof(text) - used, "  %-24s %" PRIu64 "\n",
						 counter_info(i)->name, value);
	}
	output_write(fd, text, used < sizeof(text) ? used : sizeof(text) - 1);
}

/* Process that made the devices; a forked child reports only its own work. */
static pid_t owner;

static void report_devices(int status, void *unused)
{
	(void)unused;
	for (size_t i = 0; i < the_registry.count; i++) {
		struct hca *hca = &the_registry.devices[i];
		const char *sink = hca->settings.counters;
		int fd = strcmp(sink, "off") ? counter_sink_open(sink) : -1;

		filters_flush(hca);
		if (owner == getpid() || filters_frames(hca))
			filters_fault_summary(hca, put_note, hca);
		key_book_finish(hca, put_note, hca);
		if (fd < 0)
			continue;
		put_counters(hca, fd);
		if (fd != STDERR_FILENO)
			close(fd);
	}
	explain_sink_finish(the_registry.sink, status);
}

#ifdef __GLIBC__
static void report_call_at_exit(void)
{
	on_exit(report_devices, NULL);
}
#else
/* Without on_exit(3), as with musl, the exit status is unknown: the program may have failed. */
static void report_devices_anyway(void)
{
	report_devices(EXIT_FAILURE, NULL);
}

static void report_call_at_exit(void)
{
	atexit(report_devices_anyway);
}
#endif

static void register_report(void)
{
	owner = getpid();
	report_call_at_exit();
}

void report_at_exit(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, register_report);
}
