/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two programs that drive their own rings exchange messages and sleep on events in between, as UCX does. No event is lost, and no
 * event arrives without a CQE. The CQs are made by command or by verbs, the consumer index is stored in the record or not, and
 * the programs are two threads or two processes.
 *
 * Usage: api-cq_arming [--rounds N] [--rings commands|verbs] [--peers threads|processes] [--record written|left] [--seed N]
 *
 * Each option restricts the run to some of the combinations; each combination runs N rounds.
 */
#include "support/armed.h"

#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum { ENDS = 2, SILENCE_MS = 30, ROUNDS_OF_A_REPORT = 100000 };

/* Addresses and results of the ends, in memory that the processes share. */
struct board {
	struct armed_address address[ENDS];
	uint32_t arrived[4];  /* atomic; arrivals at each barrier */
	uint64_t waits[ENDS]; /* results */
	uint64_t events[ENDS], empty[ENDS], lost[ENDS];
	double longest[ENDS];
};

struct run {
	struct armed_options options;
	bool processes;
	uint64_t rounds;
	struct board *board;
};

struct job {
	const struct run *run;
	int self;
};

static void barrier(struct board *board, int number)
{
	const struct timespec nap = {.tv_nsec = 1000000};

	__atomic_add_fetch(&board->arrived[number], 1, __ATOMIC_ACQ_REL);
	while (__atomic_load_n(&board->arrived[number], __ATOMIC_ACQUIRE) < ENDS)
		nanosleep(&nap, NULL);
}

/* Pauses in a few rounds, long enough for the device to stop polling the records. */
static void be_silent(uint64_t round)
{
	const struct timespec silence = {.tv_nsec = SILENCE_MS * 1000000L};

	if (round % 4096 == 1000)
		nanosleep(&silence, NULL);
}

static void report_progress(uint64_t round)
{
	if (round && round % ROUNDS_OF_A_REPORT == 0) {
		printf("# %" PRIu64 " rounds\n", round);
		fflush(stdout);
	}
}

/* Answers a burst of one to three messages with another; both ends draw the same lengths. */
static void play(struct armed_end *end, int self, const struct run *run)
{
	uint64_t lengths = run->options.seed;

	for (uint64_t round = 0; round < run->rounds; round++) {
		uint32_t length[ENDS];

		for (int i = 0; i < ENDS; i++) {
			lengths = lengths * 6364136223846793005u + 1442695040888963407u;
			length[i] = 1 + (lengths >> 60) % 3;
		}
		if (self)
			armed_receive(end, length[0]);
		be_silent(round);
		if (armed_random(end, 2))
			armed_arm(end);
		for (uint32_t i = 0; i < length[self]; i++)
			armed_send(end);
		if (!self) {
			armed_receive(end, length[1]);
			report_progress(round);
		}
	}
}

static void *be_end(void *argument)
{
	const struct job *job = argument;
	struct board *board = job->run->board;
	struct armed_options options = job->run->options;
	static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;
	struct armed_end *end = calloc(1, sizeof(*end));
	int self = job->self;

	options.seed = options.seed * 2 + (uint64_t)self;
	/* tests/api/support is not thread safe. */
	pthread_mutex_lock(&opening);
	armed_open(end, &options);
	pthread_mutex_unlock(&opening);
	board->address[self] = armed_address(end);
	barrier(board, 0);
	armed_connect(end, &board->address[!self]);
	barrier(board, 1);
	play(end, self, job->run);
	barrier(board, 2);
	for (int i = 0; i < ARMED_CQS; i++) {
		board->events[self] += end->cq[i].events;
		board->empty[self] += end->cq[i].empty;
	}
	board->waits[self] = end->waits;
	board->lost[self] = end->lost;
	board->longest[self] = end->longest;
	pthread_mutex_lock(&opening);
	armed_close(end);
	pthread_mutex_unlock(&opening);
	free(end);
	return NULL;
}

static void run_threads(const struct run *run)
{
	struct job jobs[ENDS] = {{run, 0}, {run, 1}};
	pthread_t thread;

	if (pthread_create(&thread, NULL, be_end, &jobs[1]))
		_exit(1);
	be_end(&jobs[0]);
	pthread_join(thread, NULL);
}

