/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Latency of a cache line from one CPU to another: half the time that two threads need to pass it back and forth. The lower
 * bound for any message between them.
 *
 *	softhca-bench-c2c CPU CPU
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "affinity.h"

enum { TURNS = 300000, ROUNDS = 5 };

static struct {
	uint64_t turn __attribute__((aligned(128)));
	uint8_t unused[120];
} line;

static int cpus[2];

static void play(uint64_t parity)
{
	for (uint64_t i = 0; i < TURNS; i++) {
		while (__atomic_load_n(&line.turn, __ATOMIC_ACQUIRE) != 2 * i + parity)
			;
		__atomic_store_n(&line.turn, 2 * i + parity + 1, __ATOMIC_RELEASE);
	}
}

static void *other(void *unused)
{
	(void)unused;
	stay_on(cpus[1]);
	play(1);
	return NULL;
}

static double now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

int main(int argc, char **argv)
{
	double best = 0;

	if (argc != 3)
		return 2;
	cpus[0] = atoi(argv[1]);
	cpus[1] = atoi(argv[2]);
	stay_on(cpus[0]);
	for (int i = 0; i < ROUNDS; i++) {
		pthread_t thread;
		double begin, took;

		line.turn = 2 * (uint64_t)TURNS; /* no thread's turn before both have started */
		if (pthread_create(&thread, NULL, other, NULL))
			return 1;
		begin = now_ns();
		__atomic_store_n(&line.turn, 0, __ATOMIC_RELEASE);
		play(0);
		pthread_join(thread, NULL);
		took = (now_ns() - begin) / TURNS / 2;
		if (!best || took < best)
			best = took;
	}
	printf("half_round_trip_us %.4f\n", best / 1e3);
	return 0;
}
