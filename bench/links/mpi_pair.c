/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The same by MPI, to compare with: messages of one rank to another, from and to ordinary memory.
 *
 *	mpirun -np 2 mpi_pair latency|bandwidth SIZE SECONDS CPU CPU
 *
 * Rank 0 prints "name value".
 */
#include <mpi.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOW = 16 };

static int rank, size;
static char *buffer;

static void bounce(long count)
{
	for (long i = 0; i < count; i++) {
		if (rank == 0)
			MPI_Send(buffer, size, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
		MPI_Recv(buffer, size, MPI_CHAR, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (rank == 1)
			MPI_Send(buffer, size, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
	}
}

static void pour(long count)
{
	MPI_Request requests[WINDOW];

	for (long i = 0; i < count; i += WINDOW) {
		for (int j = 0; j < WINDOW; j++) {
			if (rank == 0)
				MPI_Isend(buffer, size, MPI_CHAR, 1, 0, MPI_COMM_WORLD, &requests[j]);
			else
				MPI_Irecv(buffer, size, MPI_CHAR, 0, 0, MPI_COMM_WORLD, &requests[j]);
		}
		MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
	}
	/* The last message has arrived. */
	if (rank == 0)
		MPI_Recv(buffer, 1, MPI_CHAR, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	else
		MPI_Send(buffer, 1, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
	int latency;
	long count = WINDOW;
	double seconds, took = 0;
	cpu_set_t set;

	if (argc != 6)
		return 2;
	latency = strcmp(argv[1], "latency") == 0;
	size = atoi(argv[2]);
	seconds = atof(argv[3]);
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	CPU_ZERO(&set);
	CPU_SET((size_t)atoi(argv[4 + rank]), &set);
	sched_setaffinity(0, sizeof(set), &set);
	buffer = malloc((size_t)size + 1);
	if (!buffer)
		MPI_Abort(MPI_COMM_WORLD, 1);
	memset(buffer, rank, (size_t)size);
	for (int i = 0; i < 3; i++) {
		MPI_Bcast(&count, 1, MPI_LONG, 0, MPI_COMM_WORLD);
		MPI_Barrier(MPI_COMM_WORLD);
		took = -MPI_Wtime();
		latency ? bounce(count) : pour(count);
		took += MPI_Wtime();
		if (i < 2) {
			count = (long)((i ? seconds : seconds / 10) * (double)count / took);
			count = (count / WINDOW + 1) * WINDOW;
		}
	}
	if (rank == 0 && latency)
		printf("half_round_trip_us %.4f\n", took * 1e6 / (double)count / 2);
	else if (rank == 0)
		printf("bytes_per_second %.0f\n", (double)size * (double)count / took);
	MPI_Finalize();
	return 0;
}
