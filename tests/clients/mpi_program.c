/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An MPI program with known results: a ring that passes on a growing sum, an all-to-all in which every word encodes sender and
 * receiver, and a product of matrices, computed in parts by all ranks, compared with the formula of its elements. Sizes cover
 * all the ways in which an MPI library sends: inline, buffered, rendezvous. Ends with status 1 on a wrong word.
 *
 *     mpi_program [ROUNDS]    of the ring; 100
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 100, ORDER = 256 };

static int most_rounds = ROUNDS;

static const int sizes[] = {1, 7, 64, 1000, 8192, 262144}; /* words */

#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

static int rank, ranks;

static void expect(int holds, const char *what, int size)
{
	if (holds)
		return;
	fprintf(stderr, "rank %d: wrong data in the %s with %d words\n", rank, what, size);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

static uint64_t *words(size_t count)
{
	uint64_t *memory = calloc(count, sizeof(*memory));

	if (!memory)
		MPI_Abort(MPI_COMM_WORLD, 2);
	return memory;
}

/* Every rank adds its number plus one to each word; the result is the sum of all. */
static void ring(int size)
{
	uint64_t *token = words((size_t)size), sum = (uint64_t)ranks * (uint64_t)(ranks + 1) / 2;
	int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
	int rounds = size > 8192 ? (most_rounds + 19) / 20 : most_rounds;

	for (int round = 0; round < rounds; round++) {
		if (rank == 0) {
			for (int i = 0; i < size; i++)
				token[i] = (uint64_t)i * 3 + (uint64_t)round + 1;
			MPI_Send(token, size, MPI_UINT64_T, next, round, MPI_COMM_WORLD);
		}
		MPI_Recv(token, size, MPI_UINT64_T, previous, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (rank != 0) {
			for (int i = 0; i < size; i++)
				token[i] += (uint64_t)rank + 1;
			MPI_Send(token, size, MPI_UINT64_T, next, round, MPI_COMM_WORLD);
			continue;
		}
		for (int i = 0; i < size; i++)
			expect(token[i] == (uint64_t)i * 3 + (uint64_t)round + sum, "ring", size);
	}
	free(token);
}

static uint64_t word_of(int from, int to, int i)
{
	return (uint64_t)from << 48 ^ (uint64_t)to << 32 ^ (uint64_t)i * 2654435761u;
}

static void all_to_all(int size)
{
	size_t count = (size_t)size * (size_t)ranks;
	uint64_t *out = words(count), *in = words(count);

	for (int to = 0; to < ranks; to++)
		for (int i = 0; i < size; i++)
			out[(size_t)to * (size_t)size + (size_t)i] = word_of(rank, to, i);
	MPI_Alltoall(out, size, MPI_UINT64_T, in, size, MPI_UINT64_T, MPI_COMM_WORLD);
	for (int from = 0; from < ranks; from++)
		for (int i = 0; i < size; i++)
			expect(in[(size_t)from * (size_t)size + (size_t)i] == word_of(from, rank, i), "all-to-all",
			       size);
	free(out);
	free(in);
}

/*
 * A[i][k] = i + k, B[k][j] = k - j. The sum over k < n of (i + k)(k - j) is
 * S2 + (i - j) S1 - n i j, with S1 = n (n - 1) / 2, S2 = (n - 1) n (2 n - 1) / 6: whole numbers, exact in a double.
 */
static void matrix_product(void)
{
	const double n = ORDER, s1 = n * (n - 1) / 2, s2 = (n - 1) * n * (2 * n - 1) / 6;
	int rows = ORDER / ranks;
	size_t part = (size_t)rows * ORDER;
	double *a = NULL, *c = NULL, *b = calloc((size_t)ORDER * ORDER, sizeof(*b));
	double *a_part = calloc(part, sizeof(*a_part)), *c_part = calloc(part, sizeof(*c_part));

	if (!b || !a_part || !c_part)
		MPI_Abort(MPI_COMM_WORLD, 2);
	if (rank == 0) {
		a = calloc((size_t)ORDER * ORDER, sizeof(*a));
		c = calloc((size_t)ORDER * ORDER, sizeof(*c));
		if (!a || !c)
			MPI_Abort(MPI_COMM_WORLD, 2);
		for (int i = 0; i < ORDER; i++)
			for (int k = 0; k < ORDER; k++) {
				a[i * ORDER + k] = i + k;
				b[i * ORDER + k] = i - k;
			}
	}
	MPI_Bcast(b, ORDER * ORDER, MPI_DOUBLE, 0, MPI_COMM_WORLD);
	MPI_Scatter(a, (int)part, MPI_DOUBLE, a_part, (int)part, MPI_DOUBLE, 0, MPI_COMM_WORLD);
	for (int i = 0; i < rows; i++)
		for (int k = 0; k < ORDER; k++)
			for (int j = 0; j < ORDER; j++)
				c_part[i * ORDER + j] += a_part[i * ORDER + k] * b[k * ORDER + j];
	MPI_Gather(c_part, (int)part, MPI_DOUBLE, c, (int)part, MPI_DOUBLE, 0, MPI_COMM_WORLD);
	for (int i = 0; c && i < ORDER; i++)
		for (int j = 0; j < ORDER; j++)
			expect(c[i * ORDER + j] == s2 + (i - j) * s1 - n * i * j, "matrix product", ORDER * ORDER);
	free(a);
	free(b);
	free(c);
	free(a_part);
	free(c_part);
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (argc > 1)
		most_rounds = atoi(argv[1]);
	if (ORDER % ranks) {
		fprintf(stderr, "the number of ranks must divide %d\n", ORDER);
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	for (size_t i = 0; i < SIZES; i++) {
		ring(sizes[i]);
		all_to_all(sizes[i]);
	}
	matrix_product();
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0)
		printf("%d ranks: ring, all-to-all and matrix product are right\n", ranks);
	MPI_Finalize();
	return 0;
}
