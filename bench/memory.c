/* SPDX-License-Identifier: BSD-2-Clause */
/* Resident memory of idle objects. lookup.c measures keys. */
#include "bench.h"

#include <errno.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

uint64_t resident_bytes(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	unsigned long total, resident;

	if (!file || fscanf(file, "%lu %lu", &total, &resident) != 2)
		die("/proc/self/statm cannot be read");
	fclose(file);
	return (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

void add_memory_row(struct bench *bench, uint64_t objects, uint64_t bytes, const char *name, ...)
{
	struct memory_row *row;
	va_list args;

	bench->rows = realloc(bench->rows, (bench->row_count + 1) * sizeof(*bench->rows));
	if (!bench->rows)
		die("out of memory");
	row = &bench->rows[bench->row_count++];
	row->objects = objects;
	row->bytes = (double)bytes / (double)objects;
	va_start(args, name);
	vsnprintf(row->name, sizeof(row->name), name, args);
	va_end(args);
}

/* Measures pairs in RTS, all over one CQ. */
static void measure_qps(struct bench *bench, struct device *device, uint32_t depth)
{
	uint32_t pairs = bench->quick ? 100 : 500;
	struct pair *pair = allocate(pairs * sizeof(*pair));
	struct ibv_cq *cq = ibv_create_cq(device->context, 16, NULL, NULL, 0);
	uint64_t before, heap;

	if (!cq)
		die("ibv_create_cq: %s", strerror(errno));
	memset(pair, 0xff, pairs * sizeof(*pair));
	malloc_trim(0);
	before = resident_bytes();
	heap = mallinfo2().uordblks;
	for (uint32_t i = 0; i < pairs; i++)
		pair_create(device, &(struct pair_attr){.depth = depth, .cq = cq}, &pair[i]);
	heap = mallinfo2().uordblks - heap;
	add_memory_row(bench, 2 * (uint64_t)pairs, resident_bytes() - before, "idle RC QP of %u + %u WRs", depth,
		       depth);
	/* These have their own pages. */
	add_memory_row(bench, 2 * (uint64_t)pairs, heap, "of which without its rings");
	for (uint32_t i = 0; i < pairs; i++)
		pair_destroy(&pair[i]);
	ibv_destroy_cq(cq);
	free(pair);
}

static void measure_cqs(struct bench *bench, struct device *device, int entries)
{
	uint32_t count = bench->quick ? 100 : 500;
	struct ibv_cq **cq = allocate(count * sizeof(*cq));
	uint64_t before;

	memset(cq, 0xff, count * sizeof(struct ibv_cq *));
	malloc_trim(0);
	before = resident_bytes();
	for (uint32_t i = 0; i < count; i++) {
		cq[i] = ibv_create_cq(device->context, entries, NULL, NULL, 0);
		if (!cq[i])
			die("ibv_create_cq: %s", strerror(errno));
	}
	add_memory_row(bench, count, resident_bytes() - before, "CQ of %d", entries);
	for (uint32_t i = 0; i < count; i++)
		ibv_destroy_cq(cq[i]);
	free(cq);
}

static void measure_mkeys(struct bench *bench, struct device *device, uint16_t entries)
{
	uint32_t count = bench->quick ? 1000 : 10000;
	uint64_t before;

	malloc_trim(0);
	before = resident_bytes();
	for (uint32_t i = 0; i < count; i++) {
		struct mlx5dv_mkey_init_attr attr = {
			.pd = device->pd, .create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT, .max_entries = entries};

		if (!mlx5dv_create_mkey(&attr))
			die("mlx5dv_create_mkey: %s", strerror(errno));
	}
	add_memory_row(bench, count, resident_bytes() - before, "indirect key of %u entries", entries);
}

void measure_memory(struct bench *bench, struct device *device)
{
	static const uint32_t depths[] = {1, 16, 128, 1024};

	if (!group_wanted(bench, "memory"))
		return;
	for (size_t i = 0; i < sizeof(depths) / sizeof(depths[0]); i++)
		measure_qps(bench, device, depths[i]);
	measure_cqs(bench, device, 4);
	measure_cqs(bench, device, 4096);
	measure_mkeys(bench, device, 4);
}
