/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An MPI program of one-sided operations with known results: tickets drawn by fetch-and-add, each unique; a counter protected
 * by compare-and-swap; puts and gets of all small sizes and of some large, read back by their owner. The library implements
 * puts and gets by WRITEs and READs, small ones with the response in the CQE, and the others by atomics if the transport has
 * all that it needs, otherwise by messages. Ends with status 1 on a wrong result.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TICKETS = 30, SWAPS = 10, WORDS = 8192 };

/* Bytes: around the sizes that fit into a WQE or a CQE. */
static const int sizes[] = {1, 8, 31, 32, 33, 63, 64, 65, 127, 128, 129, 1024, 4096, 8 * WORDS};

static int rank, ranks;

static void expect(int holds, const char *what, long figure)
{
	if (holds)
		return;
	fprintf(stderr, "rank %d: wrong result of %s: %ld\n", rank, what, figure);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Window of all ranks: words 0 and 1 of rank 0 are the counters, the others are for puts. */
static uint64_t *base;
static MPI_Win window;

static void tickets(void)
{
	const uint64_t one = 1;
	uint64_t *mine = calloc((size_t)TICKETS * (size_t)ranks, sizeof(*mine)), ticket, last = 0;
	char *taken = calloc((size_t)TICKETS, (size_t)ranks);

	for (int i = 0; i < TICKETS; i++) {
		MPI_Fetch_and_op(&one, &ticket, MPI_UINT64_T, 0, 0, MPI_SUM, window);
		MPI_Win_flush(0, window);
		expect(i == 0 || ticket > last, "a ticket that is not above the one before", (long)ticket);
		mine[rank * TICKETS + i] = last = ticket;
	}
	MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, mine, TICKETS, MPI_UINT64_T, MPI_COMM_WORLD);
	for (int i = 0; i < TICKETS * ranks; i++) {
		expect(mine[i] < (uint64_t)(TICKETS * ranks) && !taken[mine[i]], "fetch-and-add", (long)mine[i]);
		taken[mine[i]] = 1;
	}
	free(mine);
	free(taken);
}

static void swaps(void)
{
	uint64_t seen = 0, old, next;

	for (int done = 0; done < SWAPS;) {
		next = seen + 1;
		MPI_Compare_and_swap(&next, &seen, &old, MPI_UINT64_T, 0, 1, window);
		MPI_Win_flush(0, window);
		done += old == seen;
		seen = old == seen ? next : old;
	}
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Fetch_and_op(&seen, &old, MPI_UINT64_T, 0, 1, MPI_NO_OP, window);
	MPI_Win_flush(0, window);
	expect(old == (uint64_t)(SWAPS * ranks), "compare-and-swap", (long)old);
}

static uint8_t byte_of(int from, int size, int at)
{
	return (uint8_t)(from * 31 + size * 7 + at * 13 + 1);
}

/* Puts to the next rank, which reads the data; the previous rank reads its own back from there. */
static void puts_and_gets(int size)
{
	static uint8_t out[8 * WORDS], in[8 * WORDS];
	int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
	uint8_t *here = (uint8_t *)(base + 2);

	for (int i = 0; i < size; i++)
		out[i] = byte_of(rank, size, i);
	memset(in, 0, (size_t)size);
	MPI_Put(out, size, MPI_BYTE, next, 2, size, MPI_BYTE, window);
	MPI_Win_flush(next, window);
	MPI_Get(in, size, MPI_BYTE, next, 2, size, MPI_BYTE, window);
	MPI_Win_flush(next, window);
	expect(memcmp(in, out, (size_t)size) == 0, "a get", size);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_sync(window);
	for (int i = 0; i < size; i++)
		expect(here[i] == byte_of(previous, size, i), "a put", size);
	MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	MPI_Win_allocate((WORDS + 2) * 8, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &window);
	memset(base, 0, (WORDS + 2) * 8);
	MPI_Win_lock_all(0, window);
	MPI_Win_sync(window);
	MPI_Barrier(MPI_COMM_WORLD);
	tickets();
	swaps();
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		puts_and_gets(sizes[i]);
	MPI_Win_unlock_all(window);
	MPI_Win_free(&window);
	if (rank == 0)
		printf("%d ranks: tickets, swaps, puts and gets are right\n", ranks);
	MPI_Finalize();
	return 0;
}
