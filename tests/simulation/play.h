/* SPDX-License-Identifier: BSD-2-Clause */
/* Plays a plan on the device, in simulated time, and checks the result. */
#ifndef SOFTHCA_TESTS_SIMULATION_PLAY_H
#define SOFTHCA_TESTS_SIMULATION_PLAY_H

#include "ends.h"
#include "plan.h"

/* A completion of a request. */
struct sent {
	uint32_t request;
	uint8_t opcode; /* MLX5_CQE_REQ, MLX5_CQE_REQ_ERR */
	uint8_t syndrome;
	uint32_t bytes; /* of READs and atomics, otherwise 0 */
};

/* The record of a run; memory is not copied. */
struct record {
	uint32_t sent[ENDS];
	struct sent send[ENDS][MOST_REQUESTS];
	uint32_t received[ENDS][TARGETS]; /* at that end */
	struct received receive[ENDS][TARGETS][MOST_RECEIVES];
	bool retried; /* a wait for an answer timed out */
	uint64_t time_ns, events;
};

/** Plays @plan until nothing happens any more. @fair: without weather. */
void play(const struct plan *plan, bool fair, struct record *record);

/** Checks @record against the model of @plan, and the present memory, keys and queues; @fair as in play(). */
void judge(const struct plan *plan, bool fair, const struct record *record);
/** Compares two records of one plan: each completion must match. */
void judge_alike(const struct plan *plan, const struct record *fair, const struct record *record);

/** Reports a failed run with its reason, and ends the program. */
void wrong(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

#endif
