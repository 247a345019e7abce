/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs cases in processes, see batch.h. */
#include "batch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../model/link.h"
#include "draw.h"
#include "run.h"
#include "shrink.h"
#include "test_clock.h"

enum { BATCH = 100, SECONDS = 300, DIFFERENCES = 8, HISTORY = 64 };

/* Memory shared with the processes that run cases. */
struct shared {
	struct abilities abilities;
	uint64_t index; /* of the running case */
	uint64_t cases, transfers, refusals, findings, message_bytes;
	uint64_t operations[OPERATIONS], back, other, faults[FAULTS], structures[STRUCTURES], layouts[LAYOUTS];
	uint64_t sure, found; /* flips that must be found, and the number found */
};

static struct shared *shared;

static void open_run(struct run *run, bool connectx)
{
	alarm(SECONDS);
	setenv("SOFTHCA_PROFILE", connectx ? "connectx" : "man", 1);
	link_open(0);
	run_open(run, connectx);
}

static struct abilities abilities_of(const struct run *run)
{
	/* On a wire a message may be partly written when it is refused; datagrams and UC tolerate loss. */
	return (struct abilities){
		.memcpy = run->world.has_memcpy,
		.datagram_most = run->world.datagram_most,
		.refusals = !link_pipelines(),
		.unreliable = true,
	};
}

int replay_lines(int count, char **lines)
{
	static struct run run;
	struct test_case test_case;

	for (int i = 0; i < count; i++) {
		if (!case_parse(lines[i], &test_case))
			return 2;
		if (!i)
			open_run(&run, test_case.connectx);
		if (test_case.connectx != run.world.connectx) {
			fprintf(stderr, "all cases must be of one profile\n");
			return 2;
		}
		run_case(&run, &test_case);
	}
	run_close(&run);
	printf("no difference: %lu transfers, %lu refusals, %lu errors found\n", run.transfers, run.refusals,
	       run.findings);
	return 0;
}

/* ---- a process ------------------------------------------------------------------------------------------------- */

struct plan {
	uint64_t seed;
	bool flips;
};

static void draw(const struct plan *plan, uint64_t index, struct test_case *test_case)
{
	struct choose choose = choose_for(plan->seed, index);
	bool connectx = index / BATCH % 3 == 2;
	static struct test_case parsed;
	char line[LINE];

	if (plan->flips)
		draw_flip(&choose, &shared->abilities, connectx, test_case);
	else if (index % 12 == 5)
		draw_two_pairs(&choose, &shared->abilities, connectx, test_case);
	else
		draw_case(&choose, &shared->abilities, connectx, test_case);
	case_print(test_case, line);
	if (!case_parse(line, &parsed))
		world_fail("case %lu is none: %s", index, line);
}

/* Compares the error reported by mlx5dv_mkey_check(3) with the one derived from the place of the flipped bit. */
static void expect_flip_found(const struct run *run, const struct test_case *test_case)
{
	enum fault fault, told = run->found[test_case->source.is_key ? SOURCE : TARGET].fault;

	if (!fault_of_flip(test_case, &fault))
		return;
	shared->sure++;
	shared->found += fault != FAULT_NONE;
	if (told != fault)
		world_fail("a flipped bit is found as %d, not as %d", told, fault);
}

static void add_counts(const struct run *run)
{
	shared->transfers += run->transfers;
	shared->refusals += run->refusals;
	shared->findings += run->findings;
	shared->message_bytes += run->message_bytes;
	shared->back += run->back;
	shared->other += run->other;
	for (int i = 0; i < OPERATIONS; i++)
		shared->operations[i] += run->operations[i];
	for (int i = 0; i < FAULTS; i++)
		shared->faults[i] += run->faults[i];
	for (int i = 0; i < STRUCTURES; i++)
		shared->structures[i] += run->structures[i];
	for (int i = 0; i < LAYOUTS; i++)
		shared->layouts[i] += run->layouts[i];
}

static void print_counts(void)
{
	printf("#");
	for (enum operation i = 0; i < OPERATIONS; i++)
		printf(" %s %lu,", operation_name(i), shared->operations[i]);
	printf(" of these %lu from target to source, %lu by the other RC pair\n", shared->back, shared->other);
	printf("# keys: memory only %lu, wire only %lu, same structure %lu, other structure %lu, no signature %lu\n",
	       shared->structures[MEMORY_ONLY], shared->structures[WIRE_ONLY], shared->structures[SAME_STRUCTURE],
	       shared->structures[OTHER_STRUCTURE], shared->structures[NO_SIGNATURE]);
	printf("# keys: list %lu, interleaved %lu; of these over a key %lu, in a key %lu\n", shared->layouts[LIST],
	       shared->layouts[INTERLEAVED], shared->layouts[WITH_KEY_UNDER], shared->layouts[WITH_KEY_OVER]);
	printf("# bad guards %lu, application tags %lu, reference tags %lu\n", shared->faults[FAULT_GUARD],
	       shared->faults[FAULT_APP], shared->faults[FAULT_REF]);
}

