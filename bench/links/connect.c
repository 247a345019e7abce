/* SPDX-License-Identifier: BSD-2-Clause */
/* Cost of connections before they carry data: time, memory, CPU. */
#include "pair.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* Returns the resident bytes of this process; memory shared by two processes counts in both. */
static double resident(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	unsigned long pages;

	if (!file || fscanf(file, "%*u %lu", &pages) != 1)
		die("/proc/self/statm");
	fclose(file);
	return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

static void exchange(struct pair *pair, const void *own, void *peer, size_t length)
{
	/* One after the other: this much need not fit into the buffers of both directions. */
	if (pair->is_client) {
		tcp_send(pair, own, length);
		tcp_receive(pair, peer, length);
	} else {
		tcp_receive(pair, peer, length);
		tcp_send(pair, own, length);
	}
}

/* Creates and connects @count QPs, and sends a WRITE through each. */
static void connect_many(struct pair *pair, struct ibv_qp **qps, uint32_t count)
{
	struct {
		union ibv_gid gid;
		uint64_t target;
		uint32_t rkey;
	} own = {pair->gid, (uintptr_t)pair->target, pair->target_mr->rkey}, peer;
	uint32_t *numbers = calloc(count, sizeof(*numbers)), *theirs = calloc(count, sizeof(*theirs)), done = 0;

	if (!numbers || !theirs)
		die("no memory");
	for (uint32_t i = 0; i < count; i++) {
		qps[i] = pair_create_qp(pair);
		numbers[i] = qps[i]->qp_num;
	}
	exchange(pair, &own, &peer, sizeof(own));
	exchange(pair, numbers, theirs, count * sizeof(*numbers));
	pair->remote = peer.target;
	pair->rkey = peer.rkey;
	for (uint32_t i = 0; i < count; i++)
		pair_connect_qp(pair, qps[i], &peer.gid, theirs[i]);
	tcp_meet(pair);
	for (uint32_t i = 0; i < count && pair->is_client; i++) {
		pair->qp = qps[i];
		post_write(pair, 8, 0, true);
		while (i + 1 - done >= DEPTH)
			done += take(pair->send_cq);
	}
	while (pair->is_client && done < count)
		done += take(pair->send_cq);
	tcp_meet(pair);
	free(numbers);
	free(theirs);
}

void test_connect(const struct options *options)
{
	static struct pair pair;
	struct ibv_qp **qps = calloc(options->count + 1, sizeof(struct ibv_qp *)), *first;
	double before, one, begin, took;

	if (!qps)
		die("no memory");
	pair_open_device(&pair, options);
	/* The first QP initializes the device's tables; the peer's share belongs to the pair of processes. */
	first = pair_create_qp(&pair);
	before = resident();
	connect_many(&pair, qps + options->count, 1);
	one = resident();
	begin = now();
	connect_many(&pair, qps, options->count);
	took = now() - begin;
	if (pair.is_client) {
		printf("seconds %.4f\n", took);
		printf("bytes_per_process_pair %.0f\n", one - before);
		printf("bytes_per_connection %.0f\n", (resident() - one) / options->count);
	}
	tcp_meet(&pair);
	(void)first;
	free(qps);
}

static double cpu_seconds(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	       1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

void test_idle(const struct options *options)
{
	static struct pair pair;
	double begin, cpu, share, peers;

	pair_open(&pair, options);
	for (int i = 0; i < 1000; i++) {
		post_write(&pair, 8, 0, true);
		while (!take(pair.send_cq))
			;
	}
	tcp_meet(&pair);
	/* Lets the thread that polled for it go to sleep. */
	usleep(300000);
	cpu = cpu_seconds();
	begin = now();
	usleep((useconds_t)(options->seconds * 1e6));
	share = (cpu_seconds() - cpu) / (now() - begin);
	tcp_send(&pair, &share, sizeof(share));
	tcp_receive(&pair, &peers, sizeof(peers));
	if (pair.is_client)
		printf("cpu_share %.6f\n", share > peers ? share : peers);
	tcp_meet(&pair);
}
