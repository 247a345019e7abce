/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A table of all calls of both libraries, for tests that must cover every call (fork.c, cancel.c). calls_complete()
 * compares the table with the symbol tables in src/abi/.
 */
#ifndef SOFTHCA_TESTS_THREADS_CALLS_H
#define SOFTHCA_TESTS_THREADS_CALLS_H

#include "fixture.h"

/* Objects that the calls share; created before the first call, and inherited by forked children. */
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
	const char *symbols; /* covered symbols, separated by blanks; inline functions of the headers as well */
	/*
	 * Creates its own objects over those of the world, uses them, and destroys them. Can run in many threads at
	 * once.
	 */
	void (*make)(struct calls_world *world);
};

extern const struct call calls[];
extern const size_t calls_count;

void calls_open(struct calls_world *world);
void calls_close(struct calls_world *world);

/* Ends the program unless each implemented symbol is covered by a call, or listed as one that takes no lock. */
void calls_complete(void);

#endif
