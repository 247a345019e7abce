/* SPDX-License-Identifier: BSD-2-Clause */
/* softhca top: what the processes of this host send, receive and repeat. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tool/counters_read.h"
#include "tool/tool.h"

#define MOST_PROCESSES 1024

/* Two looks at the processes, and the time between them. */
struct looks {
	struct process_counters *before, *now;
	size_t before_count, now_count;
	double seconds;
};

static double clock_seconds(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static const struct process_counters *earlier(const struct looks *looks, const struct process_counters *process)
{
	for (size_t i = 0; i < looks->before_count; i++)
		if (looks->before[i].pid == process->pid && looks->before[i].device == process->device &&
		    looks->before[i].inode == process->inode)
			return &looks->before[i];
	return NULL;
}

/* Per second. A process that has just begun has none yet; counters that go back are a lie, and say 0. */
static double rate(const struct looks *looks, const struct process_counters *process, enum known_counter counter)
{
	const struct process_counters *before = earlier(looks, process);

	if (!before || process->values[counter] < before->values[counter] || looks->seconds <= 0)
		return 0;
	return (double)(process->values[counter] - before->values[counter]) / looks->seconds;
}

static uint64_t live_qps(const struct process_counters *process)
{
	uint64_t made = process->values[KNOWN_QPS_CREATED], gone = process->values[KNOWN_QPS_DESTROYED];

	return made > gone ? made - gone : 0;
}

/* What ended badly, or had to be thrown away. */
static uint64_t errors(const struct process_counters *process)
{
	static const enum known_counter counters[] = {
		KNOWN_RETRIES_EXHAUSTED, KNOWN_ERROR_NAKS_SENT, KNOWN_ERROR_NAKS_RECEIVED, KNOWN_UDP_BAD_ICRC,
		KNOWN_UDP_MALFORMED,     KNOWN_SHM_MALFORMED,   KNOWN_UDP_SEND_ERRORS,
	};
	uint64_t sum = 0;

	for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++)
		sum += process->values[counters[i]];
	return sum;
}

static const char *links(const struct process_counters *process)
{
	bool shm = process->values[KNOWN_SHM_RUNS_SENT] || process->values[KNOWN_SHM_RUNS_RECEIVED];
	bool udp = process->values[KNOWN_UDP_PACKETS_SENT] || process->values[KNOWN_UDP_PACKETS_RECEIVED];

	return shm && udp ? "shm udp" : shm ? "shm" : udp ? "udp" : "-";
}

/* ---- output ------------------------------------------------------------------------------------------------------ */

static void print_table(const struct looks *looks)
{
	printf("%7s %-15s %5s %10s %10s %10s %9s %8s %8s  %s\n", "PID", "PROGRAM", "QPS", "SENT MB/s", "RECVD MB/s",
	       "PACKETS/s", "RESENT/s", "RNR/s", "ERRORS", "LINKS");
	for (size_t i = 0; i < looks->now_count; i++) {
		const struct process_counters *process = &looks->now[i];
#define RATE(NAME) rate(looks, process, KNOWN_##NAME)

		printf("%7d %-15s %5" PRIu64 " %10.1f %10.1f %10.0f %9.0f %8.0f %8" PRIu64 "  %s\n", (int)process->pid,
		       process->name, live_qps(process), (RATE(SHM_BYTES_SENT) + RATE(UDP_BYTES_SENT)) / 1e6,
		       (RATE(SHM_BYTES_RECEIVED) + RATE(UDP_BYTES_RECEIVED)) / 1e6,
		       RATE(SHM_RUNS_SENT) + RATE(SHM_RUNS_RECEIVED) + RATE(UDP_PACKETS_SENT) +
			       RATE(UDP_PACKETS_RECEIVED),
		       RATE(PACKETS_RESENT), RATE(RNR_NAKS_SENT) + RATE(RNR_NAKS_RECEIVED), errors(process),
		       links(process));
#undef RATE
	}
	if (!looks->now_count)
		puts("no process that this one may look at uses softhca");
}

static void print_json_process(const struct looks *looks, const struct process_counters *process)
{
	printf("  {\"pid\": %d, \"program\": \"", (int)process->pid);
	for (const char *at = process->name; *at; at++)
		printf(*at == '"' || *at == '\\' ? "\\%c" : "%c", *at);
	printf("\", \"qps\": %" PRIu64 ", \"errors\": %" PRIu64 ", \"links\": \"%s\",\n   \"counters\": {",
	       live_qps(process), errors(process), links(process));
	for (int i = 0; i < KNOWN_COUNT; i++)
		printf("%s\"%s\": %" PRIu64, i ? ", " : "", known_counter_names[i], process->values[i]);
	printf("},\n   \"per_second\": {");
	for (int i = 0; i < KNOWN_COUNT; i++)
		printf("%s\"%s\": %.3f", i ? ", " : "", known_counter_names[i], rate(looks, process, i));
	printf("}}");
}

static void print_json(const struct looks *looks)
{
	printf("[");
	for (size_t i = 0; i < looks->now_count; i++) {
		printf("%s\n", i ? "," : "");
		print_json_process(looks, &looks->now[i]);
	}
	puts("\n]");
}

/* ---- time -------------------------------------------------------------------------------------------------------- */

static void look(struct looks *looks, double interval)
{
	struct timespec pause = {(time_t)interval, (long)((interval - (double)(time_t)interval) * 1e9)};
	struct process_counters *spare = looks->before;
	double begin = clock_seconds();

	looks->before = looks->now;
	looks->before_count = looks->now_count;
	looks->now = spare;
	while (nanosleep(&pause, &pause) && errno == EINTR)
		;
	looks->now_count = counters_read(looks->now, MOST_PROCESSES);
	looks->seconds = clock_seconds() - begin;
}

static double interval_of(const char *text)
{
	char *end;
	double seconds;

	if (!text)
		return 1;
	seconds = strtod(text, &end);
	/* Not a number is not in it either. */
	if (*end || !(seconds >= 0.05 && seconds <= 3600))
		tool_fail(EXIT_WRONG_USE, "--interval: 0.05 to 3600 seconds");
	return seconds;
}

int command_top(int argc, char **argv)
{
	const char *own[OWN_OPTION_COUNT] = {0};
	struct looks looks = {.now = calloc(MOST_PROCESSES, sizeof(struct process_counters)),
			      .before = calloc(MOST_PROCESSES, sizeof(struct process_counters))};
	double interval;

	if (own_options_parse(COMMAND_TOP, argc, argv, own))
		tool_fail(EXIT_WRONG_USE, "top: unexpected argument \"%s\"", argv[1]);
	interval = interval_of(own[OPTION_TOP_INTERVAL]);
	if (!looks.now || !looks.before)
		tool_fail(EXIT_FAILURE, "out of memory");
	looks.now_count = counters_read(looks.now, MOST_PROCESSES);
	do {
		look(&looks, interval);
		if (own[OPTION_TOP_JSON]) {
			print_json(&looks);
		} else {
			if (!own[OPTION_TOP_ONCE] && isatty(STDOUT_FILENO))
				fputs("\033[H\033[J", stdout);
			print_table(&looks);
		}
		if (fflush(stdout))
			tool_fail(EXIT_FAILURE, "cannot write the output");
	} while (!own[OPTION_TOP_ONCE]);
	free(looks.before);
	free(looks.now);
	return EXIT_SUCCESS;
}
