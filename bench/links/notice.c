/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How soon a thread notices something while another one keeps its processor busy, as a program that polls does: medians of
 * the time from look to look, if it sleeps 20 us between them, and of the time that a wake-up from another processor takes.
 * The lower bounds for a doorbell or an arrival that a thread of the library has to notice on such a processor.
 *
 *	softhca-bench-notice look|wake CPU CPU
 *
 * wake: the first CPU wakes the second. Prints "name value".
 */
#include <linux/futex.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "affinity.h"

enum { ROUNDS = 2000, SLEEP_NS = 20000, PAUSE_US = 50 };

static struct {
	int cpus[2];
	uint32_t round, noticed; /* atomic; the last round that was begun, and noticed */
	bool over;               /* atomic */
} notice;

static double samples[ROUNDS];

static double now_us(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec * 1e6 + (double)time.tv_nsec * 1e-3;
}

static void *keep_busy(void *unused)
{
	(void)unused;
	stay_on(notice.cpus[1]);
	while (!__atomic_load_n(&notice.over, __ATOMIC_RELAXED))
		;
	return NULL;
}

static void *await_wake_ups(void *unused)
{
	(void)unused;
	stay_on(notice.cpus[1]);
	for (uint32_t next = 1; next <= ROUNDS; next++) {
		while (__atomic_load_n(&notice.round, __ATOMIC_ACQUIRE) != next)
			syscall(SYS_futex, &notice.round, FUTEX_WAIT_PRIVATE, next - 1, NULL, NULL, 0);
		__atomic_store_n(&notice.noticed, next, __ATOMIC_RELEASE);
	}
	return NULL;
}

static void measure_wake_ups(void)
{
	stay_on(notice.cpus[0]);
	for (uint32_t round = 1; round <= ROUNDS; round++) {
		double begin = now_us();

		/* The other thread sleeps again by then. */
		while (now_us() - begin < PAUSE_US)
			;
		begin = now_us();
		__atomic_store_n(&notice.round, round, __ATOMIC_RELEASE);
		syscall(SYS_futex, &notice.round, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
		while (__atomic_load_n(&notice.noticed, __ATOMIC_ACQUIRE) != round)
			;
		samples[round - 1] = now_us() - begin;
	}
}

static void measure_looks(void)
{
	const struct timespec nap = {.tv_nsec = SLEEP_NS};

	/* As the library's threads do. */
	prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
	stay_on(notice.cpus[1]);
	for (int i = 0; i < ROUNDS; i++) {
		double begin = now_us();

		nanosleep(&nap, NULL);
		samples[i] = now_us() - begin;
	}
}

static int compare_samples(const void *one, const void *other)
{
	double a = *(const double *)one, b = *(const double *)other;

	return (a > b) - (a < b);
}

static pthread_t thread_start(void *(*body)(void *))
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, body, NULL))
		exit(1);
	return thread;
}

int main(int argc, char **argv)
{
	pthread_t busy;
	bool looks;

	if (argc != 4)
		return 2;
	looks = !strcmp(argv[1], "look");
	notice.cpus[0] = atoi(argv[2]);
	notice.cpus[1] = atoi(argv[3]);
	busy = thread_start(keep_busy);
	if (looks) {
		measure_looks();
	} else {
		pthread_t sleeper = thread_start(await_wake_ups);

		measure_wake_ups();
		pthread_join(sleeper, NULL);
	}
	__atomic_store_n(&notice.over, true, __ATOMIC_RELAXED);
	pthread_join(busy, NULL);
	qsort(samples, ROUNDS, sizeof(*samples), compare_samples);
	printf("%s_us %.1f\n", argv[1], samples[ROUNDS / 2]);
	return 0;
}
