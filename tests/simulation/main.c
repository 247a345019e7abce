/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Deterministic simulation: two ends of the device over a link with weather, in simulated time. The plan of a seed
 * (plan.h) is played three times: over a link that accepts everything at once, over its own link without mishaps, where
 * no request may wait for a time-out, and in its weather. Each must give the memory and the completions of a model of
 * the operations, and all give the same.
 *
 *	simulation [--seed N] [--runs M] [--seconds S] [--immediate] [--verbose] [--trace]
 *
 * SIMULATION_SECONDS in the environment overrides --seconds (CI).
 *
 * Plays seed N, N + 1, …, M of them, or as many as S seconds allow. The seed alone determines a run: `--seed N --runs 1`
 * replays it, `--verbose` prints its plan, `--trace` each of its packets; `--immediate` makes the link accept everything
 * at once.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "play.h"
#include "weather.h"
#include "test_clock.h"

/* Progress that the playing process reports to its parent. */
struct progress {
	uint64_t seed, runs, packets, lost, doubled, late, joined, busy, simulated_ns;
};

static struct progress *progress;
static struct plan plan;
static bool verbose, immediate, traced;

static void tell(const char *how, const struct record *record)
{
	if (verbose)
		printf("  %s: %lu events, %lu packets, %lu lost, %lu doubled, %lu late, %lu times busy, %.3f ms\n", how,
		       record->events, weather_log.sent, weather_log.lost, weather_log.doubled, weather_log.late,
		       weather_log.busy, (double)record->time_ns * 1e-6);
}

static void count(const struct record *record)
{
	progress->runs++;
	progress->packets += weather_log.sent;
	progress->lost += weather_log.lost;
	progress->doubled += weather_log.doubled;
	progress->late += weather_log.late;
	progress->joined += weather_log.joined;
	progress->busy += weather_log.busy;
	progress->simulated_ns += record->time_ns;
}

static void draw(uint64_t seed)
{
	plan_draw(&plan, seed);
	if (immediate) {
		plan.immediate = true;
		plan.most = plan.window = plan.weather.busy = 0;
	}
	plan_carry_out(&plan);
}

static void play_one(const char *how, bool fair, struct record *record)
{
	play(&plan, fair, record);
	tell(how, record);
	judge(&plan, fair, record);
	ends_finish();
	weather_end(ends_hca);
}

/* Removes losses and failures of connections from the plan. */
static void calm_down(void)
{
	plan.mortal = false;
	if (plan.attr.max_dest_rd_atomic < plan.attr.max_rd_atomic)
		plan.attr.max_dest_rd_atomic = plan.attr.max_rd_atomic;
	plan.attr.retry_cnt = plan.attr.rnr_retry = 7;
	plan.weather.drop = plan.weather.twice = plan.weather.late = 0;
	plan.weather.dead_after = 0;
}

static void play_seed(uint64_t seed)
{
	static struct record fair, calm, record;

	progress->seed = seed;
	alarm(60);
	draw(seed);
	if (verbose)
		plan_print(&plan);
	calm_down();
	play_one("fair", true, &fair);
	play_one("calm", false, &calm);
	judge_alike(&plan, &fair, &calm);
	if (calm.retried)
		wrong("an end waits for a message that is never sent");
	draw(seed);
	weather_traced = traced;
	play_one("foul", false, &record);
	weather_traced = false;
	judge_alike(&plan, &fair, &record);
	count(&record);
}

static void play_all(uint64_t seed, uint64_t runs, double seconds)
{
	double end = seconds_now() + seconds;

	ends_open();
	for (uint64_t i = 0; seconds > 0 ? seconds_now() < end : i < runs; i++)
		play_seed(seed + i);
}

static int report(int status)
{
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
		printf("%lu runs, %lu packets, %lu lost, %lu doubled, %lu late, %lu joined, %lu times no room, %.1f s simulated\n",
		       progress->runs, progress->packets, progress->lost, progress->doubled, progress->late,
		       progress->joined, progress->busy, (double)progress->simulated_ns * 1e-9);
		return 0;
	}
	if (WIFSIGNALED(status))
		printf("WRONG: signal %d (%s)\n", WTERMSIG(status), strsignal(WTERMSIG(status)));
	printf("repeat it with --seed %lu --runs 1 --verbose\n", progress->seed);
	return 1;
}

static uint64_t number(const char *text)
{
	char *end;
	uint64_t value = strtoull(text, &end, 0);

	if (!*text || *end) {
		fprintf(stderr,
			"usage: simulation [--seed N] [--runs M] [--seconds S] [--immediate] [--verbose] [--trace]\n");
		exit(2);
	}
	return value;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"seed", required_argument, NULL, 's'},
		{"runs", required_argument, NULL, 'r'},
		{"seconds", required_argument, NULL, 't'},
		{"immediate", no_argument, NULL, 'i'},
		{"trace", no_argument, NULL, 'p'},
		{"verbose", no_argument, NULL, 'v'},
		{0},
	};
	uint64_t seed = 1, runs = 1000;
	double seconds = 0;
	int status;
	pid_t child;

	for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
		switch (option) {
		case 's':
			seed = number(optarg);
			break;
		case 'r':
			runs = number(optarg);
			break;
		case 't':
			seconds = (double)number(optarg);
			break;
		case 'i':
			immediate = true;
			break;
		case 'p':
			traced = true;
			break;
		case 'v':
			verbose = true;
			break;
		default:
			number("");
		}
	}
	if (getenv("SIMULATION_SECONDS") && seconds > 0)
		seconds = (double)number(getenv("SIMULATION_SECONDS"));
	progress = mmap(NULL, sizeof(*progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (progress == MAP_FAILED)
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	child = fork();
	if (child == 0) {
		play_all(seed, runs, seconds);
		exit(0);
	}
	if (child < 0 || waitpid(child, &status, 0) != child)
		return 2;
	return report(status);
}
