/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The model test: random sequences of verbs on random keys, layouts and windows, against a simple model of memory and
 * rights. After each step completions, states, events and every byte of memory are compared.
 *
 *	model [--seed N] [--steps N] [--seconds N] [--seeds N] [--shrink] [--verbose]
 *
 * A quarter of the seeds runs under the connectx profile. Each run is a separate process, so that a crash is reported
 * like a difference. The seed is printed; `--seed N --steps M` repeats a run, `--shrink` finds its relevant steps.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "link.h"
#include "steps.h"
#include "test_clock.h"

enum { MOST_STEPS = 1 << 20, STEPS_OF_A_SEED = 2000, RUN_SECONDS = 120 };

/* Memory shared with the running processes. */
struct shared {
	uint64_t step;
	char text[TEXT_BYTES];
	bool skip[MOST_STEPS];
};

static struct shared *shared;
static bool verbose; /* print each step, not only the failing one */

static void run_steps(uint64_t seed, uint64_t steps)
{
	struct world *world = calloc(1, sizeof(*world));

	if (!world)
		abort();
	alarm(RUN_SECONDS);
	world->model.connectx = seed % 4 == 3;
	setenv("SOFTHCA_PROFILE", world->model.connectx ? "connectx" : "man", 1);
	link_open(seed);
	world->text = shared->text;
	world->choose = choose_for(seed, 0);
	world->next_id = 1;
	shared->step = 0;
	world_open(world);
	for (uint64_t i = 1; i <= steps; i++) {
		world->choose = choose_for(seed, i);
		world->text_used = 0;
		shared->text[0] = 0;
		shared->step = i;
		/* The wr_id of a step's requests does not depend on omitted steps. */
		world->next_id = i * 1000;
		if (shared->skip[i % MOST_STEPS])
			continue;
		say(world, "step %lu:", i);
		step(world);
		if (verbose)
			printf("%s\n", world->text);
	}
	world->text_used = 0;
	say(world, "closing:");
	world_close(world);
	free(world);
}

/* Returns true if the run of @steps steps shows no difference. @quiet: discards its output. */
static bool run(uint64_t seed, uint64_t steps, bool quiet)
{
	pid_t child;
	int status;

	fflush(stdout);
	child = fork();
	if (child == 0) {
		if (quiet && (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr)))
			_exit(1);
		run_steps(seed, steps);
		exit(0);
	}
	if (child < 0 || waitpid(child, &status, 0) != child) {
		perror("fork");
		exit(2);
	}
	if (WIFSIGNALED(status) && !quiet)
		printf("%s\nDIFFERENCE: ended by signal %d (%s)\n", shared->text, WTERMSIG(status),
		       strsignal(WTERMSIG(status)));
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Omits ever smaller groups of steps, as long as the run fails without them. */
static void shrink(uint64_t seed, uint64_t steps)
{
	uint64_t left = 0;

	for (uint64_t size = steps / 2; size; size /= 2) {
		for (uint64_t first = 1; first <= steps; first += size) {
			uint64_t end = first + size <= steps + 1 ? first + size : steps + 1;
			bool before[MOST_STEPS / 64];
			uint64_t count = end - first;

			if (count > sizeof(before) / sizeof(before[0]))
				continue;
			memcpy(before, &shared->skip[first], count * sizeof(bool));
			memset(&shared->skip[first], true, count * sizeof(bool));
			if (run(seed, steps, true))
				memcpy(&shared->skip[first], before, count * sizeof(bool));
		}
	}
	for (uint64_t i = 1; i <= steps; i++)
		left += !shared->skip[i];
	printf("%lu steps that matter:\n", left);
	verbose = true;
	run(seed, steps, false);
}

static bool test_seed(uint64_t seed, uint64_t steps, bool shrinks)
{
	double start = seconds_now();

	printf("# seed %lu, %lu steps\n", seed, steps);
	if (run(seed, steps, false)) {
		printf("# %.1f s\n", seconds_now() - start);
		return true;
	}
	printf("repeat it with --seed %lu --steps %lu\n", seed, shared->step);
	if (shrinks)
		shrink(seed, shared->step);
	return false;
}

static uint64_t fresh_seed(void)
{
	uint32_t seed;

	if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		seed = (uint32_t)time(NULL);
	return seed;
}

static void usage(void)
{
	fprintf(stderr, "usage: model [--seed N] [--steps N] [--seconds N] [--seeds N] [--shrink] [--verbose]\n");
	exit(2);
}

static uint64_t number(const char *text)
{
	char *end;
	uint64_t value = strtoull(text, &end, 0);

	if (!*text || *end)
		usage();
	return value;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"seed", required_argument, NULL, 's'},
		{"steps", required_argument, NULL, 'n'},
		{"seconds", required_argument, NULL, 't'},
		{"seeds", required_argument, NULL, 'c'},
		{"shrink", no_argument, NULL, 'r'},
		{"verbose", no_argument, NULL, 'v'},
		{0},
	};
	uint64_t seed = 0, steps = STEPS_OF_A_SEED, seconds = 0, seeds = 8, passed = 0, failed = 0;
	bool one = false, shrinks = false;
	double end;

	for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
		switch (option) {
		case 's':
			seed = number(optarg);
			one = true;
			break;
		case 'n':
			steps = number(optarg);
			break;
		case 't':
			seconds = number(optarg);
			break;
		case 'c':
			seeds = number(optarg);
			break;
		case 'r':
			shrinks = true;
			break;
		case 'v':
			verbose = true;
			break;
		default:
			usage();
		}
	}
	if (optind != argc || steps >= MOST_STEPS)
		usage();
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return 2;
	if (one)
		return test_seed(seed, steps, shrinks) ? 0 : 1;
	end = seconds_now() + (double)seconds;
	/* The same seeds every time, and new ones: one, or as many as there is time for. */
	for (uint64_t i = 1; i <= seeds + 1 || seconds_now() < end; i++) {
		if (test_seed(i <= seeds ? i : fresh_seed(), steps, shrinks))
			passed++;
		else
			failed++;
	}
	printf("%lu seeds passed, %lu failed\n", passed, failed);
	return failed ? 1 : 0;
}
