/* SPDX-License-Identifier: BSD-2-Clause */
/* Rounds of measurements, see bench.h. */
#include "bench.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

double now_ns(void)
{
	struct timespec now;

	/* CPU time of this thread, which excludes other programs. Nothing measured here blocks. */
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

void die(const char *format, ...)
{
	va_list args;

	fputs("bench: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

void *allocate(size_t size)
{
	void *memory = calloc(1, size);

	if (!memory)
		die("out of memory");
	return memory;
}

bool group_wanted(const struct bench *bench, const char *group)
{
	size_t length = bench->only ? strlen(bench->only) : 0;

	return !strncmp(bench->only ? bench->only : "", group, length < strlen(group) ? length : strlen(group));
}

void add_case(struct bench *bench, const struct bench_case *new_case, const char *name, ...)
{
	struct bench_case *added;
	va_list args;

	if (!group_wanted(bench, new_case->group))
		return;
	bench->cases = realloc(bench->cases, (bench->case_count + 1) * sizeof(*bench->cases));
	if (!bench->cases)
		die("out of memory");
	added = &bench->cases[bench->case_count++];
	*added = *new_case;
	if (!added->batch)
		added->batch = 1;
	if (!added->yardstick_batch)
		added->yardstick_batch = 1;
	va_start(args, name);
	vsnprintf(added->name, sizeof(added->name), name, args);
	va_end(args);
}

static double time_of(work_fn *work, void *subject, uint64_t count)
{
	double start = now_ns();

	work(subject, count);
	return now_ns() - start;
}

/* Returns how often @work runs in a slice, and warms it up. */
static uint64_t calibrate(work_fn *work, void *subject, double slice_ns)
{
	uint64_t count = 1;
	double took;

	while ((took = time_of(work, subject, count)) < slice_ns / 8)
		count *= 2;
	count = (uint64_t)((double)count * slice_ns / took);
	return count ? count : 1;
}

static double yardstick_time(struct bench_case *c)
{
	if (!c->yardstick)
		return 0;
	return time_of(c->yardstick, c->yardstick_subject, c->yardstick_count) /
	       ((double)c->yardstick_count * c->yardstick_batch);
}

static double peer_time(struct bench_case *c)
{
	if (!c->peer)
		return 0;
	return time_of(c->peer, c->peer_subject, c->peer_count) / (double)c->peer_count;
}

static double thing_time(struct bench_case *c)
{
	return time_of(c->run, c->subject, c->count) / ((double)c->count * c->batch);
}

static void prepare(const struct bench_case *c)
{
	if (c->prepare)
		c->prepare(c->prepare_subject);
}

/* The order alternates, so that none always benefits from caches that another one filled. */
static void measure_round(struct bench_case *c, unsigned int round)
{
	prepare(c);
	if (round & 1) {
		c->ns[round] = thing_time(c);
		c->yardstick_ns[round] = yardstick_time(c);
		c->peer_ns[round] = peer_time(c);
	} else {
		c->peer_ns[round] = peer_time(c);
		c->yardstick_ns[round] = yardstick_time(c);
		c->ns[round] = thing_time(c);
	}
	c->ratio[round] = c->yardstick_ns[round] / c->ns[round];
	if (c->goal == GOAL_TIME)
		c->ratio[round] = 1 / c->ratio[round];
	if (c->peer)
		c->peer_ratio[round] = c->yardstick_ns[round] / c->peer_ns[round];
}

void measure(struct bench *bench, bool threads)
{
	for (size_t i = 0; i < bench->case_count; i++) {
		struct bench_case *c = &bench->cases[i];

		if (c->threads != threads)
			continue;
		prepare(c);
		c->count = calibrate(c->run, c->subject, bench->slice_ns);
		if (c->yardstick)
			c->yardstick_count = calibrate(c->yardstick, c->yardstick_subject, bench->slice_ns);
		if (c->peer)
			c->peer_count = calibrate(c->peer, c->peer_subject, bench->slice_ns);
	}
	for (unsigned int round = 0; round < bench->rounds; round++)
		for (size_t i = 0; i < bench->case_count; i++)
			if (bench->cases[i].threads == threads)
				measure_round(&bench->cases[i], round);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

struct stat3 statistics(const double *values, unsigned int count)
{
	double sorted[ROUNDS_MAX];

	memcpy(sorted, values, count * sizeof(*sorted));
	qsort(sorted, count, sizeof(*sorted), compare);
	return (struct stat3){
		.median = count & 1 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2,
		.min = sorted[0],
		.max = sorted[count - 1],
	};
}
