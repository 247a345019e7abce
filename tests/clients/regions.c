/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A preload that keeps the content of registered memory: ibv_dereg_mr(3) first writes it to the file $KEEP_REGIONS.N, N = 0, 1, ….
 * perftest does not verify its data, and fills its buffers at random; the runner compares both ends.
 */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include <infiniband/verbs.h>

#pragma GCC visibility push(default)
int ibv_dereg_mr(struct ibv_mr *mr);
#pragma GCC visibility pop

static void keep(const struct ibv_mr *mr)
{
	static atomic_int count;
	const char *prefix = getenv("KEEP_REGIONS");
	char path[512];
	FILE *file;

	if (!prefix)
		return;
	snprintf(path, sizeof(path), "%s.%d", prefix, atomic_fetch_add(&count, 1));
	file = fopen(path, "wb");
	if (!file || fwrite(mr->addr, 1, mr->length, file) != mr->length || fclose(file)) {
		perror(path);
		exit(1);
	}
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	int (*next)(struct ibv_mr *) = (int (*)(struct ibv_mr *))dlsym(RTLD_NEXT, __func__);

	keep(mr);
	return next(mr);
}
