/* SPDX-License-Identifier: BSD-2-Clause */
/* The benchmark's options and order; see bench.h for the method. `make bench` runs it by bench.sh. */
#include "bench.h"

#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Messages of 64 MiB, and of 4 MiB, with the signatures of their blocks. */
#define BUFFER_BYTES (UINT32_C(66) << 20)
#define QUICK_BUFFER_BYTES (UINT32_C(5) << 20)

static const char usage[] = "usage: softhca-bench [--quick] [--rounds N] [--cpu N] [--only GROUP] [--json FILE]\n"
			    "       softhca-bench --loop NAME [--count N] [--only GROUP]\n"
			    "  --quick       a few seconds: short slices, fewer keys, no 64 MiB messages\n"
			    "  --rounds N    7 to 101 rounds (11; 7 with --quick)\n"
			    "  --cpu N       the CPU to stay on (the one it starts on)\n"
			    "  --only GROUP  groups by the beginning of their names: 'bandwidth, one thread',\n"
			    "                'bandwidth, several threads', 'latency, one thread',\n"
			    "                'latency, several threads', 'rate, lists of 32', layouts,\n"
			    "                signatures, 'signatures: CRC32C, 512', ciphers, look-up, memory\n"
			    "  --json FILE   where to write the results as JSON\n"
			    "  --loop NAME   measures nothing: runs the first case of that name, for a profiler\n"
			    "  --count N     that often (10000000)\n";

struct options {
	const char *json, *loop;
	uint64_t count;
};

static unsigned long number(const char *text, unsigned long min, unsigned long max)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (end == text || *end || value < min || value > max)
		die("%s is not a number from %lu to %lu", text, min, max);
	return value;
}

static void parse(int argc, char **argv, struct bench *bench, struct options *chosen)
{
	static const struct option options[] = {
		{"quick", no_argument, NULL, 'q'},
		{"rounds", required_argument, NULL, 'r'},
		{"cpu", required_argument, NULL, 'c'},
		{"only", required_argument, NULL, 'o'},
		{"json", required_argument, NULL, 'j'},
		{"loop", required_argument, NULL, 'l'},
		{"count", required_argument, NULL, 'n'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 'q':
			bench->quick = true;
			break;
		case 'r':
			bench->rounds = (unsigned int)number(optarg, 7, ROUNDS_MAX);
			break;
		case 'c':
			bench->cpu = (int)number(optarg, 0, CPU_SETSIZE - 1);
			break;
		case 'o':
			bench->only = optarg;
			break;
		case 'j':
			chosen->json = optarg;
			break;
		case 'l':
			chosen->loop = optarg;
			break;
		case 'n':
			chosen->count = number(optarg, 1, UINT32_MAX);
			break;
		case 'h':
			fputs(usage, stdout);
			exit(0);
		default:
			fputs(usage, stderr);
			exit(2);
		}
	}
	if (optind < argc) {
		fputs(usage, stderr);
		exit(2);
	}
}

static void stay_on(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("CPU %d: %s", cpu, strerror(errno));
}

/* Its existence suffices: a process of one thread needs no atomic operations. */
static void *sleep_on(void *unused)
{
	(void)unused;
	for (;;)
		pause();
	return NULL;
}

static void add_cases(struct bench *bench)
{
	struct device *device = device_open(0, bench->quick ? QUICK_BUFFER_BYTES : BUFFER_BYTES);

	measure_memory(bench, device);
	add_bandwidth_cases(bench, device);
	add_latency_cases(bench, device);
	add_rate_cases(bench, device);
	add_layout_cases(bench, device);
	add_signature_cases(bench, device);
	add_cipher_cases(bench, device);
	add_lookup_cases(bench);
}

static void start_second_thread(void)
{
	pthread_t thread;
	int error = pthread_create(&thread, NULL, sleep_on, NULL);

	if (error)
		die("pthread_create: %s", strerror(error));
}

static void loop(const struct bench *bench, const struct options *chosen)
{
	for (size_t i = 0; i < bench->case_count; i++) {
		const struct bench_case *c = &bench->cases[i];

		if (strcmp(c->name + strspn(c->name, " "), chosen->loop) != 0)
			continue;
		if (c->threads)
			start_second_thread();
		c->run(c->subject, chosen->count);
		return;
	}
	die("there is no case \"%s\"", chosen->loop);
}

static void measure_all(struct bench *bench)
{
	printf("%u rounds on CPU %d; a ratio of speed is yardstick time / time, one of time the other way round\n",
	       bench->rounds, bench->cpu);
	measure(bench, false);
	report_cases(bench, false);
	start_second_thread();
	measure(bench, true);
	report_cases(bench, true);
	report_memory(bench);
}

int main(int argc, char **argv)
{
	struct bench bench = {.cpu = sched_getcpu()};
	struct options chosen = {.count = 10000000};
	int error;

	parse(argc, argv, &bench, &chosen);
	bench.quick |= chosen.loop != NULL;
	if (!bench.rounds)
		bench.rounds = bench.quick ? 7 : 11;
	bench.slice_ns = bench.quick ? 1e6 : 1e7;
	bench.keys = bench.quick ? 100000 : 1000000;
	stay_on(bench.cpu);
	/* Two key tables, for the lookup. */
	setenv("SOFTHCA_DEVICES", "2", 1);

	add_cases(&bench);
	if (chosen.loop) {
		loop(&bench, &chosen);
		return 0;
	}
	measure_all(&bench);
	if (!chosen.json)
		return 0;
	error = report_json(&bench, chosen.json);
	if (error)
		die("%s: %s", chosen.json, strerror(-error));
	printf("\n%s\n", chosen.json);
	return 0;
}