static pid_t start(const struct run *run, int self)
{
	struct job job = {run, self};
	pid_t child = fork();

	if (child)
		return child;
	/* An end without a peer would wait forever. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (run->processes)
		be_end(&job);
	else
		run_threads(run);
	exit(0);
}

/* Waits for all @count children, and kills the others if one fails. Returns true if all succeeded. */
static bool ended_well(pid_t *child, int count)
{
	bool right = true;

	for (int i = 0; i < count; i++) {
		int status = 0;
		pid_t ended = wait(&status);

		right &= ended > 0 && WIFEXITED(status) && !WEXITSTATUS(status);
		for (int k = 0; k < count; k++) {
			if (child[k] == ended)
				child[k] = 0;
			if (!right && child[k] > 0)
				kill(child[k], SIGKILL);
		}
	}
	return right;
}

/* Runs one combination in children that open the device, so that each run has a fresh one. */
static bool run_one(struct run *run)
{
	double begun = seconds_now();
	int count = run->processes ? ENDS : 1;
	pid_t child[ENDS];
	struct board *board = run->board;
	bool right;

	memset(board, 0, sizeof(*board));
	for (int i = 0; i < count; i++)
		child[i] = start(run, i);
	right = ended_well(child, count);
	right &= !board->lost[0] && !board->lost[1] && !board->empty[0] && !board->empty[1];
	printf("%s: rings by %s, two %s, consumer index %s: %" PRIu64 " rounds in %.1f s, %" PRIu64 " waits, %" PRIu64
	       " events, %" PRIu64 " without a CQE, %" PRIu64 " lost, longest wait %.3f s\n",
	       right ? "ok" : "FAILED", run->options.rings == ARMED_VERBS ? "verbs" : "command",
	       run->processes ? "processes" : "threads", run->options.record ? "written" : "left at 0", run->rounds,
	       seconds_now() - begun, board->waits[0] + board->waits[1], board->events[0] + board->events[1],
	       board->empty[0] + board->empty[1], board->lost[0] + board->lost[1],
	       board->longest[0] > board->longest[1] ? board->longest[0] : board->longest[1]);
	fflush(stdout);
	return right;
}

/* Returns the index of @text in @names, which ends with NULL. */
static int choice(const char *text, const char *const *names)
{
	for (int i = 0; names[i]; i++)
		if (!strcmp(text, names[i]))
			return i;
	fprintf(stderr, "%s: neither %s nor %s\n", text, names[0], names[1]);
	exit(2);
}

int main(int argc, char **argv)
{
	static const struct option known[] = {
		{"rounds", required_argument, NULL, 'n'}, {"rings", required_argument, NULL, 'r'},
		{"peers", required_argument, NULL, 'p'},  {"record", required_argument, NULL, 'c'},
		{"seed", required_argument, NULL, 's'},   {0},
	};
	static const char *const rings[] = {"commands", "verbs", NULL}, *const peers[] = {"threads", "processes", NULL},
				 *const records[] = {"left", "written", NULL};
	int only_rings = -1, only_peers = -1, only_record = -1, option;
	struct run run = {.rounds = 500, .options.seed = 1};
	bool right = true;

	while ((option = getopt_long(argc, argv, "", known, NULL)) >= 0) {
		switch (option) {
		case 'n':
			run.rounds = strtoull(optarg, NULL, 10);
			break;
		case 'r':
			only_rings = choice(optarg, rings);
			break;
		case 'p':
			only_peers = choice(optarg, peers);
			break;
		case 'c':
			only_record = choice(optarg, records);
			break;
		case 's':
			run.options.seed = strtoull(optarg, NULL, 10);
			break;
		default:
			return 2;
		}
	}
	run.board = mmap(NULL, sizeof(*run.board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (run.board == MAP_FAILED)
		return 1;
	for (int i = 0; i < 8; i++) {
		run.options.rings = i & 1 ? ARMED_VERBS : ARMED_COMMANDS;
		run.options.record = i >> 1 & 1;
		run.processes = i >> 2 & 1;
		if ((only_rings < 0 || only_rings == (i & 1)) && (only_record < 0 || only_record == (i >> 1 & 1)) &&
		    (only_peers < 0 || only_peers == (i >> 2 & 1)))
			right &= run_one(&run);
	}
	return !right;
}
