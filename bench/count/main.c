/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs operations for a counter of instructions, see count.h. Prints the environment of the figures, and then a line for each
 * operation, in the order of the dumps: rounds, difference in operations between the dumps of a round, name.
 */
#include "count.h"

#include <dirent.h>
#include <errno.h>
#include <gnu/libc-version.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Whole rounds of all queues, which are 64 deep, so that each wraps as often as on average. */
#define WARM_UP 256
#define FEW 64
#define MANY 192
#define ROUNDS 11

#define BUFFER_BYTES (UINT32_C(64) << 10)

void add_operation(struct operations *operations, const struct operation *operation)
{
	if (operations->count == sizeof(operations->list) / sizeof(operations->list[0]))
		die("more operations than there is room for");
	operations->list[operations->count++] = *operation;
}

/*
 * Lowers the priority of other threads, so that the polling thread that is counted always runs first. Otherwise the work of the
 * device thread would be missing and surplus polls be counted. All threads are on one CPU.
 */
static void put_others_last(void)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *entry;

	if (!tasks)
		die("/proc/self/task: %s", strerror(errno));
	while ((entry = readdir(tasks))) {
		int thread = atoi(entry->d_name);

		if (thread > 0 && thread != gettid() &&
		    sched_setscheduler(thread, SCHED_IDLE, &(struct sched_param){0}) && errno != ESRCH)
			die("sched_setscheduler: %s", strerror(errno));
	}
	closedir(tasks);
}

static void stay_on_this_cpu(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)sched_getcpu(), &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("sched_setaffinity: %s", strerror(errno));
}

static void run_all(const struct operations *operations, const char *group)
{
	for (size_t i = 0; i < operations->count; i++) {
		const struct operation *operation = &operations->list[i];

		operation->run(operation->subject, WARM_UP / operation->batch);
		put_others_last();
		for (int round = 0; round < ROUNDS; round++) {
			counted(operation->run, operation->subject, FEW / operation->batch);
			counted(operation->run, operation->subject, MANY / operation->batch);
		}
		printf("%d %d %s: %s\n", ROUNDS, MANY - FEW, group, operation->name);
	}
}

/* Its existence suffices: a process of one thread needs no atomic operations. */
static void *sleep_on(void *unused)
{
	(void)unused;
	for (;;)
		pause();
	return NULL;
}

static void start_second_thread(void)
{
	pthread_t thread;
	int error = pthread_create(&thread, NULL, sleep_on, NULL);

	if (error)
		die("pthread_create: %s", strerror(error));
}

static void count_local(struct device *device)
{
	struct operations small = {0}, further = {0};

	add_small_operations(&small, device);
	add_further_operations(&further, device);
	run_all(&small, "one thread");
	run_all(&further, "one thread");
	start_second_thread();
	run_all(&small, "several threads");
}

int main(int argc, char **argv)
{
	const char *link = argc == 2 ? argv[1] : "";
	struct operations operations = {0};
	struct device *device;

	if (strcmp(link, "local") != 0 && strcmp(link, "shm") != 0 && strcmp(link, "udp") != 0)
		die("usage: softhca-bench-count local|shm|udp");
#ifdef __x86_64__
	const char *vectors = __builtin_cpu_supports("avx2") ? "AVX2" : "no AVX2";
#else
	const char *vectors = "no AVX2";
#endif
	printf("compiler %s, glibc %s, %s\n", __VERSION__, gnu_get_libc_version(), vectors);
	stay_on_this_cpu();
	setenv("SOFTHCA_LINK", link, 1);
	device = device_open(0, BUFFER_BYTES);
	if (!strcmp(link, "local")) {
		count_local(device);
	} else {
		add_link_operations(&operations, device);
		run_all(&operations, link);
	}
	return 0;
}
