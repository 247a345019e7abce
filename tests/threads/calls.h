/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Each call of both libraries, as a row of a table: for tests that must leave none out (fork.c, cancel.c). calls_complete()
 * compares the table with the tables of symbols in src/abi/.
 */
#ifndef SOFTHCA_TESTS_THREADS_CALLS_H
#define SOFTHCA_TESTS_THREADS_CALLS_H

#include "fixture.h"

/* What the calls have in common; made before they are made, and inherited by forked children. */
struct calls_world {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_mr *mr;
	char *buffer; /* of the region; CALLS_BUFFER bytes */
};

enum { CALLS_BUFFER = 4096 };

struct call {
	const char *symbols; /* that it covers, separated by blanks; inline functions of the headers as well */
	/* Makes its own objects over those of the world, uses them, and destroys them. Any thread, many at a time. */
	void (*make)(struct calls_world *world);
};

extern const struct call calls[];
extern const size_t calls_count;

void calls_open(struct calls_world *world);
void calls_close(struct calls_world *world);

/* Ends the program unless each symbol that is implemented is covered by a call, or listed as one that takes no lock. */
void calls_complete(void);

#endif