__attribute__((noreturn)) static void run_cases(const struct plan *plan, uint64_t first, uint64_t end)
{
	static struct run run;
	static struct test_case test_case;

	open_run(&run, first / BATCH % 3 == 2);
	shared->abilities = abilities_of(&run);
	for (uint64_t i = first; i < end; i++) {
		shared->index = i;
		draw(plan, i, &test_case);
		run_case(&run, &test_case);
		if (plan->flips)
			expect_flip_found(&run, &test_case);
		shared->cases++;
	}
	add_counts(&run);
	run_close(&run);
	exit(0);
}

static bool succeeds(pid_t child, bool quiet)
{
	int status;

	if (child < 0 || waitpid(child, &status, 0) != child) {
		perror("fork");
		exit(2);
	}
	if (WIFSIGNALED(status) && !quiet)
		printf("DIFFERENCE: ended by signal %d (%s)\n", WTERMSIG(status), strsignal(WTERMSIG(status)));
	return WIFEXITED(status) && !WEXITSTATUS(status);
}

static pid_t start(bool quiet)
{
	pid_t child;

	fflush(stdout);
	child = fork();
	if (child == 0 && quiet && (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr)))
		_exit(2);
	return child;
}

/* ---- reporting a difference ------------------------------------------------------------------------------------ */

static bool lines_fail(char **lines, int count, bool quiet)
{
	pid_t child = start(quiet);

	if (child == 0)
		exit(replay_lines(count, lines));
	return !succeeds(child, quiet);
}

static bool case_fails(const struct test_case *test_case)
{
	char line[LINE], *lines[] = {line};

	case_print(test_case, line);
	return lines_fail(lines, 1, true);
}

static void tell_alone(struct test_case *test_case)
{
	char line[LINE], *lines[] = {line};

	shrink(test_case, case_fails);
	case_print(test_case, line);
	printf("the same, simpler:\n  replay '%s'\n", line);
	lines_fail(lines, 1, false);
}

/* Prints the relevant earlier lines. */
static void tell(const struct plan *plan, uint64_t first, uint64_t index)
{
	static char line[HISTORY][LINE];
	char *lines[HISTORY];
	struct test_case test_case;
	int count = 0;

	draw(plan, index, &test_case);
	case_print(&test_case, line[0]);
	printf("in case %lu of seed %lu:\n  replay '%s'\n", index, plan->seed, line[0]);
	if (case_fails(&test_case)) {
		tell_alone(&test_case);
		return;
	}
	first = index - first < HISTORY ? first : index + 1 - HISTORY;
	for (uint64_t i = first; i <= index; i++, count++) {
		draw(plan, i, &test_case);
		case_print(&test_case, line[count]);
		lines[count] = line[count];
	}
	if (!lines_fail(lines, count, true)) {
		printf("not alone, nor after the %d before it: the process began with case %lu\n", count - 1, first);
		return;
	}
	for (int i = count - 2; i >= 0; i--) {
		char *left = lines[i];

		memmove(&lines[i], &lines[i + 1], (size_t)(count - i - 1) * sizeof(lines[0]));
		if (lines_fail(lines, count - 1, true)) {
			count--;
			continue;
		}
		memmove(&lines[i + 1], &lines[i], (size_t)(count - i - 1) * sizeof(lines[0]));
		lines[i] = left;
	}
	printf("after others:\n  replay");
	for (int i = 0; i < count; i++)
		printf(" '%s'", lines[i]);
	printf("\n");
}

unsigned int run_batches(uint64_t seed, uint64_t first, uint64_t cases, bool flips)
{
	struct plan plan = {seed, flips};
	unsigned int differences = 0;
	double begin = seconds_now();

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		exit(2);
	printf("# seed %lu, cases %lu to %lu%s\n", seed, first, first + cases - 1,
	       flips ? " of the corruption campaign" : "");
	for (uint64_t at = first, end = first + cases; at < end && differences < DIFFERENCES;) {
		uint64_t stop = (at / BATCH + 1) * BATCH < end ? (at / BATCH + 1) * BATCH : end;
		pid_t child = start(false);

		if (child == 0)
			run_cases(&plan, at, stop);
		if (succeeds(child, false)) {
			at = stop;
			continue;
		}
		differences++;
		stop = shared->index;
		tell(&plan, at, stop);
		at = stop + 1;
	}
	printf("# %lu cases, %lu transfers of %.1f MB, %lu refusals, %lu errors found, %u differences; %.1f s, %.0f cases/s\n",
	       shared->cases, shared->transfers, (double)shared->message_bytes / 1e6, shared->refusals,
	       shared->findings, differences, seconds_now() - begin, (double)shared->cases / (seconds_now() - begin));
	print_counts();
	if (flips)
		printf("# %lu flips certain: %lu found, %lu masked out\n", shared->sure, shared->found,
		       shared->sure - shared->found);
	munmap(shared, sizeof(*shared));
	return differences;
}
