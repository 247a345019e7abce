/* SPDX-License-Identifier: BSD-2-Clause */
/* Playing a plan on the device, in simulated time, and judging what came of it. */
#ifndef SOFTHCA_TESTS_SIMULATION_PLAY_H
#define SOFTHCA_TESTS_SIMULATION_PLAY_H

#include "ends.h"
#include "plan.h"

/* A completion of a request. */
struct sent {
	uint32_t request;
	uint8_t opcode; /* MLX5_CQE_REQ, MLX5_CQE_REQ_ERR */
	uint8_t syndrome;
	uint32_t bytes; /* of READs and atomics, else 0 */
};

/* What a run showed; memory is where it is. */
struct record {
	uint32_t sent[ENDS];
	struct sent send[ENDS][MOST_REQUESTS];
	uint32_t received[ENDS][TARGETS]; /* at that end */
	struct received receive[ENDS][TARGETS][MOST_RECEIVES];
	bool retried; /* somebody waited for an answer in vain */
	uint64_t time_ns, events;
};

/** Plays @plan, until nothing happens any more. @fair: without weather. */
void play(const struct plan *plan, bool fair, struct record *record);

/** Judges @record against the model of @plan, and memory, keys and queues as they are now; @fair as in play(). */
void judge(const struct plan *plan, bool fair, const struct record *record);
/** Judges two records of one plan: a request, a completion like the other. */
void judge_alike(const struct plan *plan, const struct record *fair, const struct record *record);

/** The run has failed: says why, and ends the program. */
void wrong(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

#endif
