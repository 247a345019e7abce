/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The model test of commands: runs seeds of random steps, see world.h, in one process, which reports a difference and
 * ends; its parent then prints how to repeat the run. At the end there are as many descriptors and mappings as after the
 * first seed.
 */
#include "world.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* Current activity of the process, which its parent reports if the process ends. */
static struct {
	uint64_t seed, step;
} * doing;

static unsigned int count_lines(const char *path)
{
	FILE *file = fopen(path, "r");
	unsigned int lines = 0;

	for (int c; file && (c = getc(file)) != EOF;)
		lines += c == '\n';
	if (file)
		fclose(file);
	return lines;
}

/* Counts descriptors except sockets, through which other processes of the host connect and disconnect. */
static unsigned int count_descriptors(void)
{
	unsigned int count = 0;
	char path[32], target[16];

	for (int fd = 0; fd < 8192; fd++) {
		ssize_t length;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		length = readlink(path, target, sizeof(target));
		count += length > 0 && (length < 7 || memcmp(target, "socket:", 7) != 0);
	}
	return count;
}

static void run_steps(uint64_t seed, uint64_t steps)
{
	static struct world world;

	memset(&world, 0, sizeof(world));
	doing->seed = seed;
	world.choose = choose_for(seed, 0);
	world_open(&world);
	for (uint64_t i = 1; i <= steps; i++) {
		doing->step = i;
		world.choose = choose_for(seed, i);
		step(&world);
	}
	world_close(&world);
}

/* Waits until the threads of the library have opened their descriptors, shortly after their first use. */
static void settle(void)
{
	usleep(200000);
}

static void run(uint64_t first, uint64_t seeds, uint64_t steps)
{
	unsigned int descriptors, mappings, now;

	run_steps(first, steps);
	settle();
	descriptors = count_descriptors();
	mappings = count_lines("/proc/self/maps");
	for (uint64_t i = 0; i < seeds; i++)
		run_steps(first + i, steps);
	settle();
	now = count_descriptors();
	if (now > descriptors)
		difference("the end", "%u descriptors, %u in the beginning", now, descriptors);
	/* The allocator may have a few more or fewer. */
	now = count_lines("/proc/self/maps");
	if (now > mappings + 16)
		difference("the end", "%u mappings, %u in the beginning", now, mappings);
}

static bool test(uint64_t first, uint64_t seeds, uint64_t steps)
{
	pid_t child;
	int status;

	fflush(stdout);
	child = fork();
	if (child == 0) {
		run(first, seeds, steps);
		exit(0);
	}
	if (child < 0 || waitpid(child, &status, 0) != child)
		return false;
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return true;
	printf("seed %lu, step %lu: repeat it with --seed %lu --steps %lu\n", doing->seed, doing->step, doing->seed,
	       doing->step);
	return false;
}

int main(int argc, char **argv)
{
	uint64_t first = 1, seeds = 20, steps = 400;

	for (int i = 1; i + 1 < argc; i += 2) {
		uint64_t value = strtoull(argv[i + 1], NULL, 0);

		if (!strcmp(argv[i], "--seed")) {
			first = value;
			seeds = 1;
		} else if (!strcmp(argv[i], "--seeds")) {
			seeds = value;
		} else if (!strcmp(argv[i], "--steps")) {
			steps = value;
		} else {
			fprintf(stderr, "usage: commands [--seed N] [--seeds N] [--steps N]\n");
			return 2;
		}
	}
	doing = mmap(NULL, sizeof(*doing), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (doing == MAP_FAILED)
		return 2;
	return test(first, seeds, steps) ? 0 : 1;
}
